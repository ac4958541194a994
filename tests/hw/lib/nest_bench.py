"""Random loop nests, and a native model of the counter chain that takes one after the other."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from amaranth.hdl import Module, Signal, unsigned
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from hw.arch.launch import REPEAT_BITS
from hw.arch.loops import COUNT_SHIFT, ChainProgram, LoopProgram
from hw.lib.component import Component
from hw.lib.loop_nest import CounterChain
from hw.numeric.division import ceil_div
from sw.prove.unrolled_loops import walk
from tests.hw.step_model import cycles_of
from tests.native.stream_model import StreamModel

__all__ = [
    "LONG",
    "SIZE",
    "ChainStand",
    "NestSize",
    "array_steps",
    "chain_steps",
    "issuer_chain",
    "model_steps",
    "small_nests",
]

#: Names of what a step shows besides its indices: a 32-bit field each.
FLAGS = ("first", "end", "last")

Steps = npt.NDArray[np.int64]
#: A program and its iterations.
Nest = tuple[ChainProgram, int]

#: Loops whose fields are at the ends of their ranges.
_MOST = (1 << 16) - 1
_LONG = {
    "index up to 65,534": (LoopProgram(_MOST, 3), LoopProgram(2 - _MOST, 1, 1)),
    "count of 65,535 by a slope": (LoopProgram(2), LoopProgram(0, 1, _MOST)),
    "sums from -65,536 to 65,534": (LoopProgram(3), LoopProgram(-_MOST - 1, -1, _MOST)),
    "sum of 65,535 shifted by 7": (LoopProgram(3), LoopProgram(1, 1, _MOST // 2, 0, 7)),
    "sums down to -65,536 shifted": (
        LoopProgram(3, 5),
        LoopProgram(_MOST, 7, -_MOST, 0, 7),
        LoopProgram(800, 1, -8, 1, 3),
    ),
    "three to two, to the last sum": (
        LoopProgram(2, 1),
        LoopProgram(0, 1, 21845),
        LoopProgram(-65520, 1, 3, 1, 1),
    ),
}
#: The nests of these loops.
LONG: dict[str, Nest] = {name: (ChainProgram(loops), 1) for name, loops in _LONG.items()}


class NestSize(NamedTuple):
    """Size of random nests: loops of the chain, bits of its offset, iterations of a loop."""

    loops: int
    offset_bits: int
    most: int


#: Size of the nests of an issuer.
SIZE = NestSize(loops=6, offset_bits=18, most=4)


class ChainStand(Component):
    """Counter chain with streams: a program comes in, its steps go out, then the next program.

    Members
    -------
    i_program : stream of a chain's program and the number of its last iteration
    o_step : stream of 32-bit fields: program (its number), iteration, indices, offset, flags
    """

    i_program: stream.Interface
    o_step: stream.Interface

    def __init__(self, *, loops: int, count_bits: int, offset_bits: int) -> None:
        self.chain = CounterChain(loops=loops, count_bits=count_bits, offset_bits=offset_bits)
        self.layout = self.chain.config.shape()
        program = data.StructLayout({"chain": self.layout, "last_iteration": REPEAT_BITS})
        step = data.ArrayLayout(unsigned(32), 3 + loops + len(FLAGS))
        super().__init__(
            {"i_program": In(stream.Signature(program)), "o_step": Out(stream.Signature(step))}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.chain = chain = self.chain
        number = Signal(32)
        program: Any = Signal.like(self.i_program.payload)
        started = Signal()
        starts = self.i_program.valid & chain.o_done & ~started
        m.d.sync += started.eq(starts)
        with m.If(starts):
            m.d.sync += [program.eq(self.i_program.payload), number.eq(number + 1)]
        values = [number, chain.o_iteration, *chain.o_indices, chain.o_offset]
        values += [chain.o_first, chain.o_end, chain.o_last]
        m.d.comb += [
            self.i_program.ready.eq(chain.o_done & ~started),
            chain.config.eq(program.chain),
            chain.i_last_iteration.eq(program.last_iteration),
            chain.i_start.eq(started),
            self.o_step.valid.eq(chain.o_valid),
            chain.i_next.eq(self.o_step.valid & self.o_step.ready),
            *(field.eq(value) for field, value in zip(self.o_step.payload, values, strict=True)),
        ]
        return m


def issuer_chain() -> ChainStand:
    """A chain of an issuer's size with streams."""
    return ChainStand(loops=SIZE.loops, count_bits=16, offset_bits=SIZE.offset_bits)


