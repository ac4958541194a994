"""Bench and mirror of a PMU: actors with stalls on every port, and what they must see."""

import dataclasses
import random
from collections.abc import Callable
from typing import Any

from hw.arch.counters import ACTIVITIES, engine_states
from hw.arch.loops import LoopProgram
from hw.arch.pmu import EngineProgram, PmuProgram, SlotRing
from hw.arch.words.pmu_word import (
    ENGINE_LOOPS,
    Access,
    Level,
    TokenSource,
    lane_count,
    piece_positions,
    rows_log2,
)
from hw.pmu.unit import Pmu
from tests.hw.reused_simulator import Simulation
from tests.hw.step_model import moves_of

WIDTH_BITS, CAPACITY_BYTES, SLOTS = 64, 1024, 4

Vector = tuple[bytes, bool, bool]


@dataclasses.dataclass
class Outcome:
    """What the actors saw."""

    outputs: tuple[list[Vector], list[Vector]] = dataclasses.field(default_factory=lambda: ([], []))
    tokens: list[int] = dataclasses.field(default_factory=lambda: [0, 0])
    taken_at: tuple[list[int], list[int]] = dataclasses.field(default_factory=lambda: ([], []))
    given_at: tuple[list[int], list[int]] = dataclasses.field(default_factory=lambda: ([], []))
    counters: dict[str, int] = dataclasses.field(default_factory=dict)
    engines: dict[str, dict[str, int]] = dataclasses.field(default_factory=dict)
    cycles: int = 0
    done: bool = False
    error: int = 0


def lanes_of(program: EngineProgram) -> int:
    return lane_count(width_bits=WIDTH_BITS, element_bytes=program.element_bytes)


