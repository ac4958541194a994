"""Recognition of a program: a product, two with a softmax, element math, rows by number."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from hw.arch.config import ChipConfig
from sw.array_spec import ArraySpec, Segments, points_of
from sw.gathers.adding_pipeline import adding_pipelines
from sw.gathers.gather_pipeline import gather_pipelines
from sw.gathers.row_gather import RowGather, has_gather, row_gather_of
from sw.gathers.row_scatter import RowScatter, has_scatter, row_scatter_of
from sw.gathers.scatter_pipeline import scatter_pipelines
from sw.ir import nodes as ir
from sw.ir.affine import Affine, Axis
from sw.ir.program import Program
from sw.ir.rewrite import rebuild, walk
from sw.ir.types import Dim, Entry, Tensor, View
from sw.lane_codes.widening_casts import without_widening_casts
from sw.language.program_error import ProgramError
from sw.passes.product_recognition import Product, stage
from sw.prologue.computed_pipeline import computed_pipelines
from sw.prologue.computed_product import ComputedProduct, computed_product_of, has_computed
from sw.search.constraints import Constraints
from sw.search.remembered import Drawn, remembered
from sw.softmax.recognition import has_powers, softmax_product_of
from sw.stages.pipeline import Pipeline
from sw.stages.pipelines import pipelines
from sw.stages.region import Region, region_of
from sw.stages.segment_digits import digits_of
from sw.stages.softmax.softmax_pipeline import softmax_pipelines
from sw.stages.softmax.softmax_product import SoftmaxProduct

__all__ = ["pipelines_of", "recognised"]

#: Loops over segments of memory that a load stream has beside those of a product.
_MOST_SEGMENT_LOOPS = 2


@remembered
def recognised(
    program: Program, arrays: tuple[ArraySpec, ...], config: ChipConfig
) -> Product | ComputedProduct | SoftmaxProduct | Region | RowGather | RowScatter:
    """Recognise what a program computes.

    Parameters
    ----------
    program : Program
    arrays : tuple of ArraySpec
        Memory layout of its tensors.
    config : ChipConfig

    Raises
    ------
    ProgramError
        At the first operation that one image does not serve.
    """
    _require_on_chips(program, config)
    work = _recognised(program, config)
    points = points_of(arrays)
    if points > 1:
        if not isinstance(work, Product | SoftmaxProduct | Region):
            message = "Points beside one another are no gathers, scatters or computed operands"
            raise ProgramError("unserved", message, None)
        if isinstance(work, SoftmaxProduct):
            work = dataclasses.replace(work, points=points)
    if isinstance(work, Region) or not any(each.segments for each in arrays):
        return work
    if not isinstance(work, Product):
        matmul = next((each for each in walk(program.nodes) if isinstance(each, ir.Matmul)), None)
        beside = "a softmax or a computed operand"
        raise ProgramError(
            "unserved",
            f"A product over segments of memory is not supported by hardware yet beside {beside}",
            matmul.span if matmul else None,
        )
    return _with_segments(work, arrays)


def _with_segments(work: Product, arrays: Sequence[ArraySpec]) -> Product:
    """A product whose sum or columns lie in segments of memory."""
    sums = {work.a: int(work.a_along_k), work.b: int(work.b_along_k)}
    places: list[Segments] = []
    columns: set[tuple[int, ...]] = set()
    for each in arrays:
        if each.segments is None:
            continue
        if sums.get(each.name) == each.segments.axis:
            places.append(each.segments)
        elif each.name == work.a or (each.name != work.b and each.segments.axis == 0):
            raise ProgramError(
                "unserved", f"Rows of `{each.name}` must not lie in segments of memory", work.span
            )
        else:
            columns.add(tuple(digits_of(each)))
    if columns and places:
        message = "Sum and columns of a product must not both lie in segments of memory"
        raise ProgramError("unserved", message, work.span)
    work = dataclasses.replace(work, digits=((), tuple(sorted(columns))))
    if not places:
        return work
    segments = max(each.count for each in places)
    # A loop more where the segments of one operand are adjacent in the other.
    loops = max(len(each.loops) + (each.count < segments) for each in places)
    if loops > _MOST_SEGMENT_LOOPS:
        raise ProgramError(
            "unserved",
            f"A sum over points must step through memory in at most {_MOST_SEGMENT_LOOPS} loops, "
            f"not {loops}",
            work.span,
            value=str(loops),
        )
    work = dataclasses.replace(work, segments=segments)
    # Segments are filled with zeros up to whole vectors.
    together = work.fmt.products_per_cycle if work.fmt.is_float else 1
    if work.adjacent % together:
        raise ProgramError(
            "unserved",
            f"`@` of {work.fmt.name} takes terms in groups of {together}: a segment of its sum in "
            f"memory has a multiple of {together}, not {work.adjacent}",
            work.span,
            value=str(work.adjacent),
        )
    return work


def _require_on_chips(program: Program, config: ChipConfig) -> None:
    """Refuse a function without a unit on this chip."""
    for node in walk(program.nodes):
        if not isinstance(node, ir.Map):
            continue
        if node.function is not None and node.function not in config.pcu.functions:
            names = ", ".join(each.name for each in config.pcu.functions) or "none"
            raise ProgramError(
                "unserved",
                f"The lanes of this chip must have the function unit `{node.op}`, not {names}: "
                f"`ChipConfig` takes it as PcuConfig(functions=({node.op},))",
                node.span,
                value=names,
            )


def _recognised(
    program: Program, config: ChipConfig
) -> Product | ComputedProduct | SoftmaxProduct | Region | RowGather | RowScatter:
    if has_scatter(program):
        return row_scatter_of(program)
    if has_powers(program):
        return softmax_product_of(_with_rows(program))
    if has_computed(program):
        return computed_product_of(program, config)
    if any(isinstance(node, ir.Matmul) for node in walk(program.nodes)):
        return stage(_with_rows(program), config)
    if has_gather(program):
        return row_gather_of(program)
    return region_of(without_widening_casts(program))


def _with_rows(program: Program) -> Program:
    """A program whose tensors of one axis are matrices of one row, as they lie in memory."""
    rows = {
        each.name: dataclasses.replace(each.type, dims=(Dim("row", 1), *each.type.dims))
        for each in program.tensors
        if len(each.type.dims) == 1
    }
    if not rows:
        return program

    def change(item: Any) -> Any:
        if isinstance(item, View) and item.tensor in rows:
            return View(item.tensor, (Entry(Affine(), Axis(1)), *item.entries))
        return item

    every = tuple(Tensor(each.name, rows.get(each.name, each.type)) for each in program.tensors)
    return dataclasses.replace(program, tensors=every, nodes=rebuild(program.nodes, change))


def pipelines_of(
    work: ComputedProduct | SoftmaxProduct | Region | RowGather | RowScatter,
    arrays: tuple[ArraySpec, ...],
    config: ChipConfig,
    name: str,
    *,
    constraints: Constraints | None = None,
    in_order: bool = True,
) -> Iterator[Pipeline]:
    """Pipelines on a chip for what is no single product, best first.

    Parameters
    ----------
    work : ComputedProduct, SoftmaxProduct, Region, RowGather or RowScatter
    arrays : tuple of ArraySpec
        Arguments of the launch.
    config : ChipConfig
    name : str
        The kernel.
    constraints : Constraints, optional
        On a product, by a schedule.
    in_order : bool
        Whether the best must come first: to know whether there is one takes less time.

    Raises
    ------
    BadInputError
        If none fits; the message names what is needed and what there is.
    """
    if isinstance(work, ComputedProduct):
        return computed_pipelines(work, arrays, config, name, constraints)
    if isinstance(work, SoftmaxProduct):
        return softmax_pipelines(work, arrays, config, name)
    if isinstance(work, RowGather):
        return gather_pipelines(work, arrays, config, name)
    if isinstance(work, RowScatter) and work.adds:
        return adding_pipelines(work, arrays, config, name)
    if isinstance(work, RowScatter):
        return scatter_pipelines(work, arrays, config, name)
    if in_order:
        return iter(_pipelines(_Case(work, arrays, config, name)))
    return pipelines(work, arrays, config, name, in_order=False)


@dataclasses.dataclass(frozen=True)
class _Case:
    """All that the pipelines of element math depend on."""

    region: Region
    arrays: tuple[ArraySpec, ...]
    config: ChipConfig
    name: str

    def __hash__(self) -> int:
        return hash((self.arrays, self.config, self.name))


@remembered
def _pipelines(case: _Case) -> Drawn[Pipeline]:
    """The pipelines of a case: an estimate and the choice of one share them."""
    return Drawn(pipelines(case.region, case.arrays, case.config, case.name))
