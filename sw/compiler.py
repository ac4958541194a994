"""Compiler driver: runs the lists of passes from a kernel to the images of its parts."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from hw.arch.config import ChipConfig
from hw.arch.errors import BadInputError
from hw.numeric.formats import Format, bf16
from sw.array_spec import arrays_of
from sw.compiled import Compiled
from sw.compiled_part import CompiledPart
from sw.cost import predict
from sw.ir.program import Program
from sw.ir.sizes import choose_sizes
from sw.ir.types import Role
from sw.ir.verify import verify
from sw.known_parts import KnownParts
from sw.language import Kernel, Schedule
from sw.part_notes import part_notes
from sw.parts.columns import MisplacedColumnsError
from sw.parts.forms.turned_columns import with_turned_columns
from sw.parts.launch_checks import LaunchOrderError, require_launches
from sw.parts.part import Part
from sw.passes.compilation import Compilation
from sw.passes.kernel_steps import KERNEL_PASSES
from sw.passes.part_compilation import PartCompilation
from sw.passes.part_steps import PART_PASSES
from sw.passes.pass_driver import run_passes
from sw.prologue.computed_product import ComputedProduct
from sw.search.held_up import compared, cycles_apart, held_up, is_decided
from sw.search.remembered import forget_searches
from sw.softmax.recognition import has_powers

__all__ = ["compile_kernel"]

#: Beginning of the note on a kernel that is divided so.
_APART = "lane programs of their own instead of behind products"
#: Most parts of which no plan fits before a kernel is refused.
_MOST = 8


def compile_kernel(
    kernel: Kernel,
    config: ChipConfig,
    *,
    dims: Mapping[str, int],
    dtype: Format | Mapping[str, Format] | None,
    out: Format | Mapping[str, Format] | None = None,
    options: Mapping[str, Any] | None = None,
    schedule: Schedule | None = None,
    place_seed: int = 1,
    program: Program | None = None,
    known: KnownParts | None = None,
) -> Compiled:
    """Lower a kernel to the images of a chip, one for each of its parts.

    Parameters
    ----------
    kernel : Kernel
    config : ChipConfig
    dims : mapping of str to int
        Size of each dimension of the signature.
    dtype : Format, or mapping of str to Format, or None
        Format of the inputs that declare none, or of each by name.
    out : Format, or mapping of str to Format, or None
        Format of the outputs that declare none; None applies the language's rule.
    options : mapping of str to value
        Options of the kernel that differ from their defaults.
    schedule : Schedule or None
        Choices that override the program's.
    place_seed : int
        Seed of the placement.
    program : Program or None
        The kernel's program for these sizes and formats, traced and checked, if the caller has it.
    known : KnownParts or None
        Parts of this kernel, chip and seed that are compiled already; new ones are added.

    Raises
    ------
    BadInputError
        If the program breaks a rule, needs what hardware does not support yet, or does not fit.
    """
    forget_searches()
    schedule = schedule or Schedule()
    whole = Compilation(kernel, config, dims, dtype, out, dict(options or {}), schedule, program)
    whole, texts = _divided(whole)
    known = known or KnownParts()
    first = _Form(whole, texts)
    others = _without_chains(first)
    likely = list(others) if held_up(whole.division, config, schedule) else []
    for other in likely:
        divisions = whole.division, other.whole.division
        cycles = compared(*divisions, config, schedule)
        if cycles is None or not is_decided(cycles, whole.division, config, schedule):
            continue
        behind, apart = cycles
        if behind <= apart:
            return _compiled(first, place_seed, known)
        with contextlib.suppress(BadInputError):
            found = _compiled(other, place_seed, known)
            cause = f"parts of about {apart:,.0f} cycles by the cost model, not {behind:,.0f}"
            return dataclasses.replace(found, notes=(*found.notes, f"{_APART}: {cause}"))
    return _faster(first, likely or others, place_seed, known)


def _divided(whole: Compilation) -> tuple[Compilation, dict[str, str]]:
    """A kernel in parts, and the texts of the passes.

    Where that is refused, columns that begin where no transfer can are rows of transposed tensors,
    a softmax over blocks that the units made for it do not compute keeps its printed form, and
    stores that compute the same are no loop.
    """
    try:
        return whole, run_passes(KERNEL_PASSES, whole)
    except BadInputError as error:
        refused = error
    if refused.kind in ("unserved", "does-not-fit"):
        for other in _other_forms(whole, refused):
            with contextlib.suppress(BadInputError):
                return other, run_passes(KERNEL_PASSES, other)
    raise refused


def _other_forms(whole: Compilation, refused: BadInputError) -> Iterator[Compilation]:
    """The kernel with other columns, then as its program prints it where passes have changed that.

    Its columns are the same in the latter.
    """
    summed = getattr(whole, "summed", None)
    if summed is None:
        return
    if with_turned_columns(summed) is not summed:
        yield from (dataclasses.replace(whole, turns=True, rolls=each) for each in (True, False))
    if isinstance(refused, MisplacedColumnsError):
        return
    if has_powers(summed):
        yield dataclasses.replace(whole, printed=refused.message)
    if "roll" in summed.passes:
        yield dataclasses.replace(whole, rolls=False)


@dataclasses.dataclass(frozen=True)
class _Form:
    """A division of a kernel into parts, and the texts of the passes to it."""

    whole: Compilation
    texts: Mapping[str, str]


def _without_chains(form: _Form) -> Iterator[_Form]:
    """The kernel without lane programs behind products; nothing if that is refused.

    The PCUs of such a program are missing from the product's grid, but its values pass through
    memory otherwise.
    """
    other = copy.copy(form.whole)
    other.chains = False
    with contextlib.suppress(BadInputError):
        again = run_passes(KERNEL_PASSES[-1:], other)
        yield _Form(other, {**form.texts, **again})


def _faster(first: _Form, others: Iterable[_Form], place_seed: int, known: KnownParts) -> Compiled:
    """The form of fewer predicted cycles; the first if they are equal, or the other is refused.

    The other one is compiled if a product of the first is held up as its plan has been chosen.
    """
    compiled = _compiled(first, place_seed, known)
    if not any(map(_is_held_up, compiled.parts)):
        return compiled
    try:
        found = _compiled(next(iter(others)), place_seed, known)
    except (BadInputError, StopIteration):
        return compiled
    # The parts that both have are not run for it.
    behind, apart = compiled.cycles_beside(found), found.cycles_beside(compiled)
    if apart >= behind:
        return compiled
    note = f"{_APART}: parts of {apart:,} cycles predicted, not {behind:,}"
    return dataclasses.replace(found, notes=(*found.notes, note))


def _parts_of(form: _Form, place_seed: int, known: KnownParts) -> tuple[_Form, list[CompiledPart]]:
    """The parts of a division, compiled unless they are known, and the division.

    It is another one where no plan of a part fits.
    """
    whole, config, division = form.whole, form.whole.config, form.whole.division
    arrays = arrays_of(whole.program)
    memory = (*arrays, *division.intermediates)
    require_launches(division, arrays)
    parts = []
    several = len(division.parts) > 1
    for number, part in enumerate(division.parts, 1):
        own = whole.schedule.within(part.program) if several else whole.schedule
        state = PartCompilation(part, memory, config, own, place_seed)
        found = known.find(state)
        if found is None:
            try:
                with _of_part(number, len(division.parts)):
                    found = _compile_part(state)
            except BadInputError as error:
                again = _divided_again(form, part, own, error)
                if again is None:
                    raise
                return _parts_of(again, place_seed, known)
            known.add(own, found)
        parts.append(found)
    return form, parts


def _compiled(form: _Form, place_seed: int, known: KnownParts) -> Compiled:
    """The parts of a division as a compilation of the kernel."""
    form, parts = _parts_of(form, place_seed, known)
    whole, config, division = form.whole, form.whole.config, form.whole.division
    arrays = arrays_of(whole.program)
    sizes = {index: size for part in reversed(parts) for index, size in part.sizes.items()}
    tensors = whole.program.tensors
    inputs = [each.type.format for each in tensors if each.type.role is not Role.OUT]
    results = [each.format for each in arrays if each.output]
    product = next((part.product for part in parts if part.product), None)
    return Compiled(
        kernel=whole.kernel.name,
        config=config,
        dims=MappingProxyType(dict(whole.dims)),
        options=MappingProxyType(whole.all_options),
        dtype=product.fmt if product else (inputs or results)[0],
        out=product.out if product and len(parts) == 1 else results[0],
        operands=product.operands if product else _names(inputs or results),
        arrays=arrays,
        # Loops that nothing stored depends on are in no part: one block each.
        golden_program=verify(
            choose_sizes(whole.summed, sizes, default=max(whole.dims.values(), default=1))
        ),
        schedule=functools.reduce(operator.or_, (part.schedule for part in parts)) | whole.schedule,
        parts=tuple(parts),
        intermediates=division.intermediates,
        macs=sum(part.macs for part in parts),
        peak_macs_per_cycle=config.peak_macs_per_cycle((product.fmt if product else bf16).bits),
        notes=(*whole.unfused, *whole.parted, *_joined([part.notes for part in parts])),
        texts=MappingProxyType({**form.texts, **_texts(parts)}),
    )


def _divided_again(
    form: _Form, part: Part, schedule: Schedule, error: BadInputError
) -> _Form | None:
    """The kernel divided as if a part of which no plan fits were not served; None: not possible."""
    whole = copy.copy(form.whole)
    if any(each.points[0] > 1 for other in whole.division.parts for each in other.arrays):
        # All points may be computed one after another, whatever the schedule.
        whole.together = False
    elif error.kind == "does-not-fit" and schedule == Schedule() and len(whole.parted) < _MOST:
        whole.refusals.refuse(part.program, part.arrays, error)
    else:
        return None
    cause, *_ = error.message.split("; ")
    whole.parted = (*whole.parted, f"divided again: {cause}")
    try:
        texts = run_passes(KERNEL_PASSES[-1:], whole)
    except BadInputError:
        return None
    return _Form(whole, {**form.texts, **texts})


def _is_held_up(part: CompiledPart) -> bool:
    """Whether a product with lane programs behind it takes longer than both would by themselves."""
    plan, product = part.plan, part.product
    if plan is None or part.fit is None or product is None:
        return False
    if product.epilogue is None or not product.epilogue.may_stand_apart:
        return False
    apart = cycles_apart(product, plan.config)
    return apart is not None and apart < predict(plan, part.fit)


@contextlib.contextmanager
def _of_part(number: int, parts: int) -> Iterator[None]:
    """Name the part in every error raised inside, if there are several."""
    try:
        yield
    except BadInputError as error:
        if parts > 1:
            error.message = f"part {number} of {parts}: {error.message}"
            error.args = (error.message,)
        raise


def _compile_part(c: PartCompilation) -> CompiledPart:
    try:
        texts = run_passes(PART_PASSES, c)
    except BadInputError:
        failures = c.failures.get("parallel", [])
        if c.part.repeat == 1 or {*map(type, failures)} != {LaunchOrderError}:
            raise
        c.part, c.failures["prove"] = c.part.singly(), failures[:1]
        texts = run_passes(PART_PASSES, c)
    return CompiledPart(
        part=c.part,
        schedule=_complete(c) | c.schedule,
        sizes=MappingProxyType(c.sizes),
        product=c.product,
        softmax=c.softmax,
        plan=c.plan,
        fit=c.fit,
        pipeline=c.pipeline,
        choice=c.choice,
        homes=MappingProxyType(dict(c.homes)),
        graph=c.graph,
        netlist=c.netlist,
        placement=c.placement,
        routes=c.routes,
        chip=c.chip,
        image=c.image,
        notes=part_notes(c),
        texts=MappingProxyType(texts),
    )


def _joined(groups: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines of each part; of several parts, each line with the number of its part."""
    for number, lines in enumerate(groups, 1):
        head = f"part {number}: " if len(groups) > 1 else ""
        yield from (f"{head}{line}" for line in lines)


