"""The unified buffer of a matrix unit: vectors are filled in once and read as often as needed."""

from __future__ import annotations

from amaranth.hdl import Assert as Check
from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.checks import require_power
from hw.shared import shared
from hw.systolic.dataflow import LANE_BITS, ArrayConfig, Dataflow
from hw.systolic.stationary_unit import StationaryUnit, moving_layout
from hw.systolic.unit_config import UnitConfig

__all__ = ["BufferedUnit", "UnifiedBuffer", "command_layout"]


def command_layout(depth: int) -> data.StructLayout:
    """Layout of a command: read a tile of ``rows`` + 1 vectors, ``offset`` behind the oldest.

    ``accumulate`` and ``finish`` are the marks of all its vectors. After it the ``release``
    oldest vectors are forgotten.
    """
    return data.StructLayout(
        {
            "offset": range(depth),
            "rows": range(depth),
            "release": range(depth + 1),
            "accumulate": 1,
            "finish": 1,
        }
    )


class UnifiedBuffer(wiring.Component):
    """Ring of vectors between their source and an array.

    Vectors come in order and stay until a command releases them. A command waits for the vectors
    that have not come yet, the source for room; so fills run ahead of reads with no more said.

    Parameters
    ----------
    config : ArrayConfig
    depth : int
        Vectors it holds, a power of two.

    Members
    -------
    i_fill : stream of vectors of R lanes
    i_command : stream of `command_layout`
    o_vectors : stream of `moving_layout`
    """

    i_fill: stream.Interface
    i_command: stream.Interface
    o_vectors: stream.Interface

    def __init__(self, config: ArrayConfig, *, depth: int) -> None:
        require_power("Unified buffer rows", depth, 2, 1 << 20)
        self._rows = config.rows
        self._depth = depth
        super().__init__(
            {
                "i_fill": In(stream.Signature(LANE_BITS * config.rows)),
                "i_command": In(stream.Signature(command_layout(depth))),
                "o_vectors": Out(stream.Signature(moving_layout(config.rows))),
            }
        )

    @property
    def definition_name(self) -> str:
        """Name of the shared module."""
        return f"unified_buffer_{self._rows}_{self._depth}"

    def elaborate(self, platform: object) -> Module:
        m = Module()
        depth = self._depth
        bank: memory.Memory = memory.Memory(shape=LANE_BITS * self._rows, depth=depth, init=[])
        m.submodules.bank = bank
        write, read = bank.write_port(), bank.read_port(domain="sync")
        level = Signal(range(depth + 1))
        write_place, oldest, index = (
            Signal(range(depth), name=name) for name in ("write_place", "oldest", "index")
        )
        command = self.i_command.payload
        fills = self.i_fill.valid & self.i_fill.ready
        fetch = Signal()
        last = index == command.rows
        ends = fetch & last
        offered = Signal()
        marks = Signal.like(self.o_vectors.payload)
        m.d.comb += [
            self.i_fill.ready.eq(level != depth),
            write.addr.eq(write_place),
            write.data.eq(self.i_fill.payload),
            write.en.eq(fills),
            fetch.eq(
                self.i_command.valid
                & (command.offset + index < level)
                & (~offered | self.o_vectors.ready)
            ),
            read.addr.eq((oldest + command.offset + index)[: len(oldest)]),
            read.en.eq(fetch),
            self.i_command.ready.eq(ends),
            self.o_vectors.valid.eq(offered),
            self.o_vectors.payload.eq(marks),
            self.o_vectors.payload.data.eq(read.data),
        ]
        m.d.sync += [
            write_place.eq(write_place + fills),
            level.eq(level + fills - Mux(ends, command.release, 0)),
            offered.eq(fetch | (offered & ~self.o_vectors.ready)),
        ]
        with m.If(fetch):
            m.d.sync += [
                index.eq(Mux(last, 0, index + 1)),
                marks.last.eq(last),
                marks.accumulate.eq(command.accumulate),
                marks.finish.eq(command.finish),
            ]
        with m.If(ends):
            m.d.sync += [
                oldest.eq(oldest + command.release),
                Check(command.release <= level, "a command releases vectors that never came"),
            ]
        return m


class BufferedUnit(wiring.Component):
    """A matrix unit with a unified buffer for the operand that moves, as the first TPU had.

    Parameters
    ----------
    config : UnitConfig
        Of a weight- or input-stationary unit.
    depth : int
        Vectors of the unified buffer, a power of two.

    Members
    -------
    i_fill, i_command : streams
        As of :class:`UnifiedBuffer`.
    i_weight or i_activation : stream of vectors of C lanes
        The operand that stays.
    Others are those of :class:`hw.systolic.stationary_unit.StationaryUnit`.

    Raises
    ------
    TypeError
        The unit is output-stationary: both its operands move.
    """

    def __init__(self, config: UnitConfig, *, depth: int) -> None:
        if config.array.dataflow == Dataflow.OS:
            raise TypeError("Unified buffer must be of a ws or is unit, not of os")
        self._config = config
        self._buffer = UnifiedBuffer(config.array, depth=depth)
        self._unit = StationaryUnit(config)
        self._moving = "i_activation" if config.array.dataflow == Dataflow.WS else "i_weight"
        own = {name: self._buffer.signature.members[name] for name in ("i_fill", "i_command")}
        kept = {
            name: member
            for name, member in self._unit.signature.members.items()
            if name != self._moving
        }
        super().__init__(own | kept)

    @property
    def definition_name(self) -> str:
        """Name of the shared module."""
        return f"buffered_{self._buffer.definition_name}_{self._config.name}"

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.buffer = shared(self._buffer)
        m.submodules.unit = shared(self._unit)
        wiring.connect(m, self._buffer.o_vectors, getattr(self._unit, self._moving))
        for name, member in self.signature.members.items():
            inner = getattr(self._buffer if name in ("i_fill", "i_command") else self._unit, name)
            outer = getattr(self, name)
            if member.is_signature:
                wiring.connect(m, inner, wiring.flipped(outer))
            elif member.flow == In:
                m.d.comb += inner.eq(outer)
            else:
                m.d.comb += outer.eq(inner)
        return m
