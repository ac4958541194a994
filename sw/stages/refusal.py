"""Refusal of a program that one image of a chip does not compute, found before any placement."""

from __future__ import annotations

from hw.arch.config import ChipConfig
from hw.arch.errors import BadInputError
from sw.array_spec import ArraySpec
from sw.ir import nodes as ir
from sw.ir.program import Program
from sw.ir.rewrite import walk
from sw.language import Schedule
from sw.passes.choices import constraints_of
from sw.passes.parallel import parallel
from sw.passes.stage import require_on_chips, stage
from sw.softmax.online import missed_softmaxes
from sw.softmax.recognition import has_powers, softmax_product_of
from sw.stages.pipelines import pipelines
from sw.stages.region import region_of
from sw.stages.softmax_pipeline import softmax_pipelines

__all__ = ["refusal"]


def refusal(
    program: Program, arrays: tuple[ArraySpec, ...], config: ChipConfig
) -> BadInputError | None:
    """Why no image of a chip computes a program; None if it is recognised and element math fits.

    Parameters
    ----------
    program : Program
    arrays : tuple of ArraySpec
        Memory layout of its tensors.
    config : ChipConfig
    """
    try:
        require_on_chips(program)
        if has_powers(program):
            next(softmax_pipelines(softmax_product_of(program), arrays, config, program.name))
        elif any(isinstance(node, ir.Matmul) for node in walk(program.nodes)):
            product = stage(program, config)
            if product.epilogue is not None:
                choices = constraints_of(product, Schedule())
                next(parallel(product, config, choices))
        else:
            next(pipelines(region_of(program), arrays, config, program.name))
    except BadInputError as error:
        return next(missed_softmaxes(program), error)
    return None
