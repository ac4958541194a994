"""Multiply-accumulates counted in the IR: those of the arithmetic, and those of the compiler."""

import numpy as np
import pytest

import sw.language as tw
from hw.arch.config import named
from hw.numeric.formats import bf16, int8
from sim.golden import Interpreter, golden
from sim.kernels import summed
from sim.run.job import Problem
from sw.kernels.gemm import gemm
from sw.kernels.matmul import matmul
from sw.macs import count_macs


@pytest.mark.few
@pytest.mark.parametrize("kernel", [matmul, gemm])
@pytest.mark.parametrize("fmt", [bf16, int8])
def test_the_compiler_counts_as_the_program_does(kernel, fmt, seed, draws):
    rng = np.random.default_rng(seed)
    for _ in range(draws(1, 3)):
        dims = {name: int(rng.integers(1, 90)) for name in ("M", "K", "N")}
        problem = Problem(kernel, named["tiny"], dims, fmt)
        compiled = problem.compile()
        macs = dims["M"] * dims["K"] * dims["N"]
        for program in (compiled.golden_program, problem.golden_program):
            assert count_macs(program) == compiled.macs == macs, dims


@tw.kernel("Q[M, D], K[N, D], V[N, D] -> Y[M, D]")
def triangle(Q, K, V, Y):
    """Two products a block, the loop over keys ended early by the block of rows."""
    for i in tw.metapipe(Q.shape[0], 8):
        q = tw.load_tile(Q[i, :])
        acc = tw.zeros(i, Q.shape[1])
        for j in tw.metapipe(K.shape[0], 8, until=i.stop):
            s = q @ tw.load_tile(K[j, :]).T
            acc += s.to(tw.bf16) @ tw.load_tile(V[j, :])
        tw.store_tile(Y[i, :], acc)


def test_products_of_loops_that_end_early_count_as_often_as_they_run(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    m, n, d = (int(side) for side in rng.integers(1, 40, 3))
    program = summed(triangle.trace(dtype=tw.bf16, M=m, N=n, D=d))
    seen = []
    run = Interpreter.matmul

    def counted(self, node):
        product = run(self, node)
        a = self.operand(node.operands[0])
        seen.append(product.size * a.shape[0 if node.ta else 1])
        return product

    monkeypatch.setattr(Interpreter, "matmul", counted)
    shapes = {"Q": (m, d), "K": (n, d), "V": (n, d)}
    golden(program, {name: np.zeros(shape, bf16.dtype) for name, shape in shapes.items()})
    assert count_macs(program) == sum(seen) > 0


def test_element_math_counts_nothing():
    @tw.kernel("X[M] -> Y[M]")
    def squared(X, Y):
        for i in tw.metapipe(X.shape[0]):
            x = tw.load_tile(X[i])
            tw.store_tile(Y[i], x * x)

    assert count_macs(summed(squared.trace(dtype=tw.bf16, M=9))) == 0
