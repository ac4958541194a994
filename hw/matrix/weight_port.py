"""Weight port of the PCU: tiles gathered from a stream and loaded into the shadow registers."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import fifo, stream
from amaranth.lib.wiring import In, Out

from hw.array.dataflow import LANE_BITS, ArrayConfig
from hw.lib.component import Component
from hw.lib.stream import vector_signature
from hw.numeric.formats import int8

__all__ = ["WeightLoader"]


class WeightLoader(Component):
    """Weight port: gathers the C vectors of a tile, then loads one per cycle into shadow registers.

    While one tile is active and the next in the shadow registers, the port accepts the tile after
    it: it takes one vector per cycle and never waits within a tile for the wavefront of a swap.

    Parameters
    ----------
    config : ArrayConfig
        Parameters of the array, whose vectors have R lanes.

    Members
    -------
    i_stream : vector stream
        Weight tiles of C vectors; their flags are ignored.
    by_row, int8
        Static: layout of the vectors (:class:`hw.array.stationary.StationaryArray`), and
        whether they are int8. By row, int8 vectors come row after row, while a lane of the array
        takes two successive rows.
    o_vector, o_load
        A vector of lanes for the array, and its one-hot number in the tile.
    o_ready
        A whole tile is in the shadow registers.
    i_swap
        The array swaps in the tile of the shadow registers in this cycle; only with ``o_ready``.
    """

    i_stream: stream.Interface
    by_row: Signal
    int8: Signal
    o_vector: Signal
    o_load: Signal
    o_ready: Signal
    i_swap: Signal

    def __init__(self, config: ArrayConfig) -> None:
        self._config = config
        width_bits = LANE_BITS * config.rows
        super().__init__(
            {
                "i_stream": In(vector_signature(width_bits)),
                "by_row": In(1),
                "int8": In(1),
                "o_vector": Out(width_bits),
                "o_load": Out(config.columns),
                "o_ready": Out(1),
                "i_swap": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        rows, columns = self._config.rows, self._config.columns
        # Below four entries the library's FIFO has no memory besides its output register.
        m.submodules.gathered = gathered = fifo.SyncFIFOBuffered(
            width=LANE_BITS * rows, depth=max(columns, 4)
        )
        m.d.comb += [
            gathered.w_data.eq(self.i_stream.payload.data),
            gathered.w_en.eq(self.i_stream.valid),
            self.i_stream.ready.eq(gathered.w_rdy),
        ]

        # The swap reaches the last row this many cycles after the first; by rows, a vector is
        # written to all columns at once, so the last column counts as well.
        wave_by_column = (rows - 1) * self._config.latency
        wave_by_row = wave_by_column + columns
        wave = Signal(range(wave_by_row + 1))
        loading = Signal()
        loaded = Signal()
        index = Signal(range(columns))
        with m.If(self.i_swap):
            m.d.sync += loaded.eq(0)
            with m.If(self.by_row):
                m.d.sync += wave.eq(wave_by_row)
            with m.Else():
                m.d.sync += wave.eq(wave_by_column)
        with m.Elif(wave != 0):
            m.d.sync += wave.eq(wave - 1)

        free = ~loaded & (wave == 0)
        with m.If(~loading & free & (gathered.w_level >= columns)):
            m.d.sync += loading.eq(1)
        comes = Signal()
        vector = gathered.r_data
        # int8 by row: lane c of a pair of rows has byte c of both, the even row's first.
        pair_bits = LANE_BITS * columns
        pairs = Cat(
            Cat(vector[low : low + int8.bits], vector[low + pair_bits // 2 :][: int8.bits])
            for pair in range(0, LANE_BITS * rows, pair_bits)
            for low in range(pair, pair + pair_bits // 2, int8.bits)
        )
        m.d.comb += [
            gathered.r_en.eq(loading),
            comes.eq(loading & gathered.r_rdy),
            self.o_vector.eq(Mux(self.by_row & self.int8, pairs, vector)),
            self.o_load.eq(Mux(comes, 1 << index, 0)),
            self.o_ready.eq(loaded),
        ]
        with m.If(comes):
            with m.If(index == columns - 1):
                m.d.sync += [index.eq(0), loading.eq(0), loaded.eq(1)]
            with m.Else():
                m.d.sync += index.eq(index + 1)
        return m
