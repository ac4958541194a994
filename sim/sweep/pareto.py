"""Pareto front: the points that no other one beats in every figure."""

from collections.abc import Sequence

__all__ = ["front"]


def front(figures: Sequence[tuple[float, ...]]) -> list[int]:
    """Indices of the figures that no others dominate, each figure the better the smaller.

    One dominates another if it is no larger anywhere and smaller somewhere; equal ones all stay.
    """
    return [
        index
        for index, mine in enumerate(figures)
        if not any(all(a <= b for a, b in zip(other, mine)) and other != mine for other in figures)
    ]
