"""Vectors of a result stream from the matrix that a driver reads from it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["integers", "result_vectors"]

Array = npt.NDArray[Any]


def integers(words: Array) -> list[int]:
    """Payloads of an array whose first axis counts them."""
    return [int.from_bytes(np.ascontiguousarray(each).tobytes(), "little") for each in words]


def result_vectors(
    decode: Callable[[Array], Array], matrix: Array, *, vectors: int, vector_bytes: int
) -> Array:
    """Bytes of the vectors that `decode` makes `matrix` of; elements it does not read are 0.

    Parameters
    ----------
    decode : function
        From vectors (n × bytes) to a matrix; it moves elements and computes none.
    matrix : array
    vectors, vector_bytes : int
        Number and size of the vectors.
    """
    size = matrix.dtype.itemsize
    lanes = vectors * vector_bytes // size
    numbers = np.arange(lanes, dtype=np.int64)
    places = np.zeros(matrix.shape, np.int64)
    for plane in range(4):
        # Elements that consist of one byte of their number.
        bytes_ = np.repeat((numbers >> 8 * plane & 0xFF).astype(np.uint8), size)
        moved = np.ascontiguousarray(decode(bytes_.reshape(vectors, vector_bytes)))
        places |= moved.view(np.uint8).reshape(*matrix.shape, size)[..., 0].astype(np.int64) << (
            8 * plane
        )
    found = np.zeros((lanes, size), np.uint8)
    elements = np.ascontiguousarray(matrix).view(np.uint8).reshape(-1, size)
    found[places.reshape(-1)] = elements
    return found.reshape(vectors, vector_bytes)
