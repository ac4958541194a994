"""Floating-point units: random and special operands, results bit-exact against numpy."""

from typing import Any

import cocotb
from cocotb.triggers import Timer

from hw.emit.shared import Shareable
from sim.cocotb.bench_support import bench, random_generator
from sim.cocotb.unit_choice import asked_fp
from sim.components import COMPONENTS
from sim.drivers.function_answers import function_answer, function_operands
from sim.native.bundle import Bundle

__all__ = ["answers_are_numpys", "design", "units"]

_VECTORS = 4000


def units() -> dict[str, dict[str, int]]:
    """Units under test with their parameters: the selected one, or all at full width."""
    asked = asked_fp()
    if asked is not None:
        return asked
    return {
        name: {parameter.name: parameter.domain.high for parameter in component.parameters}
        for name, component in COMPONENTS.items()
        if component.bench == "fp"
    }


def design() -> Bundle:
    """The units under test, side by side."""
    from hw.arch.config import named

    made: dict[str, Shareable] = {
        name: COMPONENTS[name].build(named["tiny"], values) for name, values in units().items()
    }
    return Bundle(made)


@bench(limit_cycles=10 * _VECTORS)
async def answers_are_numpys(dut: Any) -> None:
    """One operand per cycle and unit; each result is checked after the unit's latency."""
    words = function_operands(random_generator(), _VECTORS)
    chosen = units()
    built = {name: COMPONENTS[name].build for name in chosen}
    from hw.arch.config import named

    delays = {
        name: getattr(built[name](named["tiny"], values), "cycles", 0)
        for name, values in chosen.items()
    }
    names = {name: "x" if values else "abc" for name, values in chosen.items()}
    ports = {
        name: [getattr(dut, f"{name}_{port}") for port in letters if hasattr(dut, f"{name}_{port}")]
        for name, letters in names.items()
    }
    expected = {
        name: function_answer(name, list(words[: len(ports[name])]), values)
        for name, values in chosen.items()
    }
    clock = getattr(dut, "clk", None)
    if clock is not None:
        # A model may start with a high clock, so that the first edge would be lost.
        clock.value = 0
    for cycle in range(_VECTORS + max(delays.values())):
        for inputs in ports.values():
            for port, word in zip(inputs, words[:, min(cycle, _VECTORS - 1)]):
                port.value = int(word)
        await Timer(1, "ns")
        for name, delay in delays.items():
            index = cycle - delay
            if 0 <= index < _VECTORS:
                got = int(getattr(dut, f"{name}_o").value)
                assert got == expected[name][index], f"{name}, vector {index}: {got:#x}"
        if clock is not None:
            clock.value = 1
        await Timer(1, "ns")
        if clock is not None:
            clock.value = 0
    cocotb.log.info("%d units, %d vectors", len(chosen), _VECTORS)