def chain_steps(
    model: StreamModel,
    layout: data.StructLayout,
    programs: Sequence[Nest],
    steps: int,
    *,
    seed: int,
    stall: float,
    prefix: str = "",
) -> Steps:
    """The first steps that RTL takes: rows of the fields of ``o_step``."""
    bits = layout.size
    words = ceil_div(bits + REPEAT_BITS, 32)
    packed = b"".join(
        (program.pack(layout) | repeat - 1 << bits).to_bytes(4 * words, "little")
        for program, repeat in programs
    )
    sent = np.frombuffer(packed, np.uint32).reshape(len(programs), words)
    model.reset(seed)
    taken = model.run(
        {f"{prefix}i_program": sent},
        {f"{prefix}o_step": steps},
        stalls={f"{prefix}o_step": stall},
        quiet_cycles=1 << 20,
    )
    return taken[f"{prefix}o_step"].words.astype(np.int64)


def _bits(marks: Sequence[bool]) -> int:
    return sum(1 << at for at, mark in enumerate(marks) if mark)


def model_steps(programs: Sequence[Nest], *, loops: int, offset_bits: int) -> Steps:
    """Rows of `chain_steps`, from the recursive model."""
    rows = []
    for number, (program, repeat) in enumerate(programs):
        steps = [step for step in cycles_of(_padded(program, loops)) if step is not None]
        for iteration in range(repeat):
            for step in steps:
                flags = (_bits(marks) for marks in (step.first, step.end, step.last))
                wrapped = step.offset % (1 << offset_bits)
                rows.append((number + 1, iteration, *step.indices, wrapped, *flags))
    return np.array(rows, np.int64).reshape(len(rows), 3 + loops + len(FLAGS))


def array_steps(programs: Sequence[Nest], *, loops: int, offset_bits: int) -> Steps:
    """Rows of `chain_steps`, from the array form of the liveness proof."""
    parts = []
    for number, (program, repeat) in enumerate(programs):
        steps = walk(_padded(program, loops).loops)
        first = np.ones(len(steps.offset), bool)
        firsts, ends, lasts = np.zeros((3, len(steps.offset)), np.int64)
        for level in reversed(range(loops)):
            first = first & (steps.indices[level] == 0)
            firsts |= first.astype(np.int64) << level
            ends |= steps.ends[level].astype(np.int64) << level
            lasts |= steps.last(level).astype(np.int64) << level
        wrapped = steps.offset % (1 << offset_bits)
        fields = np.stack([*steps.indices, wrapped, firsts, ends, lasts], axis=1)
        iterations = np.repeat(np.arange(repeat), len(wrapped))
        numbers = np.full(len(iterations), number + 1)
        parts.append(np.column_stack([numbers, iterations, np.tile(fields, (repeat, 1))]))
    return np.concatenate(parts)


def _padded(program: ChainProgram, loops: int) -> ChainProgram:
    """The program with loops of one iteration at the inner end, as the chain pads it."""
    return ChainProgram(program.loops + (LoopProgram(),) * (loops - len(program.loops)))


def _random_nest(rng: random.Random, size: NestSize) -> ChainProgram:
    """A random nest: slopes of either sign, shifts, empty loops, several that grow at once."""
    loops: list[LoopProgram] = []
    reach = 1 << (size.offset_bits - 1)
    for index in range(rng.randint(2, size.loops)):
        stride = rng.randrange(-reach, reach)
        least = rng.choice([-1, 0, 1, 1, 1, 1])
        if index and rng.random() < 0.6:
            shift = rng.choice([0, 0, *COUNT_SHIFT.values()])
            slope = rng.choice([-1, 1]) * rng.randint(1, 3 << shift >> min(shift, 1))
            base = rng.randint(least << shift, (size.most << shift) + 1)
            loops.append(LoopProgram(base, stride, slope, rng.randrange(index), shift))
        else:
            loops.append(LoopProgram(rng.randint(least, 3), stride))
    return ChainProgram(tuple(loops))


def small_nests(rng: random.Random, size: NestSize, *, most_steps: int = 300) -> Iterator[Nest]:
    """Endless random nests that take few steps each, some repeated."""
    while True:
        program = _random_nest(rng, size)
        counts = (max(most, 1) for _, most in program.counts())
        if np.prod(list(counts), dtype=object) <= most_steps:
            yield program, rng.choice([1, 1, 2, 3])
