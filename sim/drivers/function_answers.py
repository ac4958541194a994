"""Operands of the floating-point units, and their results by numpy."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from hw.numeric import elementwise, functions

__all__ = ["function_answer", "function_operands"]

#: Special values: zeros, ones, infinities, NaN, subnormals, the largest numbers.
_SPECIAL = (0, 0x3F800000, 0x7F800000, 0x7FC00000, 1, 0x007FFFFF, 0x7F7FFFFF, 0x4B000000)

Words = npt.NDArray[np.uint32]


def function_answer(name: str, words: Sequence[Words], values: Mapping[str, int]) -> Words:
    """Expected results of a unit.

    Parameters
    ----------
    name : str
        Name of the component.
    words : sequence of arrays
        Its operands.
    values : mapping of str to int
        Its parameters.
    """
    word = name.removeprefix("fp_")
    if values:
        result = getattr(functions, word)(words[0].view(np.float32), values["width"])
    else:
        kind = np.int32 if word == "from_int32" else np.float32
        result = getattr(elementwise, word)(*(each.view(kind) for each in words))
    if result.dtype == np.bool_:
        return np.asarray(result).astype(np.uint32)
    return np.asarray(result).view(np.uint32)


def function_operands(rng: np.random.Generator, count: int) -> Words:
    """Operands: random bits, exponents near 0, uniform values, and special values.

    Parameters
    ----------
    rng : numpy.random.Generator
    count : int
        Number of each of three operands.
    """
    shape = (3, count)
    words = rng.integers(0, 1 << 32, shape, np.uint32)
    exponents = rng.integers(127 - 12, 127 + 6, shape, np.uint32) << 23
    near = words & 0x807FFFFF | exponents
    even = rng.uniform(-16, 16, shape).astype(np.float32).view(np.uint32)
    special = rng.choice(np.array(_SPECIAL, np.uint32), shape) | words & 0x80000000
    kind = rng.choice(4, shape, p=(0.2, 0.4, 0.25, 0.15))
    return np.choose(kind, (words, near, even, special)).astype(np.uint32)
