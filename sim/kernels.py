"""What a kernel does when it is called: the golden answer, by the interpreter of its tile IR."""

from typing import Any

import numpy.typing as npt

from sim.golden import golden
from sw.ir.sizes import choose_sizes
from sw.language import Kernel
from sw.passes.accumulate import accumulate
from sw.passes.check import check

__all__ = ["call"]

#: Block size of a loop that names none. It changes bits only where a loop carries float state.
_BLOCK = 64


def call(kernel: Kernel, *arrays: npt.ArrayLike, out: Any = None, **options: Any) -> Any:
    """Golden arrays of a kernel: one, or a tuple of several in the signature's order.

    Parameters
    ----------
    kernel : Kernel
    arrays : array
        Inputs in the signature's order; their types give the formats.
    out : Format, or mapping of str to Format
        Format of the outputs that declare none.
    options
        Options of the kernel.

    Raises
    ------
    ProgramError
        If the arrays do not fit the signature, or the program breaks a rule.
    """
    bound = kernel.bind(*arrays)
    program = kernel.trace(dtype=bound.formats, out=out, **bound.dims, **options)
    fixed = accumulate(choose_sizes(check(program), default=_BLOCK))
    results = tuple(golden(fixed, bound.arrays).values())
    return results[0] if len(results) == 1 else results
