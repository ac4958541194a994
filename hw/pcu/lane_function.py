"""Function unit of a user, beside the special function unit (SFU) of a lane."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from amaranth.hdl import ClockDomain, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from hw.arch.errors import BadInputError, shown
from hw.float.special_function_unit import SpecialFunctionUnit
from hw.numeric.formats import fp32

__all__ = ["LaneFunction"]

_MEMBERS = {"i_argument": In(32), "o_result": Out(32)}


@dataclasses.dataclass(frozen=True)
class LaneFunction:
    """Function of one fp32 with a circuit of its own: its model in numpy, its unit, its latency.

    Raises
    ------
    BadInputError
        The name or the latency is out of its range.
    """

    #: Name, in small letters, digits and underscores.
    name: str
    #: Component without parameters: `i_argument` and `o_result` of 32 bits, an argument a cycle.
    unit: type[wiring.Component]
    #: Cycles from an argument to its result, at most those of the SFU.
    latency: int
    #: The same function of arrays of float32, bit for bit; no part of the hardware.
    reference: Callable[[Any], Any] = dataclasses.field(compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not re.fullmatch(r"[a-z][a-z0-9_]*", self.name):
            raise BadInputError(
                "Name of a function unit must be small letters, digits and underscores, not "
                f"{shown(self.name)}"
            )
        most: Final = SpecialFunctionUnit.latency
        if type(self.latency) is not int or not 0 <= self.latency <= most:
            raise BadInputError(
                f"Latency of function unit {self.name} must be an integer from 0 to {most}, not "
                f"{shown(self.latency)}"
            )

    def create(self) -> Any:
        """Make the circuit.

        Raises
        ------
        BadInputError
            Its ports are others.
        """
        unit = self.unit()
        if unit.signature != wiring.Signature(_MEMBERS):
            found = ", ".join(str(name) for name in unit.signature.members)
            raise BadInputError(
                f"Ports of function unit {self.name} must be i_argument, an input of 32 bits, and "
                f"o_result, an output of 32 bits, not {found}"
            )
        return unit

    def results(self, words: np.ndarray[Any, np.dtype[np.uint32]]) -> Any:
        """Words of the reference's results.

        Raises
        ------
        BadInputError
            The reference changes the shape or the type.
        """
        with np.errstate(all="ignore"):
            found = np.asarray(self.reference(fp32.from_bits(words)))
        if found.dtype != np.float32 or found.shape != words.shape:
            raise BadInputError(
                f"Reference of function unit {self.name} must return float32 of shape "
                f"{words.shape}, not {found.dtype} of shape {found.shape}"
            )
        return fp32.bits_of(found)

    def check(self, words: np.ndarray[Any, np.dtype[np.uint32]]) -> None:
        """Compare the circuit with its reference, an argument each cycle.

        Raises
        ------
        BadInputError
            A result differs.
        """
        expected, unit = self.results(words), self.create()
        found: list[int] = []

        async def bench(context: Any) -> None:
            for cycle in range(len(words) + self.latency):
                if cycle < len(words):
                    context.set(unit.i_argument, int(words[cycle]))
                if cycle >= self.latency:
                    found.append(context.get(unit.o_result))
                await context.tick()

        simulator = Simulator(_clocked(unit))
        simulator.add_clock(1e-6)
        simulator.add_testbench(bench)
        simulator.run()
        for word, result, right in zip(words.tolist(), found, expected.tolist(), strict=True):
            if result != right:
                raise BadInputError(
                    f"Result of function unit {self.name} for 0x{word:08x} must be that of its "
                    f"reference, 0x{right:08x}, not 0x{result:08x}"
                )


def _clocked(unit: Any) -> Any:
    """Design with the unit and a clock, which a unit without registers has not."""
    m = Module()
    m.domains.sync = ClockDomain()
    m.submodules.unit = unit
    return m
