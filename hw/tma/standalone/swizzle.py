"""Swizzle of a scratchpad: exchange of units of 16 bytes by the address."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from hw.arch.descriptor import Swizzle

__all__ = ["exchange_of", "reordered", "swizzled"]

#: Address bit of a unit's number, and of the number of its 128 bytes.
_UNIT, _PATTERN = 4, 7


def exchange_of(vector: Value, swizzle: Value, beat_shift: int) -> Value:
    """Number (3 bits) that is XORed with that of each unit of a vector, by the vector's address."""
    pattern = (vector >> (_PATTERN - beat_shift))[:3]
    mask = Cat(swizzle >= each.value for each in Swizzle if each is not Swizzle.NONE)
    return pattern & mask


def swizzled(vector: Value, exchange: Value, beat_shift: int) -> Value:
    """Address of a vector after the exchange."""
    return vector ^ Cat(Const(0, _UNIT), exchange)[beat_shift:]


def reordered(m: Module, data: Value, exchange: Value, *, unit: int = 128) -> Value:
    """Data, or strobes, of a vector whose units are exchanged within it; its own inverse."""
    width = len(data)
    for bit in range(3):
        span = unit << bit
        if span < width:
            # A signal each: an expression of all stages would grow threefold by stage.
            stage = Signal(width, name=f"reordered{unit}_{bit}")
            m.d.comb += stage.eq(data)
            parts = [stage[at : at + span] for at in range(0, width, span)]
            order = [number ^ 1 for number in range(len(parts))]
            data = Mux(exchange[bit], Cat(parts[number] for number in order), stage)
    return data
