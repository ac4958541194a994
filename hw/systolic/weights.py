"""The weight port: a tile of weights gathered, then written to the grid's shadow registers."""

from amaranth.hdl import Module, Signal
from amaranth.lib import fifo, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.stream import vector_signature

__all__ = ["WeightLoader"]


class WeightLoader(wiring.Component):
    """Gathers the C vectors of a weight tile and loads them one a cycle into the shadow registers.

    While one tile is in use and the next in the shadow registers, the one after it is accepted:
    the port takes a vector a cycle and never waits inside a tile for the wave of the swap.

    Parameters
    ----------
    rows, columns : int
        Size of the grid.
    latency : int
        Registers on a cell's sum path.
    width_bits : int
        Link width.

    Members
    -------
    i_stream : vector stream
        Weight tiles of ``columns`` vectors; their marks are not looked at.
    by_row
        Static: layout of the vectors (see :class:`hw.systolic.grid.Grid`).
    o_w, o_w_index, o_w_load
        To the grid.
    o_ready
        A whole tile is in the shadow registers.
    i_swap
        The tile in the shadow registers is taken into use in this cycle; only with ``o_ready``.
    """

    i_stream: stream.Interface
    by_row: Signal
    o_w: Signal
    o_w_index: Signal
    o_w_load: Signal
    o_ready: Signal
    i_swap: Signal

    def __init__(self, *, rows: int, columns: int, latency: int, width_bits: int) -> None:
        self._rows = rows
        self._columns = columns
        self._latency = latency
        self._width_bits = width_bits
        super().__init__(
            {
                "i_stream": In(vector_signature(width_bits)),
                "by_row": In(1),
                "o_w": Out(width_bits),
                "o_w_index": Out(range(columns)),
                "o_w_load": Out(1),
                "o_ready": Out(1),
                "i_swap": In(1),
            }
        )

    @property
    def definition_name(self) -> str:
        """Name of the shared module."""
        return f"weights_{self._rows}x{self._columns}_l{self._latency}"

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # Below four entries the library's FIFO has no memory left beside its output register.
        m.submodules.gathered = gathered = fifo.SyncFIFOBuffered(
            width=self._width_bits, depth=max(self._columns, 4)
        )
        m.d.comb += [
            gathered.w_data.eq(self.i_stream.payload.data),
            gathered.w_en.eq(self.i_stream.valid),
            self.i_stream.ready.eq(gathered.w_rdy),
        ]

        # The swap reaches the last row this many cycles after the first; by rows, a vector is
        # written to all columns at once and so must wait for the last column as well.
        wave_by_column = (self._rows - 1) * self._latency
        wave_by_row = wave_by_column + self._columns
        wave = Signal(range(wave_by_row + 1))
        loading = Signal()
        loaded = Signal()
        index = Signal(range(self._columns))
        with m.If(self.i_swap):
            m.d.sync += loaded.eq(0)
            with m.If(self.by_row):
                m.d.sync += wave.eq(wave_by_row)
            with m.Else():
                m.d.sync += wave.eq(wave_by_column)
        with m.Elif(wave != 0):
            m.d.sync += wave.eq(wave - 1)

        free = ~loaded & (wave == 0)
        with m.If(~loading & free & (gathered.w_level >= self._columns)):
            m.d.sync += loading.eq(1)
        m.d.comb += [
            gathered.r_en.eq(loading),
            self.o_w.eq(gathered.r_data),
            self.o_w_index.eq(index),
            self.o_w_load.eq(loading & gathered.r_rdy),
            self.o_ready.eq(loaded),
        ]
        with m.If(self.o_w_load):
            with m.If(index == self._columns - 1):
                m.d.sync += [index.eq(0), loading.eq(0), loaded.eq(1)]
            with m.Else():
                m.d.sync += index.eq(index + 1)
        return m
