"""Rows of a softmax over blocks: drawn, computed by golden, by the printed form and by numpy."""

import math

import ml_dtypes
import numpy as np

import sw.language as tw
from sim.golden import Interpreter, golden
from sim.kernels import summed
from sw.ir import nodes as ir
from sw.ir.rewrite import walk
from tests.sw.softmax.spellings import MASK, SCALE, program_of

__all__ = ["LN2", "answer", "exact", "last_maxima", "numpy_rows", "program", "rows", "whole_rows"]

BF16 = np.dtype(ml_dtypes.bfloat16)
#: Factor of the scores with which their domain is that of log2.
LN2 = math.log(2)


def program(count, keys, block, *, scale=0.25, depth=16, width=24, form=True):
    """Golden's program of so many rows and keys, in the machine's form or in the printed one."""
    text = {MASK: "", SCALE: f"s = q @ k.T * {scale!r}\n"}
    traced = program_of(text, dtype=tw.bf16, M=count, S=keys, D=depth, E=width)
    return summed(traced, {"i": count, "j": block}, exact=not form)


def rows(rng, count, keys, *, depth=16, width=24, spread=1.0):
    shapes = {"Q": (count, depth), "K": (keys, depth), "V": (keys, width)}
    return {
        name: (rng.standard_normal(shape) * spread).astype(BF16) for name, shape in shapes.items()
    }


def whole_rows(rng, count, keys, *, depth=16, width=24):
    """Rows whose scores, powers and sums are exact where the factor is `LN2`."""
    found = rows(rng, count, keys, depth=depth, width=width)
    found["Q"][:], found["K"][:] = 0, 0
    # One element alone makes the score of a key, and one shifts those of a row.
    found["Q"][:, 1], found["K"][:, 1] = 1, rng.integers(-8, 1, keys)
    found["Q"][:, 0], found["K"][:, 0] = rng.integers(-9, 10, count), 4
    found["V"][:] = rng.integers(-3, 4, found["V"].shape)
    return found


def answer(form, arrays):
    return golden(form, arrays)["O"]


def last_maxima(form, arrays):
    """Running maxima after the last block."""
    memory = {name: array.copy() for name, array in arrays.items()}
    memory["O"] = np.zeros((len(arrays["Q"]), arrays["V"].shape[1]), BF16)
    interpreter = Interpreter(memory)
    interpreter.run(form.nodes)
    (loop,) = (
        node for node in walk(form.nodes) if any(isinstance(each, ir.Powers) for each in node.body)
    )
    (powers,) = (each for each in loop.body if isinstance(each, ir.Powers))
    return interpreter.values[loop.results[loop.nexts.index(powers.result)].name]


def exact(arrays, scale=0.25):
    """float64."""
    q, k, v = (each.astype(np.float64) for each in arrays.values())
    s = q @ k.T * scale
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return e @ v / e.sum(axis=1, keepdims=True)


def numpy_rows(arrays, block, scale=0.25):
    """numpy's float32 with the operands rounded as the machine does, and its maxima."""
    q, k, v = (each.astype(np.float32) for each in arrays.values())
    factor = np.float32(scale / LN2)
    m = np.full((len(q), 1), -(2.0**20), np.float32)
    sums = np.zeros((len(q), v.shape[1] + 1), np.float32)
    for first in range(0, len(k), block):
        s = q @ k[first : first + block].T
        new = np.maximum(m, np.ceil(factor * s.max(axis=1, keepdims=True)))
        p = np.exp2(factor * s - new).astype(BF16).astype(np.float32)
        values = np.c_[v[first : first + block], np.ones(p.shape[1], np.float32)]
        sums, m = sums * np.exp2(m - new) + p @ values, new
    return (sums[:, :-1] / sums[:, -1:]).astype(BF16)
