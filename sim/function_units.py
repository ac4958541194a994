"""Function units of a user: a function of tiles from its model in numpy and its circuit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.arch.checks import refusal
from hw.arch.errors import BadInputError, shown
from hw.pcu.function_unit import check_function, netlist_digest
from sw.ir.element_operations import FUNCTIONS, OPERATIONS
from sw.language.element_math import TileFunction

__all__ = ["op"]

#: Drawn arguments of the comparison of a unit with its reference, of each of two kinds.
_DRAWN = 200
_SPECIAL = [0.0, 1.0, 2.0**-126, 2.0**-149, 3.4028235e38, np.inf, np.nan]


def op(reference: Callable[..., Any], unit: type[Any]) -> TileFunction:
    """Make a function of tiles that a unit of its own computes in the lanes of a chip.

    The unit is simulated beside the reference: zeros, subnormal numbers, infinities, NaN and drawn
    words of both signs. A chip has it if it is one of `PcuConfig.functions`.

    Parameters
    ----------
    reference : function
        Of an array of float32, to an array of float32 of its shape, bit for bit; NaN become the
        canonical one. The function of tiles has its name.
    unit : type of amaranth.lib.wiring.Component
        Circuit without parameters: `i_argument` and `o_result` of 32 bits, the fp32's words. It
        takes an argument each cycle. Its attribute `latency` has the cycles to the result, 0 to 9.

    Raises
    ------
    BadInputError
        The unit is no such circuit, or computes something else.
    """
    name = getattr(reference, "__name__", None)
    if not callable(reference) or not isinstance(name, str):
        raise refusal("Reference of a function unit", "be a function with a name", reference)
    if name in OPERATIONS or name in FUNCTIONS:
        raise refusal("Name of a function unit", "not be that of an operation", name)
    if not isinstance(unit, type):
        raise refusal(f"Circuit of function unit {name}", "be a class", unit)
    if not hasattr(unit, "latency"):
        raise BadInputError(
            f"Circuit of function unit {name} must have the attribute `latency`, cycles from an "
            f"argument to its result; {shown(unit.__name__)} has none"
        )
    made = TileFunction(name, unit, unit.latency, reference, netlist_digest(name, unit))
    check_function(made, _arguments())
    return made


def _arguments() -> npt.NDArray[np.uint32]:
    """Words of fp32 to compare a unit and its reference on."""
    rng = np.random.default_rng(0)
    special = np.array(_SPECIAL, np.float32)
    near = rng.uniform(-16, 16, _DRAWN).astype(np.float32)
    words = [each.view(np.uint32) for each in (special, -special, near)]
    return np.concatenate([*words, rng.integers(0, 1 << 32, _DRAWN, np.uint32)])
