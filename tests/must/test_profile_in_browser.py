"""see-b: the page of a profile in a headless Chromium: views, events, requests, first paint."""

import dataclasses
import json
import statistics

import pytest
from selenium.common.exceptions import TimeoutException

from hw.arch.config import named
from hw.arch.errors import BadInputError, HangError
from hw.numeric.formats import bf16
from sim.profile.collect import profile_of
from sim.profile.page_writer import page_of
from sim.profile.schema import parse_profile
from sim.run.driver import compile_job, run
from sim.run.job import Job, Problem
from sw.kernels.flash_attention import flash_attention
from sw.kernels.matmul import matmul
from sw.language import Schedule
from tests.must.test_slots_exact import boundary
from tests.profiled_run import busy_cycles, profiled
from tests.sim.profile.browser import SIZE, Browser
from tilewright import main

pytestmark = pytest.mark.slow

MOST_BYTES, MOST_PAINT = 5 << 20, 10
NARROW = (620, 900)
VIEWS = {
    "overview": "Where the cycles of every unit went",
    "timeline": "Timeline, ",
    "floorplan": "Streams on the mesh",
    "source": "The kernel, line by line",
}
#: A page that paints one letter: without any there is no first paint.
EMPTY = "<!DOCTYPE html><title>empty</title><p>a"
ATTENTION = {"H": 1, "G": 1, "M": 1024, "S": 1024, "D": 128}


@pytest.fixture(scope="module")
def browser():
    with Browser() as found:
        yield found


@pytest.fixture(scope="module")
def profiles():
    sizes = {"M": 48, "N": 32, "K": 32}
    schedules = Schedule(), Schedule(slots={"a_tile": 1, "b_tile": 1})
    return [profiled(matmul, sizes, backend="emulator", schedule=each) for each in schedules]


@pytest.fixture
def file(profiles, tmp_path):
    """Page of one run."""
    return _written(tmp_path, page_of(profiles[:1]))


def _written(folder, page):
    found = folder / "page.html"
    found.write_text(page, encoding="utf-8")
    return found


def _quiet(browser, file):
    """Neither a message in the console, nor a request for anything but the page."""
    assert browser.errors() == []
    outside = [each for each in browser.requests() if not each.startswith(file.as_uri())]
    assert outside == []


def _opened(browser, view):
    """Open a view by its tab, and see it."""
    browser.click(browser.find(f'nav a[href*="view={view}"]'))
    browser.wait(lambda: VIEWS[view] in browser.text("main"))
    assert browser.fields()["view"] == view
    assert browser.find('nav a[aria-selected="true"]').text.lower() == view


def _inside(browser, width):
    """Names of the elements of a view that reach beyond the window."""
    script = """
        const outer = arguments[0];
        const scrolled = (each) => each.parentElement.closest("pre, .wide");
        const beyond = (each) => each.getBoundingClientRect().right > outer + 1;
        return [...document.querySelectorAll("body *")]
          .filter((each) => !scrolled(each) && beyond(each))
          .map((each) => each.outerHTML.slice(0, 80));
    """
    return browser.run(script, width)


@pytest.mark.must("see-b", goal="every view opens, in a wide and in a narrow window")
@pytest.mark.parametrize("size", [SIZE, NARROW], ids=["wide", "narrow"])
def test_every_view_opens(browser, file, size, figure):
    browser.resize(*size)
    browser.open(file)
    assert "matmul" in browser.text("#head") and "VERIFIED" in browser.text("#head")
    for view in VIEWS:
        _opened(browser, view)
        assert _inside(browser, size[0]) == []
    panes = browser.all(".passes pre")
    assert len(panes) == 2 and all(pane.is_displayed() and pane.text for pane in panes)
    _quiet(browser, file)
    browser.resize(*SIZE)
    figure(f"{len(VIEWS)} views, {size[0]} pixels wide")


def _pixels(browser):
    """What is painted on the canvas."""
    return browser.run("return document.querySelector('canvas.rows').toDataURL()")


def _kept(browser, name, right):
    """Field of the address as soon as it is right; the page writes it a moment later."""
    return browser.wait(lambda: right(found := browser.fields().get(name)) and found)


