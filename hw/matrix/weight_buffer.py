"""Weight buffer: FIFO of stationary tiles, loaded into shadow registers ahead of use."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hw.array.dataflow import ArrayConfig
from hw.array.unit_parameters import TILES_AHEAD
from hw.emit.shared import shared
from hw.emit.vector_memory import VectorMemory
from hw.lib.component import Component
from hw.matrix.load_sequencer import LoadSequencer
from hw.matrix.softmax.rise_loader import RISE_BITS

__all__ = ["WeightBuffer", "swap_distance"]


def swap_distance(config: ArrayConfig) -> int:
    """Least swap distance of tiles by rows, in cycles: max(R, 3, (R - 1)·(L - 1) + C)."""
    return max(config.rows, 3, (config.rows - 1) * (config.latency - 1) + config.columns)


class WeightBuffer(Component):
    """Weight buffer: FIFO of tiles, which loads one vector per cycle after each swap.

    A tile is R vectors of C lanes; two swaps are at least :func:`swap_distance` cycles apart. With
    ``by_column`` it is C vectors of R lanes, and is gathered whole before its load: the stream is
    never held up within a tile by the wavefront of a swap.

    Parameters
    ----------
    config : ArrayConfig
    tiles : int
        Tiles that the FIFO holds at least.
    by_column : bool
        As of :class:`hw.array.stationary.StationaryArray`.
    rises : bool
        Whether each vector has a rise beside it; only with ``by_column``.

    Members
    -------
    i_stream : stream of vectors
        The first of a tile first.
    i_by_row
        Only with ``by_column``; static. Layout of the vectors, as of the array.
    i_mark, o_mark
        Only with ``by_column``. A mark of a tile, with each of its vectors; that of the tile that
        is ready.
    i_rise, o_rise
        Only with ``rises``: the rise of a vector; with ``o_vector``.
    o_vector, o_load
        A vector for the array, and its one-hot number in the tile.
    o_ready, i_swap
        A tile is ready; the array swaps it in during this cycle, which needs ``o_ready``.
    o_here
        High while a completely received tile is being shifted into the shadow registers.
    """

    i_stream: stream.Interface
    i_by_row: Signal
    i_mark: Signal
    o_mark: Signal
    i_rise: Signal
    o_rise: Signal
    o_vector: Signal
    o_load: Signal
    o_ready: Signal
    i_swap: Signal
    o_here: Signal

    def __init__(
        self, config: ArrayConfig, *, tiles: int, by_column: bool = False, rises: bool = False
    ) -> None:
        TILES_AHEAD.require(tiles)
        self._config, self._tiles, self._by_column = config, tiles, by_column
        self._rises = rises
        sides = config.columns, config.rows
        self._vectors, lanes = sides if by_column else sides[::-1]
        self._width_bits = config.lane_bits * lanes
        super().__init__(
            {
                "i_stream": In(stream.Signature(self._width_bits)),
                "o_vector": Out(self._width_bits),
                "o_load": Out(self._vectors),
                "o_ready": Out(1),
                "i_swap": In(1),
                "o_here": Out(1),
            }
            | ({"i_by_row": In(1), "i_mark": In(1), "o_mark": Out(1)} if by_column else {})
            | ({"i_rise": In(RISE_BITS), "o_rise": Out(RISE_BITS)} if rises else {})
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        depth = max(2, 1 << (self._tiles * self._vectors - 1).bit_length())
        rise = [self.i_rise] if self._rises else []
        mark = [self.i_mark] if self._by_column else []
        stored = Cat(self.i_stream.payload, *rise, *mark)
        width = len(stored)
        bank = VectorMemory(width=width, depth=depth, granule=width)
        m.submodules.memory = shared(bank)
        # By column, a swap must have passed the last row before the next load; a vector of rows is
        # written to all columns at once, so the last column counts as well.
        passes_rows = (config.rows - 1) * config.latency
        wave = passes_rows + config.columns if self._by_column else swap_distance(config) - 3
        m.submodules.sequencer = sequencer = LoadSequencer(
            vectors=self._vectors, depth=depth, wave=wave, whole_tiles=self._by_column
        )
        write_place, read_place = Signal(range(depth)), Signal(range(depth))
        m.d.comb += [
            self.i_stream.ready.eq(sequencer.o_room),
            sequencer.i_comes.eq(self.i_stream.valid & sequencer.o_room),
            sequencer.i_swap.eq(self.i_swap),
            sequencer.i_wave.eq(Mux(self.i_by_row, wave, passes_rows) if self._by_column else wave),
            bank.i_write_address.eq(write_place),
            bank.i_data.eq(stored),
            bank.i_write.eq(sequencer.i_comes),
            bank.i_read_address.eq(read_place),
            bank.i_read.eq(sequencer.o_fetch),
            self.o_vector.eq(bank.o_data),
            self.o_load.eq(sequencer.o_load),
            self.o_ready.eq(sequencer.o_ready),
            self.o_here.eq(sequencer.o_here),
        ]
        if self._by_column:
            # A tile by column is ready when its last vector has been read, and until the swap.
            m.d.comb += self.o_mark.eq(bank.o_data[-1])
        if self._rises:
            m.d.comb += self.o_rise.eq(bank.o_data[self._width_bits : -1])
        m.d.sync += [
            write_place.eq(write_place + sequencer.i_comes),
            read_place.eq(read_place + sequencer.o_fetch),
        ]
        return m
