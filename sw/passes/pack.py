"""Packing of buffers (rings of slots) into PMUs.

A PMU has two buffers, two write engines, two read engines and two token outputs, and moves one
vector in and one out per cycle. Buffers share a PMU only if there are too few PMUs.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping

from hw.arch.config import ChipConfig
from hw.numeric.division import ceil_div
from sw.passes.field_limits import Unfit

__all__ = ["Buffer", "Home", "pack", "require_room"]

#: Engines per direction, buffers and token outputs of a PMU.
_PORTS = 2


@dataclasses.dataclass(frozen=True)
class Buffer:
    """A buffer to allocate: a ring of slots.

    Parameters
    ----------
    name : str
    slot_bytes : int
    least, wanted : int
        Slots it needs, and slots it can use.
    writers : int
        Write engines that fill it; with ``tokens``, as many token outputs.
    tokens : bool
        Whether freed slots are reported by tokens.
    rate : float
        Vectors per cycle at its busier side.
    alignment : int
        Vectors to a multiple of which its first slot is aligned: a block if it is accessed by
        columns, two rows if it is not.
    readers : int
        Read engines that empty it.
    reports : int
        Token outputs per write engine, each for a read engine.
    """

    name: str
    slot_bytes: int
    least: int
    wanted: int
    writers: int
    tokens: bool
    rate: float
    alignment: int = 2
    readers: int = 1
    reports: int = 1


@dataclasses.dataclass(frozen=True)
class Home:
    """Allocation of a buffer in a PMU.

    Parameters
    ----------
    pmu : int
    number : int
        Index of the buffer in the PMU.
    base_bytes : int
    slots : int
    writer, reader, token : int
        Its first write engine, read engine and token output.
    """

    pmu: int
    number: int
    base_bytes: int
    slots: int
    writer: int
    reader: int
    token: int


def pack(config: ChipConfig, buffers: list[Buffer]) -> tuple[dict[str, Home], float]:
    """Allocate buffers to PMUs, one per PMU as long as there are enough.

    Parameters
    ----------
    config : ChipConfig
    buffers : list of Buffer

    Returns
    -------
    homes : dict of str to Home
        Allocation by name of the buffer.
    slowdown : float
        Time of the busiest PMU port relative to that of the PE array, at least 1.

    Raises
    ------
    Unfit
        If there is no allocation.
    """
    require_room(config, buffers)
    by_rate = tuple(sorted(buffers, key=lambda each: -each.rate))
    orders: Iterable[tuple[Buffer, ...]] = (by_rate,)
    if config.pmu_count < len(buffers) <= 5:
        orders = itertools.permutations(buffers)
    best = _best_rooms(config, orders)
    if best is None and len(buffers) > config.pmu_count:
        # Buffers that take all engines of a PMU come before those that can share one.
        engines = sorted(by_rate, key=lambda each: -max(each.writers, each.readers))
        best = _best_rooms(config, (tuple(engines),))
    if best is None:
        total = sum(each.least * each.slot_bytes for each in buffers)
        raise Unfit(
            f"{len(buffers)} buffers ({', '.join(each.name for each in buffers)}) of {total} bytes "
            f"must lie in PMUs of {config.pmu.capacity_bytes} bytes and {_PORTS} buffers, and "
            f"there are {config.pmu_count}",
            value=len(buffers),
            rule=f"at most {_PORTS} buffers a PMU, within its bytes and its engines",
        )
    homes: dict[str, Home] = {}
    for pmu, room in enumerate(best[1]):
        homes.update(_settle(config, pmu, room))
    return homes, max(1.0, best[0])


def _best_rooms(
    config: ChipConfig, orders: Iterable[tuple[Buffer, ...]]
) -> tuple[float, list[list[Buffer]]] | None:
    """Load of the busiest port, and buffers by PMU, of the best order that fits."""
    best: tuple[float, list[list[Buffer]]] | None = None
    for order in orders:
        rooms = _rooms(config, order)
        if rooms is not None:
            load = max(sum(each.rate for each in room) for room in rooms)
            if best is None or load < best[0] - 1e-9:
                best = (load, rooms)
    return best


def require_room(config: ChipConfig, buffers: Iterable[Buffer]) -> None:
    """Refuse buffers of which one does not even fit a PMU of its own.

    Raises
    ------
    Unfit
    """
    for each in buffers:
        if each.least * each.slot_bytes > config.pmu.capacity_bytes:
            raise Unfit(
                f"Buffer {each.name} needs {each.least} slots of {each.slot_bytes} bytes, "
                f"{each.least * each.slot_bytes} in all, and a PMU has "
                f"{config.pmu.capacity_bytes}",
                value=each.least * each.slot_bytes,
                rule=f"at most {config.pmu.capacity_bytes} bytes a PMU",
            )
        if each.least > config.pmu.slots:
            raise Unfit(
                f"Buffer {each.name} needs {each.least} slots, and a buffer has at most "
                f"{config.pmu.slots}",
                value=each.least,
                rule=f"at most {config.pmu.slots} slots a buffer",
            )


def _bases(config: ChipConfig, room: list[Buffer], slots: Mapping[str, int]) -> list[int]:
    """First byte of each buffer of a PMU, and the first free byte after them."""
    bases, end = [], 0
    for each in room:
        unit = config.width_bits // 8 * each.alignment
        bases.append(ceil_div(end, unit) * unit)
        end = bases[-1] + slots[each.name] * each.slot_bytes
    return [*bases, end]


def _fits(config: ChipConfig, room: list[Buffer]) -> bool:
    least = {each.name: each.least for each in room}
    return (
        len(room) <= _PORTS
        and sum(each.writers for each in room) <= _PORTS
        and sum(each.readers for each in room) <= _PORTS
        and sum(each.writers * each.reports for each in room if each.tokens) <= _PORTS
        and _bases(config, room, least)[-1] <= config.pmu.capacity_bytes
    )


def _rooms(config: ChipConfig, order: tuple[Buffer, ...]) -> list[list[Buffer]] | None:
    """Buffers by PMU: one per PMU, the rest where slots are not short, at the least loaded PMUs."""
    rooms: list[list[Buffer]] = []
    for each in order:
        if len(rooms) < config.pmu_count:
            rooms.append([each])
            continue
        fitting = [room for room in rooms if _fits(config, [*room, each])]
        if not fitting:
            return None
        # Where all have the slots they can use, then where a port has most time.
        best = min(
            fitting,
            key=lambda room: (_lacks(config, [*room, each]), sum(other.rate for other in room)),
        )
        best.append(each)
    return rooms


def _lacks(config: ChipConfig, room: list[Buffer]) -> bool:
    """Whether buffers of a PMU cannot have all the slots that they can use."""
    wanted = {each.name: max(each.least, min(each.wanted, config.pmu.slots)) for each in room}
    return _bases(config, room, wanted)[-1] > config.pmu.capacity_bytes


def _settle(config: ChipConfig, pmu: int, room: list[Buffer]) -> Iterator[tuple[str, Home]]:
    """Allocate the slots of a PMU's buffers, as many as they can use."""
    slots = {each.name: each.least for each in room}
    grown = True
    while grown:
        grown = False
        for each in room:
            more = {**slots, each.name: slots[each.name] + 1}
            wanted = min(each.wanted, config.pmu.slots)
            room_left = _bases(config, room, more)[-1] <= config.pmu.capacity_bytes
            if more[each.name] <= wanted and room_left:
                slots = more
                grown = True
    writer = reader = token = 0
    for number, (each, base) in enumerate(zip(room, _bases(config, room, slots), strict=False)):
        yield each.name, Home(pmu, number, base, slots[each.name], writer, reader, token)
        writer += each.writers
        reader += each.readers
        token += each.writers * each.reports if each.tokens else 0