def _span(browser, right):
    """Cycles that are shown as soon as the address has what is right."""

    def found():
        fields = browser.fields()
        span = [int(fields[name]) for name in ("from", "to") if name in fields]
        return len(span) == 2 and right(*span) and span

    return browser.wait(found)


@pytest.mark.must("see-b", goal="zoom, drag, search, hover and click in the timeline")
def test_the_timeline_answers_events(browser, file, profiles, figure):
    cycles = profiles[0]["cycles"]
    browser.open(file)
    _opened(browser, "timeline")
    canvas = browser.find("canvas.rows")
    seen = [browser.wait(lambda: _pixels(browser))]

    def changed():
        seen.append(browser.wait(lambda: (now := _pixels(browser)) != seen[-1] and now))

    for _ in range(4):
        browser.wheel(canvas, -120)
        changed()
    begin, end = _span(browser, lambda a, b: b - a < 0.42 * cycles)
    assert 0 < begin < end < cycles
    browser.drag(canvas, 120)
    changed()
    left, right = _span(browser, lambda a, b: a < begin)
    assert abs(right - left - (end - begin)) <= 1
    browser.click(browser.find(".tools button"))
    changed()
    _span(browser, lambda a, b: (a, b) == (0, cycles))
    browser.click(canvas)
    changed()
    assert 0 < int(_kept(browser, "cycle", bool)) < cycles
    search = browser.find('input[type="search"]')
    search.send_keys("pmu_0_1")
    changed()
    _kept(browser, "search", lambda found: found == "pmu_0_1")
    cards = {_card(browser, canvas, down) for down in range(-150, 150, 9)} - {""}
    assert any("cycles" in each and ":" in each for each in cards)
    assert any("around cycle" in each for each in cards)
    _quiet(browser, file)
    figure(f"{len(seen)} pictures of {cycles:,} cycles, {len(cards)} cards")


def _card(browser, element, down=0):
    browser.hover(element, 0, down)
    return browser.text("#card")


