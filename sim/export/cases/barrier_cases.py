"""Cases of barriers and barrier banks, with the answers of their rules."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from amaranth.hdl import Shape
from amaranth.lib import data

from gen.export.bus_ports import BusGroup
from hw.arch.error_codes import BarrierError
from hw.tma.barriers.barrier_layouts import (
    barrier_answer_layout,
    barrier_operation_layout,
    barrier_result_layout,
    barrier_wait_layout,
)
from sim.drivers.bank_rules import BankBarrier, random_operation
from sim.drivers.barrier_rules import BarrierChooser, BarrierRules
from sim.export.core_case import CoreCase

__all__ = ["bank_cases", "barrier_cases"]

_CYCLES = 600
_OPERATIONS = 300
_RECKLESS = 0.05

Groups = Sequence[BusGroup]


def barrier_cases(
    rng: np.random.Generator, groups: Groups, values: Mapping[str, int]
) -> Iterator[CoreCase]:
    """Random operations, all registers in every cycle.

    Parameters
    ----------
    rng : numpy.random.Generator
    groups : sequence of BusGroup
    values : mapping of str to int
        Parameters of the component.
    """
    most, size = values["arrivals"], values["tx_bytes"]
    chooser = BarrierChooser(rng, most, size, 0.01)
    rules = BarrierRules(size)
    rows = []
    for cycle in range(_CYCLES):
        given = chooser.choose(rules)
        over = cycle == 0 or rules.broken or rules.expected == 0
        init = over and rng.random() < 0.3
        expected = int(rng.integers(1, most + 1))
        if init:
            rules = BarrierRules(size, expected=expected, due=expected)
        else:
            rules.apply(**given)
        inputs = {f"i_{name}": value for name, value in given.items()}
        inputs |= {"i_init": int(init), "i_expected": expected}
        rows.append((inputs, rules.outputs()))
    case = CoreCase("operations", groups)
    case.table(rows)
    yield case


def _packed(layout: data.StructLayout, values: Mapping[str, int]) -> int:
    """Bits of a payload, whose fields may have values without a name."""
    bits = 0
    for name, field in layout:
        width = Shape.cast(field.shape).width
        bits |= (values[str(name)] & (1 << width) - 1) << field.offset
    return bits


def bank_cases(
    rng: np.random.Generator, groups: Groups, values: Mapping[str, int]
) -> Iterator[CoreCase]:
    """Random operations with their answers, the state after them, and a wait for each barrier.

    Parameters
    ----------
    rng : numpy.random.Generator
    groups : sequence of BusGroup
    values : mapping of str to int
        Parameters of the component.
    """
    sizes = {"arrivals": values["arrivals"], "tx_bytes": values["tx_bytes"]}
    operation = barrier_operation_layout(**sizes)
    answer = barrier_answer_layout(**sizes)
    count = values["barriers"]
    barriers = [BankBarrier(values["tx_bytes"]) for _ in range(count)]
    # Few barriers, so that phases of each complete.
    used = barriers[:6]
    sent, taken = [], []
    for _ in range(_OPERATIONS):
        drawn = random_operation(rng, used, values["arrivals"], _RECKLESS)
        absent = drawn["barrier"] >= count
        at = BankBarrier(values["tx_bytes"]) if absent else barriers[drawn["barrier"]]
        state = at.state()
        error = BarrierError.INDEX if absent else at.apply(drawn)
        sent.append(_packed(operation, drawn))
        taken.append(_packed(answer, state | {"error": int(error.value)}))
    case = CoreCase("operations", groups)
    case.exchange({"i_operations__0": sent}, {"o_answers__0": taken})
    columns: dict[str, list[bool]] = {
        "o_phases": [each.completed % 2 == 1 for each in barriers],
        "o_flags": [each.flag for each in barriers],
        "o_valid": [each.valid for each in barriers],
    }
    case.expect(
        **{name: sum(int(bit) << n for n, bit in enumerate(bits)) for name, bits in columns.items()}
    )
    waits, results = [], []
    for number, at in enumerate(used):
        wait = {"barrier": number, "parity": 1 - at.completed % 2, "cycles": 0}
        result = {"passed": 1, "flag": int(at.flag), "timed_out": 0, "error": 0}
        if not at.valid:
            result = dict.fromkeys(result, 0) | {"error": int(BarrierError.UNINITIALISED.value)}
        waits.append(_packed(barrier_wait_layout, wait))
        results.append(_packed(barrier_result_layout, result))
    if values["waiters"]:
        case.exchange({"i_waits__0": waits}, {"o_waits__0": results})
    yield case
