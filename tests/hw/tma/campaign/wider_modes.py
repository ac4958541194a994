"""Modes that a unit with reductions and several scratchpads has beyond those of a plain one."""

import dataclasses
import random

import numpy as np

from hw.arch.boxes.reductions import REDUCED_FORMATS, ReductionOperation
from hw.arch.descriptor import NAN_FORMATS, Descriptor, ElementFormat, OobFill
from hw.arch.tma_sizes import TmaSizes
from hw.tma.standalone.unit_commands import TmaOperation
from tests.hw.tma.campaign.random_modes import (
    MODES,
    Boxes,
    Bytes,
    Case,
    Decks,
    Linear,
    Mode,
    Pixels,
    Places,
)
from tests.hw.tma.im2col_model import im2col_elements
from tests.hw.tma.reduction.reduced_boxes import box_reduce, elements_reduce

__all__ = ["WIDER_MODES"]


def _reducible(rng: random.Random, descriptor: Descriptor) -> Descriptor:
    """The descriptor with a format of the same size that some reduction takes."""
    taken = {each for formats in REDUCED_FORMATS.values() for each in formats}
    sizes = [each for each in ElementFormat if each.bytes == descriptor.format.bytes]
    kind = rng.choice([each for each in sizes if each in taken])
    fill = descriptor.oob_fill if kind in NAN_FORMATS else OobFill.ZERO
    return dataclasses.replace(descriptor, format=kind, oob_fill=fill)


def _reduction(rng: random.Random, descriptor: Descriptor) -> ReductionOperation:
    """A reduction that the format takes."""
    return rng.choice(
        [each for each in REDUCED_FORMATS if descriptor.format in REDUCED_FORMATS[each]]
    )


class _Reductions(Mode):
    """Stores that combine a box with memory."""

    def draw(self, decks: Decks, sizes: TmaSizes, most_bytes: int) -> Case:
        case = super().draw(decks, sizes, most_bytes)
        assert case.descriptor is not None
        descriptor = _reducible(decks.rng, case.descriptor)
        reduction = _reduction(decks.rng, descriptor)
        return dataclasses.replace(case, descriptor=descriptor, reduction=reduction)

    def again(self, rng: random.Random, case: Case) -> Case:
        assert case.descriptor is not None
        reduction = _reduction(rng, case.descriptor)
        return dataclasses.replace(super().again(rng, case), reduction=reduction)


class _ReducedBoxes(_Reductions, Boxes):
    """One box of any rank, combined with memory."""

    def store(self, case: Case, memory: Bytes, origin: int, content: Bytes) -> None:
        box_reduce(memory[origin:], case.descriptor, case.coordinates, content, case.reduction)


class _ReducedPixels(_Reductions, Pixels):
    """An im2col box, combined with memory."""

    def store(self, case: Case, memory: Bytes, origin: int, content: Bytes) -> None:
        found = [*im2col_elements(case.descriptor, case.coordinates, case.offsets)]
        flat, offsets = np.array(found, np.int64).reshape(-1, 2).T
        assert len(set(offsets.tolist())) == len(offsets)
        elements_reduce(memory[origin:], case.descriptor, flat, offsets, content, case.reduction)


class _Copies(Linear):
    """Bytes of one scratchpad for others; ``memory`` is that scratchpad."""

    def touched(self, case: Case) -> Places:
        return np.zeros(0, np.int64)


#: All modes of such a unit. A tile store may follow a reduction of its tensor.
WIDER_MODES = (
    *MODES,
    _ReducedBoxes("tile reduce", TmaOperation.REDUCE, 10),
    _ReducedPixels("im2col reduce", TmaOperation.REDUCE, 7),
    _Copies("copy", TmaOperation.COPY, 10),
)
