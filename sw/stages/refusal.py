"""Refusal of a program that one image of a chip does not compute, found before any placement."""

from __future__ import annotations

from hw.arch.config import ChipConfig
from hw.arch.errors import BadInputError
from sw.array_spec import ArraySpec
from sw.ir.program import Program
from sw.language import Schedule
from sw.passes.choices import constraints_of
from sw.passes.parallel import require_fit
from sw.passes.stage import Product
from sw.softmax.online import missed_softmaxes
from sw.stages.recognised import pipelines_of, recognised

__all__ = ["refusal"]


def refusal(
    program: Program, arrays: tuple[ArraySpec, ...], config: ChipConfig, *, chains: bool = True
) -> BadInputError | None:
    """Why no image of a chip computes a program; None if it is recognised and element math fits.

    Parameters
    ----------
    program : Program
    arrays : tuple of ArraySpec
        Memory layout of its tensors.
    config : ChipConfig
    chains : bool
        Whether lane programs may stand behind a product.
    """
    try:
        work = recognised(program, arrays, config)
        if not isinstance(work, Product):
            next(pipelines_of(work, arrays, config, program.name, in_order=False))
        elif work.epilogue is not None:
            if work.epilogue.may_stand_apart and not chains:
                return BadInputError(
                    f"`{program.name}` has lane programs with its product",
                    where=program.name,
                    value=str(len(work.epilogue.chain)),
                    rule="none",
                    kind="does-not-fit",
                )
            require_fit(work, config, constraints_of(work, Schedule()))
    except BadInputError as error:
        return next(missed_softmaxes(program), error)
    return None
