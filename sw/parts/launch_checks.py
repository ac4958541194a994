"""Checks of a kernel's launches: limits of the launch list, arrays in bounds, order in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

from hw.arch.descriptor import BASE_ALIGNMENT
from hw.arch.errors import BadInputError
from hw.arch.launch import ENTRY_NUMBER_BITS, MAX_ARGUMENTS, REPEAT_BITS
from hw.arch.launch import Argument as LaunchArgument
from hw.numeric.division import ceil_div
from sw.array_spec import ArraySpec
from sw.chip_program import ChipProgram
from sw.ir.program import Program
from sw.ir.rewrite import walk
from sw.parts.columns import MisplacedColumnsError
from sw.parts.part import Argument, Division, Part, PartLaunch, in_order
from sw.prove.memory_order import memory_faults

__all__ = ["LaunchOrderError", "line_of", "require_launches", "require_order", "require_places"]

#: Distance of arrays where their order in memory is checked: wherever they lie, none meet.
_PAGE = 4096


class LaunchOrderError(BadInputError):
    """Launches of a part whose accesses to memory have no determined order."""

    kind = "launch-order"


def line_of(program: Program) -> str:
    """File and line of a part's first operation."""
    span = next((node.span for node in walk(program.nodes) if node.span), None)
    return f"{PurePath(span.file).name}:{span.line}" if span else program.name


def require_places(division: Division) -> None:
    """Refuse launches whose arrays begin where no transfer can.

    Raises
    ------
    MisplacedColumnsError
        At the first one.
    """
    for part in division.parts:
        for launch in part.launches:
            for argument in launch.arguments:
                for fault in _misplaced(launch, argument):
                    span = next((each.span for each in walk(part.program.nodes) if each.span), None)
                    raise MisplacedColumnsError("unserved", fault, span)


def _misplaced(launch: PartLaunch, argument: Argument) -> Iterator[str]:
    """Why an array does not begin where a transfer can in each iteration."""
    steps = (argument.offset, argument.stride if launch.repeat > 1 else 0)
    for noun, value in zip(("Offset", "Stride"), steps, strict=True):
        if value % BASE_ALIGNMENT:
            yield (
                f"{noun} of {argument.array} must be a multiple of {BASE_ALIGNMENT} bytes, "
                f"not {value}: a loop over rows has one, over columns that of the transposed "
                "tensor"
            )


def require_launches(division: Division, arrays: Sequence[ArraySpec]) -> None:
    """Refuse launches that a launch list cannot hold, or that reach beyond their arrays.

    Parameters
    ----------
    division : Division
    arrays : sequence of ArraySpec
        Arguments of the kernel.

    Raises
    ------
    BadInputError
        At the first one; the message names part and line.
    """
    known = {each.name: each for each in (*arrays, *division.intermediates)}
    count = sum(len(part.launches) for part in division.parts)
    if count >= 1 << ENTRY_NUMBER_BITS:
        raise BadInputError(
            f"Launches of a kernel must be fewer than {1 << ENTRY_NUMBER_BITS}, not {count}",
            where=line_of(division.parts[0].program),
            value=count,
            rule=f"fewer than {1 << ENTRY_NUMBER_BITS} launches",
        )
    written = {each.name for each in arrays}
    for number, launch in in_order(part.launches for part in division.parts):
        part = division.parts[number]
        for fault in _faults(part, launch, known, written):
            raise BadInputError(
                f"part {number + 1} of {len(division.parts)}: {line_of(part.program)}: {fault}",
                where=line_of(part.program),
                value=fault,
                rule="a launch is within its arrays and the limits of a launch list",
            )
        written |= {
            argument.array
            for argument, spec in zip(launch.arguments, part.arrays, strict=True)
            if spec.output
        }


def _faults(
    part: Part, launch: PartLaunch, known: Mapping[str, ArraySpec], written: set[str]
) -> Iterator[str]:
    """Faults of a launch of a part."""
    if len(part.arrays) > MAX_ARGUMENTS:
        yield f"Arrays of a part must be at most {MAX_ARGUMENTS}, not {len(part.arrays)}"
    if not 1 <= launch.repeat < 1 << REPEAT_BITS:
        yield f"Iterations must be from 1 to {(1 << REPEAT_BITS) - 1}, not {launch.repeat}"
    if len(launch.arguments) != len(part.arrays):
        yield f"Arguments must be {len(part.arrays)}, not {len(launch.arguments)}"
    for argument, spec in zip(launch.arguments, part.arrays, strict=False):
        array = known.get(argument.array)
        if array is None:
            yield f"Argument must be one of {', '.join(known)}, not {argument.array}"
            continue
        if array.format != spec.format:
            yield f"Array {array.name} must be {spec.format.name}, not {array.format.name}"
        if not spec.output and argument.array not in written:
            yield f"Array {array.name} must be written before it is read"
        yield from _misplaced(launch, argument)
        ends = (argument.offset, argument.offset + argument.stride * (launch.repeat - 1))
        reach = max(ends) + spec.reach
        if min(ends) < 0 or reach > array.bytes:
            yield (
                f"Launch must stay within the {array.bytes} bytes of {array.name}, not reach "
                f"from byte {min(ends)} to {reach}"
            )


def require_order(part: Part, program: ChipProgram, arrays: Sequence[ArraySpec]) -> None:
    """Refuse a part whose loads and stores have no determined order in memory.

    Parameters
    ----------
    part : Part
        Accepted by `require_launches`.
    program : ChipProgram
        Its decoded image.
    arrays : sequence of ArraySpec
        Arguments of the kernel, and intermediates.

    Raises
    ------
    LaunchOrderError
        At the first access at fault.
    """
    begins, end = {}, 0
    for array in arrays:
        begins[array.name] = end
        end += ceil_div(array.bytes, _PAGE) * _PAGE + _PAGE
    checked = set()
    for launch in part.launches:
        kind = _kind(launch)
        if kind in checked:
            continue
        checked.add(kind)
        arguments = [
            LaunchArgument(begins[each.array] + each.offset, each.stride)
            for each in launch.arguments
        ]
        for fault in memory_faults(program, arguments, launch.repeat):
            raise LaunchOrderError(
                f"{line_of(part.program)}: {fault}",
                where=line_of(part.program),
                value=fault.text,
                rule="loads and stores of an image have an order that tokens determine",
            )


def _kind(launch: PartLaunch) -> tuple[object, ...]:
    """Key that is equal for launches which differ only in their first offsets."""
    first: dict[str, int] = {}
    places = tuple(
        (each.array, each.offset - first.setdefault(each.array, each.offset), each.stride)
        for each in launch.arguments
    )
    return launch.repeat, places
