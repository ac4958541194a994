"""Choices of pipelines with rows on lanes: near the bound of the lanes at every width of a row."""

import pytest

from hw.arch.config import named
from hw.numeric.formats import bf16, fp32
from sim.run.driver import compile_job, run
from sim.run.job import Job, Problem
from sw.kernels.argmax import argmax
from sw.kernels.layer_norm import layer_norm
from sw.kernels.rms_norm import rms_norm
from sw.kernels.softmax import softmax

#: Phases over a row's elements, whichever PCUs compute them.
PHASES = {softmax: 3, rms_norm: 3, argmax: 2}
#: Kernel, columns of 512 rows on `small`, least share of the lanes' bound.
WIDTHS = [(softmax, 700, 0.92), (softmax, 1000, 0.84), (rms_norm, 256, 0.94)]
MORE = [(softmax, each, 0.92) for each in (512, 600, 728, 736, 750, 768)]
MORE += [(softmax, each, 0.84) for each in (264, 896, 1024, 1400)]
MORE += [(softmax, 2048, 0.98)]
MORE += [(rms_norm, 700, 0.94), (rms_norm, 1000, 0.86)]
MORE += [(argmax, each, 0.91) for each in (512, 1000)]
WIDTHS += [pytest.param(*each, marks=pytest.mark.slow) for each in MORE]
#: Chip, kernel, rows, columns, format, cycles: where an earlier order of choices did worse.
CORPUS = [
    ("small", softmax, 512, 700, bf16, 71_232),
    ("small", softmax, 64, 622, fp32, 10_975),
    ("small", rms_norm, 32, 858, fp32, 9_585),
    ("large", rms_norm, 197, 814, fp32, 23_082),
    ("tiny", argmax, 9, 239, bf16, 4_996),
    ("tiny", softmax, 287, 180, fp32, 130_000),
    # Narrow rows: pauses between phases, and latencies of blocks.
    ("small", softmax, 2000, 1, bf16, 2_700),
    ("small", rms_norm, 2000, 1, bf16, 2_400),
    ("small", layer_norm, 4097, 3, bf16, 9_200),
    ("tiny", layer_norm, 300, 20, bf16, 28_300),
]


def compiled_of(chip, kernel, rows, columns, form=bf16):
    return Problem(kernel, named[chip], {"M": rows, "N": columns}, form).compile()


@pytest.mark.few(1)
@pytest.mark.parametrize(("kernel", "columns", "least"), WIDTHS)
def test_lanes_wait_for_little_else(kernel, columns, least, figure):
    chip = named["small"]
    predicted = compiled_of("small", kernel, 512, columns).predicted_cycles
    bound = PHASES[kernel] * 512 * columns / (chip.pcu_count * chip.pcu.lanes)
    figure(f"{kernel.name} 512 × {columns}: {predicted:,} cycles, {bound / predicted:.3f}")
    assert bound / predicted >= least


@pytest.mark.few(1)
@pytest.mark.parametrize(("chip", "kernel", "rows", "columns", "form", "cycles"), CORPUS)
def test_the_estimate_finds_the_faster_pipeline(chip, kernel, rows, columns, form, cycles):
    assert compiled_of(chip, kernel, rows, columns, form).predicted_cycles <= cycles


@pytest.mark.slow
@pytest.mark.parametrize(("columns", "rows"), [(700, 100), (736, 70), (1400, 40), (264, 512)])
def test_short_last_boxes_and_single_engines_on_the_rtl(columns, rows, seed, heavy):
    job = Job(Problem(softmax, named["small"], {"M": rows, "N": columns}, bf16), seed=seed)
    outcome = run(job, *compile_job(job))
    assert outcome.report["verified"], outcome.problems
