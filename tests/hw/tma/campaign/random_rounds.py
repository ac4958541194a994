"""Rounds of random commands of a TMA unit: their memory, what numpy makes of them, and the run."""

import dataclasses
import functools
import random
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hw.arch.boxes.im2col_box import packed_offsets
from hw.arch.descriptor import DESCRIPTOR_BYTES, Swizzle
from hw.arch.tma_sizes import TmaSizes
from hw.tma.barriers.barrier_layouts import BarrierOperation
from hw.tma.standalone.unit_commands import TmaOperation
from tests.hw.tma.campaign.random_modes import Case, Decks, Mode
from tests.hw.tma.campaign.user_plans import BarrierSums, UserPlan, draw_plan
from tests.hw.tma.model import random_bytes
from tests.hw.tma.standalone.native_unit import NativeUnit, UnitCommand
from tests.hw.tma.standalone.unit_bench import swizzled_places
from tests.native.native_memory import CHANNELS, MemoryTiming, NativeMemory
from tests.native.stream_model import StreamModel

__all__ = ["Item", "Round", "draw_round"]

_MEMORY_BYTES = 1 << 21
#: Bytes between what two commands may touch: more than a beat.
_GUARD = 128
#: Shares of commands that move nothing.
_OTHERS = (TmaOperation.PREFETCH, TmaOperation.INVALIDATE, TmaOperation.COMMIT)


@dataclasses.dataclass(frozen=True)
class Item:
    """A command with its places: offset in memory of what it moves and of its descriptor.

    ``base`` of a copy is the address in the scratchpad ``source``. A load goes to the scratchpads
    whose bits are set in ``destinations``.
    """

    operation: TmaOperation
    base: int = 0
    pointer: int = 0
    local: int = 0
    barrier: int | None = None
    case: Case | None = None
    destinations: int = 1
    source: int = 0

    @property
    def places(self) -> npt.NDArray[np.int64]:
        """Address in the scratchpad of each byte."""
        assert self.case is not None
        made: npt.NDArray[np.int64] = swizzled_places(
            self.local, self.case.bytes, self.case.swizzle
        )
        return made


class Traffic(NamedTuple):
    """Beats of data of a round, and its cycles."""

    beats: int
    cycles: int


@functools.cache
def _noise() -> npt.NDArray[np.uint8]:
    return random_bytes(1, _MEMORY_BYTES)


