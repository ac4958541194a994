"""Lane programs behind a product or by themselves: where the cost model decides, no run does."""

import copy

import pytest

import sw.language as tw
from hw.arch.config import AgcuConfig, ChipConfig, named
from hw.numeric.formats import bf16
from sim.cli.settings import default_sizes
from sw import compiler
from sw.compiler import compile_kernel
from sw.kernels.decoder_layer import decoder_layer
from sw.kernels.gated_mlp import gated_mlp
from sw.kernels.linear_gelu import linear_gelu
from sw.language import Schedule
from sw.passes.compilation import Compilation
from sw.passes.kernel_steps import KERNEL_PASSES
from sw.passes.pass_driver import run_passes
from sw.passes.product_recognition import Product
from sw.search.held_up import CLEAR, LITTLE, compared, cycles_apart, held_up, is_decided
from sw.stages.recognised import recognised
from tests.sw.epilogue.test_epilogues import product_then

MESH = ChipConfig(rows=16, columns=16, agcu=AgcuConfig(count=4))
LINEAR = {"M": 256, "K": 256, "N": 256}
LONG = {"M": 512, "K": 1024, "N": 512}
FEW = {"M": 8, "K": 1024, "N": 1024}
GATED = {"M": 256, "D": 256, "F": 256}
LAYER = default_sizes(decoder_layer)
#: A tile comes before a vector, which a PCU behind the product adds.
CHAIN = product_then(lambda c, g, r: tw.gelu(c + r) + g)


def divisions(kernel, dims, config):
    """Divisions of a kernel with lane programs behind products, and without."""
    whole = Compilation(kernel, config, dims, bf16, None, {}, Schedule(), None)
    run_passes(KERNEL_PASSES, whole)
    other = copy.copy(whole)
    other.chains = False
    run_passes(KERNEL_PASSES[-1:], other)
    return whole.division, other.division


#: Kernel, sizes, chip; whether lane programs may hold a product up; which form is clearly faster.
CASES = {
    "gated 512x512x2048, large": (
        *(gated_mlp, {"M": 512, "D": 512, "F": 2048}, named["large"]),
        *(False, "behind"),
    ),
    "gated 256, small": (gated_mlp, GATED, named["small"], False, "behind"),
    "linear, long, large": (linear_gelu, LONG, named["large"], False, None),
    "linear, small": (linear_gelu, LINEAR, named["small"], False, "behind"),
    "linear, mesh": (linear_gelu, LINEAR, MESH, False, "behind"),
    "linear, few rows": (linear_gelu, FEW, named["small"], True, "apart"),
    "chain, long, large": (CHAIN, LONG, named["large"], True, "apart"),
    "chain, mesh": (CHAIN, LINEAR, MESH, False, "behind"),
    "layer, tiny": (decoder_layer, LAYER, named["tiny"], True, "apart"),
    "layer, large": (decoder_layer, LAYER, named["large"], True, None),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_form_that_is_clearly_faster_is_found(case):
    kernel, dims, config, may_be, faster = case
    with_chains, without = divisions(kernel, dims, config)
    assert held_up(with_chains, config, Schedule()) == may_be
    behind, apart = compared(with_chains, without, config, Schedule())
    found = "behind" if CLEAR * behind <= apart else "apart" if CLEAR * apart <= behind else None
    assert found == faster


def test_parts_of_both_divisions_are_not_counted():
    config = named["large"]
    one, other = divisions(CHAIN, LONG, config)
    assert compared(one, one, config, Schedule()) == (0, 0)
    behind, apart = compared(one, other, config, Schedule())
    (product,) = (
        work
        for part in one.parts
        if isinstance(work := recognised(part.program, part.arrays, config), Product)
        and work.epilogue is not None
    )
    # The product, and its lane programs in a launch of their own.
    assert cycles_apart(product, config) < apart < behind
    assert compared(other, one, config, Schedule()) == (apart, behind)


def test_a_part_without_an_estimate_leaves_the_comparison_open(monkeypatch):
    one, other = divisions(CHAIN, LONG, named["large"])
    monkeypatch.setattr("sw.search.held_up.part_cycles", lambda *_: None)
    assert compared(one, other, named["large"], Schedule()) is None


def test_a_comparison_is_decided_where_a_clock_may_change_little_of_the_kernel(monkeypatch):
    one, _ = divisions(CHAIN, LONG, named["large"])
    cycles = dict.fromkeys(one.parts, 500.0)
    monkeypatch.setattr("sw.search.held_up.part_cycles", lambda part, *_: cycles[part])

    def decided(*of_both):
        return is_decided(of_both, one, named["large"], Schedule())

    every = sum(cycles.values())
    assert decided(100, CLEAR * 100) and decided(CLEAR * every, every)
    least = (CLEAR - 1) * 100
    assert decided(100, 100) == (least <= LITTLE * every)
    assert decided(every, every * (CLEAR - 0.9 * LITTLE)) and not decided(
        every, every * (CLEAR - 1.1 * LITTLE)
    )
    # Parts without an estimate are not counted.
    monkeypatch.setattr("sw.search.held_up.part_cycles", lambda *_: None)
    assert not decided(100, 100)


def counted(monkeypatch):
    """Whether the forms that are compiled have lane programs behind products."""
    found, compiled = [], compiler._compiled

    def noted(form, *arguments):
        found.append(form.whole.chains)
        return compiled(form, *arguments)

    monkeypatch.setattr(compiler, "_compiled", noted)
    return found


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("kernel", "dims", "config", "forms"),
    [
        (decoder_layer, LAYER, named["tiny"], [False]),
        # The two differ by 4 %, of parts that take less than half of the kernel's cycles.
        (decoder_layer, LAYER, named["small"], [False]),
        (gated_mlp, GATED, named["small"], [True]),
        (linear_gelu, LINEAR, named["small"], [True]),
        (linear_gelu, FEW, named["small"], [False]),
    ],
    ids=["layer, tiny", "layer, small", "gated", "linear", "few rows"],
)
def test_a_form_that_is_clearly_slower_is_not_compiled(kernel, dims, config, forms, monkeypatch):
    found = counted(monkeypatch)
    notes = compile_kernel(kernel, config, dims=dims, dtype=bf16).notes
    assert found == forms
    assert any("by the cost model, not" in each for each in notes) == (forms == [False])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "dims", "chip"),
    [(CHAIN, LONG, "large"), (decoder_layer, LAYER, "tiny")],
    ids=["chain, large", "layer, tiny"],
)
def test_the_form_that_is_clearly_faster_is_faster_by_runs_with_a_clock(
    kernel, dims, chip, monkeypatch
):
    fast = compile_kernel(kernel, named[chip], dims=dims, dtype=bf16)
    assert "by the cost model" in fast.notes[-1]
    monkeypatch.setattr(compiler, "held_up", lambda *_: False)
    monkeypatch.setattr(compiler, "_is_held_up", lambda _: False)
    slow = compile_kernel(kernel, named[chip], dims=dims, dtype=bf16)
    assert fast.predicted_cycles < slow.predicted_cycles
