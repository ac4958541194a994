"""Lane codes of kernels: bits of the golden interpreter, and numbers of phases."""

import numpy as np
import pytest

import sw.language as tw
from sim.golden import golden
from tests.sw.stages.lane_machine import region_results


@tw.kernel("X[M, N], Z[M, N] -> Y[M, N]")
def add(X, Z, Y):
    tw.store_tile(Y[:, :], tw.load_tile(X[:, :]) + tw.load_tile(Z[:, :]))


@tw.kernel("X[M, N] -> Y[M, N]")
def softmax(X, Y):
    x = tw.load_tile(X[:, :])
    e = tw.exp(x - tw.row_max(x))
    tw.store_tile(Y[:, :], e / tw.row_sum(e))


@tw.kernel("X[M, N] -> Y[M, N]")
def rms(X, Y):
    x = tw.load_tile(X[:, :])
    tw.store_tile(Y[:, :], x * tw.rsqrt(tw.row_mean(x * x) + 1e-5))


@tw.kernel("X[M, N], G[N] -> Y[M, N]")
def rms_norm(X, G, Y):
    x = tw.load_tile(X[:, :])
    tw.store_tile(Y[:, :], x * tw.rsqrt(tw.row_mean(x * x) + 1e-5) * tw.load_tile(G))


@tw.kernel("X[M, N] -> Y[M, N]")
def normal(X, Y):
    x = tw.load_tile(X[:, :])
    d = x - tw.row_mean(x)
    tw.store_tile(Y[:, :], d * tw.rsqrt(tw.row_mean(d * d) + 1e-5))


@tw.kernel("X[M, N], G[N], B[N] -> Y[M, N]")
def layer_norm(X, G, B, Y):
    x = tw.load_tile(X[:, :])
    d = x - tw.row_mean(x)
    y = d * tw.rsqrt(tw.row_mean(d * d) + 1e-5)
    tw.store_tile(Y[:, :], y * tw.load_tile(G) + tw.load_tile(B))


@tw.kernel("X[M, N] -> Y[M, N]")
def silu(X, Y):
    tw.store_tile(Y[:, :], tw.silu(tw.load_tile(X[:, :])))


@tw.kernel("X[M, N] -> Y[M, N]")
def gelu(X, Y):
    tw.store_tile(Y[:, :], tw.gelu(tw.load_tile(X[:, :])))


@tw.kernel("X[M, N] -> Y[M, N]")
def reused(X, Y):
    e = tw.exp(tw.load_tile(X[:, :]))
    tw.store_tile(Y[:, :], (e + 1) * e)


#: Kernels, and the phases of each of their programs: over packets, and over statistics.
KERNELS = [
    (add, [(1, 0)]),
    (softmax, [(3, 1)]),
    (rms, [(2, 1)]),
    (rms_norm, [(2, 1), (1, 0)]),
    (normal, [(3, 2)]),
    (layer_norm, [(3, 2), (1, 0), (1, 0)]),
    (silu, [(2, 0)]),
    (gelu, [(4, 0)]),
    # Its exponential is sent: one chain cannot take it twice.
    (reused, [(2, 0)]),
]
SPECIAL = [0.0, -0.0, 1e-40, -1e-40, 80.0, -80.0, 3e38, np.inf, -np.inf, np.nan]


def drawn(random, program, *, special):
    """Inputs of a program, with rows that hold special numbers."""
    arrays = {}
    for tensor in program.tensors:
        values = random.normal(size=tensor.type.shape) * 3
        if special:
            chosen = random.random(values.shape) < 0.05
            values = np.where(chosen, random.choice(SPECIAL, values.shape), values)
        with np.errstate(all="ignore"):
            arrays[tensor.name] = values.astype(tensor.type.format.dtype)
    return arrays


def compare(program, arrays, **how):
    """The codes of a program, if they have the bits of golden."""
    bits = how.get("function_bits", 16)
    wanted = golden(program, arrays, function_bits=bits)
    codes, found = region_results(program, arrays, **how)
    for name, each in found.items():
        assert wanted[name].shape == np.broadcast_shapes(each.shape, wanted[name].shape)
        assert np.ascontiguousarray(each).tobytes() == wanted[name].tobytes(), name
    return codes


@pytest.mark.parametrize("special", [False, True], ids=["plain", "special"])
@pytest.mark.parametrize(("kernel", "wanted"), KERNELS, ids=lambda each: getattr(each, "name", ""))
def test_kernels_have_goldens_bits_in_few_phases(kernel, wanted, special, seed):
    random = np.random.default_rng(seed)
    for dtype, out in ((tw.bf16, tw.bf16), (tw.bf16, tw.fp32), (tw.fp32, tw.bf16)):
        for m, n in ((20, 33), (8, 1), (1, 8), (1, 1)):
            program = kernel.trace(M=m, N=n, dtype=dtype, out=out)
            arrays = drawn(random, program, special=special)
            bits, width = int(random.integers(12, 25)), int(random.choice([64, 256, 512]))
            codes = compare(program, arrays, lane_axis=0, width_bits=width, function_bits=bits)
            if min(m, n) > 1:
                counts = [(c.packet_phases, len(c.phases) - c.packet_phases) for c in codes]
                assert counts == wanted
