"""Runs of matrix units and tensor units on their native models."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from hw.arch.pcu import PcuProgram
from hw.matrix.unit_config import COUNTERS
from hw.numeric.formats import Format
from hw.numeric.mx import MxMatrix
from hw.numeric.product_formats import DEFAULT_CELLS
from hw.tpu.tensor_config import TensorConfig
from sim.drivers.matrix_unit_driver import MatrixTiling
from sim.drivers.products import Array, Words, padded
from sim.drivers.tensor_unit_driver import host_vectors, payloads, vectors_for_host
from sim.drivers.unit_driver import UnitTiling
from sw.tensor_program import Program
from tests.native.stream_model import StreamModel, Transfer

__all__ = [
    "ProductRun",
    "run_product",
    "unit_counters",
    "run_streams",
    "STREAMS",
    "run_matmul",
    "run_program",
]


def unit_counters(word: int) -> dict[str, int]:
    """Decode the port ``counters`` of a stand-alone matrix unit to counters by name."""
    fields: Any = COUNTERS.from_bits(word)
    return {name: int(fields[name]) for name in COUNTERS.members}


@dataclasses.dataclass(frozen=True)
class ProductRun:
    """Result of a product run.

    Members
    -------
    result : (M, N) array
    cycles : int
        Cycles from the first operand transfer to the last result transfer, both included.
    transfers : dict
        Transfers by stream.
    """

    result: Array
    cycles: int
    transfers: Mapping[str, Transfer]


def run_product(
    model: StreamModel,
    tiling: UnitTiling,
    a: Array | MxMatrix,
    b: Array | MxMatrix,
    *,
    prefix: str = "",
    relu: bool = False,
    scaling: tuple[int, int] | None = None,
    bias: Array | None = None,
    stalls: Mapping[str, float] | None = None,
    limit_cycles: int = 1 << 40,
) -> ProductRun:
    """Run a product on the model of an idle stand-alone matrix unit.

    Parameters
    ----------
    a, b : arrays, or microscaled rows and columns
    prefix : str
        Prefix of the unit's port names, if the model has several units.
    relu : bool
        Whether negative results become 0.
    scaling : pair of int
        For int8 results, scale and shift; for a bias on fp32 sums, the bits of an fp32 scale.
    bias : (N,) array of the sums' format
        For units with a bias; (M,) for input-stationary units.
    stalls : dict of str to float
        Stall probability per cycle by stream.
    """
    ordered = tiling.config.array.cell.ordered
    for name, fmt in zip(("activation_mode", "weight_mode"), tiling.formats, strict=True):
        model.set(prefix + name, ordered.index(fmt))
    model.set(prefix + "relu", int(relu))
    if scaling is not None:
        model.set(prefix + "scale", scaling[0])
        if tiling.config.scales:
            model.set(prefix + "shift", scaling[1])
    activations, weights = tiling.streams(a, b)
    sent = {"i_activation": activations, "i_weight": weights}
    if bias is not None:
        columns = tiling.config.array.columns
        vectors = padded(bias, (tiling.groups * columns,)).reshape(tiling.groups, columns)
        packets = len(tiling.packets) // tiling.groups
        sent["i_bias"] = np.tile(vectors.view(np.uint32), (packets, 1))
    crossed, cycles = run_streams(
        model,
        sent,
        sum(tiling.packets),
        prefix=prefix,
        stalls=stalls,
        limit_cycles=limit_cycles,
    )
    return ProductRun(tiling.result(crossed["o_result"].words), cycles, crossed)


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


#: Streams of a matrix unit.
STREAMS = ("i_activation", "i_weight", "o_result")


def run_matmul(
    model: StreamModel,
    tiling: MatrixTiling,
    a: Array,
    b: Array,
    *,
    prefix: str = "",
    cells: tuple[Format, ...] = DEFAULT_CELLS,
    weights_by_row: bool = False,
    stalls: Mapping[str, float] | None = None,
    limit_cycles: int = 1 << 40,
) -> tuple[Array, int, dict[str, Transfer]]:
    """Run a product on the model of an idle matrix unit.

    Parameters
    ----------
    prefix : str
        Prefix of the unit's port names, if the model has several units.
    cells : tuple of Format
        Operand formats of the unit.
    weights_by_row : bool
        Send weights in the row layout, that of another unit's results.
    stalls : dict of str to float
        Stall probability per cycle by stream (of `STREAMS`).

    Returns
    -------
    result : (M, N) array
    cycles : int
        Cycles from the first operand transfer to the last result transfer, both included.
    transfers : dict
        Transfers by stream.
    """
    program = PcuProgram(tiling.fmt, tiling.out, weight_fmt=tiling.weight_fmt)
    for mode, value in program.modes(cells).items():
        model.set(prefix + mode, value)
    model.set(prefix + "weights_by_row", int(weights_by_row))
    model.set(prefix + "i_continues", 0)
    model.set(prefix + "i_beside", 0)
    crossed, cycles = run_streams(
        model,
        {
            "i_activation": tiling.activations(a),
            "i_weight": tiling.weights(b, by_row=weights_by_row),
        },
        tiling.result_vectors,
        prefix=prefix,
        stalls=stalls,
        limit_cycles=limit_cycles,
    )
    return tiling.result(crossed["o_result"].words), cycles, crossed


def run_program(
    model: StreamModel,
    config: TensorConfig,
    program: Program,
    *,
    prefix: str = "",
    stalls: Mapping[str, float] | None = None,
) -> Array:
    """Run a program on the model of a tensor unit; returns the vectors for the host.

    Parameters
    ----------
    prefix : str
        Prefix of the unit's port names, if the model has several units.
    stalls : dict of str to float
        Stall probability per cycle by stream.
    """
    counts = vectors_for_host(program)
    crossed = model.run(
        {prefix + name: words for name, words in payloads(program).items()},
        {prefix + "o_host": sum(counts)},
        stalls={prefix + name: chance for name, chance in (stalls or {}).items()},
    )
    return host_vectors(config, crossed[prefix + "o_host"].words, counts)
