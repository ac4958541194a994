"""Rows of points that follow one another are one loop: fewer launches, the same bits."""

import random

import numpy as np
import pytest

import sw.language as tw
from hw.arch.config import named
from sw.array_spec import arrays_of
from sw.ir.nodes import Loop
from sw.parts.divide import divide
from sw.parts.peel import peeled
from tests.sw.parts.test_division import agree, lean, served_by

SIZES = {"H": 6, "G": 2, "M": 5, "N": 16}


@tw.kernel("X[H, M, N], W[G, N, N] -> Y[H, M, N]")
def grouped(X, W, Y):
    (H, M, _), G = X.shape, W.shape[0]
    for g in tw.each(G):
        for r in tw.each(H // G):
            for i in tw.metapipe(M):
                h = g * (H // G) + r
                tw.store_tile(Y[h, i, :], tw.load_tile(X[h, i, :]) @ tw.load_tile(W[g]))


@tw.kernel("X[H, M, N], W[G, N, N] -> Y[H, M, N]")
def own_columns(X, W, Y):
    (H, M, _), G = X.shape, W.shape[0]
    for g in tw.each(G):
        for r in tw.each(H // G):
            for i in tw.metapipe(M):
                h = g * (H // G) + r
                x = tw.load_tile(X[h, i, :])
                tw.store_tile(Y[h, i, :], x + tw.col_sum(x))


@tw.kernel("X[H, M, N], W[G, M, N] -> Y[H, M, N]")
def shared_rows(X, W, Y):
    (H, M, _), G = X.shape, W.shape[0]
    for g in tw.each(G):
        for r in tw.each(H // G):
            for i in tw.metapipe(M):
                h = g * (H // G) + r
                tw.store_tile(Y[h, i, :], tw.load_tile(X[h, i, :]) + tw.load_tile(W[g, i, :]))


@tw.kernel("X[H, M, N], W[G, N, N] -> Y[H, M, N]")
def numbered_rows(X, W, Y):
    (H, M, _), G = X.shape, W.shape[0]
    for g in tw.each(G):
        for r in tw.each(H // G):
            for i in tw.metapipe(M):
                h = g * (H // G) + r
                x = tw.load_tile(X[h, i, :])
                tw.store_tile(Y[h, i, :], tw.where(tw.row_index(i) >= 2, x, 0.0))


@tw.kernel("X[H, M, N], W[H, N, N] -> Y[H, M, N]")
def own_weights(X, W, Y):
    for h in tw.each(X.shape[0]):
        for i in tw.metapipe(X.shape[1]):
            tw.store_tile(Y[h, i, :], tw.load_tile(X[h, i, :]) @ tw.load_tile(W[h]))


@tw.kernel("X[M, H, N], W[G, N, N] -> Y[M, H, N]")
def rows_apart(X, W, Y):
    (M, H, _), G = X.shape, W.shape[0]
    for g in tw.each(G):
        for r in tw.each(H // G):
            for i in tw.metapipe(M):
                h = g * (H // G) + r
                tw.store_tile(Y[i, h, :], tw.load_tile(X[i, h, :]) @ tw.load_tile(W[g]))


def joined(kernel):
    sizes = {dim: SIZES[dim] for dim in kernel.signature.dims}
    program = lean(kernel, **sizes)
    return program, peeled(program, {each.name: each for each in arrays_of(program)})


def test_rows_of_a_group_are_one_loop_of_an_iteration(seed):
    program, (part, _) = joined(grouped)
    assert [each.extent for each in part.program.nodes if isinstance(each, Loop)] == [15]
    assert [each.shape for each in part.arrays] == [(15, 16), (16, 16), (15, 16)]
    (launch,) = part.launches
    assert launch.repeat == 2
    found = divide(program, served_by(named["small"]))
    assert [each.arrays for each in found.parts] == [part.arrays]
    assert agree(program, found, np.random.default_rng(seed), random.Random(seed))


@pytest.mark.parametrize(
    "kernel",
    [own_columns, shared_rows, numbered_rows, own_weights, rows_apart],
    ids=lambda each: each.name,
)
def test_rows_that_are_not_alike_stay_apart(kernel):
    assert len(joined(kernel)[1]) == 1
