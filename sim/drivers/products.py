"""Shared parts of the product drivers: row blocks, padding, payloads, run and cycle count."""

from typing import Any

import numpy as np
import numpy.typing as npt

from hw.numeric.division import ceil_div

__all__ = ["Array", "Bytes", "Words", "equal_blocks", "padded", "payloads", "stream_values"]

Array = npt.NDArray[Any]
Words = npt.NDArray[np.uint32]
Bytes = npt.NDArray[np.uint8]


def equal_blocks(extent: int, most: int) -> list[tuple[int, int]]:
    """Start and stop of the fewest, nearly equal blocks of an extent, each at most `most`."""
    count = ceil_div(extent, most)
    edges = [index * extent // count for index in range(count + 1)]
    return list(zip(edges[:-1], edges[1:], strict=True))


def padded(array: Array, shape: tuple[int, ...]) -> Array:
    """Pad an array with trailing zeros to a shape."""
    out = np.zeros(shape, array.dtype)
    out[tuple(slice(extent) for extent in array.shape)] = array
    return out


def payloads(vectors: Bytes, marks: Array | None = None) -> Words:
    """Payload words of vectors (n × bytes), with sideband flags (n), if any, in the top bits."""
    size = vectors.shape[1] + (marks is not None)
    raw = np.zeros((len(vectors), ceil_div(size, 4) * 4), np.uint8)
    raw[:, : vectors.shape[1]] = vectors
    if marks is not None:
        raw[:, vectors.shape[1]] = marks
    return raw.view(np.uint32)


def stream_values(words: Words) -> list[int]:
    """Payloads as integers, as a stream of a testbench takes them."""
    return [int.from_bytes(payload.tobytes(), "little") for payload in words]
