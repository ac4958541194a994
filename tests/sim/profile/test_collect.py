"""Profiles of runs on the emulator and from Python: sums, blocks, files, refusals."""

import copy
import json

import numpy as np
import pytest

import tilewright as tw
from sim.profile.blocks import thinned
from sim.profile.run_profile import Profile, load_profile
from sw.kernels.matmul import matmul
from sw.kernels.softmax import softmax
from tests.profiled_run import busy_cycles, profiled


@pytest.fixture(scope="module")
def profile():
    return profiled(matmul, {"M": 24, "N": 16, "K": 16}, backend="emulator")


def test_causes_of_every_unit_sum_to_the_predicted_cycles(profile):
    assert profile["predicted"] and profile["report"]["verified"]
    for unit in profile["units"]:
        assert sum(each["cycles"] for each in unit["causes"]) == profile["cycles"]
        states = sum(sum(counts) for counts in unit["states"].values())
        assert states + profile["launch_cycles"] == profile["cycles"]
    assert min(busy_cycles(profile).values()) > 0


def test_blocks_lie_in_the_kernel_and_bear_names_of_the_program(profile):
    begin, end = (profile["entries"][0][name] for name in ("begin", "end"))
    names = {block["name"] for block in profile["blocks"]}
    assert {"a0", "b", "c0"} <= names
    for block in profile["blocks"]:
        assert begin <= block["ready"] <= block["begin"] < block["end"] <= end


def test_turns_of_a_slot_are_filled_before_they_are_emptied(profile):
    turns = {}
    for block in profile["blocks"]:
        if block["name"] == "a0" and block["part"] in ("W0", "R0"):
            turns.setdefault(block["number"], {})[block["part"]] = block
    both = [turn for turn in turns.values() if len(turn) == 2]
    assert both and all(turn["W0"]["end"] <= turn["R0"]["begin"] + 1 for turn in both)


def test_tensors_tell_what_is_needed_and_what_is_moved(profile):
    tensors = {each["name"]: each for each in profile["tensors"]}
    assert [tensors[name]["bytes"] for name in "ABC"] == [24 * 16 * 2, 16 * 16 * 2, 24 * 16 * 2]
    # Results leave once; A and B fill whole boxes, at least once.
    assert tensors["C"]["output"] and tensors["C"]["moved"] == tensors["C"]["bytes"]
    for name in "AB":
        assert not tensors[name]["output"] and tensors[name]["moved"] >= tensors[name]["bytes"]
    read = profile["report"]["dram_bytes_read"]
    assert tensors["A"]["moved"] + tensors["B"]["moved"] < read


def test_bytes_of_the_busier_direction_are_counted_against_the_ports(profile):
    # One port of eight bytes each way.
    assert profile["roofline"]["peak_bytes"] == 8
    report = profile["report"]
    moved = max(report["dram_bytes_read"], report["dram_bytes_written"])
    assert profile["roofline"]["bytes"] == moved <= 8 * profile["cycles"]


def test_several_parts_follow_one_another():
    found = profiled(softmax, {"M": 24, "N": 96}, backend="emulator", config="tiny")
    entries = found["entries"]
    assert all(a["end"] <= b["begin"] for a, b in zip(entries, entries[1:], strict=False))
    assert found["edges"] == sorted(set(found["edges"]))


def test_few_blocks_are_kept_as_they_are_and_many_are_joined(profile):
    blocks = profile["blocks"]
    assert thinned(blocks) == blocks
    few = thinned(blocks, len(blocks) // 4)
    assert len(few) <= len(blocks) // 4
    assert {(each["unit"], each["part"]) for each in few} == {
        (each["unit"], each["part"]) for each in blocks
    }


@pytest.fixture
def result():
    a = np.ones((8, 16), np.int8)
    return matmul.run(a, np.ones((16, 8), np.int8), config="tiny", backend="emulator")


def test_a_result_has_its_profile(result, tmp_path):
    own = result.profile()
    assert own.data["kernel"] == "matmul" and own.findings
    assert "predicted cycles" in repr(own) and own.findings[0] in repr(own)
    own.save(tmp_path / "run.json")
    assert load_profile(tmp_path / "run.json").data == json.loads(own.json())
    own.save(tmp_path / "run.html")
    assert (tmp_path / "run.html").read_text(encoding="utf-8") == own.html()
    assert own._repr_html_().startswith("<iframe srcdoc=")


def test_what_has_no_profile_is_refused(result, tmp_path):
    a = np.ones((8, 8), np.int8)
    golden = matmul.run(a, a, config="tiny", backend="golden")
    for each in (golden, copy.copy(result)):
        with pytest.raises(tw.BadInputError, match="Profile must be of the result that a run"):
            each.profile()
    with pytest.raises(
        tw.BadInputError, match="path must be a file that ends in .html, .json or .svg"
    ):
        result.profile().save(tmp_path / "run.txt")
    with pytest.raises(tw.BadInputError, match="A.json must be a file that can be read"):
        load_profile(tmp_path / "none.json", where="A.json")
    with pytest.raises(tw.BadInputError, match="format"):
        Profile({"kernel": "matmul"})
    with pytest.raises(tw.BadInputError, match="profile must be"):
        matmul.run(a, a, config="tiny", backend="emulator", profile="yes")
