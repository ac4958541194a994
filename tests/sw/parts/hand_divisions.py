"""Kernels divided by hand: an intermediate between two parts, iterations, several launches."""

import dataclasses

import tilewright as tw
from sw import compiler
from sw.array_spec import ArraySpec, arrays_of
from sw.parts.part import Argument, Division, Part, PartLaunch
from sw.passes.accumulate import accumulate
from sw.passes.check import check
from sw.passes.simplify import simplify

__all__ = ["DIVISIONS", "divided_by"]


@tw.kernel("A[M, K], B[K, N] -> Y[M, N]")
def scores(A, B, Y):
    """Softmax of the rows of a product."""
    for i in tw.metapipe(A.shape[0]):
        x = tw.load_tile(A[i, :]) @ tw.load_tile(B)
        e = tw.exp(x - tw.row_max(x))
        tw.store_tile(Y[i, :], e / tw.row_sum(e))


@tw.kernel("A[M, K], B[K, N] -> T[M, N]")
def product(A, B, T):
    for i in tw.metapipe(A.shape[0]):
        tw.store_tile(T[i, :], tw.load_tile(A[i, :]) @ tw.load_tile(B))


@tw.kernel("T[M, N] -> Y[M, N]")
def row_softmax(T, Y):
    for i in tw.metapipe(T.shape[0]):
        x = tw.load_tile(T[i, :])
        e = tw.exp(x - tw.row_max(x))
        tw.store_tile(Y[i, :], e / tw.row_sum(e))


@tw.kernel("A[H, M, K], B[H, K, N] -> C[H, M, N]")
def batched(A, B, C):
    """A product per head."""
    for h in tw.each(A.shape[0]):
        for i in tw.metapipe(A.shape[1]):
            tw.store_tile(C[h, i, :], tw.load_tile(A[h, i, :]) @ tw.load_tile(B[h]))


@tw.kernel("A[G, H, M, K], B[G, K, N] -> C[G, H, M, N]")
def grouped(A, B, C):
    """A product per head, with one right operand per group."""
    for g in tw.each(A.shape[0]):
        for h in tw.each(A.shape[1]):
            for i in tw.metapipe(A.shape[2]):
                tw.store_tile(C[g, h, i, :], tw.load_tile(A[g, h, i, :]) @ tw.load_tile(B[g]))


@tw.kernel("X[H, M, N] -> Y[H, M, N]")
def head_softmax(X, Y):
    """Softmax of the rows of each head."""
    for h in tw.each(X.shape[0]):
        for i in tw.metapipe(X.shape[1]):
            x = tw.load_tile(X[h, i, :])
            e = tw.exp(x - tw.row_max(x))
            tw.store_tile(Y[h, i, :], e / tw.row_sum(e))


def _lean(kernel, dtype, out, **dims):
    return simplify(accumulate(check(kernel.trace(dtype=dtype, out=out, **dims))))


def _part(program, *launches):
    return Part(program, arrays_of(program), launches)


def _scores(dtype, out, *, M, K, N):
    first = _lean(product, dtype, tw.fp32, M=M, K=K, N=N)
    second = _lean(row_softmax, tw.fp32, out, M=M, N=N)
    return Division(
        (
            _part(first, PartLaunch((Argument("A"), Argument("B"), Argument("T")))),
            _part(second, PartLaunch((Argument("T"), Argument("Y")))),
        ),
        (ArraySpec("T", (M, N), tw.fp32, output=True),),
    )


def _batched(dtype, out, *, H, M, K, N):
    program = _lean(product, dtype, out, M=M, K=K, N=N)
    a, b, c = (each.bytes for each in arrays_of(program))
    launch = PartLaunch((Argument("A", 0, a), Argument("B", 0, b), Argument("C", 0, c)), H)
    return Division((_part(program, launch),))


def _grouped(dtype, out, *, G, H, M, K, N):
    program = _lean(product, dtype, out, M=M, K=K, N=N)
    a, b, c = (each.bytes for each in arrays_of(program))
    launches = (
        PartLaunch(
            (Argument("A", g * H * a, a), Argument("B", g * b), Argument("C", g * H * c, c)), H
        )
        for g in range(G)
    )
    return Division((_part(program, *launches),))


def _head_softmax(dtype, out, *, H, M, N):
    program = _lean(row_softmax, dtype, out, M=M, N=N)
    x, y = (each.bytes for each in arrays_of(program))
    return Division((_part(program, PartLaunch((Argument("X", 0, x), Argument("Y", 0, y)), H)),))


#: Kernels and the functions that divide them, by operand format, result format and sizes.
DIVISIONS = {
    scores: _scores,
    batched: _batched,
    grouped: _grouped,
    head_softmax: _head_softmax,
}


def divided_by(monkeypatch, division):
    """Make the compiler divide the next kernel so."""

    def divide(state):
        state.division = division

    passes = (
        dataclasses.replace(each, run=divide) if each.name == "divide" else each
        for each in compiler.KERNEL_PASSES
    )
    monkeypatch.setattr(compiler, "KERNEL_PASSES", tuple(passes))
