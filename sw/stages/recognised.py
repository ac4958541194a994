"""Recognition of a program: a product, two with a softmax, element math, rows by number."""

from __future__ import annotations

from collections.abc import Iterator

from hw.arch.config import ChipConfig
from sw.array_spec import ArraySpec
from sw.gathers.adding_pipeline import adding_pipelines
from sw.gathers.gather_pipeline import gather_pipelines
from sw.gathers.row_gather import RowGather, has_gather, row_gather_of
from sw.gathers.row_scatter import RowScatter, has_scatter, row_scatter_of
from sw.gathers.scatter_pipeline import scatter_pipelines
from sw.ir import nodes as ir
from sw.ir.program import Program
from sw.ir.rewrite import walk
from sw.passes.stage import Product, require_on_chips, stage
from sw.softmax.recognition import has_powers, softmax_product_of
from sw.stages.pipeline import Pipeline
from sw.stages.pipelines import pipelines
from sw.stages.region import Region, region_of
from sw.stages.softmax_pipeline import softmax_pipelines
from sw.stages.softmax_product import SoftmaxProduct

__all__ = ["pipelines_of", "recognised"]


def recognised(
    program: Program, config: ChipConfig
) -> Product | SoftmaxProduct | Region | RowGather | RowScatter:
    """Recognise what a program computes.

    Raises
    ------
    ProgramError
        At the first operation that one image does not serve.
    """
    require_on_chips(program)
    if has_scatter(program):
        return row_scatter_of(program)
    if has_powers(program):
        return softmax_product_of(program)
    if any(isinstance(node, ir.Matmul) for node in walk(program.nodes)):
        return stage(program, config)
    if has_gather(program):
        return row_gather_of(program)
    return region_of(program)


def pipelines_of(
    work: SoftmaxProduct | Region | RowGather | RowScatter,
    arrays: tuple[ArraySpec, ...],
    config: ChipConfig,
    name: str,
) -> Iterator[Pipeline]:
    """Pipelines on a chip for what is no single product, best first.

    Parameters
    ----------
    work : SoftmaxProduct, Region, RowGather or RowScatter
    arrays : tuple of ArraySpec
        Arguments of the launch.
    config : ChipConfig
    name : str
        The kernel.

    Raises
    ------
    BadInputError
        If none fits; the message names what is needed and what there is.
    """
    if isinstance(work, SoftmaxProduct):
        return softmax_pipelines(work, arrays, config, name)
    if isinstance(work, RowGather):
        return gather_pipelines(work, arrays, config, name)
    if isinstance(work, RowScatter) and work.adds:
        return adding_pipelines(work, arrays, config, name)
    if isinstance(work, RowScatter):
        return scatter_pipelines(work, arrays, config, name)
    return pipelines(work, arrays, config, name)
