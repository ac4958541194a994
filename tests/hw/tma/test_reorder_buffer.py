"""Beats read under several IDs, back in the order of their bursts."""

import random
from collections import deque

import pytest
from amaranth.hdl import unsigned
from amaranth.sim import Simulator

from hw.arch.errors import BadInputError
from hw.tma.reorder_buffer import ReorderBuffer


class _Memory:
    """Bursts given to a buffer, and their beats; beat n of all has payload n.

    Beats come in any order of IDs, or of all in order if it is ``ordered``; none of IDs ``held``.
    """

    def __init__(
        self, seed, *, lengths, read_ids, outstanding, gaps=0.0, stall=0.0, ordered=False, held=()
    ):
        self.rng = random.Random(seed)
        self.lengths, self.gaps, self.stall = lengths, gaps, stall
        self.ordered, self.held = ordered, held
        self.buffer = ReorderBuffer(
            unsigned(16), depth=32, outstanding=outstanding, read_ids=read_ids
        )
        self.waiting = [deque() for _ in range(read_ids)]
        self.issued, self.arrived, self.left = [], [], []
        self.left_when = []

    def run(self, *, count, cycles=10_000):
        simulator = Simulator(self.buffer)
        simulator.add_clock(1e-6)

        async def cycle(ctx):
            beat, number = 0, 0
            for now in range(cycles):
                if len(self.left) == count:
                    break
                # The first beat of a burst comes in the cycle after its issue at the earliest.
                self._arrive(ctx)
                number, beat = self._issue(ctx, number, beat)
                ctx.set(self.buffer.o_stream.ready, self.rng.random() >= self.stall)
                port = self.buffer.o_stream
                *_, valid, ready, payload = await ctx.tick().sample(
                    port.valid, port.ready, port.payload
                )
                if valid and ready:
                    self.left.append(payload)
                    self.left_when.append(now)

        simulator.add_testbench(cycle)
        simulator.run()

    def _issue(self, ctx, number, beat):
        more = number < len(self.lengths)
        ctx.set(self.buffer.i_length, self.lengths[number] - 1 if more else 0)
        issues = more and ctx.get(self.buffer.o_free)
        ctx.set(self.buffer.i_issue, issues)
        if not issues:
            return number, beat
        id, length = ctx.get(self.buffer.o_id), self.lengths[number]
        self.issued.append(id)
        self.waiting[id].extend((beat + each, each == length - 1) for each in range(length))
        self.fresh = id
        return number + 1, beat + length

    def _arrive(self, ctx):
        able = [id for id, beats in enumerate(self.waiting) if beats and id not in self.held]
        arrives = bool(able) and self.rng.random() >= self.gaps
        ctx.set(self.buffer.i_arrives, arrives)
        if arrives:
            id = self.rng.choice(able)
            if self.ordered:
                id = min(able, key=lambda each: self.waiting[each][0])
            beat, last = self.waiting[id].popleft()
            self.arrived.append(beat)
            ctx.set(self.buffer.i_beat, beat)
            ctx.set(self.buffer.i_id, id)
            ctx.set(self.buffer.i_last, last)


def _lengths(rng, count, most):
    return [rng.choice([1, rng.randint(1, most)]) for _ in range(count)]


@pytest.mark.parametrize("stall", [0.0, 0.5])
@pytest.mark.parametrize(("read_ids", "outstanding"), [(2, 1), (2, 5), (4, 16), (16, 16), (16, 64)])
def test_beats_leave_in_the_order_of_their_bursts(read_ids, outstanding, stall, seed):
    lengths = _lengths(random.Random(seed), 80, 8)
    memory = _Memory(
        seed, lengths=lengths, read_ids=read_ids, outstanding=outstanding, gaps=stall, stall=stall
    )
    count = sum(lengths)
    memory.run(count=count)
    assert memory.left == list(range(count))
    assert memory.issued == [number % read_ids for number in range(len(lengths))]
    assert sorted(memory.arrived) == memory.left != memory.arrived


def test_an_id_without_beats_holds_up_no_other_until_its_share_is_out():
    """Of 4 IDs with 4 bursts each, the first answers nothing: 4 of its bursts are issued, and all
    beats of the 12 of the others come."""
    memory = _Memory(1, lengths=[1] * 40, read_ids=4, outstanding=16, held=(0,))
    memory.run(count=1, cycles=200)
    assert memory.issued == [number % 4 for number in range(16)]
    assert len(memory.arrived) == 12
    assert memory.left == []


@pytest.mark.parametrize("read_ids", [2, 4, 16])
def test_one_beat_per_cycle_passes(read_ids):
    lengths = [1] * 40 + [4] * 20 + [1] * 40
    memory = _Memory(0, lengths=lengths, read_ids=read_ids, outstanding=64, ordered=True)
    memory.run(count=160)
    assert memory.left == list(range(160))
    assert memory.left_when[-1] - memory.left_when[0] == 159


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"read_ids": 1}, "Read IDs must be a power of two from 2 to 16, not 1"),
        ({"read_ids": 12}, "Read IDs must be a power of two from 2 to 16, not 12"),
        ({"depth": 24}, "Landing beats must be a power of two from 16 to 4096, not 24"),
        ({"outstanding": 257}, "Outstanding bursts must be an integer from 1 to 256, not 257"),
    ],
)
def test_sizes_outside_their_domain_are_refused(change, message):
    with pytest.raises(BadInputError) as refusal:
        ReorderBuffer(unsigned(8), **{"depth": 32, "outstanding": 4, "read_ids": 2} | change)
    assert str(refusal.value) == message
