"""Adder of floats in beats: elements in memory and elements to be stored, word by word."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from hw.arch.descriptor import ElementFormat
from hw.emit.shared import shared
from hw.float.convert import narrow, widen
from hw.float.fp32 import add_fp32
from hw.lib.component import Component
from hw.numeric.formats import bf16, fp16

__all__ = ["FloatAdder", "FloatLane"]

_LANE_BITS = 32


class FloatLane(Component):
    """Lane of a float adder: the sum of two fp32, or of two bf16 or fp16 in their low bits.

    Combinational. Rounded once, to nearest even; NaN are canonical, subnormals are kept: fp32 has
    more than twice the bits of the others, so that its own rounding does not change theirs.

    Members
    -------
    i_format : ``In(4)``
        An `ElementFormat`: FP32, BF16 or FP16.
    i_first, i_second, o_sum
    """

    i_format: Signal
    i_first: Signal
    i_second: Signal
    o_sum: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "i_format": In(4),
                "i_first": In(_LANE_BITS),
                "i_second": In(_LANE_BITS),
                "o_sum": Out(_LANE_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        single = self.i_format == ElementFormat.FP32.value
        brain = self.i_format == ElementFormat.BF16.value
        wide = []
        for given in (self.i_first, self.i_second):
            short = Mux(brain, widen(m, given[:16], bf16), widen(m, given[:16], fp16))
            wide.append(Mux(single, given, short))
        total = Signal(_LANE_BITS)
        m.d.comb += total.eq(add_fp32(m, *wide))
        halves = [narrow(m, total, each, saturate=False) for each in (bf16, fp16)]
        m.d.comb += self.o_sum.eq(Mux(single, total, Mux(brain, *halves)))
        return m


class FloatAdder(Component):
    """Float adder: the sums of a beat, 32 bits per cycle, and a cycle more.

    Parameters
    ----------
    width_bits : int
        Width of a beat, a multiple of 32.

    Members
    -------
    i_valid
        Both beats are there; they stay until `i_take`.
    i_format : ``In(4)``
        As of :class:`FloatLane`.
    i_memory, i_stored
        The two beats.
    o_done, o_sums, i_take
        The sums are there, until they are taken.
    """

    i_valid: Signal
    i_format: Signal
    i_memory: Signal
    i_stored: Signal
    o_done: Signal
    o_sums: Signal
    i_take: Signal

    def __init__(self, *, width_bits: int) -> None:
        self._words = width_bits // _LANE_BITS
        super().__init__(
            {
                "i_valid": In(1),
                "i_format": In(4),
                "i_memory": In(width_bits),
                "i_stored": In(width_bits),
                "o_done": Out(1),
                "o_sums": Out(width_bits),
                "i_take": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        words = self._words
        word = Signal(range(words + 1))
        lanes = [FloatLane() for _ in range(2)]
        single = self.i_format == ElementFormat.FP32.value
        operands = []
        for name, beat in (("memory", self.i_memory), ("stored", self.i_stored)):
            parts = Array(beat.word_select(index, _LANE_BITS) for index in range(words))
            operand = Signal(_LANE_BITS, name=f"{name}_word")
            with m.If(word != words):
                m.d.sync += operand.eq(parts[word])
            operands.append(operand)
        for number, lane in enumerate(lanes):
            m.submodules[f"lane{number}"] = shared(lane)
            m.d.comb += lane.i_format.eq(self.i_format)
            for port, operand in zip((lane.i_first, lane.i_second), operands):
                m.d.comb += port.eq(operand[16:] if number else operand)
        total = Mux(single, lanes[0].o_sum, Cat(lanes[0].o_sum[:16], lanes[1].o_sum[:16]))
        sums = Signal((words - 1) * _LANE_BITS)
        m.d.comb += [self.o_done.eq(word == words), self.o_sums.eq(Cat(sums, total))]
        for index in range(1, words):
            with m.If(word == index):
                m.d.sync += sums.word_select(index - 1, _LANE_BITS).eq(total)
        with m.If(self.i_take):
            m.d.sync += word.eq(0)
        with m.Elif(self.i_valid & ~self.o_done):
            m.d.sync += word.eq(word + 1)
        return m
