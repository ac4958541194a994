"""Segment of a row's configuration chain: shift register as shadow of a unit's program."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib.wiring import In, Out

from hw.arch.errors import BadInputError, shown
from hw.arch.image import segment_words
from hw.lib.component import Component

__all__ = ["ChainSegment"]


class ChainSegment(Component):
    """Shadow and active register of one unit's program, in the configuration chain of its row.

    A shift takes one word in and passes the oldest one to the next segment. The shadow has no
    reset and may be filled while the active program is in use; a load copies it in one cycle.
    Reset clears the active program, which means "everything off" in every unit.

    Parameters
    ----------
    width_bits : int
        Width of the chain (W).
    config_bits : int
        Width of the unit's program; the segment holds ceil(config_bits / W) words.

    Members
    -------
    i_shift, i_data : ``In(1)``, ``In(width_bits)``
        A word enters.
    o_data : ``Out(width_bits)``
        Oldest word, the next segment's ``i_data``; all segments of a row shift together.
    i_load : ``In(1)``
        Makes the shadow active from the next cycle on; not in a cycle that shifts.
    o_config : ``Out(config_bits)``
        Active program.

    Raises
    ------
    BadInputError
        If a parameter lies outside its domain.
    """

    i_shift: Signal
    i_data: Signal
    o_data: Signal
    i_load: Signal
    o_config: Signal

    def __init__(self, *, width_bits: int, config_bits: int) -> None:
        for noun, value in (("Chain width", width_bits), ("Configuration bits", config_bits)):
            if not isinstance(value, int) or value < 1:
                raise BadInputError(f"{noun} must be an integer of at least 1, not {shown(value)}")
        self._width_bits = width_bits
        self._config_bits = config_bits
        super().__init__(
            {
                "i_shift": In(1),
                "i_data": In(width_bits),
                "o_data": Out(width_bits),
                "i_load": In(1),
                "o_config": Out(config_bits),
            }
        )

    @property
    def words(self) -> int:
        """Words of the segment."""
        return segment_words(self._config_bits, self._width_bits)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        shadow = Signal(self.words * self._width_bits, reset_less=True)
        m.d.comb += self.o_data.eq(shadow[: self._width_bits])
        with m.If(self.i_shift):
            m.d.sync += shadow.eq(Cat(shadow[self._width_bits :], self.i_data))
        with m.If(self.i_load):
            m.d.sync += self.o_config.eq(shadow[: self._config_bits])
        return m
