"""Registry of the kinds of cases: generator, judge and simplifier of each."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sim.campaign.case import Fields, Verdict, generator
from sim.campaign.cases.fault_cases import (
    draw_axi,
    draw_bit,
    judge_axi,
    judge_bit,
    smaller_axi,
    smaller_bit,
)
from sim.campaign.cases.image_case import draw_image, judge_image, smaller_image
from sim.campaign.cases.list_case import draw_list, judge_list, smaller_list
from sim.campaign.cases.program_case import draw_chip, draw_program, judge_program, smaller_program
from sim.campaign.models import Models

__all__ = ["BUILT", "KINDS", "Kind", "draw", "judge", "order"]


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of case.

    Parameters
    ----------
    draw : function
        Function from two random generators, the second equal for `shared` consecutive cases, to
        the fields of a case.
    judge : function
        Function from fields and models (None: without RTL) to a verdict.
    smaller : function
        Function to fields that are simpler in one respect, the greatest simplification first.
    share : int
        Cases per round.
    shared : int
        Consecutive cases with an equal second generator.
    """

    draw: Callable[[random.Random, random.Random], dict[str, Any]]
    judge: Callable[[Fields, Models | None], Verdict]
    smaller: Callable[[Fields], Iterator[dict[str, Any]]]
    share: int
    shared: int = 1


#: Every kind, by the name in a case.
KINDS: Mapping[str, Kind] = {
    "program": Kind(draw_program, judge_program, smaller_program, share=10),
    "image": Kind(draw_image, judge_image, smaller_image, share=7),
    "list": Kind(draw_list, judge_list, smaller_list, share=2),
    "axi": Kind(draw_axi, judge_axi, smaller_axi, share=18, shared=8),
    "bit": Kind(draw_bit, judge_bit, smaller_bit, share=12, shared=8),
    "chip": Kind(draw_chip, judge_program, smaller_program, share=2, shared=8),
}

#: Kinds whose models are those of `tiny` and `small`.
BUILT = tuple(kind for kind in KINDS if kind != "chip")


def order(kinds: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    """Endless sequence of kind and number: rounds in which each kind has its share."""
    numbers = dict.fromkeys(kinds, 0)
    while True:
        for kind in kinds:
            for _ in range(KINDS[kind].share):
                yield kind, numbers[kind]
                numbers[kind] += 1


def draw(seed: int, kind: str, number: int) -> dict[str, Any]:
    """Generate a case."""
    one = KINDS[kind]
    shared = generator(seed, kind, "shared", number // one.shared)
    return {"kind": kind, **one.draw(generator(seed, kind, number), shared)}


def judge(fields: Fields, models: Models | None) -> Verdict:
    """Judge a case; an unexpected exception is a failure."""
    try:
        return KINDS[fields["kind"]].judge(fields, models)
    except Exception as error:  # a campaign goes on after any fault
        return Verdict("fault", (f"internal fault: {type(error).__name__}: {error}",))
