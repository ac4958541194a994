"""The configuration chain: one shift register a row, whose segments are the units' shadows."""

from collections.abc import Sequence

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib.wiring import In, Out

from hw.component import Component
from hw.errors import BadInputError, shown

__all__ = ["ChainSegment", "chain_configs", "chain_words", "segment_words"]


def segment_words(config_bits: int, width_bits: int) -> int:
    """Words of the segment of a configuration."""
    return -(-config_bits // width_bits)


def chain_words(configs: Sequence[int], bits: Sequence[int], width_bits: int) -> list[int]:
    """Words to push, first to last, for the configurations of a row's units.

    The first word ends in the segment furthest from the source. Within a segment the low word
    goes first, so a row in memory is its units' little-endian configurations, last unit first.

    Parameters
    ----------
    configs : sequence of int
        Configurations in the order of the segments, nearest to the source first.
    bits : sequence of int
        Width of each configuration.
    width_bits : int
        Width of the chain.

    Raises
    ------
    BadInputError
        If there are not as many widths as configurations, or one does not fit its width.
    """
    if len(configs) != len(bits):
        raise BadInputError(
            f"Widths must be as many as configurations, {len(configs)}, not {shown(bits)}"
        )
    words = []
    for config, config_bits in zip(reversed(configs), reversed(bits)):
        if not 0 <= config < 1 << config_bits:
            raise BadInputError(f"Configuration must have {config_bits} bits, not {shown(config)}")
        for index in range(segment_words(config_bits, width_bits)):
            words.append(config >> index * width_bits & (1 << width_bits) - 1)
    return words


def chain_configs(words: Sequence[int], bits: Sequence[int], width_bits: int) -> list[int]:
    """Configurations of a row's units after a push of words; the inverse of `chain_words`.

    Raises
    ------
    BadInputError
        If the words are not as many as the chain's, or a bit beyond a configuration is set.
    """
    expected = sum(segment_words(config_bits, width_bits) for config_bits in bits)
    if len(words) != expected:
        raise BadInputError(f"Words of the chain must be {expected}, not {len(words)}")
    configs: list[int] = []
    position = 0
    for config_bits in reversed(bits):
        config = 0
        for index in range(segment_words(config_bits, width_bits)):
            config |= words[position] << index * width_bits
            position += 1
        if config >> config_bits:
            raise BadInputError(f"Configuration must have {config_bits} bits, not {config:#x}")
        configs.insert(0, config)
    return configs


class ChainSegment(Component):
    """Shadow and active configuration of one unit.

    A shift takes one word in and gives the oldest one to the next segment. The shadow has no
    reset and may be filled while the active configuration is in use; a load copies it in one
    cycle. Reset clears the active configuration, which means "everything off" in every unit.

    Parameters
    ----------
    width_bits : int
        Width of the chain (W).
    config_bits : int
        Width of the unit's configuration; the segment holds ceil(config_bits / W) words.

    Members
    -------
    i_shift, i_data : ``In(1)``, ``In(width_bits)``
        A word enters.
    o_data : ``Out(width_bits)``
        Oldest word, the next segment's ``i_data``; all segments of a row shift together.
    i_load : ``In(1)``
        Makes the shadow active from the next cycle on; not in a cycle that shifts.
    o_config : ``Out(config_bits)``
        Active configuration.

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

    @property
    def definition_name(self) -> str:
        """Name of the shared module."""
        return f"chain_segment_{self._width_bits}x{self._config_bits}"

    def elaborate(self, platform: object) -> Module:
        m = Module()
        shadow = Signal(self.words * self._width_bits, reset_less=True)
        m.d.comb += self.o_data.eq(shadow[: self._width_bits])
        with m.If(self.i_shift):
            m.d.sync += shadow.eq(Cat(shadow[self._width_bits :], self.i_data))
        with m.If(self.i_load):
            m.d.sync += self.o_config.eq(shadow[: self._config_bits])
        return m