@dataclasses.dataclass(frozen=True)
class Round:
    """Commands that a unit executes from reset, and the conditions.

    Parameters
    ----------
    seed : int
        Of all that is random in the memory, the scratchpad and the model.
    origin : int
        Address of the memory's first byte.
    """

    sizes: TmaSizes
    seed: int
    items: Sequence[Item]
    origin: int
    timing: MemoryTiming
    stalls: tuple[float, float]
    plans: Sequence[UserPlan]

    def run(self, model: StreamModel, name: str) -> Traffic:
        """Run the commands, and compare memory, scratchpads, completions and barriers."""
        model.reset(self.seed)
        before = np.roll(_noise(), self.seed % _MEMORY_BYTES)
        readable, writable = (np.zeros(_MEMORY_BYTES, np.bool_) for _ in range(2))
        for item in self.items:
            self._prepare(item, before, readable, writable)
        memory = before.copy()
        served = NativeMemory(
            memory,
            readable=readable,
            writable=writable,
            origin=self.origin,
            timing=self.timing,
            seed=self.seed,
        )
        unit = NativeUnit(model, name, self.sizes, served)
        pads = range(self.sizes.scratchpads)
        contents = [random_bytes(self.seed + 1 + pad, self.sizes.scratchpad_bytes) for pad in pads]
        sums = BarrierSums(self.sizes, self.plans)
        for pad in pads:
            unit.fill(contents[pad], pad=pad)
            unit.operate_all([self._init(sums, pad, each) for each in self._barriers], pad=pad)
        vectors = [each.reshape(self.sizes.vectors, -1).copy() for each in contents]
        run = unit.run(
            [self._command(item) for item in self.items],
            command_stall=self.stalls[0],
            completion_stall=self.stalls[1],
            users=[plan.actions(vectors[pad]) for pad, plan in enumerate(self.plans)],
        )
        for item in self.items:
            self._move(item, before, contents, sums)
        self._compare_completions(run.completions)
        assert np.array_equal(memory, before), self._first("memory", memory, before)
        for pad in pads:
            dumped = unit.dump(pad=pad)
            what = f"scratchpad {pad}"
            assert np.array_equal(dumped, contents[pad]), self._first(what, dumped, contents[pad])
            assert np.array_equal(run.read[pad], vectors[pad][self.plans[pad].read]), what
            assert not any(answer["error"] for answer in run.answers[pad]), what
        for pad in pads:
            self._end_phases(unit, sums, pad)
        groups = sum(item.operation is TmaOperation.COMMIT for item in self.items)
        assert model.get(f"{name}_o_groups") == groups
        return Traffic(
            served.beats["R"] + served.beats["W"], run.last_completion - run.first_command
        )

    @property
    def _barriers(self) -> range:
        return range(self.sizes.barriers)

    def _place(self, pad: int) -> dict[str, int]:
        """The field of an operation that names a scratchpad, if there are several."""
        return {"scratchpad": pad} if self.sizes.scratchpads > 1 else {}

    def _init(self, sums: BarrierSums, pad: int, barrier: int) -> dict[str, Any]:
        arrivals = int(sums.initial[pad, barrier])
        fields = {"operation": BarrierOperation.INIT, "barrier": barrier, "arrivals": arrivals}
        return fields | self._place(pad)

    def _end_phases(self, unit: NativeUnit, sums: BarrierSums, pad: int) -> None:
        """End the phase of every barrier of a scratchpad, from the user of another."""
        home = (pad + 1) % self.sizes.scratchpads
        ends = [
            each | self._place(pad)
            for barrier in self._barriers
            for each in sums.ends(pad, barrier)
        ]
        answers = unit.operate_all(ends, pad=home)
        count = len(ends) // self.sizes.barriers
        for barrier in self._barriers:
            sums.check(pad, barrier, answers[count * barrier :][:count])

    def _prepare(
        self,
        item: Item,
        before: npt.NDArray[np.uint8],
        readable: npt.NDArray[np.bool_],
        writable: npt.NDArray[np.bool_],
    ) -> None:
        """Put the item's descriptor into memory, and mark what it may access."""
        case = item.case
        if case is None:
            return
        if case.descriptor is not None:
            placed = dataclasses.replace(case.descriptor, base=self.origin + item.base)
            where = slice(item.pointer, item.pointer + DESCRIPTOR_BYTES)
            before[where] = np.frombuffer(placed.pack(), np.uint8)
            readable[where] = True
        touched = item.base + case.mode.touched(case)
        if case.mode.loads or case.reduction is not None:
            readable[touched] = True
        if not case.mode.loads:
            writable[touched] = True

    def _command(self, item: Item) -> UnitCommand:
        case = item.case
        address = self.origin + item.pointer
        if case is not None and case.descriptor is None:
            address = item.base + (0 if case.mode.copies else self.origin)
        fields = {"local": item.local}
        if self.sizes.scratchpads > 1:
            fields |= {"destinations": item.destinations, "source": item.source}
        if item.barrier is not None:
            fields |= {"signals": 1, "barrier": item.barrier}
        if case is not None and case.offsets:
            fields["offsets"] = packed_offsets(case.offsets)
        if case is not None and case.reduction is not None:
            fields["reduction"] = case.reduction.value
        return UnitCommand(item.operation, address, case.coordinates if case else (), fields)

    def _move(
        self,
        item: Item,
        memory: npt.NDArray[np.uint8],
        contents: Sequence[npt.NDArray[np.uint8]],
        sums: BarrierSums,
    ) -> None:
        """What the command does, in numpy."""
        case = item.case
        if case is None:
            return
        source = contents[item.source]
        if not case.mode.loads:
            case.mode.store(case, memory, item.base, source[item.places])
            return
        loaded = case.mode.loaded(case, source if case.mode.copies else memory, item.base)
        for pad in range(len(contents)):
            if item.destinations >> pad & 1:
                contents[pad][item.places] = loaded
                if item.barrier is not None:
                    sums.complete(pad, item.barrier, case.bytes)

    def _compare_completions(self, completions: Sequence[tuple[int, int]]) -> None:
        """Each command has one, without an error; loads are in order, and so are stores."""
        failed = [(self.items[number], code) for number, code in completions if code]
        assert not failed, failed
        assert sorted(number for number, _ in completions) == [*range(len(self.items))]
        for wanted in (self._loads, self._stores):
            order = [number for number, _ in completions if wanted(self.items[number])]
            assert order == sorted(order), order

    @staticmethod
    def _loads(item: Item) -> bool:
        return item.case is not None and item.case.mode.loads

    @staticmethod
    def _stores(item: Item) -> bool:
        stores = item.case is not None and not item.case.mode.loads
        return stores or item.operation is TmaOperation.COMMIT

    def _first(self, what: str, found: npt.NDArray[np.uint8], wanted: npt.NDArray[np.uint8]) -> str:
        places = np.flatnonzero(found != wanted)
        at = int(places[0])
        return f"{what}: {len(places)} bytes differ, the first at {at:#x}: {found[at]:#x}"


