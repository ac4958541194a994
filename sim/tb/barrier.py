"""Barrier: random arrivals, drops and transaction bytes against a model in Python."""

import dataclasses
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import FallingEdge

from hw.lib.barrier import Barrier
from sim.cocotb.bench_support import bench, random_generator, start

__all__ = ["design", "operations_of_any_order_move_the_state_by_the_rules"]

_ARRIVALS, _BYTES = 7, 200
_CYCLES = 10_000


def design() -> Barrier:
    """The barrier under test."""
    return Barrier(arrivals=_ARRIVALS, tx_bytes=_BYTES)


@dataclasses.dataclass
class _Rules:
    """Model of docs/barrier.md; pending counts are kept as due and arrived totals."""

    expected: int = 0
    due: int = 0
    arrived: int = 0
    asked_bytes: int = 0
    come_bytes: int = 0
    completed: int = 0
    broken: bool = False

    def apply(self, arrive: int, drop: int, expect: int, complete: int) -> None:
        """Apply the operations of one cycle."""
        if self.broken or not arrive + drop + expect + complete:
            return
        arrived = self.arrived + arrive + drop
        asked, come = self.asked_bytes + expect, self.come_bytes + complete
        if arrived > self.due or abs(asked - come) > _BYTES or self.due == 0:
            self.broken = True
            return
        self.expected -= drop
        self.arrived, self.asked_bytes, self.come_bytes = arrived, asked, come
        if arrived == self.due and asked == come:
            self.completed += 1
            self.due, self.arrived = self.expected, 0

    def outputs(self) -> dict[str, int]:
        """Expected registers of the barrier."""
        return {
            "o_phase": self.completed % 2,
            "o_expected": self.expected,
            "o_pending": self.due - self.arrived,
            "o_tx": self.asked_bytes - self.come_bytes,
            "o_error": int(self.broken),
        }


class _Chooser:
    """Generator of mostly legal random operations, so that phases complete and errors are rare."""

    def __init__(self, rng: np.random.Generator, reckless: float) -> None:
        self._rng = rng
        self._reckless = reckless

    def choose(self, rules: _Rules) -> dict[str, int]:
        """Operations of one cycle."""
        rng = self._rng
        if rng.random() < self._reckless:
            high = (_ARRIVALS + 1, _ARRIVALS + 1, _BYTES + 1, _BYTES + 1)
            values = rng.integers(0, high) * (rng.random(4) < 0.5)
        else:
            left = rules.due - rules.arrived
            owed = rules.asked_bytes - rules.come_bytes
            arrive = int(rng.integers(0, left + 1))
            drop = int(rng.random() < 0.05 and arrive < left and rules.expected > 1)
            expect = int(rng.integers(0, max(_BYTES - abs(owed), 0) // 2 + 1))
            complete = owed if owed > 0 else int(rng.integers(0, (_BYTES + min(owed, 0)) // 2 + 1))
            if owed < 0:
                expect, complete = -owed, 0
            values = np.array([arrive, drop, expect, complete]) * (rng.random(4) < 0.5)
        names = ("arrive", "drop", "expect", "complete")
        return {name: int(value) for name, value in zip(names, values)}


@bench(limit_cycles=_CYCLES + 100)
@cocotb.parametrize(reckless=[0.0, 0.01])
async def operations_of_any_order_move_the_state_by_the_rules(dut: Any, reckless: float) -> None:
    """All registers are checked in every cycle; legal operations complete thousands of phases."""
    rng = random_generator()
    rules, chooser = _Rules(), _Chooser(rng, reckless)
    inputs = ("init", "expected", "arrive", "drop", "expect", "complete")
    await start(dut, **{f"i_{name}": 0 for name in inputs})
    phases, errors = 0, 0
    for cycle in range(_CYCLES):
        values = chooser.choose(rules)
        over = cycle == 0 or rules.broken or rules.expected == 0
        init = over and rng.random() < 0.3
        values |= {"init": int(init), "expected": int(rng.integers(1, _ARRIVALS + 1))}
        for name, value in values.items():
            getattr(dut, f"i_{name}").value = value
        before, was_broken = rules.completed, rules.broken
        if init:
            rules = _Rules(expected=values["expected"], due=values["expected"])
        else:
            rules.apply(*(values[name] for name in inputs[2:]))
            phases += rules.completed - before
            errors += rules.broken and not was_broken
        await FallingEdge(dut.clk)
        got = {
            name: getattr(dut, name).value.to_signed()
            if name == "o_tx"
            else int(getattr(dut, name).value)
            for name in rules.outputs()
        }
        assert got == rules.outputs(), f"cycle {cycle}, after {values}"
    cocotb.log.info("%d phases, %d errors", phases, errors)
    assert phases > _CYCLES // 20
    assert (errors > 10) == (reckless > 0)
