"""The page of a profile: one file that loads nothing, whose views open and answer events."""

import copy
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from sim.profile.page_writer import page_of
from sw.kernels.add import add
from sw.kernels.matmul import matmul
from tests.profiled_run import profiled

DOCUMENT = Path(__file__).with_name("page_document.js")
MOST_BYTES = 5 << 20


@pytest.fixture(scope="module")
def profile():
    return profiled(matmul, {"M": 24, "N": 16, "K": 16}, backend="emulator")


def test_the_page_loads_nothing(profile):
    page = page_of([profile])
    assert len(page.encode()) <= MOST_BYTES
    assert page.startswith("<!DOCTYPE html>") and page.count("</script>") == 2
    style_and_scripts = page.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"\b(src|href)=|https?:|@import|fetch\(|XMLHttp", style_and_scripts)


def test_texts_of_the_program_end_no_element(profile):
    hostile = copy.deepcopy(profile)
    hostile["kernel"] = "</script><script>alert(1)</script> STYLE DATA"
    hostile["passes"][0]["text"] = "</script> SCRIPT &lt;"
    page = page_of([hostile])
    assert page.count("</script>") == 2 and "<script>alert" not in page
    data = page.split('id="data">')[1].split("</script>")[0]
    assert json.loads(data) == [json.loads(json.dumps(hostile))]


def _opened(page, tmp_path, address=""):
    """What the page draws in a model of a document."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    file = tmp_path / "page.html"
    file.write_text(page, encoding="utf-8")
    words = [node, str(DOCUMENT), str(file), address]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_view_opens_and_answers_events(profile, tmp_path):
    found = _opened(page_of([profile]), tmp_path)
    views = found["views"]
    assert list(views) == ["overview", "timeline", "floorplan", "source"]
    assert "matmul" in found["head"] and "PREDICTED CYCLES" in found["head"]
    assert "VERIFIED" in found["head"]
    overview = views["overview"]["text"]
    assert profile["findings"][0]["text"] in overview
    assert f"{profile['cycles']:,}" in overview and "Roofline" in overview
    assert any("works" in card for card in views["overview"]["cards"])
    assert any("pmu_0_1" in card for card in views["floorplan"]["cards"])
    assert any(card.startswith("stream ") for card in views["floorplan"]["cards"])
    assert views["timeline"]["cards"] and found["drawn"]["fillRect"] > 200
    assert "cycle=" in views["timeline"]["hash"] and "from=" in views["timeline"]["hash"]
    assert "program matmul after trace" in views["source"]["text"]


def test_an_address_names_view_and_cycle(profile, tmp_path):
    found = _opened(page_of([profile]), tmp_path, "#view=floorplan&cycle=700")
    assert "cycle=" in found["views"]["floorplan"]["hash"]


def test_a_launch_that_did_not_end_says_why(profile, tmp_path):
    hung = profile | {"status": "hang", "message": "pmu_0_1 R0 waits for its full barrier"}
    found = _opened(page_of([hung]), tmp_path)
    assert "HANG" in found["head"] and "VERIFIED" not in found["head"]
    assert "waits for its full barrier" in found["views"]["overview"]["text"]


def test_a_kernel_without_products_is_not_said_to_be_bound_by_memory(tmp_path):
    found = profiled(add, {"M": 24, "N": 16}, backend="emulator")
    text = _opened(page_of([found]), tmp_path)["views"]["overview"]["text"]
    share = found["roofline"]["bytes"] / (found["cycles"] * 8)
    assert "The kernel has no products." in text and "memory ports bound it" not in text
    assert f"Memory traffic takes {100 * share:.1f} %" in text
    assert f"{100 * share:.1f} %of the width of the memory ports" in text


def test_two_runs_are_compared(profile, tmp_path):
    other = profiled(matmul, {"M": 48, "N": 16, "K": 16}, backend="emulator")
    text = _opened(page_of([profile, other]), tmp_path)["views"]["overview"]["text"]
    assert "Two runs compared" in text
    assert f"+{other['cycles'] - profile['cycles']:,}" in text
