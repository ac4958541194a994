"""Barrier: random arrivals, drops and transaction bytes against a model in Python."""

from typing import Any

import cocotb
from cocotb.triggers import FallingEdge

from hw.lib.barrier import Barrier
from sim.cocotb.bench_support import bench, random_generator, start
from sim.drivers.barrier_rules import BarrierChooser, BarrierRules

__all__ = ["design", "operations_of_any_order_move_the_state_by_the_rules"]

_ARRIVALS, _BYTES = 7, 200
_CYCLES = 10_000


def design() -> Barrier:
    """The barrier under test."""
    return Barrier(arrivals=_ARRIVALS, tx_bytes=_BYTES)


@bench(limit_cycles=_CYCLES + 100)
@cocotb.parametrize(reckless=[0.0, 0.01])
async def operations_of_any_order_move_the_state_by_the_rules(dut: Any, reckless: float) -> None:
    """All registers are checked in every cycle; legal operations complete thousands of phases."""
    rng = random_generator()
    chooser = BarrierChooser(rng, _ARRIVALS, _BYTES, reckless)
    rules = BarrierRules(_BYTES)
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
            rules = BarrierRules(_BYTES, expected=values["expected"], due=values["expected"])
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
