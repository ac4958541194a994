"""Products of computed tiles: kernels, and their runs on chips."""

import tilewright as tw
from sim.operands import random_inputs
from sim.run.driver import compile_job, run
from sim.run.job import Job, Problem
from sw.kernels.gda import gda
from sw.language import Schedule

__all__ = ["KERNELS", "result_of", "served"]


@tw.kernel("X[M, K], W[K, N] -> Y[M, N]: fp32")
def activated(X, W, Y):
    """The streaming operand is computed, by two lane programs."""
    weights = tw.load_tile(W)
    for i in tw.metapipe(X.shape[0]):
        tw.store_tile(Y[i, :], tw.silu(tw.load_tile(X[i, :])).to(X.dtype) @ weights)


@tw.kernel("X[M, K], g[K], W[N, K] -> Y[M, N]: fp32")
def scaled(X, g, W, Y):
    """A vector along the columns, and weights along k."""
    gain, weights = tw.load_tile(g), tw.load_tile(W)
    for i in tw.metapipe(X.shape[0]):
        tw.store_tile(Y[i, :], (tw.load_tile(X[i, :]) * gain).to(X.dtype) @ weights.T)


@tw.kernel("X[M, K], W[K, N] -> Y[M, N]: fp32")
def shifted_weights(X, W, Y):
    """The stationary operand is computed."""
    tw.store_tile(Y, tw.load_tile(X) @ (tw.load_tile(W) * 3 - 1).to(X.dtype))


@tw.kernel("X[M, K], W[K, N] -> Y[M, N]: fp32")
def both(X, W, Y):
    """Both operands are computed, each by chains of its own."""
    x, w = tw.load_tile(X), tw.load_tile(W)
    tw.store_tile(Y, (x * 2 + 1).to(X.dtype) @ (w * 3 - 1).to(X.dtype))


@tw.kernel("X[M, N] -> S[N, N]: fp32")
def gram(X, S):
    """One computed tile is both operands."""
    M, N = X.shape
    total = tw.zeros(N, N)
    for i in tw.metapipe(M):
        x = tw.buffer((tw.load_tile(X[i, :]) * 2 + 1).to(X.dtype))
        total += x.T @ x
    tw.store_tile(S, total)


@tw.kernel("X[M, N], m[N]: fp32 -> S[N, N]: fp32")
def covariance(X, m, S):
    """A vector along the columns, of longer elements than the block beside it."""
    total, mean = tw.zeros(S.shape[0], S.shape[0]), tw.load_tile(m)
    for i in tw.metapipe(X.shape[0]):
        d = tw.buffer((tw.load_tile(X[i, :]) - mean).to(X.dtype))
        total += d.T @ d
    tw.store_tile(S, total)


@tw.kernel("T[V, K], y[M]: int32, W[K, N] -> Y[M, N]: fp32", sizes={"V": 10})
def looked_up(T, y, W, Y):
    """Rows by number stream along k."""
    weights = tw.load_tile(W)
    for i in tw.metapipe(y.shape[0]):
        rows = tw.gather(T, tw.load_tile(y[i]))
        tw.store_tile(Y[i, :], (rows * 2).to(T.dtype) @ weights)


#: Kernels, and the dimension of each whose size is a number of whole vectors.
KERNELS = {
    **dict.fromkeys((activated, scaled, shifted_weights, both, looked_up), "K"),
    **dict.fromkeys((gram, gda, covariance), "M"),
}


def result_of(kernel, config, sizes, seed, dtype=tw.bf16, backend="emulator", schedule=None):
    """A compilation and the report of its run, which equals golden."""
    problem = Problem(kernel, config, sizes, dtype, None, schedule=schedule or Schedule())
    inputs = random_inputs(problem.inputs, seed, limits=problem.row_limits)
    job = Job(problem, backend=backend, inputs=inputs)
    compiled, fields = compile_job(job)
    outcome = run(job, compiled, fields)
    assert outcome.report["verified"], (kernel.name, sizes, outcome.problems)
    return compiled, outcome.report


def served(compiled):
    """Whether the first image computes operands of a product."""
    return len(compiled.parts) == 1 and "chains of lane programs" in compiled.parts[0].choice
