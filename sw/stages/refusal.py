"""Refusal of a program that one image of a chip does not compute, found before any placement."""

from __future__ import annotations

import dataclasses

from hw.arch.config import ChipConfig
from hw.arch.errors import BadInputError
from sw.array_spec import ArraySpec
from sw.ir.program import Program
from sw.language import Schedule
from sw.passes.choices import constraints_of
from sw.passes.parallel import require_fit
from sw.passes.product_recognition import Product
from sw.softmax.online import missed_softmaxes
from sw.stages.recognised import pipelines_of, recognised

__all__ = ["Refusals"]


@dataclasses.dataclass(frozen=True)
class _Answer:
    """Why no image computes a program, and whether one needs lane programs behind a product."""

    refusal: BadInputError | None
    chains: bool = False


class Refusals:
    """Why no image of a chip computes a program, found once for each.

    Parameters
    ----------
    config : ChipConfig
    """

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        self._answers: dict[tuple[Program, tuple[ArraySpec, ...]], _Answer] = {}

    def of(
        self, program: Program, arrays: tuple[ArraySpec, ...], *, chains: bool = True
    ) -> BadInputError | None:
        """Why no image computes a program; None if it is recognised and element math fits.

        Parameters
        ----------
        program : Program
        arrays : tuple of ArraySpec
            Memory layout of its tensors.
        chains : bool
            Whether lane programs may stand behind a product.
        """
        key = program, arrays
        if key not in self._answers:
            self._answers[key] = self._answer(*key)
        answer = self._answers[key]
        if answer.chains and not chains:
            return BadInputError(
                f"`{program.name}` must have no lane programs behind its product",
                where=program.name,
                value="some",
                rule="none",
                kind="does-not-fit",
            )
        return answer.refusal

    def refuse(
        self, program: Program, arrays: tuple[ArraySpec, ...], refusal: BadInputError
    ) -> None:
        """Keep why no image computes a program that was recognised, found by its compilation."""
        self._answers[program, arrays] = _Answer(refusal)

    def _answer(self, program: Program, arrays: tuple[ArraySpec, ...]) -> _Answer:
        config, chains = self._config, False
        try:
            work = recognised(program, arrays, config)
            if not isinstance(work, Product):
                next(pipelines_of(work, arrays, config, program.name, in_order=False))
            elif work.epilogue is not None:
                chains = work.epilogue.may_stand_apart
                require_fit(work, config, constraints_of(work, Schedule()))
        except BadInputError as error:
            return _Answer(next(missed_softmaxes(program), error), chains)
        return _Answer(None, chains)
