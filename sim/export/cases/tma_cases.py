"""Cases of TMA engines and units: boxes of random tensors from memory and to memory."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from amaranth.hdl import Const

from gen.export.bus_ports import BusGroup
from hw.arch.boxes.reductions import INTEGER_FORMATS
from hw.arch.descriptor import DESCRIPTOR_BYTES, MAX_RANK, STORED_WORDS, Descriptor
from hw.arch.error_codes import TmaError
from hw.arch.registers.tma_registers import TMA_ID, TMA_REGISTERS, tma_register
from hw.numeric.division import ceil_div
from hw.tma.commands import command_layout
from hw.tma.descriptor_file import descriptor_write_layout
from hw.tma.standalone.unit_commands import (
    TmaOperation,
    completion_layout,
    unit_command_layout,
)
from sim.drivers.box_tensor import REGION_BYTES, BoxTensor, box_payloads
from sim.export.core_case import CoreCase

__all__ = ["MEMORY_BYTES", "engine_cases", "register_cases", "unit_cases"]

#: Memory of the testbench: tensors to read, tensors to write, descriptors.
MEMORY_BYTES = 1 << 16
_TARGET = REGION_BYTES
_POINTERS = 2 * REGION_BYTES
_LONGEST_COPY = 1024
_BOXES = 4
#: An integer format of each size, for sums in memory.
_NUMBERS = {each.bytes: each for each in INTEGER_FORMATS}

Groups = Sequence[BusGroup]
Bytes = npt.NDArray[np.uint8]


@dataclasses.dataclass(frozen=True)
class _Move:
    """A box that is read from one tensor and written to another of its size.

    Members
    -------
    source, target : Descriptor
    corner : list of int
    content : array
        Bytes of the box, 0 outside the tensor.
    """

    source: Descriptor
    target: Descriptor
    corner: list[int]
    content: Bytes

    def stored(self, image: Bytes) -> None:
        """Write into the image of memory what the store moves."""
        row = self.target.box[0] * self.target.format.bytes
        pitch = ceil_div(row, 16) * 16
        for number, line in enumerate(self.content.reshape(-1, row)):
            first = self.target.base + number * pitch
            image[first : first + row] = line

    @property
    def added(self) -> Descriptor:
        """The target as integers."""
        return dataclasses.replace(self.target, format=_NUMBERS[self.target.format.bytes])

    def doubled(self) -> "_Move":
        """What the target has once the box has been stored and then added to it."""
        number = np.dtype(f"<u{self.target.format.bytes}")
        content = (self.content.view(number) * 2).view(np.uint8)
        return dataclasses.replace(self, content=content)


def _move(rng: np.random.Generator, image: Bytes, vector_bytes: int) -> _Move:
    while True:
        tensor = BoxTensor(rng, 0, vector_bytes)
        if tensor.descriptor.box_bytes <= max(_LONGEST_COPY, vector_bytes):
            break
    corner = tensor.corner(rng)
    address, exists = tensor.where(corner)
    content = np.where(exists, image[np.where(exists, address, 0)], 0).astype(np.uint8)
    box = tensor.box
    strides = [ceil_div(box[0] * tensor.size, 16) * 16]
    for extent in box[1:-1]:
        strides.append(strides[-1] * extent)
    target = dataclasses.replace(
        tensor.descriptor, base=_TARGET, dims=box, strides=strides[: len(box) - 1]
    )
    return _Move(tensor.descriptor, target, corner, content)


def _drawn(
    rng: np.random.Generator, vector_bytes: int, name: str, groups: Groups, reduces: bool = False
) -> tuple[_Move, CoreCase]:
    """A random box, and the case that begins with its tensor and ends with its copy.

    A unit that ``reduces`` adds the box to the copy.
    """
    image = rng.integers(0, 256, MEMORY_BYTES, dtype=np.uint8)
    move = _move(rng, image, vector_bytes)
    described = (move.source, move.target, *([move.added] if reduces else []))
    for number, each in enumerate(described):
        pointer = _POINTERS + number * DESCRIPTOR_BYTES
        image[pointer : pointer + DESCRIPTOR_BYTES] = np.frombuffer(each.pack(), np.uint8)
    end = _POINTERS + len(described) * DESCRIPTOR_BYTES
    before = image[:end].tobytes()
    (move.doubled() if reduces else move).stored(image)
    after = image[:end].tobytes()
    return move, CoreCase(name, groups, memory={0: before}, memory_after={0: after})


def engine_cases(
    rng: np.random.Generator, groups: Groups, values: Mapping[str, int]
) -> Iterator[CoreCase]:
    """Boxes loaded to the stream of vectors, and stored from it.

    Parameters
    ----------
    rng : numpy.random.Generator
    groups : sequence of BusGroup
    values : mapping of str to int
        Parameters of the component.
    """
    size, count = values["width_bits"] // 8, values["descriptors"]
    write, command = descriptor_write_layout(count), command_layout(count)
    for number in range(_BOXES):
        move, case = _drawn(rng, size, f"box_{number}", groups)
        target = min(1, count - 1)
        vectors = box_payloads(move.content, size)

        def described(index: int, each: Descriptor) -> dict[str, list[int]]:
            words = [int(word) for word in np.frombuffer(each.pack(), np.uint64)[:STORED_WORDS]]
            fields: dict[int | str, Any] = {"index": index, "words": words}
            return {"i_descriptor_write": [Const.cast(write.const(fields)).value]}

        def commanded(index: int, corner: list[int]) -> list[int]:
            corner = corner + [0] * (MAX_RANK - len(corner))
            fields: dict[int | str, Any] = {"descriptor": index, "coordinates": corner}
            return [Const.cast(command.const(fields)).value]

        case.exchange(described(0, move.source), {})
        case.exchange({"i_load_commands__0": commanded(0, move.corner)}, {"o_loaded__0": vectors})
        case.exchange(described(target, move.target), {})
        stored = {"i_store_commands__0": commanded(target, []), "i_vectors__0": vectors}
        case.exchange(stored, {})
        case.expect(cycles=10 * len(vectors) + 1_000, o_idle=1, o_error=0)
        yield case


def unit_cases(
    rng: np.random.Generator, groups: Groups, values: Mapping[str, int]
) -> Iterator[CoreCase]:
    """Boxes to the scratchpads and back, from the last of them, and a command that is refused.

    Parameters
    ----------
    rng : numpy.random.Generator
    groups : sequence of BusGroup
    values : mapping of str to int
        Parameters of the component.
    """
    pads, reduces = values["scratchpads"], bool(values["reduces"])
    layout = unit_command_layout(values["address_bits"], pads)
    places: dict[int | str, Any] = {"destinations": (1 << pads) - 1, "source": pads - 1}
    for number in range(_BOXES):
        move, case = _drawn(rng, values["width_bits"] // 8, f"box_{number}", groups, reduces)
        _grant(case, reduces)

        def command(
            operation: TmaOperation, id: int, pointer: int, corner: Sequence[int] = ()
        ) -> int:
            corner = [*corner, *[0] * (MAX_RANK - len(corner))]
            fields: dict[int | str, Any] = {
                "operation": operation,
                "descriptor": pointer,
                "coordinates": corner,
                "id": id,
                **(places if pads > 1 else {}),
            }
            return Const.cast(layout.const(fields)).value

        for id, (operation, pointer, corner, error) in enumerate(_commands(move, reduces)):
            fields: dict[int | str, Any] = {"id": id, "code": error.value}
            ended = Const.cast(completion_layout.const(fields)).value
            case.exchange(
                {"i_commands": [command(operation, id, pointer, corner)]},
                {"o_completions": [ended]},
            )
        yield case


def _grant(case: CoreCase, reduces: bool) -> None:
    """Grant every page, as to the only unit of a design."""
    if reduces:
        case.set(interlock__granted=1)


def _commands(
    move: _Move, reduces: bool
) -> Iterator[tuple[TmaOperation, int, list[int], TmaError]]:
    """Operation, pointer, coordinates and code of each command that moves a box."""
    yield TmaOperation.LOAD, _POINTERS, move.corner, TmaError.NONE
    yield TmaOperation.LOAD, _POINTERS + 8, move.corner, TmaError.POINTER
    yield TmaOperation.STORE, _POINTERS + DESCRIPTOR_BYTES, [], TmaError.NONE
    if reduces:
        # The field of the reduction is 0, its code of a sum.
        yield TmaOperation.REDUCE, _POINTERS + 2 * DESCRIPTOR_BYTES, [], TmaError.NONE


def register_cases(
    rng: np.random.Generator, groups: Groups, values: Mapping[str, int]
) -> Iterator[CoreCase]:
    """The map of the registers, and boxes to the scratchpad and back by commands of registers.

    Parameters
    ----------
    rng : numpy.random.Generator
    groups : sequence of BusGroup
    values : mapping of str to int
        Parameters of the component.
    """
    case = CoreCase("register_map", groups)
    known = {each.offset: each for each in TMA_REGISTERS}
    for offset in range(0, max(known) + 64, 4):
        mask = 0xFFFF_FFFF if offset == 0 else 0
        word = TMA_ID if offset == 0 else 0
        response = "OKAY" if offset in known else "SLVERR"
        case.register("read", offset, word, mask=mask, response=response)
    for each in TMA_REGISTERS:
        if not each.writable:
            case.register("write", each.offset, 0, response="SLVERR")
    geometry = tma_register("GEOMETRY").word(
        width_bytes=values["width_bits"] // 8 % 256,
        descriptors=values["descriptors"] % 256,
        barriers=values["barriers"],
    )
    case.register("read", tma_register("GEOMETRY").offset, geometry)
    case.register("read", tma_register("SCRATCHPAD").offset, values["scratchpad_bytes"])
    yield case
    for number in range(_BOXES):
        yield _registers_case(rng, groups, values, f"box_{number}")


def _registers_case(
    rng: np.random.Generator, groups: Groups, values: Mapping[str, int], name: str
) -> CoreCase:
    pads, reduces = values["scratchpads"], bool(values["reduces"])
    move, case = _drawn(rng, values["width_bits"] // 8, name, groups, reduces)
    _grant(case, reduces)

    def write(register: str, **fields: int) -> None:
        each = tma_register(register)
        case.register("write", each.offset, each.word(**fields))

    if pads > 1:
        write("DESTINATIONS", mask=(1 << pads) - 1, source=pads - 1)
    for id, (operation, pointer, corner, error) in enumerate(_commands(move, reduces)):
        write("DESCRIPTOR_LO", value=pointer)
        for dimension in range(MAX_RANK):
            coordinate = corner[dimension] if dimension < len(corner) else 0
            write(f"COORDINATE_{dimension}", value=coordinate & 0xFFFF_FFFF)
        write("SUBMIT", operation=operation.value, id=id)
        completion = tma_register("COMPLETION")
        ended = completion.word(id=id, code=int(error.value), valid=1)
        case.register("poll", completion.offset, ended, mask=completion.mask)
    case.register("read", tma_register("STATUS").offset, 1, mask=1)
    return case
