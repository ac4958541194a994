"""Recoding of one lane at the edge of a grid."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.numeric.formats import Format
from hw.numeric.recode import OPERAND_BITS, recode

__all__ = ["OperandRecoder"]


class OperandRecoder(wiring.Component):
    """Turns 16 bits of a link into the operand a cell takes; combinational.

    Parameters
    ----------
    formats : tuple of Format
        Operand formats of the cells.

    Members
    -------
    i_bits, o_operand
        A bf16, or an int8 pair, and its form inside the grid.
    mode
        Static: 1 takes an int8 pair, which passes as it is.
    """

    i_bits: Signal
    o_operand: Signal
    mode: Signal

    def __init__(self, *, formats: tuple[Format, ...]) -> None:
        self._float = any(fmt.is_float for fmt in formats)
        self._integer = any(not fmt.is_float for fmt in formats)
        super().__init__(
            {
                "i_bits": In(16),
                "o_operand": Out(OPERAND_BITS if self._float else 16),
                "mode": In(1),
            }
        )

    @property
    def definition_name(self) -> str:
        """Name of the shared module."""
        return "recode" + "_float" * self._float + "_integer" * self._integer

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if not self._float:
            m.d.comb += self.o_operand.eq(self.i_bits)
            return m
        recoded = recode(m, self.i_bits)
        if self._integer:
            recoded = Mux(self.mode, self.i_bits, recoded)
        m.d.comb += self.o_operand.eq(recoded)
        return m