@pytest.mark.must("see-b", goal="play, pause, scrub and hover on the floorplan")
def test_the_floorplan_is_played_and_scrubbed(browser, file, profiles, figure):
    browser.open(file, "#view=floorplan&cycle=0")
    slider, play = browser.find('input[type="range"]'), browser.find(".tools button")

    def cycle():
        return int(browser.text(".tools b").split()[1].replace(",", ""))

    assert cycle() == 0 and play.text == "play"
    browser.click(play)
    browser.wait(lambda: cycle() > 20)
    browser.click(play)
    paused = cycle()
    assert play.text == "play" and paused > 0
    _kept(browser, "cycle", lambda found: found == str(paused))
    browser.click(slider, slider.size["width"] // 4)
    scrubbed = cycle()
    assert scrubbed > profiles[0]["cycles"] / 2
    _kept(browser, "cycle", lambda found: found == str(scrubbed))
    fill = "return [...document.querySelectorAll('.fill')].map((each) => each.outerHTML)"
    before = browser.run(fill)
    slider.send_keys(*["\ue012"] * 200)  # the left arrow
    browser.wait(lambda: browser.run(fill) != before)
    left = cycle()
    assert left < scrubbed - 100
    _opened(browser, "timeline")
    assert browser.fields()["cycle"] == str(left)
    _opened(browser, "floorplan")
    assert cycle() == left
    used = [unit["name"] for unit in profiles[0]["units"] if unit["used"]]
    for name in used:
        card = _card(browser, browser.find(f'[data-unit="{name}"] rect'))
        assert card.startswith(name) and "cycle" in card
    now = [
        f"{block['part']} {block['name']} {block['number']}: moves"
        for block in profiles[0]["blocks"]
        if block["part"][:1] in "WR" and block["part"] and block["begin"] <= left < block["end"]
    ]
    cards = [_card(browser, browser.find(f'[data-unit="{name}"] rect')) for name in used]
    assert now and all(any(words in card for card in cards) for words in now)
    links = [_card(browser, each) for each in browser.all("[data-link]")]
    assert links and all("→" in each for each in links)
    _quiet(browser, file)
    figure(f"{len(used)} units and {len(links)} links explained")


@pytest.mark.must("see-b", goal="an address names view, cycles, search and passes")
def test_an_address_opens_what_it_names(browser, file, figure):
    browser.open(file, "#view=timeline&from=200&to=400&cycle=300&search=pcu")
    assert browser.find('input[type="search"]').get_attribute("value") == "pcu"
    whole = _pixels(browser)
    browser.open(file, "#view=timeline")
    assert browser.wait(lambda: _pixels(browser) != whole)
    browser.open(file, "#view=floorplan&cycle=321")
    assert "cycle 321" in browser.text(".tools")
    browser.open(file, "#view=source&left=trace&right=online")
    chosen = [each.text for each in browser.all(".passes option:checked")]
    assert chosen == ["trace", "online"] and browser.all(".new")
    browser.open(file, "#view=none&cycle=x")
    assert VIEWS["overview"] in browser.text("main")
    _quiet(browser, file)
    figure("timeline, floorplan, source; a foreign view opens the overview")


@pytest.mark.must("see-b", goal="cycles, stalls and bytes of each line of the kernel")
def test_lines_of_the_kernel_have_their_cycles_and_bytes(browser, file, profiles, figure):
    browser.open(file, "#view=source")
    rows = {row.find_element("css selector", "pre").text: row for row in browser.all("[data-line]")}
    load, product = (
        next(row for text, row in rows.items() if text.strip().startswith(words))
        for words in ("b_tile = tw.load_tile", "c = tw.matmul")
    )
    (tensor,) = (each for each in profiles[0]["tensors"] if each["name"] == "B")
    assert load.find_elements("css selector", "td")[3].text == f"{tensor['moved']:,}"
    pcus = [unit for unit in profiles[0]["units"] if unit["kind"] == "pcu" and unit["used"]]
    busy = busy_cycles(profiles[0])
    works = product.find_elements("css selector", "td")[1]
    assert works.text == f"{round(sum(busy[unit['name']] for unit in pcus) / len(pcus)):,}"
    assert all(unit["name"] in _card(browser, works) for unit in pcus)
    _quiet(browser, file)
    figure(f"{len(rows)} lines; product {works.text} cycles, B {tensor['moved']:,} bytes")


@pytest.mark.must("see-b", goal="two runs are compared in one page")
def test_two_runs_are_compared(browser, profiles, tmp_path, figure):
    file = _written(tmp_path, page_of(profiles))
    browser.open(file)
    first, other = (each["cycles"] for each in profiles)
    text = browser.text("main")
    assert "Two runs compared" in text and f"+{other - first:,}" in text and first < other
    assert f"{first:,} cycles" in browser.text("#head .soft")
    browser.find("#head select").send_keys("B")
    browser.wait(lambda: f"{other:,} cycles" in browser.text("#head .soft"))
    _kept(browser, "run", lambda found: found == "1")
    for view in VIEWS:
        _opened(browser, view)
    assert browser.fields()["run"] == "1"
    _quiet(browser, file)
    figure(f"{first:,} and {other:,} cycles")


@pytest.mark.must("see-b", goal="profiles of launches that fail open and say who waits")
def test_launches_that_fail_say_who_waits(browser, tmp_path, heavy, figure):
    words = ["run", "matmul", "--config", "tiny", *"--set M=16 --set N=16 --set K=16".split()]
    ends = {
        "hang": (["--max-cycles", "700"], 4, "no end: 700 cycles"),
        "error": (["--error-at", "read:30:slverr"], 5, "READ_SLVERR of agcu_0"),
    }
    for status, (more, code, words_of_it) in ends.items():
        file = tmp_path / f"{status}.html"
        assert main([*words, *more, "--profile", str(file)]) == code
        browser.open(file)
        assert status.upper() in browser.text("#head")
        assert "VERIFIED" not in browser.text("#head")
        assert words_of_it in browser.text(".message")
        for view in VIEWS:
            _opened(browser, view)
        _quiet(browser, file)
    figure(", ".join(ends))


@pytest.mark.must("see-b", goal="an image that is not live shows its cycle of waits")
def test_a_hang_of_an_image_that_is_not_live_shows_its_cycle(browser, tmp_path, heavy, figure):
    job = Job(Problem(matmul, named["tiny"], dict.fromkeys("MNK", 40), bf16), sample_every=32)
    compiled, fields = compile_job(job)
    number, (_, program, _, _) = next(
        (n, found) for n, part in enumerate(compiled.parts) if (found := boundary(part.chip))
    )
    stuck = dataclasses.replace(compiled.parts[number], chip=program, image=program.pack())
    parts = (*compiled.parts[:number], stuck, *compiled.parts[number + 1 :])
    hanging = dataclasses.replace(compiled, parts=parts)
    answers = []
    with pytest.raises(HangError) as caught:
        run(job, hanging, fields, answers)
    message = str(caught.value)
    profile = profile_of(job, hanging, caught.value.result, answers, message=message)
    browser.open(_written(tmp_path, page_of([profile])))
    shown = browser.text(".message")
    assert "the image is not live" in shown and shown.count("waits for") >= 2
    figure(shown.partition("not live: ")[2][:80])


@pytest.mark.must("see-b", goal="truncated and foreign profiles are refused by their field")
def test_what_is_no_profile_is_refused_by_its_field(profiles, figure):
    whole = json.dumps(profiles[0])
    foreign = {"traceEvents": []}, profiles[0] | {"cycles": "7"}, profiles[0] | {"more": 1}
    for text in (whole[: len(whole) // 2], whole[:-1], *map(json.dumps, foreign)):
        with pytest.raises(BadInputError, match=r"^(Profile must be JSON|Field \w+ of a profile)"):
            parse_profile(text)
    figure("2 truncated, 3 foreign")


def _ratio(browser, file, folder, rounds=7):
    """First paint of a page over that of an empty one, medians of pairs in turns."""
    empty = folder / "empty.html"
    empty.write_text(EMPTY, encoding="utf-8")
    paints = {file: [], empty: []}
    for _ in range(rounds):
        for each, found in paints.items():
            browser.open(each)
            found.append(browser.first_paint())
    medians = [statistics.median(each) for each in paints.values()]
    return medians[0] / medians[1], medians[0]


@pytest.mark.timeout(3600)
@pytest.mark.must("see-b", goal="attention 1k on large: ≤ 5 MB, first paint ≤ 10 × an empty page's")
def test_attention_on_large_is_painted_soon(browser, tmp_path, heavy, figure):
    profile = profiled(flash_attention, ATTENTION, config="large")
    assert not profile["predicted"]
    file = _written(tmp_path, page_of([profile]))
    size = file.stat().st_size
    ratio, paint = _ratio(browser, file, tmp_path)
    figure(f"{size / 1e6:.2f} MB, first paint {paint:.0f} ms, {ratio:.1f} × an empty page's")
    assert size <= MOST_BYTES and ratio <= MOST_PAINT
    browser.open(file)
    for view in VIEWS:
        _opened(browser, view)
        assert _inside(browser, SIZE[0]) == []
    _quiet(browser, file)


@pytest.mark.must("see-b", goal="each check fires on a page that breaks it")
def test_every_check_fires(browser, profiles, tmp_path, figure):
    page = page_of(profiles[:1])

    def planted(old, new):
        assert old in page
        file = _written(tmp_path, page.replace(old, new, 1))
        browser.open(file)
        return file

    late = "for (const end = performance.now() + 1500; performance.now() < end;);"
    faults = {
        "a request": ("</body>", '<img src="http://127.0.0.1:9/a.png"></body>'),
        "an error": ("let redraw = null;", "let redraw = null; setTimeout(() => none(), 1);"),
    }
    for old, new in faults.values():
        file = planted(old, new)
        _opened(browser, "floorplan")
        _opened(browser, "overview")
        with pytest.raises(AssertionError):
            _quiet(browser, file)
    planted("repeat(auto-fit, minmax(min(100%, 480px), 1fr))", "1fr 1fr")
    browser.resize(*NARROW)
    _opened(browser, "source")
    assert _inside(browser, NARROW[0])
    browser.resize(*SIZE)
    planted('"Floorplan",\n  draw(', '"Floorplan",\n  draw() {},\n  drawn(')
    with pytest.raises(TimeoutException):
        _opened(browser, "floorplan")
    file = planted("<body>", f"<body><script>{late}</script>")
    assert _ratio(browser, file, tmp_path, 1)[0] > MOST_PAINT
    figure("a request, an error, a wide view, an empty view, a late paint")
