"""edge-g: the campaign of an hour, and planted faults that it and the oracle find."""

import dataclasses

import numpy as np
import pytest

from hw.arch.config import named
from hw.numeric import reference
from hw.numeric.formats import bf16
from sim.backends.emitted import emitted_chip
from sim.campaign.kinds import KINDS
from sim.campaign.models import Models
from sim.campaign.runner import run_campaign
from sim.emulator import matrix
from sim.oracle import product
from sim.run.driver import compile_job, run
from sim.run.job import Job, Problem
from sw.kernels.matmul import matmul
from sw.prove import agcu_actors
from sw.stages import product_graph

GOAL = (
    "an hour: 12 random chips on RTL, 40 runs on them, 500 programs, 300 images, 1,000 AXI errors, "
    "500 image bits, no failure; planted faults and a dropped product found"
)
_HOUR = 3600
#: Most seconds in which a planted fault must be found; a run ends with its first failure.
_BUDGET = 400


def _found(seed, *, kinds, models=None, budget=_BUDGET):
    """Failures of a run with a planted fault."""
    summary = run_campaign(seed, budget, kinds=kinds, models=models, most_failures=1)
    assert summary.failures, f"nothing found in {sum(summary.cases.values())} cases"
    verdict = summary.failures[0][1]
    return f"{sum(summary.cases.values())} cases: {verdict.problems[0][:80]}"


@pytest.mark.slow
@pytest.mark.hour
@pytest.mark.timeout(2 * _HOUR)
@pytest.mark.must("edge-g", goal=GOAL)
def test_an_hour_finds_nothing(seed, heavy, tmp_path, figure):
    with Models() as models:
        summary = run_campaign(
            seed, _HOUR, kinds=tuple(KINDS), models=models, corpus=tmp_path, most_failures=3
        )
    counts = summary.counts
    names = (
        "random chips on RTL",
        "programs on RTL of random chips",
        "programs",
        "images",
        "AXI errors",
        "image bits",
    )
    figure(f"seed {seed}: " + ", ".join(f"{counts[name]:,} {name}" for name in names))
    assert summary.failures == []
    for name, least in zip(names, (12, 40, 500, 300, 1000, 500), strict=True):
        assert counts[name] >= least, name
    assert counts["images live"] >= 100 and counts["images dead"] >= 50
    assert summary.missing == []


@pytest.mark.slow
@pytest.mark.must("edge-g", goal=GOAL)
def test_a_fault_in_the_compiler_is_found(seed, monkeypatch, figure):
    made = product_graph.FilterProgram

    def swapped(modulus, index):
        # Two columns of a grid of at least four change places.
        return made(modulus, index ^ 1 if modulus >= 4 else index)

    monkeypatch.setattr(product_graph, "FilterProgram", swapped)
    figure(f"compiler: {_found(seed, kinds=('program',))}")


@pytest.mark.slow
@pytest.mark.must("edge-g", goal=GOAL)
def test_a_fault_in_the_emulator_is_found(seed, monkeypatch, figure):
    def flushed(sums, out):
        # Results too small to be normal become zero.
        narrow = reference.cast(sums, out)
        if out == bf16:
            bits = narrow.view(np.uint16)
            bits[bits & 0x7F80 == 0] = 0
        return narrow

    monkeypatch.setattr(matrix, "cast", flushed)
    figure(f"emulator: {_found(seed, kinds=('program',))}")


@pytest.mark.slow
@pytest.mark.must("edge-g", goal=GOAL)
def test_a_fault_in_the_prover_is_found(seed, monkeypatch, heavy, figure):
    def once(self, count):
        self.count -= 1

    # The proof takes one token where the hardware takes all that a command waits for.
    monkeypatch.setattr(agcu_actors.TokenCount, "spend", once)
    with Models() as models:
        figure(f"prover: {_found(seed, kinds=('image',), models=models)}")


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.must("edge-g", goal=GOAL)
def test_a_fault_in_the_rtl_is_found(seed, heavy, figure):
    def planted(config):
        design = emitted_chip(config)
        if config != named["tiny"]:
            return design
        # What row 13 of an accumulator bank is to hold is written over row 12.
        right = "bank_0[i_write_row] <="
        wrong = "bank_0[i_write_row ^ {7'd0, i_write_row == 8'd13}] <="
        assert right in design.text
        return dataclasses.replace(design, text=design.text.replace(right, wrong))

    with Models(planted) as models:
        figure(f"RTL: {_found(seed, kinds=('program',), models=models)}")


@pytest.mark.must("edge-g", goal=GOAL)
def test_a_dropped_product_is_found_by_the_bound_and_by_the_oracle(seed, monkeypatch, figure):
    """Golden and the emulator leave out the same product: all other answers agree."""
    multiply, passes = reference.matmul, matrix._float_passes

    def short(a, b, acc0=None, *, tile=None):
        a = np.array(a)
        a[:, :1] = 0
        return multiply(a, b, acc0, tile=tile)

    def short_passes(given, columns, formats):
        activations = given.activations.copy()
        activations[:, 0, :, :2] = 0
        return passes(dataclasses.replace(given, activations=activations), columns, formats)

    monkeypatch.setattr("sim.golden.matmul", short)
    monkeypatch.setattr(matrix, "_float_passes", short_passes)
    # Every product is 1 or -1: one that is missing is as large as the average.
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], (2, 256, 256)).astype(bf16.dtype)
    inputs = {"A": signs[0, :4], "B": signs[1, :, :4]}
    job = Job(
        problem=Problem(matmul, named["small"], {"M": 4, "K": 256, "N": 4}, bf16),
        backend="emulator",
        inputs=inputs,
    )
    outcome = run(job, *compile_job(job))
    assert outcome.report["bit_exact"] and not outcome.report["verified"]
    wrong = outcome.outputs["C"] != product(inputs["A"], inputs["B"], bf16.dtype)
    assert wrong.all()
    found = _found(seed, kinds=("program",))
    figure(f"oracle: all 16 sums of K = 256, beyond the bound; {found}")
