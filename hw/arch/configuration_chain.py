"""Word order of the configuration chain: one shift register per row, made of units' shadows."""

from collections.abc import Sequence

from hw.arch.errors import BadInputError, shown

__all__ = ["chain_configs", "chain_words", "segment_words"]


def segment_words(config_bits: int, width_bits: int) -> int:
    """Words of the segment of a program of so many bits."""
    return -(-config_bits // width_bits)


def chain_words(configs: Sequence[int], bits: Sequence[int], width_bits: int) -> list[int]:
    """Words to push, first to last, for the programs of a row's units.

    The first word ends in the segment furthest from the source. Within a segment the low word
    goes first, so a row in memory is its units' little-endian programs, last unit first.

    Parameters
    ----------
    configs : sequence of int
        Program words in the order of the segments, nearest to the source first.
    bits : sequence of int
        Width of each program.
    width_bits : int
        Width of the chain.

    Raises
    ------
    BadInputError
        If the numbers of widths and programs differ, or a program exceeds its width.
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
    """Programs of a row's units after a push of words; the inverse of `chain_words`.

    Raises
    ------
    BadInputError
        If the number of words is not the chain's, or a bit beyond a program is set.
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
