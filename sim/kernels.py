"""Call of a kernel: its golden result by the interpreter of the tile IR."""

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

from sim.golden import golden
from sim.rules import option_rule
from sw.ir.program import Program
from sw.ir.sizes import choose_sizes
from sw.language import Kernel
from sw.passes.accumulate import accumulate, require_whole_lanes
from sw.passes.check import check
from sw.softmax.online import is_exact, online

__all__ = ["call", "checked_options", "summed"]

#: Default block size of loops. It affects results only of loops that carry float state.
_BLOCK = 64


def summed(
    program: Program, tiles: Mapping[str, int] | None = None, *, exact: bool = False
) -> Program:
    """Run the passes up to the golden program: block sizes chosen, order of sums fixed.

    Parameters
    ----------
    program : Program
    tiles : mapping of str to int
        Block size by loop index, which overrides the program's hint.
    exact : bool
        Keep the printed form of a softmax between products.

    Raises
    ------
    ProgramError
        If a carried sum of 8-bit floats has odd blocks.
    """
    program = accumulate(choose_sizes(program, tiles, default=_BLOCK))
    if not exact:
        # A softmax of whole rows is one over blocks then.
        program = choose_sizes(online(program), tiles, default=_BLOCK)
    require_whole_lanes(program)
    return program


def checked_options(kernel: Kernel, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a kernel as plain data; unknown ones are left to its trace to refuse.

    Raises
    ------
    BadInputError
        If a value is not of the type of the option's default.
    """
    defaults = kernel.options
    return {
        name: option_rule(defaults[name]).check(name, value) if name in defaults else value
        for name, value in options.items()
    }


def call(kernel: Kernel, *arrays: npt.ArrayLike, out: Any = None, **options: Any) -> Any:
    """Golden outputs of a kernel: one array, or a tuple of several in the signature's order.

    Functions such as exp have as many significant bits as on a chip by default
    (`PcuConfig.function_bits`); ``kernel.run`` computes those of any chip.

    Parameters
    ----------
    kernel : Kernel
    arrays : array
        Inputs in the signature's order; their types determine the formats.
    out : Format, or mapping of str to Format
        Format of the outputs that declare none.
    options
        Options of the kernel.

    Raises
    ------
    BadInputError
        If the arrays do not fit the signature, or the program breaks a rule.
    """
    bound = kernel.bind(*arrays)
    program = kernel.trace(
        dtype=bound.formats, out=out, **bound.dims, **checked_options(kernel, options)
    )
    exact = is_exact({**kernel.options, **options})
    results = tuple(golden(summed(check(program), exact=exact), bound.arrays).values())
    return results[0] if len(results) == 1 else results
