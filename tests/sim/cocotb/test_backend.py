"""A chip made of the models of its parts is the flat chip, and a build that fails is reported."""

import re

import pytest

from gen.design import Design
from gen.verilog import emit
from hw.arch.config import named
from sim.backends.emitted import emitted_chip
from sim.cocotb import bench_runner, executable
from sim.cocotb.bench_runner import run_bench
from sim.native.parts import cut
from sim.tb import barrier


def cycles(result):
    """Products of the chip's bench, and what each took."""
    assert result.failed == 0 < result.passed, result.failures
    return re.findall(r"\d+ cycles of .+", result.log.read_text())


@pytest.mark.slow
def test_parts_take_the_cycles_of_the_flat_chip(seed, heavy, monkeypatch):
    parts = cycles(run_bench("chip", seed=seed))
    monkeypatch.setattr(executable, "parts_of", lambda design: cut(design, []))
    flat = cycles(run_bench("chip", seed=seed))
    assert flat == parts and len(flat) > 12


def test_a_chip_is_built_of_its_parts_and_a_block_is_one(monkeypatch, tmp_path):
    built = []

    def build(parts, harness, *, product, **options):
        built.append([part.top for part in parts])
        return tmp_path / product.name, True

    monkeypatch.setattr(executable, "build_parts", build)
    for design in (emit(barrier.design()), emitted_chip(named["tiny"])):
        assert executable.build_model(design, ["clk"]) == (tmp_path, True)
    block, chip = built
    assert len(block) == 1
    assert chip[0] == "tilewright" and {name.partition("_")[0] for name in chip[1:]} == {
        "agcu",
        "tile",
    }


def test_a_part_that_cannot_be_built_is_a_failure_with_the_tools_words(monkeypatch, tmp_path):
    def fail(*args, **kwargs):
        raise RuntimeError("Build of tile_pcu_64 failed:\n%Error: part.v:7")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bench_runner, "build_model", fail)
    result = run_bench("barrier", design=Design("barrier", "", {}))
    assert result.failures == ("build: Build of tile_pcu_64 failed",)
    assert "part.v:7" in result.log.read_text()
