"""pipe-g: the default schedule is about as fast as the best of all plans, by model and RTL."""

import dataclasses
import itertools
import random

import pytest

from hw.arch.config import named
from hw.numeric.formats import bf16, int8
from sim.run.driver import compile_job, run
from sim.run.job import Job, Problem
from sw.cost import predict
from sw.kernels.matmul import matmul
from sw.kernels.transposed.matmul_nt import matmul_nt
from sw.kernels.transposed.matmul_tn import matmul_tn
from sw.passes import part_steps
from sw.passes.field_limits import Unfit, require_fields
from sw.passes.fit import fit
from sw.passes.plan import fewest_rows
from sw.search.candidates import plans_of
from sw.search.constraints import Constraints

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200)]

SHAPES = [
    (matmul, (64, 64, 64), bf16),
    (matmul, (128, 128, 128), bf16),
    (matmul, (100, 300, 50), int8),
    (matmul, (1, 256, 256), bf16),
    (matmul, (16, 512, 128), bf16),
    (matmul, (37, 90, 61), bf16),
    (matmul_nt, (128, 32, 256), bf16),
    (matmul_tn, (64, 128, 200), bf16),
]
#: Plans that are run: the best by the model, and others.
BEST, OTHERS = 12, 12
LEAST = 0.97


def every_plan(product, config):
    """Plans that fit, with their buffers and cycles by the model, best first; equal ones once."""
    sides = [product]
    if product.m <= 2 * fewest_rows(config):
        sides.append(product.turn())
    found = {}
    for side in sides:
        for first, slabs in plans_of(side, config, Constraints()):
            for (a_slab, b_slab), kept in itertools.product(slabs, (True, False)):
                choice = {"a_slab": a_slab, "b_slab": b_slab, "resident": kept}
                plan = dataclasses.replace(first, **choice)
                try:
                    require_fields(plan)
                    places = fit(plan, {})
                except Unfit:
                    continue
                found[plan.describe()] = predict(plan, places), plan, places
    return sorted(found.values(), key=lambda each: each[0])


@pytest.mark.must("pipe-g", goal="default ≥ 0.97 × the best of all plans; 24 of each shape in RTL")
@pytest.mark.parametrize(
    ("kernel", "shape", "fmt"),
    SHAPES,
    ids=[f"{kernel.name}-{'x'.join(map(str, s))}-{f.name}" for kernel, s, f in SHAPES],
)
def test_the_default_is_about_as_fast_as_the_best(kernel, shape, fmt, heavy, figure, monkeypatch):
    config = named["small"]
    problem = Problem(kernel, config, dict(zip("MNK", shape, strict=True)), fmt, None)

    def cycles_of(chosen=None):
        """Cycles in RTL, and the part, of the default or of one plan."""
        if chosen is not None:
            monkeypatch.setattr(part_steps, "parallel", lambda *_: iter([chosen]))
        compiled, fields = compile_job(Job(problem))
        report = run(Job(problem), compiled, fields).report
        assert report["verified"]
        return report["cycles"], compiled.parts[0]

    default, part = cycles_of()
    plans = every_plan(part.product, config)
    model = predict(part.plan, part.fit)
    others = random.Random(7).sample(plans[BEST:], OTHERS)
    runs = [cycles_of((plan, places))[0] for _, plan, places in (*plans[:BEST], *others)]
    figure(
        f"{kernel.name} {shape} {fmt.name}: {default:,} cycles, of {len(runs)} plans the best "
        f"{min(runs):,}; by the model {model:,}, of {len(plans):,} plans the best {plans[0][0]:,}"
    )
    assert len(runs) >= 24
    assert plans[0][0] >= LEAST * model
    assert min(runs) >= LEAST * default
