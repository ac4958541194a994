"""Floating-point units: random and special operands, results bit-exact against numpy."""

from typing import Any

import cocotb
import numpy as np
import numpy.typing as npt
from cocotb.triggers import Timer

from hw.emit.shared import Shareable
from hw.numeric import elementwise, functions
from sim.cocotb.bench_support import bench, random_generator
from sim.cocotb.unit_choice import asked_fp
from sim.components import COMPONENTS
from sim.native.bundle import Bundle

__all__ = ["answers_are_numpys", "design", "units"]

_VECTORS = 4000
#: Special values: zeros, ones, infinities, NaN, subnormals, the largest numbers.
_SPECIAL = (0, 0x3F800000, 0x7F800000, 0x7FC00000, 1, 0x007FFFFF, 0x7F7FFFFF, 0x4B000000)

Words = npt.NDArray[np.uint32]


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


def _answer(name: str, words: list[Words], values: dict[str, int]) -> Words:
    """Expected results of a unit."""
    word = name.removeprefix("fp_")
    if values:
        result = getattr(functions, word)(words[0].view(np.float32), values["width"])
    else:
        kind = np.int32 if word == "from_int32" else np.float32
        result = getattr(elementwise, word)(*(each.view(kind) for each in words))
    if result.dtype == np.bool_:
        return np.asarray(result).astype(np.uint32)
    return np.asarray(result).view(np.uint32)


def _stimulus() -> Words:
    """Operands: random bits, exponents near 0, uniform values, and special values."""
    rng = random_generator()
    shape = (3, _VECTORS)
    words = rng.integers(0, 1 << 32, shape, np.uint32)
    exponents = rng.integers(127 - 12, 127 + 6, shape, np.uint32) << 23
    near = words & 0x807FFFFF | exponents
    even = rng.uniform(-16, 16, shape).astype(np.float32).view(np.uint32)
    special = rng.choice(np.array(_SPECIAL, np.uint32), shape) | words & 0x80000000
    kind = rng.choice(4, shape, p=(0.2, 0.4, 0.25, 0.15))
    return np.choose(kind, (words, near, even, special)).astype(np.uint32)


@bench(limit_cycles=10 * _VECTORS)
async def answers_are_numpys(dut: Any) -> None:
    """One operand per cycle and unit; each result is checked after the unit's latency."""
    words = _stimulus()
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
        name: _answer(name, list(words[: len(ports[name])]), values)
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
