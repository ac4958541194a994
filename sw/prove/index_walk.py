"""Steps of an engine that takes indices from a stream: which index vector each one uses."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from hw.arch.gather.index_program import IndexProgram
from hw.arch.pmu import EngineProgram
from hw.arch.words.pmu_word import ENGINE_LOOPS, INDEX_BYTES, IndexUse, Level
from sw.prove.unrolled_loops import Visits, address_walk, visits

__all__ = ["IndexWalk", "index_walk"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclasses.dataclass(frozen=True)
class IndexWalk:
    """All steps of an engine that takes indices.

    Parameters
    ----------
    takes : array
        Per step, whether it takes an index.
    numbers : array
        Per step, the number of its first index in the stream, unused ones included.
    frees : array
        Per step, whether it is the last one to need its index vector.
    vectors : int
        Index vectors that all steps need.
    visit : array
        Per step, the number of its visit to a slot.
    adds : bool
        Whether steps that take an index add.
    """

    takes: Bools
    numbers: Ints
    frees: Bools
    vectors: int
    visit: Ints
    adds: bool

    def pieces(self, engine: EngineProgram) -> tuple[Visits, Bools, Bools]:
        """Visits of the engine, cut where an index vector ends, or is needed no more or anew.

        Returns
        -------
        (Visits, array, array)
            Per piece of a visit, as of `visits`; whether it needs an index vector; whether its last
            step frees that.
        """
        whole = visits(engine)
        changes = (np.diff(self.visit) != 0) | self.frees[:-1] | np.diff(self.takes)
        last = np.append(np.flatnonzero(changes), len(self.visit) - 1)
        visit = self.visit[last]
        ends = np.append(np.diff(visit) != 0, True)
        pieces = Visits(whole.turn[visit], whole.closes[visit] & ends, np.diff(last, prepend=-1))
        return pieces, self.takes[last], self.frees[last]


def index_walk(engine: EngineProgram, indexed: IndexProgram, width_bits: int) -> IndexWalk:
    """Enumerate the steps of an engine that takes indices.

    Parameters
    ----------
    engine : EngineProgram
    indexed : IndexProgram
    width_bits : int
        Bits of a vector.
    """
    lanes = width_bits // (8 * INDEX_BYTES)
    together = 1 if indexed.elements else lanes  # steps that a vector has indices for
    steps = address_walk(engine)
    closes = steps.last(Level.ADDRESS)
    visit: Ints = np.cumsum(closes) - closes
    takes = np.ones(len(visit), np.bool_)
    if indexed.use is not IndexUse.GATHER and engine.beyond:
        takes = steps.indices[engine.beyond.loop] >= engine.beyond.limit
    uses = takes & (steps.last(indexed.level) if indexed.level < ENGINE_LOOPS else True)
    before: Ints = np.cumsum(uses) - uses
    begins = np.flatnonzero(np.append(True, np.diff(visit) != 0))
    number: Ints = before - before[begins][visit]  # of the step's index in its visit
    after = (number + uses) % together
    frees = (uses & (after == 0)) | (closes & (after != 0))
    vectors = np.add.reduceat(frees, begins, dtype=np.int64)
    first = np.cumsum(vectors) - vectors
    numbers = (first[visit] * together + number) * (lanes // together)
    adds = indexed.use is IndexUse.SCATTER_ADD
    return IndexWalk(takes, numbers, frees, int(vectors.sum()), visit, adds)
