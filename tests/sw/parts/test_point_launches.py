"""Loops over points as launches: fewest of them, where the order of the iterations is free."""

import pytest

import tilewright as tw
from hw.arch.config import named
from hw.numeric.formats import bf16
from sim.run.driver import compile_job, run
from sim.run.job import Job, Problem
from sw.array_spec import ArraySpec
from sw.ir import nodes as ir
from sw.ir.types import Dim, Role, Space, Tensor, TensorType
from sw.kernels.flash_attention import flash_attention
from sw.parts.points.point_launches import launches_of
from sw.parts.points.point_slice import PointSlice


@tw.kernel("X[R, P, M, N], A[R, P, M, N] -> A")
def updated(X, A):
    for r in tw.each(X.shape[0]):
        for p in tw.each(X.shape[1]):
            tw.store_tile(A[r, p], tw.load_tile(A[r, p]) * 0.5 + tw.load_tile(X[r, p]))


def launches(kernel, sizes, config="small", **options):
    compiled = Problem(kernel, named[config], sizes, bf16, options=options).compile()
    return [[each.repeat for each in part.part.launches] for part in compiled.parts]


@pytest.mark.parametrize("heads", [5, 7])
def test_the_loop_of_most_iterations_is_repeated(heads):
    """128 queries are four points of 32: each is a launch of all heads, not a head one of them."""
    sizes = {"H": heads, "G": heads, "M": 128, "S": 512, "D": 64}
    assert launches(flash_attention, sizes, window=128) == [[heads] * 4]


def loop(index, extent):
    return ir.Loop((), (), None, "each", index, extent, None, None, (), (), ())


def slice_of(role, **strides):
    """A slice of 64 x 32 elements of an array `A` of such matrices."""
    kind = TensorType((Dim("M", 64), Dim("N", 32)), bf16, Space.MEMORY, role)
    spec = ArraySpec("A", (64, 32), bf16, role is not Role.IN)
    return PointSlice("A", 0, strides, Tensor("A", kind), spec)


def test_points_that_read_what_others_write_keep_their_order():
    loops, bytes_ = [loop("t", 5), loop("p", 2)], 64 * 32 * 2
    read = slice_of(Role.IN, t=bytes_, p=8 * bytes_)
    written = slice_of(Role.OUT, t=bytes_, p=8 * bytes_)
    alone = slice_of(Role.INOUT, t=bytes_, p=8 * bytes_)
    assert [each.repeat for each in launches_of(loops, [read, written])] == [2] * 5
    assert [each.repeat for each in launches_of(loops, [alone])] == [5] * 2
    assert [each.repeat for each in launches_of(loops, [written, written])] == [5] * 2
    as_many = launches_of([loop("t", 2), loop("p", 2)], [alone])
    assert [each.arguments[0].stride for each in as_many] == [8 * bytes_] * 2


def test_points_of_a_tensor_in_place_equal_golden(seed):
    sizes = {"R": 6, "P": 2, "M": 20, "N": 40}
    job = Job(Problem(updated, named["small"], sizes, bf16), backend="emulator", seed=seed)
    assert run(job, *compile_job(job)).report["verified"]
