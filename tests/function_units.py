"""Function units of a user, as tests of lanes, chips and the language take them."""

import numpy as np
from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.arch.lanes.lane_function import LaneFunction
from hw.pcu.function_unit import netlist_digest

__all__ = ["ABSOLUTE", "RELU6", "AbsoluteUnit", "Relu6Unit", "absolute", "made", "relu6"]

_SIX, _INFINITY, _NAN = 0x40C0_0000, 0x7F80_0000, 0x7FC0_0000


class Relu6Unit(wiring.Component):
    """min(max(x, 0), 6), and NaN of NaN. Two cycles."""

    i_argument: In(32)
    o_result: Out(32)
    latency = 2

    def elaborate(self, platform):
        m = Module()
        word, result = Signal(32), Signal(32)
        clamped = Mux(word[31], 0, Mux(word > _SIX, _SIX, word))
        m.d.sync += [
            word.eq(self.i_argument),
            result.eq(Mux(word[:31] > _INFINITY, _NAN, clamped)),
        ]
        m.d.comb += self.o_result.eq(result)
        return m


class AbsoluteUnit(wiring.Component):
    """Absolute value, with the canonical NaN; no register."""

    i_argument: In(32)
    o_result: Out(32)
    latency = 0

    def elaborate(self, platform):
        m = Module()
        word = self.i_argument[:31]
        m.d.comb += self.o_result.eq(Mux(word > _INFINITY, _NAN, word))
        return m


def relu6(x):
    return np.where(x > 0, np.minimum(x, np.float32(6)), np.where(np.isnan(x), x, np.float32(0)))


def absolute(x):
    return np.abs(x)


def made(name, unit, latency, reference):
    """A function of lanes that is not of the language."""
    return LaneFunction(name, unit, latency, reference, netlist_digest(name, unit))


RELU6 = made("relu6", Relu6Unit, 2, relu6)
ABSOLUTE = made("absolute", AbsoluteUnit, 0, absolute)
