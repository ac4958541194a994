"""Predicted cycles of a launch list: its entries one after another."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from sw.timing.prediction import Prediction

__all__ = ["ListPrediction", "predict_list"]


@dataclasses.dataclass(frozen=True)
class ListPrediction:
    """Predicted cycles of a launch list.

    Parameters
    ----------
    cycles : int
        From the launch write to the end of the last kernel.
    warm_cycles : int
        From the end of the same list before it to its own end.
    """

    cycles: int
    warm_cycles: int


def predict_list(entries: Sequence[Prediction]) -> ListPrediction:
    """Add the cycles of kernels and those before and between them.

    Parameters
    ----------
    entries : sequence of Prediction
        Of each entry, in order, for its iterations.
    """
    warm = sum(
        entry.after(before.kernel) + entry.kernel
        for before, entry in zip((entries[-1], *entries[:-1]), entries, strict=True)
    )
    first = entries[0]
    return ListPrediction(warm - first.after(entries[-1].kernel) + first.before, warm)
