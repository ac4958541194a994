"""Driver of tensor units: a program to stream payloads, and its run on a model."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hw.arch.tensor_instructions import Opcode, pack
from hw.tpu.tensor_config import TensorConfig
from sw.tensor_program import Program

__all__ = ["host_vectors", "payloads", "vectors_for_host"]

Array = npt.NDArray[Any]
Words = npt.NDArray[np.uint32]


def _words(vectors: Array) -> Words:
    """Payload words of arrays, whose first axis counts payloads."""
    data = np.ascontiguousarray(vectors).view(np.uint8).reshape(len(vectors), -1)
    return np.pad(data, ((0, 0), (0, -data.shape[1] % 4))).view(np.uint32)


def payloads(program: Program) -> dict[str, Words]:
    """Input payloads of a program by stream: payloads × words of 32 bits."""
    tiles, rows, *lanes = program.weights.shape
    sent = {
        "i_instruction": pack(program.instructions),
        "i_weight": _words(program.weights.reshape(tiles * rows, *lanes)),
        "i_host": _words(program.host),
    }
    if program.biases is not None:
        sent["i_bias"] = _words(program.biases)
    return sent


def vectors_for_host(program: Program) -> list[int]:
    """Vectors per instruction that sends vectors to the host."""
    return [each.rows for each in program.instructions if each.opcode == Opcode.WRITE_HOST]


def host_vectors(config: TensorConfig, words: Words, counts: list[int]) -> Array:
    """Decode the vectors of the stream to the host.

    Raises
    ------
    RuntimeError
        If a `last` flag is not at the end of an instruction's vectors.
    """
    data = np.ascontiguousarray(words).view(np.uint8)
    size = config.vector_bits // 8
    lasts = np.zeros(len(words), np.uint8)
    lasts[np.cumsum(counts) - 1] = 1
    if not np.array_equal(data[:, size] & 1, lasts):
        raise RuntimeError("Vectors for the host have a mark elsewhere than at their end")
    return np.ascontiguousarray(data[:, :size]).view(config.format.dtype)
