"""The passes over a whole kernel, in the order of execution, down to its parts."""

from __future__ import annotations

import dataclasses
import itertools

from hw.arch.errors import BadInputError
from sw.array_spec import ArraySpec
from sw.gathers.stored_numbers import with_stored_numbers
from sw.ir.program import Program
from sw.ir.text import print_program
from sw.ir.types import Space
from sw.ir.verify import verify
from sw.language.program_error import ProgramError
from sw.language.schedule import check_schedule
from sw.parts.carried_loops import without_carried_loops
from sw.parts.divide import divide
from sw.parts.division_search import Estimates
from sw.parts.forms.turned_columns import with_turned_columns
from sw.parts.launch_checks import require_places
from sw.parts.loaded_numbers import with_loaded_numbers
from sw.parts.loop_fusion import fused
from sw.parts.part import Argument, Division, Part
from sw.passes.accumulate import accumulate
from sw.passes.check import check
from sw.passes.compilation import Compilation
from sw.passes.pass_driver import Pass, program_text
from sw.passes.roll import roll
from sw.passes.simplify import simplify
from sw.search.held_up import CLEAR, compared, few_rows, loads_again
from sw.search.point_groups import grouped_points
from sw.softmax.online import is_exact, missed_softmaxes, online
from sw.softmax.row_softmax import missed_row_softmaxes

__all__ = ["KERNEL_PASSES"]


def _trace(c: Compilation) -> None:
    c.program = c.given or c.kernel.trace(dtype=c.dtype, out=c.out, **c.dims, **c.options)
    check_schedule(c.schedule, c.program)


def _check(c: Compilation) -> None:
    c.program = c.program if c.given else check(c.program)


def _accumulate(c: Compilation) -> None:
    c.summed = accumulate(c.program)


def _turn(c: Compilation) -> None:
    if c.turns:
        found = with_turned_columns(c.summed)
        c.summed = verify(found.after("turn", found.nodes))


def _roll(c: Compilation) -> None:
    c.summed = roll(c.summed) if c.rolls else c.summed


def _online(c: Compilation) -> None:
    c.summed = c.summed if c.printed or is_exact(c.all_options) else online(c.summed)


def _simplify(c: Compilation) -> None:
    c.lean = simplify(c.summed)


def _fuse(c: Compilation) -> None:
    program, c.held = fused(c.lean)
    c.lean = _simplified(program, c.lean)


def _carry(c: Compilation) -> None:
    program = without_carried_loops(c.lean, c.schedule.tile)
    reasons = [c.printed] if c.printed else []
    if program is not c.lean and not c.printed and not is_exact(c.all_options):
        reasons = [each.message for each in missed_softmaxes(c.lean)]
    c.unfused = tuple(f"a softmax over blocks is not fused: {each}" for each in reasons)
    c.lean = _simplified(program, c.lean)
    c.lean = _simplified(with_loaded_numbers(c.lean), c.lean)
    c.lean = _simplified(with_stored_numbers(c.lean), c.lean)


def _simplified(program: Program, before: Program) -> Program:
    """A program that a pass has made of another one, simplified if it differs."""
    return program if program is before else simplify(program)


def _divide(c: Compilation) -> None:
    def serves(program: Program, arrays: tuple[ArraySpec, ...]) -> BadInputError | None:
        return c.refusals.of(program, arrays, chains=c.chains)

    def faster(found: Division, whole: Division) -> bool:
        cycles = compared(found, whole, c.config, c.schedule)
        return cycles is not None and CLEAR * cycles[0] <= cycles[1]

    def again(part: Part) -> bool:
        return loads_again(part, c.config)

    def few(part: Part) -> bool:
        return few_rows(part, c.config)

    try:
        c.division = divide(c.lean, serves, c.held, Estimates(faster, again, few), c.steps)
    except BadInputError as error:
        raise (_of_held(error, c.summed) if c.held else error) from error
    require_places(c.division)
    if len(c.division.parts) > 1 and not c.unfused and not is_exact(c.all_options):
        missed = dict.fromkeys(each.message for each in missed_row_softmaxes(c.lean))
        c.unfused = tuple(f"a softmax of rows is not fused: {each}" for each in missed)
    if c.together:
        parts = (
            grouped_points(
                each,
                c.config,
                c.schedule,
                lambda part: serves(part.program, part.arrays) is None,
            )
            for each in c.division.parts
        )
        every = tuple(itertools.chain.from_iterable(parts))
        c.division = dataclasses.replace(c.division, parts=every)


