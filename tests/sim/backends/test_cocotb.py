"""A chip made of the models of its parts is the flat chip, and a build that fails is reported."""

import re
import types

import pytest

from gen.verilog import Design, emit
from hw.configs import named
from sim import cocotb_runner
from sim.backends.emitted import emitted_chip
from sim.cocotb_runner import run_bench
from sim.native.parts import cut
from sim.tb import barrier


def cycles(result):
    """Products of the chip's bench, and what each took."""
    assert result.failed == 0 < result.passed, result.failures
    return re.findall(r"\d+ × \d+ × \d+ of \w+: \d+ cycles", result.log.read_text())


@pytest.mark.slow
def test_parts_take_the_cycles_of_the_flat_chip(seed, heavy, monkeypatch):
    parts = cycles(run_bench("chip", seed=seed))
    monkeypatch.setattr(cocotb_runner, "parts_of", lambda design: cut(design, []))
    flat = cycles(run_bench("chip", seed=seed))
    assert flat == parts and len(flat) > 12


def test_a_chip_is_built_of_its_parts_and_a_block_is_not(monkeypatch, tmp_path):
    asked = []

    def build(kind):
        def built(*args, **kwargs):
            asked.append(kind)
            return tmp_path, True

        return built

    monkeypatch.setattr(cocotb_runner, "_build", build("flat"))
    monkeypatch.setattr(cocotb_runner, "build_chip", build("parts"))
    for design in (emit(barrier.design()), emitted_chip(named["tiny"])):
        for simulator in cocotb_runner.SIMULATORS:
            runner = cocotb_runner._make_runner(simulator)
            cocotb_runner._program_of(runner, design, [], False, True)
    assert asked == ["flat", "flat", "parts", "flat"]


def test_a_part_that_cannot_be_built_is_a_failure_with_the_tools_words(monkeypatch, tmp_path):
    def fail(*args, **kwargs):
        raise RuntimeError("Build of tile_pcu_64 failed:\n%Error: part.v:7")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        cocotb_runner, "parts_of", lambda design: types.SimpleNamespace(instances=1)
    )
    monkeypatch.setattr(cocotb_runner, "build_chip", fail)
    result = run_bench("barrier", design=Design("barrier", "", {}))
    assert result.failures == ("build: Build of tile_pcu_64 failed",)
    assert "part.v:7" in result.log.read_text()
