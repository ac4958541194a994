"""Rounds of random commands of a TMA unit: their memory, what numpy makes of them, and the run."""

import dataclasses
import functools
import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hw.arch.boxes.im2col_box import packed_offsets
from hw.arch.descriptor import DESCRIPTOR_BYTES, Swizzle
from hw.arch.tma_sizes import TmaSizes
from hw.tma.barriers.barrier_layouts import BarrierOperation
from hw.tma.standalone.unit_commands import TmaOperation
from tests.hw.tma.model import random_bytes
from tests.hw.tma.standalone.native_unit import NativeUnit, UnitCommand
from tests.hw.tma.standalone.random_modes import Case, Decks, Mode
from tests.hw.tma.standalone.unit_bench import swizzled_places
from tests.native.native_memory import CHANNELS, MemoryTiming, NativeMemory
from tests.native.stream_model import StreamModel

__all__ = ["Item", "Round", "draw_round"]

_MEMORY_BYTES = 1 << 21
_BARRIERS = 4
#: Bytes between what two commands may touch: more than a beat.
_GUARD = 128
#: Range of a signed count of bytes of a barrier.
_TX_RANGE = 1 << 21
#: Shares of commands that move nothing.
_OTHERS = (TmaOperation.PREFETCH, TmaOperation.INVALIDATE, TmaOperation.COMMIT)


@dataclasses.dataclass(frozen=True)
class Item:
    """A command with its places: offset in memory of what it moves and of its descriptor."""

    operation: TmaOperation
    base: int = 0
    pointer: int = 0
    local: int = 0
    barrier: int | None = None
    case: Case | None = None

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

    def run(self, model: StreamModel, name: str) -> Traffic:
        """Run the commands, and compare memory, scratchpad, completions and barriers."""
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
        scratchpad = random_bytes(self.seed + 1, self.sizes.scratchpad_bytes)
        unit.fill(scratchpad)
        for barrier in range(_BARRIERS):
            unit.operate(BarrierOperation.INIT, barrier, arrivals=1)
        run = unit.run(
            [self._command(item) for item in self.items],
            command_stall=self.stalls[0],
            completion_stall=self.stalls[1],
        )
        counted = [0] * _BARRIERS
        for item in self.items:
            self._move(item, before, scratchpad, counted)
        self._compare_completions(run.completions)
        assert np.array_equal(memory, before), self._first("memory", memory, before)
        dumped = unit.dump()
        assert np.array_equal(dumped, scratchpad), self._first("scratchpad", dumped, scratchpad)
        for barrier, count in enumerate(counted):
            answer = unit.operate(BarrierOperation.PENDING_COUNT, barrier)
            assert answer["tx"] == -count % _TX_RANGE and answer["flag"] == 0, (barrier, answer)
        groups = sum(item.operation is TmaOperation.COMMIT for item in self.items)
        assert model.get(f"{name}_o_groups") == groups
        return Traffic(
            served.beats["R"] + served.beats["W"], run.last_completion - run.first_command
        )

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
        mask = readable if case.mode.loads else writable
        mask[item.base + case.mode.touched(case)] = True

    def _command(self, item: Item) -> UnitCommand:
        case = item.case
        linear = case is not None and case.descriptor is None
        fields = {"local": item.local}
        if item.barrier is not None:
            fields |= {"signals": 1, "barrier": item.barrier}
        if case is not None and case.offsets:
            fields["offsets"] = packed_offsets(case.offsets)
        return UnitCommand(
            item.operation,
            self.origin + (item.base if linear else item.pointer),
            case.coordinates if case else (),
            fields,
        )

    def _move(
        self,
        item: Item,
        memory: npt.NDArray[np.uint8],
        scratchpad: npt.NDArray[np.uint8],
        counted: list[int],
    ) -> None:
        """What the command does, in numpy."""
        case = item.case
        if case is None:
            return
        if case.mode.loads:
            scratchpad[item.places] = case.mode.loaded(case, memory, item.base)
            if item.barrier is not None:
                counted[item.barrier] += case.bytes
        else:
            case.mode.store(case, memory, item.base, scratchpad[item.places])

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
    half = sizes.scratchpad_bytes // 2
    items: list[Item] = []
    start = -(-commands * DESCRIPTOR_BYTES // 4096) * 4096
    for number in range(commands):
        mode = next(modes)
        former = [item for item in items if item.case and item.case.mode is mode]
        former = [item for item in former if item.case and item.case.descriptor]
        if former and rng.random() < 0.25:
            item = rng.choice(former)
            assert item.case is not None
            case, base, pointer = mode.again(rng, item.case), item.base, item.pointer
        else:
            case = mode.draw(decks, sizes, half)
            base, pointer = _based(rng, start, case.extent), number * DESCRIPTOR_BYTES
            start = -(-(base + case.extent) // 16) * 16 + _GUARD
        step = max(128 if case.swizzle is not Swizzle.NONE else 0, sizes.width_bits // 8)
        local = rng.randrange(0, half - case.bytes + 1, step)
        signals = mode.loads and rng.random() < 0.5
        items.append(
            Item(
                mode.operation,
                base,
                pointer,
                local + (0 if mode.loads else half),
                rng.randrange(_BARRIERS) if signals else None,
                case,
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
    )
