"""``tilewright area``: one report a chip, every unit in it, nothing measured twice."""

import json
import time
from pathlib import Path

import pytest

import tilewright
from gen import yosys
from gen.unit_designs import KINDS, REST
from hw.arch.config import named
from sim.cli.commands.area import CHOICES

HAND = str(Path(__file__).resolve().parents[2] / "gen" / "hand.lib")
FIELDS = {"kind", "count", "cells", "flip_flops", "memory_bits", "depth"}


def report(capsys, *words):
    assert tilewright.main(["area", *words, "--json"]) == 0
    out, error = capsys.readouterr()
    return json.loads(out), error


def test_the_option_knows_every_kind():
    assert CHOICES == (*KINDS, REST)


@pytest.mark.slow
def test_one_kind_alone_is_measured_once(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))
    first, said = report(capsys, "--config", "tiny", "--component", "config_segment")
    measured = set((tmp_path / "area").iterdir())
    assert len(measured) == 3
    assert "shares are of the units listed, not of the chip" in said
    assert "µm²" not in said and "liberty" not in first and "square_um" not in first["totals"]
    assert first["missing"] == [] and first["shares"]["config_segment"]["cells"] == 1
    assert sum(unit["count"] for unit in first["units"]) == 5
    assert all(unit.keys() >= FIELDS for unit in first["units"])
    again, said = report(capsys, "--config", "tiny", "--component", "config_segment")
    assert again == first and set((tmp_path / "area").iterdir()) == measured


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("--config tiny --liberty none.lib", 2, "cannot use 'none.lib': No such file"),
        (f"--config tiny --liberty {__file__}", 2, "Liberty must begin with `library (NAME) {`"),
        (f"--preset tpu-v1 --liberty {__file__}", 2, "Liberty must begin with `library (NAME) {`"),
        ("--component pcus", 2, "--component must be one of pcu, pmu"),
        ("--config tinny", 2, "unknown configuration 'tinny'; did you mean 'tiny'"),
    ],
)
def test_what_there_is_not_is_refused(words, code, message, capsys):
    assert tilewright.main(["area", *words.split()]) == code
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_without_yosys_one_line_says_so(capsys, monkeypatch):
    monkeypatch.setattr(yosys, "_PACKAGE", "no-such-yosys")
    assert tilewright.main(["area", "--config", "tiny"]) == 3
    error = capsys.readouterr().err
    assert "no-such-yosys is not installed; fix: make setup" in error and error.count("\n") == 1


@pytest.mark.slow
def test_a_liberty_adds_square_micrometres(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))
    words = "--config tiny --component token_switch --liberty".split()
    result, said = report(capsys, *words, HAND)
    assert result["liberty"] == {"file": "hand.lib", "library": "hand"}
    areas = [unit["count"] * unit["square_um"] for unit in result["units"]]
    assert len(areas) == 2 and result["totals"]["square_um"] == sum(areas)
    assert result["shares"]["token_switch"]["square_um"] == 1
    for unit in result["units"]:
        assert unit["square_um"] > 1000 * unit["flip_flops"]
    assert f"{sum(areas):,.0f} µm²" in said and f"{areas[0] / sum(areas):.1%}" in said
    assert "hand.lib (hand)" in said and "by convention" in said


def test_a_liberty_measures_a_stand_alone_unit(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))
    words = "--component systolic --rows 2 --cols 2 --format int8 --liberty".split()
    result, said = report(capsys, *words, HAND)
    (unit,) = result["units"]
    parts = unit["definitions"]
    assert unit["square_um"] == sum(part["square_um"] * part["instances"] for part in parts)
    (cell,) = (part for part in parts if part["name"].startswith("cell_"))
    # Flip-flops alone are as much, and gates are more than none.
    assert cell["square_um"] > 1000 * cell["flip_flops"]
    outside = 1 - 4 * cell["square_um"] / unit["square_um"]
    assert result["square_um_share_outside_cells"] == pytest.approx(outside)
    assert f"unit: {unit['square_um']:,.0f} µm², {outside:.1%} outside its cells" in said


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("rows", "columns", "dataflow"),
    [
        (2, 2, "ws"),
        (1, 5, "os"),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in ((1, 1, "ws"), (1, 5, "ws"), (1, 1, "os"), (2, 2, "os"))
        ),
    ],
)
def test_cells_of_a_small_array_are_told_from_the_rest(rows, columns, dataflow, capsys):
    """As many as there are, though other definitions may have as many instances."""
    words = f"--component systolic --rows {rows} --cols {columns} --dataflow {dataflow}"
    result, said = report(capsys, *words.split(), "--format", "int8")
    (unit,) = result["units"]
    (cell,) = (part for part in unit["definitions"] if part["name"].endswith("cell_int8_l1"))
    assert result["array_cells"] == cell["instances"] == rows * columns
    outside = 1 - rows * columns * cell["cells"] / unit["cells"]
    assert 0.1 < outside < 0.8 and result["share_outside_cells"] == pytest.approx(outside)
    assert f"{outside:.1%} outside its {rows * columns} cells" in said


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
    banks = [part for part in pmu["definitions"] if part["name"].startswith("byte_bank_")]
    assert sum(part["instances"] * part["memory_bits"] for part in banks) == (
        8 * chip.pmu.capacity_bytes
    )
    (cell,) = (part for part in pcu["definitions"] if part["name"].startswith("cell_"))
    assert cell["instances"] == chip.grid_rows * chip.grid_columns
    assert pcu["cells"] > cell["instances"] * cell["cells"]
