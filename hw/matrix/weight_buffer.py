"""Weight buffer: FIFO of stationary tiles, loaded into shadow registers ahead of use."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import memory, stream
from amaranth.lib.wiring import In, Out

from hw.arch.checks import require_int
from hw.array.dataflow import ArrayConfig
from hw.emit.shared import Library
from hw.emit.vector_memory import without_contents
from hw.lib.component import Component

__all__ = ["LoadSequencer", "TileLoader", "swap_distance"]


def swap_distance(config: ArrayConfig) -> int:
    """Least swap distance in cycles: max(R, 3, (R - 1)·(L - 1) + C)."""
    return max(config.rows, 3, (config.rows - 1) * (config.latency - 1) + config.columns)


class LoadSequencer:
    """Load control of a weight buffer: when each row of a tile enters the shadow registers.

    A tile is ready before its last row is loaded: rows are loaded back to back, so the wavefront of
    its swap cannot overtake them. The first row of the next tile follows the wavefront of the last
    swap, so no row reaches a column before that swap.

    Parameters
    ----------
    rows : int
        Rows of a tile.
    depth : int
        Depth of the FIFO in vectors.
    distance : int
        Least cycles between two swaps, whatever is queued; 3 or more.

    Attributes
    ----------
    comes, room : Signal
        A vector enters the FIFO; the FIFO has room.
    fetch, load : Signal
        A vector leaves the FIFO; one cycle later it is loaded into the row whose bit is set.
    ready, swap : Signal
        A tile is ready; the array swaps it in during this cycle, which needs ``ready``.
    here : Signal
        High while a completely received tile is being shifted into the shadow registers.
    level, fetched, waiting, first_loaded, wave : Signal
        Vectors in the FIFO; rows fetched of the current tile; all or some rows of a tile are in
        the shadow registers. The first row is loaded; cycles until the next tile may be fetched.
    """

    def __init__(self, *, rows: int, depth: int, distance: int) -> None:
        self._rows = rows
        self._depth = depth
        self._distance = distance
        self.level = Signal(range(depth + 1))
        self.fetched = Signal(range(max(rows, 2)))
        self.waiting = Signal()
        self.first_loaded = Signal()
        self.wave = Signal(range(distance - 2))
        self.comes, self.room = Signal(), Signal()
        self.fetch, self.load = Signal(), Signal(rows)
        self.ready, self.swap, self.here = Signal(), Signal(), Signal()

    def add_to(self, m: Module) -> None:
        """Add the logic to a module."""
        rows = self._rows
        level, fetched, waiting, wave = self.level, self.fetched, self.waiting, self.wave
        fetch = self.fetch
        free = ~waiting & (wave == 0)
        m.d.comb += [
            self.room.eq(level != self._depth),
            fetch.eq((level != 0) & ((fetched != 0) | free)),
        ]
        m.d.sync += [
            level.eq(level + self.comes - fetch),
            self.load.eq(Mux(fetch, 1 << fetched, 0)),
        ]
        with m.If(fetch):
            m.d.sync += fetched.eq(Mux(fetched == rows - 1, 0, fetched + 1))
            with m.If(fetched == 0):
                m.d.sync += waiting.eq(1)
        with m.If(self.load[0]):
            m.d.sync += self.first_loaded.eq(1)
        with m.If(wave != 0):
            m.d.sync += wave.eq(wave - 1)
        with m.If(self.swap):
            m.d.sync += [
                waiting.eq(0),
                self.first_loaded.eq(0),
                wave.eq(self._distance - 3),
            ]
        whole = (fetched == 0) | (level >= rows - fetched)
        m.d.comb += [
            self.ready.eq(waiting & self.first_loaded & whole & (fetched != 1)),
            self.here.eq(Mux(waiting, whole, level >= rows)),
        ]


class TileLoader(Component):
    """Weight buffer: FIFO of tiles of R vectors, which loads one row per cycle after each swap.

    Two swaps are at least :func:`swap_distance` cycles apart.

    Parameters
    ----------
    config : ArrayConfig
    tiles : int
        Tiles that the FIFO holds at least.

    Members
    -------
    i_stream : stream of vectors of C lanes
        Row 0 of a tile first.
    o_vector, o_load
        A row of the tile, and the one-hot row of the array that loads it.
    o_ready, i_swap
        A tile is ready; the array swaps it in during this cycle, which needs ``o_ready``.
    o_here
        High while a completely received tile is being shifted into the shadow registers.
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
        width_bits = config.lane_bits * config.columns
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

    def elaborate(self, platform: object) -> Module:
        m = Module()
        rows = self._config.rows
        depth = max(2, 1 << (self._tiles * rows - 1).bit_length())
        bank: memory.Memory = memory.Memory(
            shape=self._config.lane_bits * self._config.columns, depth=depth, init=[]
        )
        m.submodules.bank = bank
        write, read = bank.write_port(), bank.read_port(domain="sync")
        distance = swap_distance(self._config)
        sequencer = LoadSequencer(rows=rows, depth=depth, distance=distance)
        sequencer.add_to(m)
        write_place, read_place = Signal(range(depth)), Signal(range(depth))
        m.d.comb += [
            self.i_stream.ready.eq(sequencer.room),
            sequencer.comes.eq(self.i_stream.valid & sequencer.room),
            sequencer.swap.eq(self.i_swap),
            write.addr.eq(write_place),
            write.data.eq(self.i_stream.payload),
            write.en.eq(sequencer.comes),
            read.addr.eq(read_place),
            read.en.eq(sequencer.fetch),
            self.o_vector.eq(read.data),
            self.o_load.eq(sequencer.load),
            self.o_ready.eq(sequencer.ready),
            self.o_here.eq(sequencer.here),
        ]
        m.d.sync += [
            write_place.eq(write_place + sequencer.comes),
            read_place.eq(read_place + sequencer.fetch),
        ]
        return m

    def rtlil(self, library: Library) -> str:
        """RTLIL of its definition, whose memory needs no initial contents."""
        return without_contents(self, library)
