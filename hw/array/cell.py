"""Stationary-operand MAC cell: one 16-bit, two 8-bit or four 4-bit products per cycle."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import In, Out

from hw.array.cell_config import NO_BLOCKS, CellConfig, HardBlocks
from hw.array.mac import multiply_add
from hw.lib.component import Component
from hw.numeric.formats import (
    Format,
)

__all__ = ["Cell"]


class Cell(Component):
    """MAC cell of a stationary-operand array, with a shadow register for the stationary operand.

    Adds exact products to a partial sum that passes downwards. 16-bit floats: ``a * w``, IEEE 754
    fusedMultiplyAdd in fp32, nearest even. int8: ``a0 * w0 + a1 * w1``, modulo 2^32. 8-bit floats:
    the same, with one rounding of the three terms' sum to fp32. int4 and e2m1: four such products.
    Products of microscaled formats are multiplied by both scales. Byte 0 is the even k. The cell
    takes one activation every cycle: it has no stall and no valid bit.

    An activation at ``i_a`` in cycle t is at ``o_a`` in t + 1; its partial sum is read from
    ``i_p`` in t + 2 and is at ``o_p`` in t + 2 + ``latency``. So neighbouring columns are 1 cycle
    apart and neighbouring rows ``latency`` cycles. A weight loaded in cycle t is used from the
    next activation on that carries ``i_swap`` in t + 1 or later, that activation included.

    Parameters
    ----------
    formats : tuple of Format
    latency : int
    hard_blocks : HardBlocks
        As in :class:`CellConfig`.

    Members
    -------
    i_a : ``In(operand_bits)``
        Activation: recoded float or pair of floats (:mod:`hw.float.recode`), two int8, or four
        operands of 4 bits; above them the scale of a microscaled format.
    i_swap : ``In(1)``
        Copy the shadow weight to the active register, for the activation that is at ``i_a`` now.
    o_a, o_swap : ``Out(operand_bits)``, ``Out(1)``
        Both, one cycle later, for the right neighbour.
    i_w : ``In(operand_bits)``
        Weight, encoded as an activation is.
    i_w_load : ``In(1)``
        Load ``i_w`` into the shadow register.
    i_p : ``In(32)``
        Partial sum from the cell above: fp32 or int32.
    o_p : ``Out(32)``
        Partial sum for the cell below.
    mode : ``In(1)``
        1 for int8, 0 for bf16; only if the cell has both. Static: partial sums and weights in the
        cell are lost when it changes. A pair of float formats needs none: recoding hides them.

    Raises
    ------
    BadInputError
        A parameter is outside its domain.
    """

    i_a: Signal
    i_swap: Signal
    o_a: Signal
    o_swap: Signal
    i_w: Signal
    i_w_load: Signal
    i_p: Signal
    o_p: Signal
    mode: Signal

    def __init__(
        self, *, formats: tuple[Format, ...], latency: int, hard_blocks: HardBlocks = NO_BLOCKS
    ) -> None:
        self._config = CellConfig(formats, latency, hard_blocks.names)
        bits = self._config.operand_bits
        members = {
            "i_a": In(bits),
            "i_swap": In(1),
            "o_a": Out(bits),
            "o_swap": Out(1),
            "i_w": In(bits),
            "i_w_load": In(1),
            "i_p": In(32),
            "o_p": Out(32),
        }
        if self._config.has_mode:
            members["mode"] = In(1)
        super().__init__(members)

    @property
    def config(self) -> CellConfig:
        """Parameters of the cell."""
        return self._config

    @property
    def operand_bits(self) -> int:
        """Width of an activation and of a weight."""
        return self._config.operand_bits

    def elaborate(self, platform: object) -> Module:
        m = Module()
        shadow = Signal(self.operand_bits, reset_less=True)
        weight = Signal(self.operand_bits, reset_less=True)
        activation = Signal(self.operand_bits, reset_less=True)
        m.d.sync += [activation.eq(self.i_a), self.o_swap.eq(self.i_swap)]
        m.d.comb += self.o_a.eq(activation)
        with m.If(self.i_w_load):
            m.d.sync += shadow.eq(self.i_w)
        with m.If(self.i_swap):
            m.d.sync += weight.eq(shadow)

        mode = self.mode if self._config.has_mode else None
        result = multiply_add(m, self._config, activation, weight, self.i_p, mode=mode)
        sum_ = Signal(32, reset_less=True)
        m.d.sync += sum_.eq(result)
        m.d.comb += self.o_p.eq(sum_)
        return m
