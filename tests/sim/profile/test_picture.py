"""The picture of a profile: XML with a row per unit in use, colours of the page, sums of a run."""

import copy
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import sim.profile.picture as picture
from sim.profile.run_profile import Profile
from sw.kernels.matmul import matmul
from tests.profiled_run import profiled

PAGE = Path(picture.__file__).parent / "page"
NAMESPACE = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def profile():
    return profiled(matmul, {"M": 24, "N": 16, "K": 16}, backend="emulator")


def texts(profile):
    root = ElementTree.fromstring(picture.picture_of(profile))
    return ["".join(each.itertext()) for each in root.iter(f"{NAMESPACE}text")]


def test_a_unit_in_use_has_a_row_with_bars_as_long_as_its_causes(profile):
    root = ElementTree.fromstring(picture.picture_of(profile))
    names = [each.text for each in root.iter(f"{NAMESPACE}tspan") if each.get("font-weight")]
    used = [unit for unit in profile["units"] if unit["used"]]
    assert sorted(names) == sorted(unit["name"] for unit in used)
    drawn = sum(float(each.get("width")) for each in root.iter(f"{NAMESPACE}rect") if len(each))
    whole = len(used) * picture._BAR_WIDTH
    assert drawn == pytest.approx(whole, abs=0.05 * len(picture.CAUSES) * len(used))


def test_the_head_tells_cycles_and_findings(profile):
    said = texts(profile)
    assert f"{profile['cycles']:,} cycles predicted" in said[0]
    assert said[1] == profile["findings"][0]["text"]


def test_no_text_passes_the_width(profile):
    full = copy.deepcopy(profile)
    used = next(unit for unit in full["units"] if unit["used"])
    used["causes"] = [{"cause": cause, "cycles": 1} for cause in picture.CAUSES]
    full["findings"] = [{"text": profile["findings"][0]["text"] * 5}]
    full["kernel"] *= 20
    root = ElementTree.fromstring(picture.picture_of(full))
    for text in root.iter(f"{NAMESPACE}text"):
        letter = picture._HEAD_LETTER if text.get("font-size") else picture._LETTER
        end = float(text.get("x")) + letter * len("".join(text.itertext()))
        assert end <= float(root.get("width")), "".join(text.itertext())
        assert float(text.get("y")) < float(root.get("height"))


def test_columns_keep_every_cycle(profile):
    unit = next(unit for unit in profile["units"] if unit["used"])
    for counts in unit["states"].values():
        columns = picture._columns(profile["edges"], counts, profile["cycles"])
        width = profile["cycles"] / len(columns)
        assert sum(columns) * width == pytest.approx(sum(counts))


def test_texts_of_the_program_end_no_element(profile):
    hostile = copy.deepcopy(profile)
    hostile["kernel"] = "</text><script>"
    hostile["units"][0] |= {"used": True, "labels": ["pcu: <b>&"]}
    assert any("</text><script>" in text for text in texts(hostile))


def test_a_run_without_cycles_is_drawn(profile):
    empty = copy.deepcopy(profile)
    empty |= {"cycles": 0, "launch_cycles": 0, "edges": []}
    for unit in empty["units"]:
        unit["causes"] = []
        unit["states"] = dict.fromkeys(unit["states"], [])
    assert texts(empty)


def test_colours_are_those_of_the_page():
    script = (PAGE / "common.js").read_text(encoding="utf-8")
    states = re.search(r"STATE_COLOURS = \{(.*)\};", script)[1]
    assert dict(re.findall(r'(\w+): "(#\w+)"', states)) == picture.STATES
    causes = re.findall(r'^  (\w+): \["([^"]*)", "(#\w+)"\],$', script, re.MULTILINE)
    assert {name: (words, colour) for name, words, colour in causes} == picture.CAUSES


def test_the_suffix_chooses_the_form(profile, tmp_path):
    Profile(profile).save(tmp_path / "run.svg")
    assert (tmp_path / "run.svg").read_text() == picture.picture_of(profile)
