"""see-g: the guide is followed: its blocks run, its pictures are drawn, its links resolve."""

import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from docs.tools.gallery import COMMITTED, PICTURES, commands, draw
from docs.tools.site import build
from docs.tools.walkthrough import blocks_of, clone_like, walk
from tests.docs.fences import GUIDE, ROOT
from tests.sim.profile.browser import Browser

_BLOCKS = "every block of every page of the guide runs; its output is as shown"
_SITE = "links of the site resolve, pictures are drawn by the build, nothing loads from elsewhere"
_PATH = "install, own kernel verified, profile read, array exported, by the guide's commands alone"
FOLLOWED = [page for page in GUIDE if blocks_of(page)]
#: Elements that load what they name.
LOADING = {"script", "img", "iframe", "source", "link", "audio", "video", "embed", "object"}


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.must("see-g", goal=_BLOCKS)
@pytest.mark.parametrize("page", FOLLOWED, ids=lambda page: page.stem)
def test_a_page_is_followed(page, tmp_path, heavy, figure):
    path = f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    kept = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    environment = kept | {"PATH": path}
    done = walk([page], clone_like(tmp_path / "clone"), tmp_path, environment=environment)
    assert done.error == ""
    assert done.wrong == [], f"run python -m docs.tools.update {page.relative_to(ROOT)}"
    blocks = [blocks_of(each) for each in FOLLOWED]
    outputs = sum(block.output is not None for each in blocks for block in each)
    figure(f"{sum(map(len, blocks))} blocks of {len(FOLLOWED)} pages, {outputs} outputs compared")


class Page(HTMLParser):
    """What a page of the site links to, loads, and can be linked to."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links, self.loads, self.anchors = [], [], set()
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        named = {name: value or "" for name, value in attributes}
        self.anchors |= {named[name] for name in ("id", "name") if name in named}
        if tag == "a" and "href" in named:
            self.links.append(named["href"])
        # A link to the page itself in other forms loads nothing.
        if tag in LOADING and named.get("rel") not in ("canonical", "prev", "next", "alternate"):
            self.loads += [named[name] for name in ("src", "href", "data") if name in named]


def _missing(pages, file, address):
    """Why a local address of a page leads nowhere; None if it does."""
    parts = urlsplit(address)
    target = file if not parts.path else (file.parent / unquote(parts.path)).resolve()
    if not target.is_file():
        return f"{file.name}: {address} must be a file"
    anchor = unquote(parts.fragment)
    if anchor and target in pages and anchor not in pages[target].anchors:
        return f"{file.name}: {address} must be a place in the page"
    return None


def faults(folder):
    """Links that lead nowhere, and what is loaded from elsewhere."""
    files = [file.resolve() for file in sorted(folder.rglob("*.html"))]
    pages = {file: Page(file) for file in files}
    for file, page in pages.items():
        for address in page.loads:
            if urlsplit(address).scheme not in ("", "data") or address.startswith("//"):
                yield f"{file.name}: {address} must not be loaded"
            elif not address.startswith("data:") and (wrong := _missing(pages, file, address)):
                yield wrong
        for address in page.links:
            if not urlsplit(address).scheme and (wrong := _missing(pages, file, address)):
                yield wrong
    for file in sorted(folder.rglob("*.css")):
        for address in re.findall(r"(?:url\(|@import )[\"']?([^)\"']+)", file.read_text()):
            if urlsplit(address).scheme not in ("", "data"):
                yield f"{file.name}: {address} must not be loaded"


@pytest.fixture(scope="module")
def site(tmp_path_factory, heavy_lock):
    """The site, as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("made") / "site"
    with heavy_lock():
        build(folder)
    return folder


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.must("see-g", goal=_SITE)
def test_the_site_is_whole(site, figure):
    assert list(faults(site)) == []
    drawn = {file.name for file in (site / PICTURES).iterdir()}
    pages = [Page(file) for file in site.rglob("*.html")]
    shown = {Path(address).name for page in pages for address in page.loads + page.links}
    assert drawn == set(commands()) <= shown
    for name in COMMITTED:
        made = (site / PICTURES / name).read_bytes()
        assert made == (ROOT / PICTURES / name).read_bytes(), "run make figures"
    links = sum(len(page.links) for page in pages)
    figure(f"{len(pages)} pages, {links} links, {len(drawn)} pictures")


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.must("see-g", goal=_SITE)
def test_the_site_opens_from_disk_and_is_searched(site, figure):
    files = [site / "index.html", *sorted((site / "docs" / "guide").rglob("*.html"))]
    with Browser() as browser:
        for file in files:
            browser.open(file)
            browser.wait(lambda: browser.text("h1"))
            outside = [
                each for each in browser.requests() if not each.startswith((site.as_uri(), "data:"))
            ]
            assert (browser.errors(), outside) == ([], []), file
        browser.open(site / "index.html", "?q=barrier")
        found = browser.wait(lambda: browser.all(".md-search-result__item h1"))
        assert any("barrier" in each.get_attribute("textContent").lower() for each in found)
    figure(f"{len(files)} pages opened, {len(found)} found by a search")


def test_a_fault_of_a_site_is_found(tmp_path):
    (tmp_path / "b.html").write_text('<p id="there">')
    (tmp_path / "a.html").write_text(
        '<a href="b.html#there"></a><a href="b.html#gone"></a><a href="c.html"></a>'
        '<script src="https://cdn.example/x.js"></script><img src="//x.example/y.png">'
        '<img src="none.svg"><a href="https://example.org"></a>'
    )
    (tmp_path / "a.css").write_text("@import 'https://fonts.example/f.css'; a{background:url(b)}")
    found = [text.partition(": ")[2] for text in faults(tmp_path)]
    assert found == [
        "https://cdn.example/x.js must not be loaded",
        "//x.example/y.png must not be loaded",
        "none.svg must be a file",
        "b.html#gone must be a place in the page",
        "c.html must be a file",
        "https://fonts.example/f.css must not be loaded",
    ]


@pytest.mark.slow
def test_a_picture_of_another_command_is_refused(tmp_path):
    with pytest.raises(KeyError):
        draw(tmp_path, ["none.svg"])


#: The newcomer's path: install, own kernel, profile, array.
PATH = ("01_first_product", "02_own_kernel", "08_reading_a_profile", "06_standalone_array")


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.must("see-g", goal=_PATH)
def test_a_newcomer_gets_from_a_clone_to_an_exported_array(tmp_path, heavy, figure):
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    pages = [clone / "docs" / "guide" / "tutorial" / f"{name}.md" for name in PATH]
    # Nothing of this environment: neither its packages nor its builds.
    clean = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("MAKE", "PYTHON", "VIRTUAL_ENV", "TILEWRIGHT"))
    }
    clean["PATH"] = os.pathsep.join(
        folder
        for folder in clean["PATH"].split(os.pathsep)
        if not folder.startswith(str(ROOT)) and not Path(folder, "tilewright").exists()
    )
    clean["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    assert shutil.which("tilewright", path=clean["PATH"]) is None
    done = walk(pages, clone, tmp_path, environment=clean)
    assert done.error == "" and done.wrong == []
    said = "".join(output for _, output in done.outputs)
    verified = said.count("\nVERIFIED")
    assert (clone / "build" / "layer.html").is_file() and "In " in said
    assert (clone / "build" / "array" / "tilewright_systolic.v").is_file()
    figure(f"{len(done.outputs)} blocks in a fresh clone, {verified} runs verified")
