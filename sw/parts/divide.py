"""Division of a program into parts that each become one image and run one after another.

A program that no image computes is cut at values, which then pass through memory.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Mapping, Sequence

from hw.arch.descriptor import BASE_ALIGNMENT
from hw.arch.errors import BadInputError
from sw.array_spec import ArraySpec, arrays_of
from sw.ir import nodes as ir
from sw.ir.program import Program
from sw.ir.rewrite import unused, walk
from sw.language.program_error import ProgramError
from sw.parts.columns import MisplacedColumnsError, require_split_loads
from sw.parts.division_search import DivisionSearch, Estimates
from sw.parts.forms.cast_vectors import vector_casts, with_cast_vectors
from sw.parts.forms.expand import expanded
from sw.parts.forms.wide_statistics import with_wide_statistics
from sw.parts.local_tensors import local_arrays, steps
from sw.parts.narrow_cut import narrow_cuts
from sw.parts.order import divisible, out_of_place
from sw.parts.part import Argument, Division, Part, PartLaunch
from sw.parts.points.peel import peeled_parts
from sw.parts.sections import Section, is_repeated, sections
from sw.parts.served_parts import Serves
from sw.parts.slices import stores
from sw.parts.statistic_cuts import statistic_cuts
from sw.parts.step import FormerSteps

__all__ = ["divide", "undivided"]

_DIVIDED = ("unserved", "does-not-fit", "format")
#: Most stores of a program that is divided: each may become a part, and the search asks for all
#: that one image might serve together.
_MOST_STORES = 64
#: Those of a caller that only asks what is served.
_NO_ESTIMATES = Estimates()


def divide(
    program: Program,
    serves: Serves,
    held: frozenset[str] = frozenset(),
    estimates: Estimates = _NO_ESTIMATES,
    former: FormerSteps | None = None,
) -> Division:
    """Divide a kernel into parts, each of which one image computes.

    Parameters
    ----------
    program : Program
        After `simplify`.
    serves : callable
        Why no image computes a program, or None. It is asked once for each program.
    held : frozenset of str
        Names of values that never pass through memory.
    estimates : Estimates
        They are asked for where a part of its own saves element math, and where values might join a
        part or be stored for several.
    former : FormerSteps or None
        Steps of other divisions of the kernel, which are taken where they are served.

    Raises
    ------
    BadInputError
        The refusal of the whole program, as launches where it has loops over points, if no division
        was found or none is allowed; or that of columns which begin between transfers, or of more
        stores than are divided.
    """
    arrays = arrays_of(program)
    former = {} if former is None else former
    if between := local_arrays(program):
        each_once = tuple(Section(each, (_places(each),)) for each in steps(program))
        return _of_sections(program, each_once, between, serves, held, estimates, former)
    if any(map(is_repeated, program.nodes)):
        return _of_sections(program, *sections(program), serves, held, estimates, former)
    serves = functools.partial(_refusal, serves)
    program = with_cast_vectors(program)
    refusal = serves(program, arrays)
    if refusal is None:
        whole = undivided(program)
        parted = narrow_cuts(program) or statistic_cuts(program) or vector_casts(program)
        if not divisible(program) or not parted:
            return whole
        search = DivisionSearch(program, serves, held, estimates, former, numbers=True, whole=True)
        found = search.run(program)
        return found if found is not None and estimates.faster(found, whole) else whole
    if refusal.kind in _DIVIDED and divisible(program):
        _require_few_stores(program)
        require_split_loads(program)
        refusal = _refusal_of_points(program, serves) or refusal
        forms = _forms(program)
        # The units of a softmax have numbers of both axes.
        fused = any(isinstance(each, ir.Powers) for each in walk(program.nodes))
        for numbers, each in itertools.product((False, True) if fused else (True,), forms):
            divider = DivisionSearch(each, serves, held, estimates, former, numbers=numbers)
            found = divider.run(each)
            if found is not None:
                return found
            refusal = divider.refusal or refusal
            if isinstance(refusal, MisplacedColumnsError):
                break
    raise refusal


def _forms(program: Program) -> list[Program]:
    """The program, and others with the same results, in the order in which they are divided."""
    wide = with_wide_statistics(program)
    found = [
        form
        for each in dict.fromkeys((program, wide))
        for form in (each, expanded(each), expanded(each, halves=True))
    ]
    return list(dict.fromkeys(found))


def _refusal(
    serves: Serves, program: Program, arrays: tuple[ArraySpec, ...]
) -> BadInputError | None:
    """Why no image computes a program, or why none would in place; None if one does."""
    store = out_of_place(program)
    if store is None:
        return serves(program, arrays)
    return ProgramError(
        "unserved",
        f"`{store.view.tensor}` cannot be overwritten while it is read for other places, as by a "
        "product: store to another tensor",
        store.span,
        value=store.view.tensor,
    )


def _places(program: Program) -> dict[str, Argument]:
    """Arrays of a program's tensors where all have the same names."""
    return {each.name: Argument(each.name) for each in program.tensors}


