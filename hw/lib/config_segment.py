"""Configuration segment of one unit: shadow register, written word by word, and active program."""

from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import In, Out

from hw.arch.errors import BadInputError, shown
from hw.arch.limits import SEGMENT_WORDS
from hw.lib.component import Component
from hw.numeric.division import ceil_div

__all__ = ["ConfigSegment"]


class ConfigSegment(Component):
    """Shadow and active register of one unit's program; words that an image lacks stay 0.

    Words of the next program are written to the shadow, in any order, while the active program is
    in use. A load makes those written since ``i_begin`` active, in one cycle, and leaves the others
    as they are: 0 after a reset, which means "everything off" in every unit. The shadow has no
    reset.

    Parameters
    ----------
    width_bits : int
        Width of a word (W).
    config_bits : int
        Width of the unit's program; the segment has ceil(config_bits / W) words.

    Members
    -------
    i_begin : ``In(1)``
        The shadow has no word any more; not in a cycle that writes or loads.
    i_write, i_word, i_data : ``In(1)``, ``In(range(256))``, ``In(width_bits)``
        A word of the shadow. Bits beyond the program are ignored.
    i_load : ``In(1)``
        Makes the written words active from the next cycle on; not in a cycle that writes. The
        segment is reset between two loads.
    o_config : ``Out(config_bits)``
        Active program.

    Raises
    ------
    BadInputError
        If a parameter lies outside its domain.
    """

    i_begin: Signal
    i_write: Signal
    i_word: Signal
    i_data: Signal
    i_load: Signal
    o_config: Signal

    def __init__(self, *, width_bits: int, config_bits: int) -> None:
        for noun, value in (("Segment width", width_bits), ("Configuration bits", config_bits)):
            if not isinstance(value, int) or value < 1:
                raise BadInputError(f"{noun} must be an integer of at least 1, not {shown(value)}")
        SEGMENT_WORDS.require("Words of a segment", ceil_div(config_bits, width_bits))
        self._width_bits = width_bits
        self._config_bits = config_bits
        super().__init__(
            {
                "i_begin": In(1),
                "i_write": In(1),
                "i_word": In(range(SEGMENT_WORDS.high + 1)),
                "i_data": In(width_bits),
                "i_load": In(1),
                "o_config": Out(config_bits),
            }
        )

    @property
    def words(self) -> int:
        """Words of the segment."""
        return ceil_div(self._config_bits, self._width_bits)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        shadow = Signal(self._config_bits, reset_less=True)
        written = Signal(self.words, reset_less=True)
        for word in range(self.words):
            bits = slice(word * self._width_bits, (word + 1) * self._width_bits)
            with m.If(self.i_write & (self.i_word == word)):
                m.d.sync += [shadow[bits].eq(self.i_data), written[word].eq(1)]
            with m.If(self.i_load & written[word]):
                m.d.sync += self.o_config[bits].eq(shadow[bits])
        with m.If(self.i_begin):
            m.d.sync += written.eq(0)
        return m
