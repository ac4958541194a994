"""slice-g: speed of the native model and of the emulator, and time of the builds."""

import time

import pytest

from gen.verilog import emit
from hw.arch.config import named
from hw.chip import Chip
from sim.native.chip_model import ChipModel

_BUILD_SECONDS = {"small": 120, "large": 240}
_GOAL = "small ≥ 8,000 cycles/s; builds ≤ 120 s and 240 s; emulator ≥ 20 × RTL"


@pytest.mark.slow
@pytest.mark.must("slice-g", goal=_GOAL)
@pytest.mark.parametrize("config", _BUILD_SECONDS)
def test_models_build_in_time(config, heavy, figure, tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))
    design = emit(Chip(named[config]))
    started = time.monotonic()
    with ChipModel(design, named[config]) as model:
        seconds = time.monotonic() - started
        assert not model.cache_hit
    figure(f"{config} built in {seconds:.0f} s")
    assert seconds <= _BUILD_SECONDS[config]


@pytest.mark.slow
@pytest.mark.must("slice-g", goal=_GOAL)
def test_the_native_model_is_fast(product, heavy, figure):
    speed = product("small", 256, 256, 256).run().report["cycles_per_second"]
    figure(f"{speed:,.0f} cycles/s at 256³")
    assert speed >= 8000


@pytest.mark.slow
@pytest.mark.must("slice-g", goal=_GOAL)
def test_the_emulator_is_faster(product, heavy, figure):
    case = product("small", 512, 512, 512)
    seconds = {name: case.run(name).report["run_seconds"] for name in ("rtl", "emulator")}
    ratio = seconds["rtl"] / seconds["emulator"]
    figure(f"RTL {seconds['rtl']:.1f} s, emulator {seconds['emulator']:.2f} s: {ratio:.0f}")
    assert ratio >= 20