def matrix_loops(
    rows: int, columns: int, element_bytes: int, access: Access
) -> tuple[LoopProgram, ...]:
    """Address loops that walk a block-linear matrix in pieces: down for columns, else along."""
    lanes = lane_count(width_bits=WIDTH_BITS, element_bytes=element_bytes)
    high = 1 << rows_log2(access, lanes=lanes)
    wide = lanes // high
    across = LoopProgram(columns // lanes, stride=lanes * lanes)
    down = LoopProgram(rows // lanes, stride=lanes * columns)
    inner_across = LoopProgram(lanes // wide, stride=wide)
    inner_down = LoopProgram(lanes // high, stride=high * lanes)
    if access is Access.COLUMN:
        return (across, inner_across, down, inner_down)
    return (down, inner_down, across, inner_across)


def _bytes_of(program: EngineProgram, position: int) -> list[int]:
    lanes = lanes_of(program)
    rows = rows_log2(program.access, lanes=lanes)
    size = program.element_bytes
    positions = piece_positions(position, lanes=lanes, rows_log2=rows)
    return [p * size + i for p in positions for i in range(size)]


def mirror(program: PmuProgram, inputs: tuple[list[Vector], ...]) -> tuple[list[Vector], ...]:
    """Outputs by slot and lap, without any time: what every interleaving must give."""
    store: dict[tuple[int, int, int, int], int] = {}
    for writer, vectors in zip(program.writers, inputs):
        if writer is None:
            continue
        packet, accepted = 0, []
        for vector in vectors:
            if packet % writer.modulus == writer.index:
                accepted.append(vector)
            packet += vector[1]
        for move, vector in zip(moves_of(writer), accepted):
            for where, byte in zip(_bytes_of(writer, move.position), vector[0]):
                store[writer.ring.buffer, move.slot, move.lap, where] = byte
    outputs: tuple[list[Vector], ...] = ([], [])
    for reader, output in zip(program.readers, outputs):
        for move in moves_of(reader) if reader else ():
            assert reader is not None
            if move.beyond and reader.beyond:
                constant = reader.beyond.constant.to_bytes(4, "little")[: reader.element_bytes]
                value = constant * lanes_of(reader)
            else:
                key = (reader.ring.buffer, move.slot, move.lap)
                value = bytes(store[*key, b] for b in _bytes_of(reader, move.position))
            output.append((value, move.last, move.final))
    return outputs


def vectors(count: int, rng: random.Random, packet: int = 4) -> list[Vector]:
    """Random input vectors in packets of a fixed length."""
    return [(rng.randbytes(WIDTH_BITS // 8), i % packet == packet - 1, False) for i in range(count)]


def run(
    program: PmuProgram,
    inputs: tuple[list[Vector], list[Vector]],
    *,
    rng: random.Random | None = None,
    stall: float = 0.0,
    token_stall: float = 0.0,
    tokens_until: Callable[[Outcome], bool] = lambda _: True,
    limit: int = 5000,
    make: type[Pmu] = Pmu,
    extra: int = 20,
) -> Outcome:
    """Run a program until its engines are done, its tokens taken, and some cycles more."""
    rng = rng or random.Random(0)
    simulator = Simulation(make, width_bits=WIDTH_BITS, capacity_bytes=CAPACITY_BYTES, slots=SLOTS)
    dut = simulator.design
    outcome = Outcome()

    async def started(ctx: Any) -> None:
        while not ctx.get(dut.i_run):
            await ctx.tick()

    def feeder(number: int) -> Callable[[Any], Any]:
        async def feed(ctx: Any) -> None:
            port = dut.i_stream[number]
            await started(ctx)
            for data, last, final in inputs[number]:
                while rng.random() < stall:
                    await ctx.tick()
                word = {"data": int.from_bytes(data, "little"), "last": last, "final": final}
                ctx.set(port.payload, word)
                ctx.set(port.valid, 1)
                ready = False
                while not ready:
                    _, _, ready = await ctx.tick().sample(port.ready)
                outcome.given_at[number].append(outcome.cycles)
                ctx.set(port.valid, 0)

        return feed

    def drainer(number: int) -> Callable[[Any], Any]:
        async def drain(ctx: Any) -> None:
            port = dut.o_stream[number]
            while True:
                ctx.set(port.ready, rng.random() >= stall)
                _, _, valid, ready, payload = await ctx.tick().sample(
                    port.valid, port.ready, port.payload
                )
                if valid and ready:
                    data = int(payload["data"]).to_bytes(WIDTH_BITS // 8, "little")
                    outcome.outputs[number].append(
                        (data, bool(payload["last"]), bool(payload["final"]))
                    )
                    outcome.taken_at[number].append(outcome.cycles)

        return drain

    def taker(number: int) -> Callable[[Any], Any]:
        async def take(ctx: Any) -> None:
            port = dut.o_token[number]
            while True:
                ctx.set(port.ready, tokens_until(outcome) and rng.random() >= token_stall)
                _, _, valid, ready = await ctx.tick().sample(port.valid, port.ready)
                outcome.tokens[number] += bool(valid and ready)

        return take

    async def control(ctx: Any) -> None:
        word = program.pack(width_bits=WIDTH_BITS, capacity_bytes=CAPACITY_BYTES, slots=SLOTS)
        ctx.set(dut.config.as_value(), word)
        ctx.set(dut.i_clear, 1)
        await ctx.tick()
        ctx.set(dut.i_clear, 0)
        ctx.set(dut.i_run, 1)
        left = extra
        while left and outcome.cycles < limit:
            await ctx.tick()
            outcome.cycles += 1
            waiting = ctx.get(dut.o_token[0].valid) or ctx.get(dut.o_token[1].valid)
            left -= ctx.get(dut.o_done) == 15 and not waiting
        ctx.set(dut.i_run, 0)
        outcome.done = ctx.get(dut.o_done) == 15
        outcome.error = ctx.get(dut.o_error)
        outcome.counters = {name: ctx.get(getattr(dut.o_counters, name)) for name in ACTIVITIES}
        outcome.engines = engine_states(ctx.get(dut.o_state.as_value()))

    for number in range(2):
        simulator.add_testbench(feeder(number), background=True)
        simulator.add_testbench(drainer(number), background=True)
        simulator.add_testbench(taker(number), background=True)
    # Last, so that the cycle number the others see is that of the cycle they act in.
    simulator.add_testbench(control)
    simulator.run()
    return outcome


def engine(
    rows: int,
    columns: int,
    element_bytes: int,
    access: Access,
    *,
    windows: int = 1,
    count: int = 2,
    buffer: int = 0,
    base: int = 0,
    **options: object,
) -> EngineProgram:
    """Engine that walks ``windows`` windows of slots, each slot a matrix of this shape."""
    return EngineProgram(
        SlotRing(buffer, base, rows * columns, count),
        matrix_loops(rows, columns, element_bytes, access),
        element_bytes=element_bytes,
        access=access,
        windows=LoopProgram(windows),
        **options,
    )


def check(program: PmuProgram, outcome: Outcome, inputs: tuple[list[Vector], list[Vector]]) -> None:
    for number, expected in enumerate(mirror(program, inputs)):
        assert outcome.outputs[number] == expected
    assert outcome.done and not outcome.error
    assert sum(outcome.counters.values()) == outcome.cycles


def steps(program: EngineProgram) -> int:
    return sum(1 for _ in moves_of(program))


def two_rings(windows: int, element_bytes: int) -> PmuProgram:
    """Both engines of both ports: two buffers that fill the memory, one of them transposed."""
    half = CAPACITY_BYTES // 2 // element_bytes
    one = {"windows": windows, "count": 4, "buffer": 0}
    two = {"windows": windows, "count": 4, "buffer": 1, "base": half}
    return PmuProgram(
        (
            engine(8, 8, element_bytes, Access.ROW, **one),
            engine(8, 8, element_bytes, Access.COLUMN, **two),
        ),
        (
            engine(8, 8, element_bytes, Access.COLUMN, last_level=Level.ADDRESS, **one),
            engine(
                8, 8, element_bytes, Access.COLUMN, last_level=ENGINE_LOOPS, final_level=0, **two
            ),
        ),
        (TokenSource.R0, TokenSource.W1),
    )
