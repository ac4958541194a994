"""Load control of a weight buffer: when each vector of a tile enters the shadow registers."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from hw.lib.component import Component

__all__ = ["LoadSequencer"]


class LoadSequencer(Component):
    """Load control of a weight buffer: level of its FIFO, and the load of a tile after each swap.

    The vectors of a tile are loaded one per cycle, behind the wavefront of the last swap. A tile of
    rows is ready before its last row is loaded: rows are loaded back to back, so the wavefront of
    its swap cannot overtake them. This does not hold for columns: a whole tile is gathered, then
    loaded, then ready.

    Parameters
    ----------
    vectors : int
        Vectors of a tile.
    depth : int
        Depth of the FIFO in vectors.
    wave : int
        Most cycles from a swap until the next tile may be fetched.
    whole_tiles : bool
        Whether a tile must be gathered before its load, and loaded before its swap.

    Members
    -------
    i_comes, o_room
        A vector enters the FIFO; the FIFO has room.
    o_fetch, o_load
        A vector leaves the FIFO; one cycle later it is loaded, with the bit of its number set.
    o_ready, i_swap
        A tile is ready; the array swaps it in during this cycle, which needs ``o_ready``.
    i_wave
        Cycles from this swap until the next tile may be fetched.
    o_here
        High while a completely received tile is being shifted into the shadow registers.

    Attributes
    ----------
    fetched : Signal
        Vectors fetched of the current tile, for proofs.
    """

    i_comes: Signal
    o_room: Signal
    o_fetch: Signal
    o_load: Signal
    o_ready: Signal
    i_swap: Signal
    i_wave: Signal
    o_here: Signal

    def __init__(self, *, vectors: int, depth: int, wave: int, whole_tiles: bool) -> None:
        self._vectors, self._depth, self._whole_tiles = vectors, depth, whole_tiles
        self._wave = range(wave + 1)
        self.fetched = Signal(range(max(vectors, 2)))
        super().__init__(
            {f"i_{name}": In(1) for name in ("comes", "swap")}
            | {f"o_{name}": Out(1) for name in ("room", "fetch", "ready", "here")}
            | {"i_wave": In(self._wave), "o_load": Out(vectors)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        vectors, fetched, fetch = self._vectors, self.fetched, self.o_fetch
        # Vectors in the FIFO; cycles until the next tile may be fetched.
        level, wave = Signal(range(self._depth + 1)), Signal(self._wave)
        # Vectors of a tile are in the shadow registers; the one that makes it ready is.
        waiting, loaded = Signal(), Signal()
        here = (fetched == 0) | (level >= vectors - fetched)
        begins = ~waiting & (wave == 0) & (level >= (vectors if self._whole_tiles else 1))
        gone = self.o_load.any() if self._whole_tiles else fetch
        decisive = self.o_load[-1 if self._whole_tiles else 0]
        ready = loaded if self._whole_tiles else waiting & loaded & here & (fetched != 1)
        m.d.comb += [
            self.o_room.eq(level != self._depth),
            fetch.eq(begins | ((fetched != 0) & (level != 0))),
            self.o_ready.eq(ready),
            self.o_here.eq(Mux(waiting, here, level >= vectors)),
        ]
        m.d.sync += [
            level.eq(level + self.i_comes - gone),
            self.o_load.eq(Mux(fetch, 1 << fetched, 0)),
        ]
        with m.If(fetch):
            m.d.sync += fetched.eq(Mux(fetched == vectors - 1, 0, fetched + 1))
            with m.If(fetched == 0):
                m.d.sync += waiting.eq(1)
        with m.If(decisive):
            m.d.sync += loaded.eq(1)
        with m.If(wave != 0):
            m.d.sync += wave.eq(wave - 1)
        with m.If(self.i_swap):
            m.d.sync += [waiting.eq(0), loaded.eq(0), wave.eq(self.i_wave)]
        return m
