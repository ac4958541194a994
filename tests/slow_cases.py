"""Cases of a test of which `make test` runs the first."""

from collections.abc import Iterable
from typing import Any

import pytest
from _pytest.mark.structures import ParameterSet

__all__ = ["quick_first"]


def quick_first(cases: Iterable[Any], quick: int = 1) -> list[ParameterSet]:
    """Cases for `parametrize`: those behind the first ``quick`` are slow. A tuple has several."""
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=[pytest.mark.slow] * (number >= quick),
        )
        for number, case in enumerate(cases)
    ]
