"""Plans whose passes of a column block run at once: their bits, groups, cycles and refusals."""

import contextlib
import dataclasses
import itertools
import random

import pytest

from hw.arch.config import named
from hw.numeric.formats import bf16, fp32, int8
from sim.run.driver import compile_job, run
from sim.run.job import Job, Problem
from sw.kernels.matmul import matmul
from sw.kernels.transposed.matmul_nt import matmul_nt
from sw.kernels.transposed.matmul_tn import matmul_tn
from sw.kernels.transposed.matmul_tt import matmul_tt
from sw.passes import part_steps
from sw.passes.field_limits import Unfit, require_fields
from sw.passes.fit import fit
from sw.search.candidates import plans_of
from sw.search.constraints import Constraints
from tests.sw.passes.test_units import product


def grouped_plans(rng, wanted, config):
    """Plans with passes at once that fit, with their buffers; slabs are drawn."""
    for first, slabs in plans_of(wanted, config, Constraints(column_tile=64)):
        for resident in (True, False) if first.grouped else ():
            a_slab, b_slab = rng.choice(slabs)
            choice = {"a_slab": a_slab, "b_slab": b_slab, "resident": resident}
            plan = dataclasses.replace(first, **choice)
            with contextlib.suppress(Unfit):
                require_fields(plan)
                yield plan, fit(plan, {})


def launched(monkeypatch, problem, chosen, backend="emulator"):
    """A plan's compiled part and the report of its run, which golden verifies."""
    with monkeypatch.context() as patched:
        patched.setattr(part_steps, "parallel", lambda *_: iter([chosen]))
        compiled, fields = compile_job(Job(problem, backend=backend))
    report = run(Job(problem, backend=backend), compiled, fields).report
    assert report["verified"], chosen[0].describe()
    return compiled, report


def kinds(plans):
    """Plans by what differs in their programs: a last group that is shorter, and how A comes."""
    found = {}
    for plan, places in plans:
        blocks = min(plan.col_blocks, 3) if plan.spare_passes else 0
        found.setdefault((blocks, plan.resident), []).append((plan, places))
    return found


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("kernel", "fmt", "out"),
    [
        (matmul, bf16, None),
        (matmul_nt, bf16, fp32),
        (matmul_tn, int8, None),
        (matmul_tt, bf16, None),
    ],
)
def test_bits_are_those_of_golden(kernel, fmt, out, seed, monkeypatch):
    rng = random.Random(seed)
    met = set()
    for config, shape in (("small", (67, 75, 53)), ("tiny", (20, 30, 9))):
        problem = Problem(kernel, named[config], dict(zip("MNK", shape, strict=True)), fmt, out)
        wanted = compile_job(Job(problem))[0].parts[0].product
        for kind, plans in kinds(grouped_plans(rng, wanted, named[config])).items():
            launched(monkeypatch, problem, rng.choice(plans))
            met.add(kind)
    blocks = {2} if fmt is int8 else {0, 2, 3}
    assert met >= set(itertools.product(blocks, (True, False)))


@pytest.mark.few(1)
@pytest.mark.parametrize("kernel", [matmul, matmul_nt], ids=lambda each: each.name)
def test_cycles_are_those_of_the_rtl(kernel, seed, heavy, monkeypatch):
    rng = random.Random(seed)
    shape, config = (20, 30, 9), named["tiny"]
    problem = Problem(kernel, config, dict(zip("MNK", shape, strict=True)), bf16, None)
    wanted = compile_job(Job(problem))[0].parts[0].product
    for plans in kinds(grouped_plans(rng, wanted, config)).values():
        compiled, report = launched(monkeypatch, problem, rng.choice(plans), backend="rtl")
        assert compiled.predicted_cycles == pytest.approx(report["cycles"], rel=0.02)


def test_passes_at_once_are_whole_vectors_within_the_accumulators():
    config = named["small"]
    wanted = product(251, 257, 263, bf16, bf16)
    plans = [plan for plan, _ in grouped_plans(random.Random(1), wanted, config)]
    assert plans and all("passes at once" in each.describe() for each in plans)
    for each in plans:
        assert each.passes * each.rows <= config.pcu.accumulator_rows
        assert not each.rows % each.out_rows and not each.columns % each.lanes
        # Two passes share a vector of B, or none do.
        assert each.pass_columns % each.lanes in (0, each.lanes // 2 * (each.passes == 2))
        columns = each.all_passes * each.pass_columns
        assert each.product.n <= columns < each.product.n + each.pass_columns
