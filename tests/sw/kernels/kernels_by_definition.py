"""Every kernel of `sw/kernels` but plain products, one operation at a time, by docs/kernels.md.

Nothing of the project is imported: order, casts and sums are written here, the functions in
`functions_by_definition`.
"""

import ml_dtypes
import numpy as np

from tests.sw.kernels.functions_by_definition import NAN, exp, reciprocal, rsqrt

__all__ = ["BY_DEFINITION"]

BF16 = np.dtype(ml_dtypes.bfloat16)
FLOAT = np.dtype(np.float32)
ONE = np.float32(1)
#: -2 sqrt(2 / pi), and that times 0.044715.
LINEAR, CUBIC = np.float32(-1.5957691216057308), np.float32(-0.07135481627159628)
EPS = np.float32(1e-5)


def stored(x, dtype):
    """Cast to the format of an output: nearest even, NaN canonical."""
    if dtype == FLOAT:
        return np.where(np.isnan(x), NAN, x.astype(FLOAT))
    if x.dtype == dtype:
        return x
    assert x.dtype == FLOAT and dtype == BF16
    raw = x.view(np.uint32)
    cut = (raw + 0x7FFF + (raw >> 16 & 1) >> 16).astype(np.uint16)
    return np.where(np.isnan(x), np.uint16(0x7FC0), cut).view(BF16)


def wide(x):
    return x.astype(np.int32 if x.dtype.kind == "i" else FLOAT)


def row_sum(x):
    """From +0, in ascending order, one rounding per term."""
    total = np.zeros((len(x), 1), x.dtype)
    for column in range(x.shape[1]):
        total = total + x[:, column : column + 1]
    return total


def row_max(x):
    """NaN if there is one; +0 is more than -0."""
    top = x.max(axis=1, keepdims=True)
    plus = ((x == 0) & ~np.signbit(x)).any(axis=1, keepdims=True)
    zero = np.where(plus, np.float32(0), np.float32(-0.0))
    return np.where(top == 0, zero, top)


def row_mean(x):
    return row_sum(x) * (ONE / np.float32(x.shape[1]))


def fma(a, b, c):
    """a * b + c, rounded once: the float64 sum is rounded to odd, so that fp32 decides."""
    product, c = a.astype(np.float64) * b, np.float64(c)
    total = product + c
    part = total - product
    lost = (product - (total - part)) + (c - part)
    even = (total.view(np.int64) & 1 == 0) & np.isfinite(total)
    odd = np.nextafter(total, np.copysign(np.inf, lost))
    return np.where(even & (lost != 0), odd, total).astype(FLOAT)


def inverse_of_one_more(x, width):
    return reciprocal(ONE + exp(x, width), width)


def add(inputs, width):
    return wide(inputs["A"]) + wide(inputs["B"])


def silu(inputs, width):
    x = inputs["X"].astype(FLOAT)
    return x * inverse_of_one_more(-x, width)


def gelu(inputs, width):
    x = inputs["X"].astype(FLOAT)
    return x * inverse_of_one_more(x * fma(x * x, CUBIC, LINEAR), width)


def transpose(inputs, width):
    return inputs["X"].T.copy()


def softmax(inputs, width):
    x = wide(inputs["X"])
    e = exp(x - row_max(x), width)
    return e * reciprocal(row_sum(e), width)


def rms_norm(inputs, width):
    x = wide(inputs["X"])
    return x * rsqrt(row_mean(x * x) + EPS, width) * wide(inputs["g"])


def layer_norm(inputs, width):
    x = wide(inputs["X"])
    d = x - row_mean(x)
    scaled = d * rsqrt(row_mean(d * d) + EPS, width)
    return scaled * wide(inputs["g"]) + wide(inputs["b"])


def product(a, b):
    """From +0, in ascending order, one rounding per term; zero sums are +0."""
    a, b = wide(a), wide(b)
    total = np.zeros((len(a), b.shape[1]), a.dtype)
    for k in range(a.shape[1]):
        column, row = a[:, k : k + 1], b[k : k + 1]
        total = fma(column, row, total) if a.dtype == FLOAT else total + column * row
    return total + total.dtype.type(0)


def residual(inputs, width):
    return product(inputs["A"], inputs["B"]) + wide(inputs["R"])


def rope(inputs, width):
    x, cos, sin = (inputs[name].astype(FLOAT) for name in ("X", "cos", "sin"))
    a, b = np.split(x, 2, axis=1)
    return x * cos + np.concatenate([-b, a], axis=1) * sin


def gated_mlp(inputs, width):
    gate, up = (product(inputs["X"], inputs[name]) for name in ("Wg", "Wu"))
    h = gate * inverse_of_one_more(-gate, width) * up
    return product(stored(h, BF16), inputs["Wd"])


#: Inputs by name and significant bits of the functions -> output before its cast, by kernel.
_ELEMENTS = (add, silu, gelu, transpose, softmax, rms_norm, layer_norm, rope)
_PRODUCTS = (residual, gated_mlp)


def _by_definition(kernel):
    def answer(inputs, width, dtype):
        with np.errstate(all="ignore"):
            return stored(kernel(inputs, width), dtype)

    return answer


BY_DEFINITION = {kernel.__name__: _by_definition(kernel) for kernel in (*_ELEMENTS, *_PRODUCTS)}