def _of_sections(
    program: Program,
    every: Sequence[Section],
    between: Sequence[ArraySpec],
    serves: Serves,
    held: frozenset[str],
    estimates: Estimates,
    former: FormerSteps,
) -> Division:
    """Divisions of the sections of a program, with the launches of each iteration of its loops."""
    names = {each.name for each in (*arrays_of(program), *between)}
    arrays, parts, group = list(between), [], 0
    for section in every:
        division = divide(section.program, serves, held, estimates, former)
        own = {}
        for each in division.intermediates:
            own[each.name] = Argument(unused(each.name, names))
            names.add(own[each.name].array)
            arrays.append(dataclasses.replace(each, name=own[each.name].array))
        # A section may have loops of `tw.repeat` inside, and so groups of its own.
        each_time = 1 + max(each.group for part in division.parts for each in part.launches)
        for part in division.parts:
            launches = tuple(
                PartLaunch(
                    tuple(_moved(argument, {**own, **places}) for argument in launch.arguments),
                    launch.repeat,
                    group + each_time * number + launch.group,
                )
                for number, places in enumerate(section.places)
                for launch in part.launches
            )
            parts.append(dataclasses.replace(part, launches=launches))
        group += each_time * len(section.places)
    return Division(tuple(parts), tuple(arrays))


def _moved(argument: Argument, places: Mapping[str, Argument]) -> Argument:
    """An argument of a section as one of the program."""
    place = places[argument.array]
    return Argument(place.array, place.offset + argument.offset, argument.stride)


def _refusal_of_points(program: Program, serves: Serves) -> BadInputError | None:
    """Why no image computes one iteration of the loops over points; None if launches are not it."""
    if parts := peeled_parts(program):
        return serves(parts[-1].program, parts[-1].arrays)
    for node in walk(program.nodes):
        if isinstance(node, ir.Load | ir.Store) and node.view.entries[-1].axis is None:
            rule = f"`{node.view}` must have elements that lie side by side in memory"
            cure = "a point of the last axis has none; transpose the tile, or the tensor"
            if not node.view.axes:
                name = node.view.tensor
                cure = f"one element is a row of a tensor of one column, as `{name}[N, 1]` has"
            return ProgramError("unserved", f"{rule}: {cure}", node.span, value=str(node.view))
        if isinstance(node, ir.Load | ir.Store) and (unit := _between_transfers(node, program)):
            rule = f"`{node.view}` must begin at columns that are a multiple of {unit}"
            cure = "rows may begin anywhere; transpose the tile, or the tensor"
            return ProgramError("unserved", f"{rule}: {cure}", node.span, value=str(node.view))
    return None


def _between_transfers(node: ir.Load | ir.Store, program: Program) -> int:
    """Elements of which columns must begin at a multiple, if those of points do not; else 0."""
    start = node.view.entries[-1].start
    unit = BASE_ALIGNMENT * 8 // program.tensor(node.view.tensor).type.format.bits
    loops = [each for each in walk(program.nodes) if isinstance(each, ir.Loop)]
    points = {each.index for each in loops if not each.blocks}
    steps = [factor for symbol, factor in start.terms if symbol in points]
    return unit if points and any(each % unit for each in (*steps, start.constant)) else 0


def _require_few_stores(program: Program) -> None:
    """Refuse a program whose division would take too long, such as a loop over ``range``."""
    every = tuple(stores(program.nodes))
    if len(every) > _MOST_STORES:
        raise ProgramError(
            "unserved",
            f"`{program.name}` must have at most {_MOST_STORES} stores to be divided into parts, "
            f"not {len(every)}: the body of a loop over `range` is recorded once for each "
            "iteration; write `tw.metapipe` or `tw.each`",
            every[_MOST_STORES].span,
            value=str(len(every)),
        )


def undivided(program: Program) -> Division:
    """Division whose only part is the whole kernel, launched once."""
    arrays = arrays_of(program)
    launch = PartLaunch(tuple(Argument(each.name) for each in arrays))
    return Division((Part(program, arrays, (launch,)),))
