"""Products of fp16 and 8-bit floats on chips that a user's file describes."""

import math

from hw.arch.config import from_toml
from hw.numeric.formats import bf16, e4m3, e5m2, fp16, fp32
from sim.native.conditions import MemoryConditions
from sim.operands import random_inputs
from sim.oracle import product as oracle
from sim.run.driver import compile_job, run
from sim.run.job import Job, Problem
from sw.kernels.gemm import gemm
from sw.kernels.matmul import matmul

__all__ = ["KINDS", "chip_of", "random_problem", "verified"]

#: Formats of A and B, results, and cells of the chip, by the name of the product.
KINDS = {
    "fp16": (fp16, fp16, (fp16, fp32), ("fp16",)),
    "e4m3": (e4m3, e4m3, (bf16, fp32), ("e4m3", "e5m2")),
    "e5m2": (e5m2, e5m2, (bf16, fp32), ("e4m3", "e5m2")),
    "e4m3 x e5m2": (e4m3, e5m2, (bf16, fp32), ("e4m3", "e5m2")),
}


def chip_of(formats, folder):
    """A chip of two PCUs with cells of these formats, from a file as a user writes it."""
    file = folder / "chip.toml"
    names = ", ".join(f'"{each}"' for each in formats)
    file.write_text(
        f"rows = 2\ncolumns = 2\nwidth_bits = 64\n[pcu]\nformats = [{names}]\n"
        "[pmu]\ncapacity_bytes = 16384\n[agcu]\ncount = 1\n"
    )
    return from_toml(file)


def random_problem(rng, chip, first, second, outs, *, most):
    """A product of random extents, log-uniform from 1 to `most`, by one of two kernels."""
    sides = (round(math.exp(rng.uniform(0, math.log(most)))) for _ in range(3))
    return Problem(
        (matmul, gemm)[rng.integers(2)],
        chip,
        dict(zip("MKN", map(int, sides), strict=True)),
        {"A": first, "B": second},
        outs[rng.integers(len(outs))],
    )


def verified(problem, backend, seed, compiled=None, **conditions):
    """The report of a run whose results equal golden's and the oracle's."""
    chosen = MemoryConditions(seed=seed, **conditions)
    job = Job(problem, backend=backend, seed=seed, conditions=chosen)
    made, fields = compiled or compile_job(job)
    outcome = run(job, made, fields | {"backend": backend, "config": "user"})
    what = f"{problem.kernel.name} {problem.params}, seed {seed}, {backend}"
    assert not outcome.problems, f"{what}: {outcome.problems}"
    inputs = random_inputs(problem.inputs, seed)
    got = outcome.outputs["C"]
    assert got.tobytes() == oracle(inputs["A"], inputs["B"], got.dtype).tobytes(), what
    return outcome.report
