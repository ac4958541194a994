"""Cases of floating-point units."""

from collections.abc import Iterator, Sequence

import numpy as np

from gen.export.bus_ports import BusGroup
from sim.drivers.function_answers import function_answer, function_operands
from sim.export.core_case import CoreCase
from sim.export.core_request import CoreRequest

__all__ = ["function_cases"]

_VECTORS = 200


def function_cases(
    rng: np.random.Generator, groups: Sequence[BusGroup], request: CoreRequest
) -> Iterator[CoreCase]:
    """Random and special operands, one per cycle.

    Parameters
    ----------
    rng : numpy.random.Generator
    groups : sequence of BusGroup
    request : CoreRequest
    """
    names: list[str] = [
        name for name in ("a", "b", "c", "x") if name in {group.inner for group in groups}
    ]
    words = function_operands(rng, _VECTORS)
    expected = function_answer(request.name, list(words[: len(names)]), request.values)
    # The row ends after an edge of the clock, if there is one.
    delay = max(getattr(request.component, "cycles", 0) - 1, 0)
    rows: list[tuple[dict[str, int], dict[str, int]]] = []
    for row in range(_VECTORS + delay):
        inputs = {name: int(words[n, min(row, _VECTORS - 1)]) for n, name in enumerate(names)}
        outputs = {"o": int(expected[row - delay])} if row >= delay else {}
        rows.append((inputs, outputs))
    case = CoreCase("operands", groups)
    case.table(rows)
    yield case
