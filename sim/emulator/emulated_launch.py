"""Emulated launch: functional execution of a launch list, whole streams at a time."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from hw.arch.config import ChipConfig
from hw.arch.error_codes import LaunchError
from hw.arch.launch import MAX_ARGUMENTS, Argument
from sim.emulator.boxes import BoxStream
from sim.emulator.command_processor import LaunchReader
from sim.emulator.emulator_error import EmulatorError, LaunchFault
from sim.emulator.fabric import Fabric
from sw.chip_program import ChipProgram
from sw.prove import prove
from sw.prove.memory_order import memory_faults, overwritten

__all__ = ["EmulatorRun", "emulate"]

Bytes = npt.NDArray[np.uint8]


@dataclasses.dataclass(frozen=True)
class EmulatorRun:
    """Status and counts of an emulated launch.

    Parameters
    ----------
    status : str
        ``"done"`` or ``"error"``.
    error_code : LaunchError
    error_detail, error_unit, error_entry : int
        Fields of the registers ``ERROR`` and ``ERROR_ENTRY``.
    launches : int
        Entries that ended without an error.
    bytes_read, bytes_written : int
        Bytes of the beats that AGCUs read, and strobed bytes that they wrote.
    launch_bytes_read : int
        Bytes read by the command processor.
    boxes : int
        Boxes moved.
    macs_issued : int
        Multiply-accumulates of all tiles, padding included.
    units_used : mapping of str to int
        PCUs, PMUs and AGCUs enabled in the last image.
    """

    status: str
    error_code: LaunchError
    error_detail: int
    error_unit: int
    error_entry: int
    launches: int
    bytes_read: int
    bytes_written: int
    launch_bytes_read: int
    boxes: int
    macs_issued: int
    units_used: Mapping[str, int]


@dataclasses.dataclass(frozen=True)
class _AgcuStream:
    """A stream of an AGCU, and the boxes of each of its programs."""

    index: int
    port: int
    parts: list[BoxStream]

    @property
    def vectors(self) -> int:
        """Vectors of all boxes."""
        return sum(len(boxes.points) * boxes.vectors for boxes in self.parts)

    def store(self, memory: Bytes, vectors: Bytes) -> None:
        """Store the boxes of all programs, in order."""
        begin = 0
        for boxes in self.parts:
            end = begin + len(boxes.points) * boxes.vectors
            boxes.store(memory, vectors[begin:end])
            begin = end


def _streams(program: ChipProgram, fabric: Fabric, *, store: bool) -> list[_AgcuStream]:
    found = []
    for index, agcu in sorted(program.agcus.items()):
        for port in range(len(agcu.stores if store else agcu.loads)):
            boxes = fabric.boxes(index, port, store=store)
            parts = [each for each in boxes if len(each.points)]
            if parts:
                found.append(_AgcuStream(index, port, parts))
    return found


def _meet(one: _AgcuStream, other: _AgcuStream) -> bool:
    reaches = [boxes.reach() for boxes in other.parts]
    return any(
        a < d and c < b for a, b in (boxes.reach() for boxes in one.parts) for c, d in reaches
    )


def _require_order(program: ChipProgram, arguments: Sequence[Argument], repeat: int) -> None:
    """Refuse iterations that are not alike, or whose order of accesses is not determined."""
    if repeat > 1:
        answer = prove(program, repeat=repeat)
        for cause in (*answer.waits, *answer.faults):
            raise EmulatorError(f"Iterations must be live and end as they began: {cause}")
    for fault in memory_faults(program, arguments, repeat):
        raise EmulatorError(fault.text, where=f"AGCU {fault.agcu}")


def _passed_on(
    program: ChipProgram,
    arguments: Sequence[Argument],
    repeat: int,
    loads: list[_AgcuStream],
    stores: list[_AgcuStream],
) -> bool:
    """Whether a load reads what a store of the same iteration writes.

    Raises
    ------
    EmulatorError
        If another one reads what is overwritten.
    """
    if not any(_meet(load, store) for load in loads for store in stores):
        return False
    if repeat > 1:
        return True
    met = overwritten(program, arguments)
    if len(set(met.values())) > 1:
        (index, port), _ = next(pair for pair, first in met.items() if not first)
        raise EmulatorError(
            f"AGCU {index} load {port} must not read what is written in a launch that also "
            "overwrites what another load has read",
            where=f"AGCU {index}",
        )
    return not all(met.values())


def _require_apart(stores: list[_AgcuStream], memory: Bytes) -> None:
    """Refuse two stores of an iteration that write the same bytes."""
    for number, one in enumerate(stores):
        for other in stores[:number]:
            if not _meet(one, other):
                continue
            marks = [np.zeros(len(memory), np.uint8) for _ in range(2)]
            for mark, stream in zip(marks, (one, other), strict=True):
                size = stream.vectors, stream.parts[0].beat_bytes
                stream.store(mark, np.ones(size, np.uint8))
            if (marks[0] & marks[1]).any():
                raise EmulatorError(
                    f"AGCU {one.index} store {one.port} must not write where AGCU {other.index} "
                    f"store {other.port} writes",
                    where=f"AGCU {one.index}",
                )


@dataclasses.dataclass
class _Totals:
    """Counts over the entries of a launch."""

    bytes_read: int = 0
    bytes_written: int = 0
    boxes: int = 0
    macs_issued: int = 0
    units_used: Mapping[str, int] = dataclasses.field(default_factory=dict)


def _iterate(
    program: ChipProgram,
    fabric: Fabric,
    arguments: Sequence[Argument],
    memory: Bytes,
    iteration: int,
    repeat: int,
    totals: _Totals,
) -> None:
    """Execute one iteration of an image from start to end."""
    before: list[Bytes] | None = None
    while True:
        fabric.begin(iteration)
        loads = _streams(program, fabric, store=False)
        stores = _streams(program, fabric, store=True)
        for stream in (*loads, *stores):
            for boxes in stream.parts:
                boxes.check()
        if iteration == 0 and before is None:
            _require_order(program, arguments, repeat)
        passed = _passed_on(program, arguments, repeat, loads, stores)
        vectors = [fabric.stored(each.index, each.port, each.vectors) for each in stores]
        # What a load reads of the same iteration comes to memory a round before.
        ends = before is not None and all(map(np.array_equal, before, vectors))
        ends = ends or not passed
        if ends:
            _require_apart(stores, memory)
        for store, data in zip(stores, vectors, strict=True):
            store.store(memory, data)
        if ends:
            break
        before = vectors
    for fault in fabric.faults:
        raise fault
    loaded = [boxes for stream in loads for boxes in stream.parts]
    written = [boxes for stream in stores for boxes in stream.parts]
    totals.bytes_read += sum(each.beats() for each in loaded) * (program.config.width_bits // 8)
    totals.bytes_written += sum(each.bytes_inside() for each in written)
    totals.boxes += sum(len(each.points) for each in (*loaded, *written))
    totals.macs_issued += fabric.macs_issued
    totals.units_used = program.units_used()


def emulate(
    config: ChipConfig, memory: bytearray, *, list_address: int, entries: int = 1
) -> EmulatorRun:
    """Execute the launch list in memory; memory is updated in place.

    Parameters
    ----------
    config : ChipConfig
    memory : bytearray
        The whole memory, from address 0.
    list_address : int
        Address of the launch list.
    entries : int
        Number of entries.

    Returns
    -------
    EmulatorRun

    Raises
    ------
    ImageError
        If an image has a valid header but words that `ChipProgram.pack` cannot produce.
    EmulatorError
        If values depend on timing, or on streams that are never produced.
    """
    reader = LaunchReader(config, memory)
    view = np.frombuffer(memory, np.uint8)
    arguments = [Argument(0)] * MAX_ARGUMENTS
    totals = _Totals()
    entry = 0

    def ended(fault: LaunchFault | None) -> EmulatorRun:
        return EmulatorRun(
            status="error" if fault else "done",
            error_code=fault.code if fault else LaunchError.NONE,
            error_detail=fault.detail if fault else 0,
            error_unit=fault.unit if fault else 0,
            error_entry=entry,
            launches=entry if fault else entries,
            launch_bytes_read=reader.bytes_read,
            **dataclasses.asdict(totals),
        )

    try:
        reader.check_list(list_address, entries)
        for entry in range(entries):
            fetched = reader.entry(list_address, entry)
            arguments[: len(fetched.arguments)] = fetched.arguments
            program = ChipProgram.unpack(config, fetched.image)
            ahead = entry + 1 < entries and not fetched.hold_next
            following = reader.preview(list_address, entry + 1) if ahead else None
            fabric = Fabric(program, arguments, view)
            for iteration in range(fetched.repeat):
                _iterate(program, fabric, arguments, view, iteration, fetched.repeat, totals)
            if ahead and reader.preview(list_address, entry + 1) != following:
                raise EmulatorError(
                    f"Kernel of entry {entry} must not write entry {entry + 1} or what that points "
                    "to, unless its own entry has hold_next"
                )
    except LaunchFault as fault:
        return ended(fault)
    return ended(None)
