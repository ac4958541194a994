"""Function unit of a user, beside the special function unit (SFU) of a lane: made and checked."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt
from amaranth.back import rtlil
from amaranth.hdl import ClockDomain, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from hw.arch.errors import BadInputError
from hw.arch.lanes.lane_function import LaneFunction

__all__ = ["check_function", "function_unit", "netlist_digest"]

_MEMBERS = {"i_argument": In(32), "o_result": Out(32)}


def function_unit(name: str, unit: type[Any]) -> Any:
    """Make the circuit of a function unit.

    Raises
    ------
    BadInputError
        Its ports are others.
    """
    made = unit()
    if not isinstance(made, wiring.Component):
        raise BadInputError(
            f"Circuit of function unit {name} must be a component of Amaranth, not {unit.__name__}"
        )
    if made.signature != wiring.Signature(_MEMBERS):
        found = ", ".join(str(each) for each in made.signature.members)
        raise BadInputError(
            f"Ports of function unit {name} must be i_argument, an input of 32 bits, and "
            f"o_result, an output of 32 bits, not {found}"
        )
    return made


def netlist_digest(name: str, unit: type[Any]) -> str:
    """Digest of the circuit of a function unit, by which units of one name differ.

    Raises
    ------
    BadInputError
        Its ports are others.
    """
    text = rtlil.convert(function_unit(name, unit), emit_src=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def check_function(function: LaneFunction, words: npt.NDArray[np.uint32]) -> None:
    """Compare the circuit with its reference, an argument each cycle.

    Raises
    ------
    BadInputError
        A result differs.
    """
    expected = function.results(words)
    unit = function_unit(function.name, function.unit)
    found: list[int] = []

    async def bench(context: Any) -> None:
        for cycle in range(len(words) + function.latency):
            if cycle < len(words):
                context.set(unit.i_argument, int(words[cycle]))
            if cycle >= function.latency:
                found.append(context.get(unit.o_result))
            await context.tick()

    simulator = Simulator(_clocked(unit))
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    for word, result, right in zip(words.tolist(), found, expected.tolist(), strict=True):
        if result != right:
            raise BadInputError(
                f"Result of function unit {function.name} for 0x{word:08x} must be that of its "
                f"reference, 0x{right:08x}, not 0x{result:08x}"
            )


def _clocked(unit: Any) -> Any:
    """Design with the unit and a clock, which a unit without registers has not."""
    m = Module()
    m.domains.sync = ClockDomain()
    m.submodules.unit = unit
    return m