def _of_held(error: BadInputError, program: Program) -> BadInputError:
    """A refusal of a kernel whose local tensors must stay on the chip."""
    held = [each.name for each in program.tensors if each.type.space is Space.CHIP]
    message = (
        f"{error.message.removeprefix(f'{error.where}: ')}; `{held[0]}` stays on the chip: "
        "`tw.local(..., spill=True)` lets it pass through memory"
    )
    if isinstance(error, ProgramError):
        return ProgramError(error.kind, message, error.span, value=error.value or "")
    return BadInputError(
        message, kind=error.kind, where=error.where, value=error.value, rule=error.rule
    )


def _argument_text(argument: Argument) -> str:
    offset = f" + {argument.offset}" if argument.offset else ""
    return f"{argument.array}{offset}" + (f" + {argument.stride} i" if argument.stride else "")


def _points_text(array: ArraySpec) -> str:
    """Where the arrays of points lie that an iteration takes together; nothing of a single one."""
    count, stride = array.points
    return f"{array.name}: {count} points {stride} bytes apart" if count > 1 else ""


def _segments_text(array: ArraySpec) -> str:
    """Where the segments of an array lie, outer loops over them first; nothing without segments."""
    if array.segments is None:
        return ""
    axis = array.segments.axis
    noun, step = (("rows", array.pitch), ("columns", array.format.bits // 8))[axis]
    size = array.shape[axis] // array.segments.count
    levels = [f"{count} segments {stride} bytes apart" for count, stride in array.segments.loops]
    return f"{array.name}: {', each '.join([*levels, f'{size} {noun} {step} bytes apart'])}"


def _division_text(division: Division) -> str:
    several = len(division.parts) > 1
    lines = [
        f"intermediate {each.name}: {each.format.name} {list(each.shape)}"
        for each in division.intermediates
    ]
    for number, part in enumerate(division.parts, 1):
        for launch in part.launches:
            arguments = ", ".join(map(_argument_text, launch.arguments))
            group = f"group {launch.group}: " if launch.group else ""
            lines.append(f"part {number}: {group}{launch.repeat} x ({arguments})")
        for text in (_segments_text, _points_text):
            lines += [f"part {number}: {line}" for line in map(text, part.arrays) if line]
        # The whole program is the text of the pass before.
        lines += [print_program(part.program, spans=False)] if several else []
    return "\n".join(lines)


#: Passes over the whole kernel.
KERNEL_PASSES: tuple[Pass[Compilation], ...] = (
    Pass(
        "trace",
        "record the program's operations; align the two recordings of each loop body",
        _trace,
        needs=(),
        leaves=("program",),
        text=program_text("program"),
    ),
    Pass(
        "check",
        "verify that each output element is written exactly once",
        _check,
        needs=("program",),
        leaves=("program",),
        text=program_text("program"),
    ),
    Pass(
        "accumulate",
        "fuse a product and its addend into one node, which fixes the order of sums",
        _accumulate,
        needs=("program",),
        leaves=("summed",),
        text=program_text("summed"),
    ),
    Pass(
        "turn",
        "make columns that begin where no transfer can rows of transposed tensors, where asked",
        _turn,
        needs=("summed",),
        leaves=("summed",),
        text=program_text("summed"),
    ),
    Pass(
        "roll",
        "make a loop over points of stores that compute the same of other places",
        _roll,
        needs=("summed",),
        leaves=("summed",),
        text=program_text("summed"),
    ),
    Pass(
        "online",
        "rewrite a softmax over blocks or whole rows: whole maximum, powers of two, column of ones",
        _online,
        needs=("summed",),
        leaves=("summed",),
        text=program_text("summed"),
    ),
    Pass(
        "simplify",
        "remove identity, duplicate and dead nodes; hoist loop-invariant loads",
        _simplify,
        needs=("summed",),
        leaves=("lean",),
        text=program_text("lean"),
    ),
    Pass(
        "fuse",
        "pass the tiles of local tensors on the chip: one loop for those that store and load them",
        _fuse,
        needs=("lean",),
        leaves=("lean", "held"),
        text=program_text("lean"),
    ),
    Pass(
        "carry",
        "write loops that carry other tiles than sums of products as one block, copies or launches",
        _carry,
        needs=("lean",),
        leaves=("lean", "unfused"),
        text=program_text("lean"),
    ),
    Pass(
        "divide",
        "divide the kernel into parts that run one after another, each computed by one image",
        _divide,
        needs=("lean", "held"),
        leaves=("division", "unfused"),
        text=lambda c: _division_text(c.division),
    ),
)
