"""pipe-f: rates of element math, softmax and a gated perceptron; intervals of unequal stages."""

import pytest

from hw.arch.config import named
from sw.kernels.add import add
from sw.kernels.gated_mlp import gated_mlp
from sw.kernels.gda import gda
from sw.kernels.gelu import gelu
from sw.kernels.layer_norm import layer_norm
from sw.kernels.rms_norm import rms_norm
from sw.kernels.silu import silu
from sw.kernels.softmax import softmax
from tests.sim.run.stage_intervals import interval_ratio, report_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

#: Phases over packets of each kernel's lane programs (docs/stages.md).
PHASES = {add: 1, silu: 2, gelu: 4, softmax: 3}
BYTES = 2
#: Elements, at least, of a run whose rate counts.
LEAST = 1 << 19
RATES = [
    *(("small", kernel, 1024, 512) for kernel in (add, silu, gelu, softmax)),
    ("small", softmax, 512, 1024),
    ("small", softmax, 724, 728),
    *(("large", kernel, 1024, 512) for kernel in (add, silu, gelu)),
    *(("large", softmax, *shape) for shape in ((2304, 512), (1024, 512), (512, 1024))),
    ("large", add, 300, 1800),
    ("large", gelu, 724, 728),
]


def bound(kernel, config, rows, columns):
    """Cycles of lanes and of memory, the larger of the two.

    Lanes of all PCUs, in every phase over packets; each AGCU reads or writes a vector a cycle.
    """
    elements = rows * columns
    lanes = PHASES[kernel] * elements / (config.pcu_count * config.pcu.lanes)
    read = (2 if kernel is add else 1) * elements * BYTES
    memory = read / (config.agcu.count * config.width_bits // 8)
    return max(lanes, memory)


@pytest.mark.must(
    "pipe-f",
    goal=">= 0.85 of the bound: add, silu, gelu, softmax 1024 x 512; softmax 512 x 1024; on small "
    "softmax 724 x 728; on large softmax 2304 x 512, add 300 x 1800, gelu 724 x 728",
)
@pytest.mark.parametrize(("chip", "kernel", "rows", "columns"), RATES)
def test_element_math_and_softmax(chip, kernel, rows, columns, seed, heavy, figure):
    assert rows * columns >= LEAST
    config = named[chip]
    report, _ = report_of(kernel, config, {"M": rows, "N": columns}, seed)
    rate = bound(kernel, config, rows, columns) / report["cycles"]
    figure(f"{kernel.name} {rows} x {columns}, {chip}: {report['cycles']:,} cycles, {rate:.3f}")
    assert 0.85 <= rate <= 1


@pytest.mark.must("pipe-f", goal="gated mlp 512 x 512 x 2048 on large: >= 0.70 of all cells")
def test_gated_perceptron(seed, heavy, figure):
    config = named["large"]
    report, compiled = report_of(gated_mlp, config, {"M": 512, "D": 512, "F": 2048}, seed)
    share = compiled.macs / (report["cycles"] * compiled.peak_macs_per_cycle)
    figure(f"{report['cycles']:,} cycles, {share:.3f} of all cells")
    assert share >= 0.70


#: Chip, kernel, its dimensions but M, and rows of an iteration: a slab of GDA; elsewhere a block of
#: as many rows as a vector has elements, for each PCU. Stages of all of them are unequal.
INTERVALS = [
    ("small", gda, {"N": 64, "C": 16}, 16),
    ("small", gda, {"N": 40, "C": 9}, 16),
    ("large", gda, {"N": 64, "C": 16}, 16),
    ("small", rms_norm, {"N": 32}, 128),
    ("small", layer_norm, {"N": 32}, 128),
]


@pytest.mark.must("pipe-f", goal="interval <= 1.05 of the slowest stage over 32 iterations")
@pytest.mark.parametrize(("chip", "kernel", "dims", "block"), INTERVALS)
def test_iterations_follow_as_fast_as_the_slowest_stage(
    chip, kernel, dims, block, seed, heavy, figure
):
    ratio, text = interval_ratio(kernel, named[chip], dims, block, 32, seed)
    figure(f"{chip} {kernel.name}: {text}")
    assert 0.95 <= ratio <= 1.05
