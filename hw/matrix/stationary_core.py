"""Operand side of a matrix unit: operand port, weight buffer and issue control around an array."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.array.dataflow import ArrayConfig
from hw.array.stationary import StationaryArray
from hw.emit.shared import shared
from hw.lib.component import Component
from hw.lib.stream import ElasticBuffer
from hw.matrix.weight_buffer import WeightBuffer

__all__ = ["OPERANDS", "StationaryCore", "operand_layout", "sums_signature"]

#: What a vector waits for: a vector is there; its tile is ready, or has been received completely.
OPERANDS = data.StructLayout({"valid": 1, "tile_ready": 1, "tile_here": 1})


def operand_layout(config: ArrayConfig, flags: tuple[str, ...]) -> data.StructLayout:
    """Layout of a vector of R lanes of the streaming operand and its sideband flags."""
    return data.StructLayout({"data": config.lane_bits * config.rows} | dict.fromkeys(flags, 1))


def sums_signature(columns: int, flags: tuple[str, ...]) -> wiring.Signature:
    """Signature between an array and what keeps its partial sums, from the array's point of view.

    Members
    -------
    flags, first
        Sideband flags of the next vector; it is the first of its tile.
    room, issue
        There is room for its sums, and its old ones can be read; it enters the array.
    old, sums
        Partial sums that enter and leave each column, as of
        :class:`hw.array.stationary.StationaryArray`.
    """
    sums = data.ArrayLayout(32, columns)
    layout = data.StructLayout(dict.fromkeys(flags, 1))
    outputs = {"flags": layout, "first": 1, "issue": 1, "sums": sums}
    return wiring.Signature(
        {name: Out(shape) for name, shape in outputs.items()} | {"room": In(1), "old": In(sums)}
    )


class StationaryCore(Component):
    """Operand side of a matrix unit with a stationary operand, and its array.

    A packet of the streaming operand is a tile of vectors; its stationary tile is the next one of
    the stationary stream. A vector enters the array as soon as its tile is ready and its sums have
    room: one per cycle.

    Parameters
    ----------
    config : ArrayConfig
    flags : tuple of str
        Sideband flags of a vector, ``last`` among them.
    tiles_ahead, by_column
        As of :class:`hw.matrix.weight_buffer.WeightBuffer`.

    Members
    -------
    i_moving, i_stationary : streams
        Vectors of `operand_layout`; vectors of a stationary tile.
    moving_mode, stationary_mode, i_by_row
        Static, as of :class:`hw.array.stationary.StationaryArray`; the last with ``by_column``.
    o_sums : ``Out(sums_signature(columns, flags))``
    o_operands : ``Out(OPERANDS)``
    """

    i_moving: stream.Interface
    i_stationary: stream.Interface
    moving_mode: Signal
    stationary_mode: Signal
    i_by_row: Signal
    o_sums: Any
    o_operands: data.View[data.StructLayout]

    def __init__(
        self,
        config: ArrayConfig,
        *,
        flags: tuple[str, ...],
        tiles_ahead: int,
        by_column: bool = False,
    ) -> None:
        self._config, self._by_column = config, by_column
        self._array = StationaryArray(config, by_column=by_column)
        self._weights = WeightBuffer(config, tiles=tiles_ahead, by_column=by_column)
        self._layout = operand_layout(config, flags)
        super().__init__(
            {
                "i_moving": In(stream.Signature(self._layout)),
                "i_stationary": self._weights.signature.members["i_stream"],
                "moving_mode": In(1),
                "stationary_mode": In(1),
                "o_sums": Out(sums_signature(config.columns, flags)),
                "o_operands": Out(OPERANDS),
            }
            | ({"i_by_row": In(1)} if by_column else {})
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        array, weights, sums = self._array, self._weights, self.o_sums
        m.submodules.array = shared(array)
        m.submodules.weights = shared(weights)
        m.submodules.port = port = ElasticBuffer(self._layout)
        wiring.connect(m, wiring.flipped(self.i_moving), port.i_stream)
        wiring.connect(m, wiring.flipped(self.i_stationary), weights.i_stream)
        vector = port.o_stream
        first = Signal(init=1)
        tile_ready = ~first | weights.o_ready
        swap = sums.issue & first
        m.d.comb += [
            sums.issue.eq(vector.valid & tile_ready & sums.room),
            sums.first.eq(first),
            sums.flags.eq(Value.cast(vector.payload)[len(vector.payload.data) :]),
            vector.ready.eq(sums.issue),
            weights.i_swap.eq(swap),
            array.moving_mode.eq(self.moving_mode),
            array.stationary_mode.eq(self.stationary_mode),
            array.i_moving.eq(vector.payload.data),
            array.i_swap.eq(swap),
            array.i_stationary.eq(weights.o_vector),
            array.i_load.eq(weights.o_load),
            array.i_p.eq(sums.old),
            sums.sums.eq(array.o_p),
            self.o_operands.valid.eq(vector.valid),
            self.o_operands.tile_ready.eq(tile_ready),
            self.o_operands.tile_here.eq(weights.o_here),
        ]
        if self._by_column:
            m.d.comb += [array.i_by_row.eq(self.i_by_row), weights.i_by_row.eq(self.i_by_row)]
        with m.If(sums.issue):
            m.d.sync += first.eq(vector.payload.last)
        return m
