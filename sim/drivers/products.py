"""Shared parts of the product drivers: row blocks, padding, payloads, run and cycle count."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from sim.native.stream_model import StreamModel, Transfer

__all__ = ["Array", "Bytes", "Words", "equal_blocks", "padded", "payloads", "run_streams"]

Array = npt.NDArray[Any]
Words = npt.NDArray[np.uint32]
Bytes = npt.NDArray[np.uint8]


def equal_blocks(extent: int, most: int) -> list[tuple[int, int]]:
    """Start and stop of the fewest, nearly equal blocks of an extent, each at most `most`."""
    count = -(-extent // most)
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
    raw = np.zeros((len(vectors), -(-size // 4) * 4), np.uint8)
    raw[:, : vectors.shape[1]] = vectors
    if marks is not None:
        raw[:, vectors.shape[1]] = marks
    return raw.view(np.uint32)


def run_streams(
    model: StreamModel,
    sent: Mapping[str, Words],
    results: int,
    *,
    prefix: str,
    stalls: Mapping[str, float] | None,
    limit_cycles: int,
) -> tuple[dict[str, Transfer], int]:
    """Send the operands of a product, and take its results.

    Parameters
    ----------
    sent : mapping of str to array
        Payloads by stream, ``i_activation`` and ``i_weight`` among them.
    results : int
        Payloads to take from ``o_result``.
    prefix : str
        Prefix of the unit's port names, if the model has several units.
    stalls : mapping of str to float
        Stall probability per cycle by stream.

    Returns
    -------
    transfers : dict
        Transfers by stream.
    cycles : int
        Cycles from the first operand transfer to the last result transfer, both included.
    """
    transfers = model.run(
        {prefix + name: words for name, words in sent.items()},
        {prefix + "o_result": results},
        stalls={prefix + name: chance for name, chance in (stalls or {}).items()},
        limit_cycles=limit_cycles,
    )
    crossed = {
        name.removeprefix(prefix): each
        for name, each in transfers.items()
        if name.startswith(prefix)
    }
    start = min(crossed["i_activation"].first_cycle, crossed["i_weight"].first_cycle)
    return crossed, crossed["o_result"].last_cycle - start + 1
