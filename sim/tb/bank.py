"""Barrier bank: random operations from two ports and waits against a model in Python."""

import dataclasses
from typing import Any

import cocotb
from amaranth.hdl import Shape
from amaranth.lib import data
from cocotb.triggers import FallingEdge, ReadOnly

from hw.arch.error_codes import BarrierError
from hw.tma.barriers.barrier_bank import BarrierBank
from hw.tma.barriers.barrier_layouts import (
    barrier_answer_layout,
    barrier_operation_layout,
    barrier_result_layout,
    barrier_wait_layout,
)
from sim.cocotb.bench_support import bench, random_generator, start
from sim.drivers.bank_rules import BankBarrier, random_operation

__all__ = ["answers_state_and_waits_follow_the_rules", "design"]

_ENTRIES, _ARRIVALS, _BYTES, _PORTS = 5, 7, 200, 2
_CYCLES = 10_000
_OPERATION = barrier_operation_layout(arrivals=_ARRIVALS, tx_bytes=_BYTES)
_ANSWER = barrier_answer_layout(arrivals=_ARRIVALS, tx_bytes=_BYTES)


def _packed(layout: data.StructLayout, values: dict[str, int]) -> int:
    """Bits of a payload, whose fields may have values without a name."""
    return sum(value << layout[name].offset for name, value in values.items())


def _fields(layout: data.StructLayout, payload: Any) -> dict[str, int]:
    """Fields of a payload as integers."""
    bits, values = int(payload.value), {}
    for name, field in layout:
        shape = Shape.cast(field.shape)
        value = bits >> field.offset & (1 << shape.width) - 1
        negative = shape.signed and value >> shape.width - 1
        values[str(name)] = value - (1 << shape.width) if negative else value
    return values


def design() -> BarrierBank:
    """The bank under test."""
    return BarrierBank(barriers=_ENTRIES, arrivals=_ARRIVALS, tx_bytes=_BYTES, ports=_PORTS)


class _Waiter:
    """The waiter: what it must offer in each cycle, and random waits for it."""

    def __init__(self, dut: Any) -> None:
        self._dut = dut
        self._rng = random_generator("waits")
        self._wait: dict[str, int] | None = None
        self._last: dict[str, int] | None = None
        self._result: dict[str, int] | None = None
        self.ended: set[str] = set()

    def drive(self) -> None:
        """Offer a wait, and take a result, in some cycles."""
        dut, rng = self._dut, self._rng
        dut.o_waits__0__ready.value = int(rng.random() < 0.7)
        offered = dut.i_waits__0__valid.value = int(rng.random() < 0.5)
        fields = {
            "barrier": int(rng.integers(_ENTRIES + (rng.random() < 0.1))),
            "parity": int(rng.integers(2)),
            "cycles": int(rng.choice((0, 1, 7, 40))),
        }
        self._offered = fields if offered else None
        dut.i_waits__0__payload.value = _packed(barrier_wait_layout, fields)

    def check(self, shown: list[BankBarrier]) -> None:
        """Compare what is offered, then move on by one cycle, in which ``shown`` is visible."""
        dut, wait = self._dut, self._wait
        assert bool(dut.o_waits__0__valid.value) == (self._result is not None)
        if self._result is not None:
            got = _fields(barrier_result_layout, dut.o_waits__0__payload)
            assert got == self._result, f"wait {self._last}"
            if dut.o_waits__0__ready.value:
                self.ended |= {name for name, value in got.items() if value}
                self._result = None
        if wait is not None:
            result = self._tested(wait, shown)
            if any(result.values()):
                self._result, self._last, self._wait = result, wait, None
            else:
                wait["cycles"] -= 1
        accepts = wait is None and self._result is None
        assert bool(dut.i_waits__0__ready.value) == accepts
        if accepts and self._offered:
            self._wait = dict(self._offered)

    @staticmethod
    def _tested(wait: dict[str, int], shown: list[BankBarrier]) -> dict[str, int]:
        nothing = {"passed": 0, "flag": 0, "timed_out": 0}
        if wait["barrier"] >= _ENTRIES:
            return nothing | {"error": BarrierError.INDEX.value}
        at = shown[wait["barrier"]]
        if not at.valid:
            return nothing | {"error": BarrierError.UNINITIALISED.value}
        passed, flag = int(at.completed % 2 != wait["parity"]), int(at.flag)
        over = int(not passed and not flag and wait["cycles"] == 0)
        return {"passed": passed, "flag": flag, "timed_out": over, "error": 0}


@bench(limit_cycles=_CYCLES + 100)
@cocotb.parametrize(reckless=[0.0, 0.05])
async def answers_state_and_waits_follow_the_rules(dut: Any, reckless: float) -> None:
    """Answers and state are checked in every cycle; thousands of phases complete."""
    rng = random_generator()
    barriers = [BankBarrier(_BYTES) for _ in range(_ENTRIES)]
    shown = [dataclasses.replace(each) for each in barriers]
    waiter = _Waiter(dut)
    names = [f"i_operations__{port}" for port in range(_PORTS)]
    inputs = [
        f"{name}__{field}" for name in (*names, "i_waits__0") for field in ("valid", "payload")
    ]
    await start(dut, **dict.fromkeys((*inputs, "o_waits__0__ready"), 0))
    offered: list[dict[str, int] | None] = [None] * _PORTS
    answer: tuple[int, dict[str, int]] | None = None
    phases, codes = 0, set()
    for cycle in range(_CYCLES):
        for port, name in enumerate(names):
            if offered[port] is None and rng.random() < 0.7:
                offered[port] = drawn = random_operation(rng, barriers, _ARRIVALS, reckless)
                getattr(dut, f"{name}__payload").value = _packed(_OPERATION, drawn)
            getattr(dut, f"{name}__valid").value = int(offered[port] is not None)
        waiter.drive()
        await ReadOnly()
        for port in range(_PORTS):
            answered = answer is not None and answer[0] == port
            assert bool(getattr(dut, f"o_answers__{port}__valid").value) == answered
            if answer is not None and answered:
                got = _fields(_ANSWER, getattr(dut, f"o_answers__{port}__payload"))
                assert got == answer[1], f"cycle {cycle}"
        for name, column in zip(
            ("phases", "flags", "valid"),
            zip(*((each.completed % 2, each.flag, each.valid) for each in shown)),
        ):
            bits = sum(int(bit) << number for number, bit in enumerate(column))
            assert int(getattr(dut, f"o_{name}").value) == bits, f"cycle {cycle}: {name}"
        waiter.check(shown)
        shown = [dataclasses.replace(each) for each in barriers]
        taken = [port for port, name in enumerate(names) if getattr(dut, f"{name}__ready").value]
        taken = [port for port in taken if offered[port] is not None]
        assert len(taken) == any(offered)
        answer = None
        for port in taken:
            values = offered[port] or {}
            at = (
                barriers[values["barrier"]] if values["barrier"] < _ENTRIES else BankBarrier(_BYTES)
            )
            before, state = at.completed, at.state()
            absent = values["barrier"] >= _ENTRIES
            error = BarrierError.INDEX if absent else at.apply(values)
            answer = port, state | {"error": error.value}
            phases += at.completed > before
            codes.add(error)
            offered[port] = None
        await FallingEdge(dut.clk)
    cocotb.log.info("%d phases, %d codes, waits %s", phases, len(codes), sorted(waiter.ended))
    assert phases > _CYCLES // 20
    assert (len(codes) > 5) == (reckless > 0)
    assert waiter.ended >= {"passed", "timed_out"}
