"""The stationary operand: a queue of tiles, loaded into the shadow registers ahead of use."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.checks import require_int
from hw.systolic.dataflow import LANE_BITS, ArrayConfig

__all__ = ["TileLoader"]


class TileLoader(wiring.Component):
    """Queues tiles of R vectors and loads them, a row a cycle, as soon as a swap has passed.

    A tile is ready before its last row is loaded: the wave of its swap cannot overtake the rows
    that follow one another without a pause. Two swaps are at least `distance` cycles apart.

    Parameters
    ----------
    config : ArrayConfig
    tiles : int
        Tiles the queue has room for.

    Members
    -------
    i_stream : stream of vectors of C lanes
        Row 0 of a tile first.
    o_vector, o_load
        A row, and the one of the array's that it is for.
    o_ready, i_swap
        A tile is ready; the array takes it into use in this cycle, which needs ``o_ready``.
    o_here
        The tile that is not ready has come whole: it is being shifted in.
    """

    i_stream: stream.Interface
    o_vector: Signal
    o_load: Signal
    o_ready: Signal
    i_swap: Signal
    o_here: Signal

    def __init__(self, config: ArrayConfig, *, tiles: int) -> None:
        require_int("Tiles ahead", tiles, 1, 64)
        self._config = config
        self._tiles = tiles
        width_bits = LANE_BITS * config.columns
        super().__init__(
            {
                "i_stream": In(stream.Signature(width_bits)),
                "o_vector": Out(width_bits),
                "o_load": Out(config.rows),
                "o_ready": Out(1),
                "i_swap": In(1),
                "o_here": Out(1),
            }
        )

    @property
    def distance(self) -> int:
        """Cycles from a swap to the next at the earliest: max(R, 3, (R - 1)·(L - 1) + C)."""
        config = self._config
        return max(config.rows, 3, (config.rows - 1) * (config.latency - 1) + config.columns)

    @property
    def definition_name(self) -> str:
        """Name of the shared module."""
        config = self._config
        return f"loader_{config.rows}x{config.columns}_l{config.latency}_t{self._tiles}"

    def elaborate(self, platform: object) -> Module:
        m = Module()
        rows = self._config.rows
        depth = max(2, 1 << (self._tiles * rows - 1).bit_length())
        bank: memory.Memory = memory.Memory(
            shape=LANE_BITS * self._config.columns, depth=depth, init=[]
        )
        m.submodules.bank = bank
        write, read = bank.write_port(), bank.read_port(domain="sync")
        level = Signal(range(depth + 1))
        write_place, read_place = Signal(range(depth)), Signal(range(depth))
        comes = self.i_stream.valid & self.i_stream.ready
        fetch = Signal()
        m.d.comb += [
            self.i_stream.ready.eq(level != depth),
            write.addr.eq(write_place),
            write.data.eq(self.i_stream.payload),
            write.en.eq(comes),
            read.addr.eq(read_place),
            read.en.eq(fetch),
            self.o_vector.eq(read.data),
        ]
        m.d.sync += [
            level.eq(level + comes - fetch),
            write_place.eq(write_place + comes),
            read_place.eq(read_place + fetch),
        ]

        # A row is fetched, a cycle later loaded. The first row of a tile follows the wave of the
        # last swap so that no row comes to a column before the swap has; and not before a tile can
        # have come since, so that swaps keep one distance whatever is queued.
        wave_cycles = self.distance - 3
        wave = Signal(range(wave_cycles + 1))
        fetched = Signal(range(max(rows, 2)))
        waiting = Signal()  # a tile, or its first rows, is in the shadow registers
        first_loaded = Signal()
        free = ~waiting & (wave == 0)
        m.d.comb += fetch.eq((level != 0) & ((fetched != 0) | free))
        m.d.sync += self.o_load.eq(Mux(fetch, 1 << fetched, 0))
        with m.If(fetch):
            m.d.sync += fetched.eq(Mux(fetched == rows - 1, 0, fetched + 1))
            with m.If(fetched == 0):
                m.d.sync += waiting.eq(1)
        with m.If(self.o_load[0]):
            m.d.sync += first_loaded.eq(1)
        with m.If(wave != 0):
            m.d.sync += wave.eq(wave - 1)
        with m.If(self.i_swap):
            m.d.sync += [waiting.eq(0), first_loaded.eq(0), wave.eq(wave_cycles)]
        whole = (fetched == 0) | (level >= rows - fetched)
        m.d.comb += [
            self.o_ready.eq(waiting & first_loaded & whole & (fetched != 1)),
            self.o_here.eq(Mux(waiting, whole, level >= rows)),
        ]
        return m