def _texts(parts: Sequence[CompiledPart]) -> dict[str, str]:
    """Text after each pass over the parts; of several parts, one below another."""
    if len(parts) == 1:
        return dict(parts[0].texts)
    return {
        name: "\n".join(
            f"part {number}:\n{part.texts[name]}" for number, part in enumerate(parts, 1)
        )
        for name in parts[0].texts
    }


def _names(formats: Sequence[Format]) -> str:
    """Different formats as text."""
    return " x ".join(dict.fromkeys(each.name for each in formats))


def _complete(c: PartCompilation) -> Schedule:
    """The complete schedule that reproduces the choices."""
    plan, places = c.plan, c.fit
    if c.softmax is not None:
        return Schedule(tile={c.softmax.loops["key"]: c.sizes[c.softmax.loops["key"]]})
    if isinstance(c.region, ComputedProduct):
        return Schedule(tile=c.sizes)
    if plan is None or places is None:
        return Schedule()
    product = plan.product
    a_tile, b_tile = (1, 1) if "sum" in product.loops else (plan.a_slabs, plan.b_slabs)
    tiles = {
        product.a_tile: places.homes["a0"].slots // a_tile,
        product.b_tile: places.homes["b"].slots // b_tile,
        (product.c_tiles or ("",))[0]: places.homes["c0"].slots // places.pieces,
    }
    par, (rows, columns) = product.product, plan.grid
    return Schedule(
        tile=c.sizes,
        row_par={par: rows} if par else {},
        col_par={par: columns} if par else {},
        # Fewer than two tiles are left to the compiler: 1 would ask for one slot of a whole tile.
        slots={name: slots for name, slots in tiles.items() if name and slots > 1},
    )
