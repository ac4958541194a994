"""Bytes read and written on `small`: every tensor once.

A vector along the columns is read once per fp32 word that it meets in a vector of its own format.
"""

import math

import pytest

from hw.arch.config import named
from hw.arch.launch import ARGUMENT_BYTES, ENTRY_BYTES, HEADER_BYTES
from hw.numeric.formats import named as formats
from sim.operands import random_inputs
from sim.run.driver import compile_job, run
from sim.run.job import Job, Problem
from sw.kernels.add import add
from sw.kernels.gelu import gelu
from sw.kernels.layer_norm import layer_norm
from sw.kernels.rms_norm import rms_norm
from sw.kernels.silu import silu
from sw.kernels.softmax import softmax

#: Kernel, format, rows and columns: rows of whole beats.
CASES = [
    (kernel, dtype, rows, columns)
    for kernel in (add, silu, gelu, softmax, rms_norm, layer_norm)
    for dtype, rows, columns in (("bf16", 512, 256), ("bf16", 77, 400), ("fp32", 300, 72))
]


def whole(size, unit):
    return math.ceil(size / unit) * unit


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "dtype", "rows", "columns"), CASES, ids=lambda each: getattr(each, "name", each)
)
def test_bytes(kernel, dtype, rows, columns, seed, heavy, figure):
    config = named["small"]
    beat = config.width_bits // 8
    problem = Problem(kernel, config, {"M": rows, "N": columns}, formats[dtype])
    job = Job(problem, seed=seed)
    outcome = run(job, *compile_job(job))
    assert outcome.report["verified"], outcome.problems
    inputs = random_inputs(problem.inputs, seed)
    read = sum(
        each.size
        * problem.operand.bits
        // 8
        * (32 // problem.operand.bits if each.ndim == 1 else 1)
        for each in inputs.values()
    )
    arguments = whole(len(problem.arrays) * ARGUMENT_BYTES, beat)
    launch = ENTRY_BYTES + arguments + outcome.report["image_bytes"] - HEADER_BYTES
    written = sum(each.bytes for each in problem.outputs)
    figure(f"{kernel.name} {dtype} {rows} x {columns}: {read:,} read, {written:,} written")
    assert outcome.report["dram_bytes_read"] == read + launch
    assert outcome.report["dram_bytes_written"] == written
