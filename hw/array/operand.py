"""Operand recoder of one lane at the edge of a systolic array."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from hw.array.cell_config import CellConfig
from hw.float.recode import recode
from hw.lib.component import Component
from hw.numeric.formats import LANE_BITS, Format

__all__ = ["OperandRecoder"]


class OperandRecoder(Component):
    """Recoder of one lane of a vector into a cell's operand; combinational.

    The NaN that fills boxes outside a tensor (`Format.fill_nan`) becomes +0.

    Parameters
    ----------
    formats : tuple of Format
        Operand formats of the cells.

    Members
    -------
    i_bits, o_operand
        A 16-bit float, two 8-bit or four 4-bit operands, with their scale if they have one, and
        their form inside the array.
    mode
        Static: which of two formats the lane carries, 0 for the first in `OPERANDS`.
        Integers and floats of 4 bits pass unchanged. Activations and weights may differ in
        format if both are floats.
    """

    i_bits: Signal
    o_operand: Signal
    mode: Signal

    def __init__(self, *, formats: tuple[Format, ...]) -> None:
        # An operand's coding does not depend on the latency.
        self._config = CellConfig(formats, latency=1)
        super().__init__(
            {
                "i_bits": In(self._config.lane_bits),
                "o_operand": Out(self._config.operand_bits),
                "mode": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        forms = [self._recoded(m, format_) for format_ in self._config.ordered]
        operand = forms[0] if len(forms) == 1 else Mux(self.mode, forms[1], forms[0])
        m.d.comb += self.o_operand.eq(operand)
        return m

    def _recoded(self, m: Module, format_: Format) -> Value:
        """Operand recoded from this format."""
        coding = self._config.coding
        if coding is None or not format_.is_float:
            return self.i_bits
        fills = format_.fill_nan is not None
        parts = [
            recode(m, self.i_bits[low : low + format_.bits], format_, coding, fill_is_zero=fills)
            for low in range(0, LANE_BITS, format_.bits)
        ]
        scale = self.i_bits[LANE_BITS:]
        return Cat(*parts, scale)