def _timing(rng: random.Random) -> MemoryTiming:
    most = rng.choice([0.0, 0.5, 0.95])
    return MemoryTiming(
        latency=rng.choice([1, rng.randint(1, 40), rng.randint(1, 300)]),
        jitter=rng.choice([0, rng.randint(0, 100)]),
        stalls=[rng.choice([0.0, most, most * rng.random()]) for _ in CHANNELS],
        interleaves=rng.random() < 0.7,
        early_reads=rng.random() < 0.5,
        late_writes=rng.random() < 0.5,
    )


def _based(rng: random.Random, start: int, extent: int) -> int:
    """Offset of a tensor from ``start`` on: next to it, from or up to a page, or anywhere."""
    page = -(-start // 4096) * 4096
    until = -(-(start + extent) // 4096) * 4096 - extent
    choices = [start, page, until // 16 * 16, start + 16 * rng.randrange(64)]
    return max(start, rng.choice(choices))


def draw_round(
    decks: Decks,
    modes: Iterator[Mode],
    sizes: TmaSizes,
    *,
    seed: int,
    commands: int,
) -> Round:
    """Draw a round of some commands that move something, and few others between them."""
    rng = decks.rng
    beat, half, pads = sizes.width_bits // 8, sizes.scratchpad_bytes // 2, sizes.scratchpads
    items: list[Item] = []
    start = -(-commands * DESCRIPTOR_BYTES // 4096) * 4096
    for number in range(commands):
        mode = next(modes)
        former = [item for item in items if item.case and mode.follows(item.case)]
        if former and rng.random() < 0.25:
            item = rng.choice(former)
            assert item.case is not None
            case, base, pointer = mode.again(rng, item.case), item.base, item.pointer
        else:
            case = mode.draw(decks, sizes, half)
            base, pointer = _based(rng, start, case.extent), number * DESCRIPTOR_BYTES
            start = -(-(base + case.extent) // 16) * 16 + _GUARD
        if mode.copies:
            base = rng.randrange(half, 2 * half - case.bytes + 1, beat)
        step = max(128 if case.swizzle is not Swizzle.NONE else 0, beat)
        local = rng.randrange(0, half - case.bytes + 1, step)
        signals = mode.loads and rng.random() < 0.5
        items.append(
            Item(
                mode.operation,
                base,
                pointer,
                local + (0 if mode.loads else half),
                rng.randrange(sizes.barriers) if signals else None,
                case,
                _destinations(rng, pads),
                rng.randrange(pads),
            )
        )
        described = [item.pointer for item in items if item.case and item.case.descriptor]
        if described and rng.random() < 0.2:
            items.append(Item(rng.choice(_OTHERS), pointer=rng.choice(described)))
    top = (1 << sizes.address_bits) - _MEMORY_BYTES
    return Round(
        sizes,
        seed,
        items,
        rng.choice([0, top, rng.randrange(0, top, 4096)]),
        _timing(rng),
        (rng.choice([0.0, 0.5, 0.95]), rng.choice([0.0, 0.5, 0.95])),
        [draw_plan(rng, sizes) for _ in range(pads)],
    )


def _destinations(rng: random.Random, pads: int) -> int:
    """A mask of scratchpads, in most cases of several."""
    masks = range(1, 1 << pads)
    several = [each for each in masks if each.bit_count() > 1]
    return rng.choice(several if several and rng.random() < 0.6 else masks)
