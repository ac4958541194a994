"""CRC-32 of a stream of beats, one beat per cycle."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib.wiring import In, Out

from hw.arch.limits import LINK_BITS
from hw.lib.component import Component

__all__ = ["Crc32"]

#: Polynomial 0x04C11DB7 with its bits reversed: bits enter from the low end of a beat.
_REFLECTED = 0xEDB8_8320
_BITS = 32


def _taps(width_bits: int) -> list[int]:
    """Masks of the bits whose sum is each bit of the next register: the register, then the beat."""
    register = [1 << bit for bit in range(_BITS)]
    for bit in range(width_bits):
        out = register[0] ^ 1 << _BITS + bit
        register = [*register[1:], 0]
        register = [each ^ (out if _REFLECTED >> at & 1 else 0) for at, each in enumerate(register)]
    return register


class Crc32(Component):
    """CRC-32 of a stream of beats (IEEE 802.3; `zlib.crc32`), low byte of a beat first.

    Parameters
    ----------
    width_bits : int
        Width of a beat (`limits.LINK_BITS`).

    Members
    -------
    i_start : ``In(1)``
        Begins with no beat.
    i_valid, i_data : ``In(1)``, ``In(width_bits)``
        The next beat; not in the cycle of ``i_start``.
    o_value : ``Out(32)``
        CRC-32 of the beats before this cycle.

    Raises
    ------
    BadInputError
        If the width lies outside its domain.
    """

    i_start: Signal
    i_valid: Signal
    i_data: Signal
    o_value: Signal

    def __init__(self, *, width_bits: int) -> None:
        LINK_BITS.require("Width in bits", width_bits)
        self._width_bits = width_bits
        super().__init__(
            {
                "i_start": In(1),
                "i_valid": In(1),
                "i_data": In(width_bits),
                "o_value": Out(_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        register = Signal(_BITS)
        inputs = Cat(register, self.i_data)
        with m.If(self.i_valid):
            taps = _taps(self._width_bits)
            m.d.sync += register.eq(Cat((inputs & mask).xor() for mask in taps))
        with m.If(self.i_start):
            m.d.sync += register.eq(~0)
        m.d.comb += self.o_value.eq(~register)
        return m
