"""Function of one fp32 that a user adds to the lanes: its codes, its model, its circuit's name."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.arch.checks import Domain, refusal, require_int
from hw.arch.errors import BadInputError
from hw.numeric.formats import fp32
from hw.numeric.function_codes import SpecialFunction

__all__ = ["FUNCTION_LATENCY", "FUNCTION_UNITS", "AnyFunction", "LaneFunction", "function_codes"]

#: Function units of a lane beside the special function unit.
FUNCTION_UNITS = Domain(0, 4)
#: Cycles from an argument of a function unit to its result; at most those of the SFU.
FUNCTION_LATENCY = Domain(0, 9)


@dataclasses.dataclass(frozen=True)
class LaneFunction:
    """Function of one fp32 with a circuit of its own: its model in numpy, its unit, its latency.

    Two are equal if name, latency and netlist are.

    NaN are canonical, as those of every unit of a lane: the circuit gives the canonical one
    wherever the model gives any.

    Raises
    ------
    BadInputError
        The name or the latency is out of its range.
    """

    #: Name, in small letters, digits and underscores.
    name: str
    #: Component without parameters: `i_argument` and `o_result` of 32 bits, an argument a cycle.
    unit: type[Any] = dataclasses.field(compare=False)
    #: Cycles from an argument to its result (`FUNCTION_LATENCY`).
    latency: int
    #: The same function of arrays of float32, bit for bit; no part of the hardware.
    reference: Callable[[Any], Any] = dataclasses.field(compare=False)
    #: Digest of the circuit, which tells units of one name apart.
    netlist: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not re.fullmatch(r"[a-z][a-z0-9_]*", self.name):
            rule = "be small letters, digits and underscores"
            raise refusal("Name of a function unit", rule, self.name)
        noun, latency = f"Latency of function unit {self.name}", FUNCTION_LATENCY
        require_int(noun, self.latency, latency.low, latency.high)

    def applied(self, values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Results of the reference, with canonical NaN.

        Raises
        ------
        BadInputError
            The reference changes the shape or the type.
        """
        with np.errstate(all="ignore"):
            found = np.asarray(self.reference(values))
        if found.dtype != np.float32 or found.shape != values.shape:
            raise BadInputError(
                f"Reference of function unit {self.name} must return float32 of shape "
                f"{values.shape}, not {found.dtype} of shape {found.shape}"
            )
        bits = np.where(np.isnan(found), np.uint32(fp32.canonical_nan), fp32.bits_of(found))
        return np.asarray(fp32.from_bits(bits))

    def results(self, words: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
        """Words of the reference's results, as `applied` gives them."""
        found: npt.NDArray[np.uint32] = fp32.bits_of(self.applied(fp32.from_bits(words)))
        return found


#: A function of a lane: one of the special function unit, or of a unit of its own.
AnyFunction = SpecialFunction | LaneFunction


@functools.cache
def function_codes(functions: tuple[LaneFunction, ...]) -> Mapping[AnyFunction, int]:
    """Codes of the functions of a lane: those of its own units follow the special functions.

    Raises
    ------
    BadInputError
        There are too many units, one is none, or two have the same name.
    """
    require_int("Function units of a lane", len(functions), 0, FUNCTION_UNITS.high)
    for each in functions:
        if not isinstance(each, LaneFunction):
            raise refusal("Function unit", "be what `tw.op` returns", each)
    names = [each.name for each in functions]
    if len(set(names)) < len(names):
        raise BadInputError(
            f"Function units of a lane must have different names, not {', '.join(names)}"
        )
    return {each: code for code, each in enumerate((*SpecialFunction, *functions))}
