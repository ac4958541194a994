"""Barrier bank against a model in Python, and its state, completion, operations, waits, errors."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hw.arch.error_codes import BarrierError, TmaError
from hw.arch.errors import BadInputError
from hw.arch.limits import BARRIER_ARRIVALS, BARRIER_TX_BYTES
from hw.tma.barriers.barrier_bank import BarrierBank
from hw.tma.barriers.barrier_layouts import BarrierOperation as Op
from tests.hw.tma.bank_bench import STATE, act, alone, fields_of, offer, simulate, wait
from tests.hw.tma.bank_model import BankModel

PAGE = Path(__file__).resolve().parents[3] / "docs" / "barrier.md"
MOST = (1 << 20) - 1


def _drawn(rng: random.Random, model: BankModel) -> dict[str, int]:
    """A random operation, most often one that is legal when it is drawn."""
    barrier = rng.randrange(model.barriers)
    at = model.each[barrier]
    fields = {"barrier": barrier, "arrivals": 0, "bytes": 0, "failed": int(rng.random() < 0.02)}
    reckless = rng.random()
    if reckless < 0.08:
        return fields | {
            "operation": rng.randrange(16),
            "barrier": rng.randrange(model.barriers + 2),
            "arrivals": rng.randrange(1 << model.arrivals.bit_length()),
            "bytes": rng.randrange(1 << model.tx_bytes.bit_length()),
        }
    if not at.valid or at.wanted == 0 or reckless < 0.09:
        arrivals = rng.randint(1, model.arrivals)
        return fields | {"operation": Op.INIT.value, "arrivals": arrivals}
    owed, left = at.asked - at.landed, at.wanted - at.came
    landing = owed if owed > 0 and rng.random() < 0.7 else rng.randint(0, model.tx_bytes // 4)
    asking = -owed if owed < 0 and rng.random() < 0.7 else rng.randint(0, model.tx_bytes // 4)
    coming = left if rng.random() < 0.5 else rng.randint(0, left)
    kind, counts = rng.choice(
        [
            (Op.ARRIVE, {"arrivals": coming}),
            (Op.ARRIVE_NO_COMPLETE, {"arrivals": rng.randint(0, left)}),
            (Op.ARRIVE_EXPECT, {"arrivals": coming, "bytes": asking}),
            (Op.EXPECT, {"bytes": asking}),
            (Op.COMPLETE, {"bytes": landing}),
            (Op.COMPLETE, {"bytes": landing}),
            (Op.DROP, {"arrivals": rng.randint(0, min(left, 2))}),
            (Op.PENDING_COUNT, {}),
        ]
    )
    return fields | {"operation": kind.value} | counts


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("barriers", "arrivals", "tx_bytes", "ports"),
    [(4, 5, 100, 3), (3, MOST, MOST, 2), (1, 1, 0, 1)],
    ids=["small", "wide", "least"],
)
def test_operations_in_any_order_move_the_bank_by_the_rules(
    barriers: int,
    arrivals: int,
    tx_bytes: int,
    ports: int,
    seed: int,
    draws: Callable[[int, int], int],
) -> None:
    rng = random.Random(seed)
    bank = BarrierBank(barriers=barriers, arrivals=arrivals, tx_bytes=tx_bytes, ports=ports)
    model = BankModel(barriers, arrivals, tx_bytes)
    accepted = 0
    codes = set()

    async def bench(ctx: Any) -> None:
        nonlocal accepted
        offered: list[dict[str, int] | None] = [None] * ports
        answer: tuple[int, dict[str, int]] | None = None
        served, shown = 0, [(0, 0, 0)] * barriers
        for _ in range(draws(1500, 6000)):
            for port, stream in enumerate(bank.i_operations):
                if offered[port] is None and rng.random() < 0.6:
                    offered[port] = _drawn(rng, model)
                    offer(ctx, stream, offered[port])
            for port, answers in enumerate(bank.o_answers):
                assert ctx.get(answers.valid) == (answer is not None and answer[0] == port)
                if answer is not None and answer[0] == port:
                    assert fields_of(ctx, answers.payload, STATE) == answer[1]
            # The nearest port behind the one served before is served.
            wanting = [(served + n) % ports for n in range(1, ports + 1)]
            wanting = [port for port in wanting if offered[port] is not None]
            taken = [port for port in wanting if ctx.get(bank.i_operations[port].ready)]
            assert taken == wanting[:1]
            await ctx.tick()
            # All but the operation that is answered now is visible.
            for name, bits in zip(("o_phases", "o_flags", "o_valid"), zip(*shown)):
                assert ctx.get(getattr(bank, name)) == sum(bit << n for n, bit in enumerate(bits))
            answer = None
            if taken:
                (served,) = taken
                answer = served, model.apply(**(offered[served] or {}))
                offer(ctx, bank.i_operations[served], None)
                offered[served] = None
                accepted += 1
                codes.add(answer[1]["error"])
            shown = [(each.completed % 2, int(each.flag), int(each.valid)) for each in model.each]

    simulate(bank, bench)
    assert accepted > 500 and model.completed > accepted // 30
    # Each code has a case of its own below.
    assert ports == 1 or len(codes) > 4


def test_mbar_1_state_has_phase_expected_pending_and_signed_bytes_of_20_bits() -> None:
    async def story(ctx: Any, do: Any) -> None:
        await do(Op.INIT, arrivals=MOST)
        state = {"phase": 0, "pending": MOST, "expected": MOST, "tx": 0, "flag": 0, "error": 0}
        assert await do(Op.PENDING_COUNT) == state
        await do(Op.EXPECT, bytes=MOST)
        assert (await do(Op.PENDING_COUNT))["tx"] == MOST
        assert (await do(Op.EXPECT, bytes=1))["error"] == BarrierError.TX.value
        await do(Op.COMPLETE, bytes=MOST)
        await do(Op.COMPLETE, bytes=MOST)
        assert (await do(Op.PENDING_COUNT))["tx"] == -MOST
        assert (await do(Op.COMPLETE, bytes=1))["error"] == BarrierError.TX.value
        await do(Op.ARRIVE, arrivals=MOST - 1)
        assert (await do(Op.PENDING_COUNT))["pending"] == 1
        await do(Op.ARRIVE_EXPECT, arrivals=1, bytes=MOST)
        state |= {"phase": 1, "flag": 1}
        assert await do(Op.PENDING_COUNT) == state

    alone(BarrierBank(barriers=1), story)


def test_mbar_2_a_phase_completes_once_when_both_counts_are_zero() -> None:
    async def story(ctx: Any, do: Any) -> None:
        async def now() -> tuple[int, ...]:
            state = await do(Op.PENDING_COUNT)
            return state["phase"], state["pending"], state["tx"]

        await do(Op.INIT, arrivals=2)
        # The bytes settle first, then the arrivals.
        for operation, after in (
            ((Op.EXPECT, 0, 64), (0, 2, 64)),
            ((Op.COMPLETE, 0, 64), (0, 2, 0)),
            ((Op.ARRIVE, 1, 0), (0, 1, 0)),
            ((Op.ARRIVE, 1, 0), (1, 2, 0)),
            # The arrivals first.
            ((Op.ARRIVE_EXPECT, 2, 100), (1, 0, 100)),
            ((Op.COMPLETE, 0, 99), (1, 0, 1)),
            ((Op.COMPLETE, 0, 1), (0, 2, 0)),
            # More bytes land than are expected, then fewer are left.
            ((Op.ARRIVE, 1, 0), (0, 1, 0)),
            ((Op.COMPLETE, 0, 48), (0, 1, -48)),
            ((Op.ARRIVE_EXPECT, 1, 16), (0, 0, -32)),
            ((Op.EXPECT, 0, 32), (1, 2, 0)),
        ):
            kind, arrivals, size = operation
            await do(kind, arrivals=arrivals, bytes=size)
            assert await now() == after, operation

    alone(BarrierBank(barriers=2), story)


def test_mbar_2_a_last_phase_waits_for_its_bytes() -> None:
    async def story(ctx: Any, do: Any) -> None:
        await do(Op.INIT, arrivals=2)
        await do(Op.EXPECT, bytes=64)
        await do(Op.DROP, arrivals=2)
        assert (await do(Op.COMPLETE, bytes=32))["phase"] == 0
        assert (await do(Op.COMPLETE, bytes=32))["error"] == 0
        after = {"phase": 1, "pending": 0, "expected": 0, "tx": 0, "flag": 0, "error": 0}
        assert await do(Op.PENDING_COUNT) == after
        assert (await do(Op.COMPLETE, bytes=1))["error"] == BarrierError.RETIRED.value

    alone(BarrierBank(barriers=1), story)


def test_bytes_before_they_are_expected_complete_one_phase_of_the_bank() -> None:
    bank = BarrierBank(barriers=2)

    async def story(ctx: Any, do: Any) -> None:
        await do(Op.INIT, barrier=1, arrivals=1)
        phases = []
        for kind, fields in (
            (Op.COMPLETE, {"bytes": 4096}),
            (Op.ARRIVE_EXPECT, {"arrivals": 1, "bytes": 4096}),
            (Op.PENDING_COUNT, {}),
            (Op.PENDING_COUNT, {}),
        ):
            await do(kind, barrier=1, **fields)
            await ctx.tick()
            phases.append(ctx.get(bank.o_phases))
        assert phases == [0, 2, 2, 2]

    alone(bank, story)


def test_mbar_3_every_operation_and_every_wait() -> None:
    bank = BarrierBank(barriers=3, ports=2)

    async def story(ctx: Any, do: Any) -> None:
        async def test_wait(parity: int, cycles: int = 0) -> tuple[int, int]:
            result = await wait(ctx, bank, 0, parity, cycles)
            return result["passed"], result["timed_out"]

        await do(Op.INIT, arrivals=3)
        # A fresh barrier: the phase before the first, of parity 1, counts as complete.
        assert await test_wait(0) == (0, 1) and await test_wait(1) == (1, 0)
        assert (await do(Op.ARRIVE, arrivals=1))["pending"] == 3
        # From another unit.
        assert (await do(Op.ARRIVE, port=1, arrivals=1))["pending"] == 2
        assert (await do(Op.ARRIVE_EXPECT, arrivals=1, bytes=32))["error"] == 0
        assert await test_wait(0, cycles=5) == (0, 1)
        await do(Op.COMPLETE, bytes=32)
        assert await test_wait(0) == (1, 0) and await test_wait(1) == (0, 1)
        assert (await do(Op.ARRIVE_NO_COMPLETE, arrivals=2))["error"] == 0
        refused = await do(Op.ARRIVE_NO_COMPLETE, arrivals=1)
        assert refused["error"] == BarrierError.COMPLETES.value
        assert (await do(Op.PENDING_COUNT))["pending"] == 1
        # Allowed while bytes are due: the phase does not complete by it.
        await do(Op.EXPECT, bytes=16)
        assert (await do(Op.ARRIVE_NO_COMPLETE, arrivals=1))["error"] == 0
        await do(Op.COMPLETE, bytes=16)
        assert await test_wait(1) == (1, 0)
        # The refused arrival has raised the flag, which ends a wait.
        assert await test_wait(0, cycles=5) == (0, 0)
        await do(Op.DROP, arrivals=1)
        assert (await do(Op.PENDING_COUNT))["expected"] == 2
        await do(Op.ARRIVE, arrivals=2)
        state = await do(Op.PENDING_COUNT)
        assert (state["phase"], state["pending"], state["expected"]) == (1, 2, 2)
        await do(Op.INVALIDATE)
        assert (await do(Op.ARRIVE, arrivals=1))["error"] == BarrierError.UNINITIALISED.value
        assert ctx.get(bank.o_valid) == 0

    alone(bank, story)


_INITIALISED = [(Op.INIT.value, 0, 2, 0)]


@pytest.mark.parametrize(
    ("before", "operation", "error"),
    [
        ([], (Op.ARRIVE.value, 0, 1, 0), BarrierError.UNINITIALISED),
        ([], (Op.PENDING_COUNT.value, 0, 0, 0), BarrierError.UNINITIALISED),
        ([], (Op.INVALIDATE.value, 0, 0, 0), BarrierError.UNINITIALISED),
        ([], (Op.INIT.value, 0, 0, 0), BarrierError.EXPECTED),
        ([], (Op.INIT.value, 0, 6, 0), BarrierError.EXPECTED),
        (_INITIALISED, (Op.INIT.value, 0, 0, 0), BarrierError.EXPECTED),
        (_INITIALISED, (Op.ARRIVE.value, 3, 1, 0), BarrierError.INDEX),
        (_INITIALISED, (Op.INIT.value, 255, 1, 0), BarrierError.INDEX),
        (_INITIALISED, (9, 0, 1, 0), BarrierError.OPERATION),
        (_INITIALISED, (15, 0, 1, 0), BarrierError.OPERATION),
        (_INITIALISED, (Op.ARRIVE.value, 0, 3, 0), BarrierError.ARRIVALS),
        (_INITIALISED, (Op.DROP.value, 0, 7, 0), BarrierError.ARRIVALS),
        (_INITIALISED, (Op.EXPECT.value, 0, 0, 101), BarrierError.TX),
        (_INITIALISED, (Op.COMPLETE.value, 0, 0, 101), BarrierError.TX),
        (_INITIALISED, (Op.ARRIVE_EXPECT.value, 0, 1, 127), BarrierError.TX),
        (_INITIALISED, (Op.ARRIVE_NO_COMPLETE.value, 0, 2, 0), BarrierError.COMPLETES),
        (
            [*_INITIALISED, (Op.DROP.value, 0, 2, 0)],
            (Op.ARRIVE.value, 0, 1, 0),
            BarrierError.RETIRED,
        ),
        (
            [*_INITIALISED, (Op.DROP.value, 0, 2, 0)],
            (Op.EXPECT.value, 0, 0, 1),
            BarrierError.RETIRED,
        ),
    ],
)
def test_a_refused_operation_changes_nothing_but_the_flag(
    before: list[tuple[int, ...]], operation: tuple[int, ...], error: BarrierError
) -> None:
    bank = BarrierBank(barriers=3, arrivals=5, tx_bytes=100, ports=1)
    names = ("operation", "barrier", "arrivals", "bytes")

    async def bench(ctx: Any) -> None:
        async def do(values: tuple[int, ...]) -> dict[str, int]:
            offer(ctx, bank.i_operations[0], dict(zip(names, values)))
            await ctx.tick()
            offer(ctx, bank.i_operations[0], None)
            return fields_of(ctx, bank.o_answers[0].payload, STATE)

        for each in before:
            assert (await do(each))["error"] == 0
        state = await do((Op.PENDING_COUNT.value, 0, 0, 0))
        refused = await do(operation)
        assert refused["error"] == error.value
        known = operation[1] < 3 and bool(before)
        later = await do((Op.PENDING_COUNT.value, 0, 0, 0))
        assert later == state | {"flag": int(known)}
        assert ctx.get(bank.o_valid) == bool(before)
        # It is up until the next begin, whatever comes between.
        assert (await do((Op.INIT.value, 0, 5, 0)))["flag"] == int(known)
        assert (await do((Op.ARRIVE.value, 0, 5, 0)))["flag"] == 0

    simulate(bank, bench)


def test_a_failed_completion_completes_the_phase_and_raises_the_flag() -> None:
    bank = BarrierBank(barriers=2)

    async def story(ctx: Any, do: Any) -> None:
        await do(Op.INIT, arrivals=1)
        await do(Op.ARRIVE_EXPECT, arrivals=1, bytes=64)
        await do(Op.COMPLETE, bytes=32, failed=1)
        result = await wait(ctx, bank, 0, 0, 9)
        assert result == {"passed": 0, "flag": 1, "timed_out": 0, "error": 0}
        await do(Op.COMPLETE, bytes=32)
        result = await wait(ctx, bank, 0, 0, 9)
        assert result == {"passed": 1, "flag": 1, "timed_out": 0, "error": 0}
        await do(Op.INIT, arrivals=1)
        result = await wait(ctx, bank, 0, 0, 0)
        assert result == {"passed": 0, "flag": 0, "timed_out": 1, "error": 0}
        # Of any other operation the mark says nothing.
        await do(Op.EXPECT, bytes=32, failed=1)
        assert (await do(Op.PENDING_COUNT))["flag"] == 0

    alone(bank, story)


def test_operations_on_one_barrier_follow_each_other_in_every_cycle() -> None:
    bank = BarrierBank(barriers=2, ports=2)

    async def bench(ctx: Any) -> None:
        await act(ctx, bank, 0, Op.INIT, 0, arrivals=MOST)
        fields = {"operation": Op.ARRIVE.value, "barrier": 0, "arrivals": 3, "bytes": 0}
        for stream in bank.i_operations:
            offer(ctx, stream, fields)
        served = []
        for number in range(40):
            served.append([ctx.get(stream.ready) for stream in bank.i_operations].index(1))
            await ctx.tick()
            answers = bank.o_answers[served[-1]]
            assert ctx.get(answers.valid)
            assert ctx.get(answers.payload["pending"]) == MOST - 3 * number
        assert served == [1, 0] * 20

    simulate(bank, bench)


def test_the_page_has_every_operation_with_its_code_and_every_error() -> None:
    text = PAGE.read_text()
    assert all(f"| `{each.name}` | {each.value} |" in text for each in Op)
    assert all(f"| `{each.name}` |" in text for each in BarrierError if each.value)


def test_codes_of_barriers_are_no_codes_of_engines() -> None:
    codes = {each.value for each in BarrierError} - {BarrierError.NONE.value}
    assert not codes & {each.value for each in TmaError}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"barriers": 0}, "Barriers of a bank must be an integer from 1 to 256, not 0"),
        ({"barriers": 257}, "Barriers of a bank must be an integer from 1 to 256, not 257"),
        ({"arrivals": BARRIER_ARRIVALS.high + 1}, "Barrier arrivals must be"),
        ({"tx_bytes": BARRIER_TX_BYTES.high + 1}, "Barrier transaction bytes must be"),
        ({"ports": 0}, "Barrier ports must be an integer from 1 to 16, not 0"),
        ({"waiters": 17}, "Barrier waiters must be an integer from 1 to 16, not 17"),
    ],
)
def test_parameters_outside_their_domain_are_refused_by_the_bank(
    fields: dict[str, int], message: str
) -> None:
    with pytest.raises(BadInputError, match=message):
        BarrierBank(**fields)
