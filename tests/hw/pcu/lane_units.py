"""The units of a lane by themselves, each between two streams."""

from amaranth.hdl import Cat, Module
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hw.lib.component import Component
from hw.lib.delay import delayed
from hw.pcu.arithmetic_logic import ArithmeticLogicUnit
from hw.pcu.multiply_add import FusedMultiplyAdd

__all__ = ["UNITS", "Piped"]

UNITS = {"fma": FusedMultiplyAdd, "alu": ArithmeticLogicUnit}


class Piped(Component):
    """A unit that never stalls between two streams; the output must always be ready."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._unit = UNITS[name]()
        self._ports = [name for name in self._unit.signature.members if name != "o_result"]
        bits = sum(len(getattr(self._unit, port)) for port in self._ports)
        super().__init__(
            {"i_stream": In(stream.Signature(bits)), "o_stream": Out(stream.Signature(32))}
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = unit = self._unit
        valid = delayed(m, self.i_stream.valid, unit.latency, name="valid", reset=True)
        m.d.comb += [
            Cat(*(getattr(unit, port) for port in self._ports)).eq(self.i_stream.payload),
            self.i_stream.ready.eq(1),
            self.o_stream.valid.eq(valid),
            self.o_stream.payload.eq(unit.o_result),
        ]
        return m
