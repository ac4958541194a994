"""Lane programs behind a product or by themselves: where the cost model decides, no run does."""

import pytest

from hw.arch.config import AgcuConfig, ChipConfig, named
from hw.numeric.formats import bf16
from sw.compiler import compile_kernel
from sw.kernels.gated_mlp import gated_mlp
from sw.kernels.linear_gelu import linear_gelu
from sw.language import Schedule
from sw.passes.compilation import Compilation
from sw.passes.kernel_steps import KERNEL_PASSES
from sw.passes.pass_driver import run_passes
from sw.search.constraints import Constraints
from sw.search.held_up import cycles_apart, held_up
from sw.stages.recognised import recognised

MESH = ChipConfig(rows=16, columns=16, agcu=AgcuConfig(count=4))
LINEAR = {"M": 256, "K": 256, "N": 256}
GATED = {"M": 256, "D": 256, "F": 256}


def chained(kernel, dims, config):
    """The product of a kernel that has lane programs behind it."""
    whole = Compilation(kernel, config, dims, bf16, None, {}, Schedule(), None)
    run_passes(KERNEL_PASSES, whole)
    every = (recognised(each.program, each.arrays, config) for each in whole.division.parts)
    (product,) = (each for each in every if each.epilogue is not None)
    return product


@pytest.mark.parametrize(
    ("kernel", "dims", "config", "clear"),
    [
        (gated_mlp, {"M": 512, "D": 512, "F": 2048}, named["large"], True),
        (gated_mlp, GATED, named["large"], True),
        (gated_mlp, GATED, named["small"], False),
        (linear_gelu, LINEAR, MESH, False),
    ],
    ids=["512x512x2048-large", "256-large", "256-small", "linear_gelu-mesh"],
)
def test_lane_programs_that_clearly_hold_a_product_up_are_found(kernel, dims, config, clear):
    why = held_up(chained(kernel, dims, config), config, Constraints())
    assert (why is not None) == clear
    assert why is None or f"{cycles_apart(chained(kernel, dims, config), config):,} cycles" in why


@pytest.mark.slow
def test_the_form_that_is_clearly_faster_is_faster_by_runs_with_a_clock(monkeypatch):
    fast = compile_kernel(gated_mlp, named["large"], dims=GATED, dtype=bf16)
    assert "by the cost model" in fast.notes[-1]
    monkeypatch.setattr("sw.compiler.held_up", lambda *_: None)
    monkeypatch.setattr("sw.compiler._may_be_held_up", lambda part: False)
    slow = compile_kernel(gated_mlp, named["large"], dims=GATED, dtype=bf16)
    assert len(slow.parts) < len(fast.parts)
    assert fast.predicted_cycles < slow.predicted_cycles
