"""Kernels of the campaign with their formats and oracles."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.numeric.product_formats import RESULT_FORMATS
from sim.oracle import product
from sw.kernels.gemm import gemm
from sw.kernels.matmul import matmul
from sw.kernels.transposed.matmul_nt import matmul_nt
from sw.kernels.transposed.matmul_tn import matmul_tn
from sw.kernels.transposed.matmul_tt import matmul_tt
from sw.language import Kernel

__all__ = ["KERNELS", "Entry"]

Arrays = Mapping[str, npt.NDArray[Any]]
Outputs = Mapping[str, np.dtype[Any]]
Oracle = Callable[[Arrays, Outputs], dict[str, npt.NDArray[Any]]]


@dataclasses.dataclass(frozen=True)
class Entry:
    """A kernel of the campaign.

    Parameters
    ----------
    kernel : Kernel
    dtypes : mapping of str to (str or None) sequence
        Formats of both operands, each with its result formats; None applies the language's rule.
    oracle : function
        Independent model: inputs and output dtypes by name → outputs by name.
    """

    kernel: Kernel
    dtypes: Mapping[str, tuple[str | None, ...]]
    oracle: Oracle


def _product(*, ta: bool = False, tb: bool = False) -> Oracle:
    """Oracle of the product of two matrices, or of their transposes."""

    def of(inputs: Arrays, outputs: Outputs) -> dict[str, npt.NDArray[Any]]:
        a, b = inputs["A"], inputs["B"]
        return {"C": product(a.T if ta else a, b.T if tb else b, outputs["C"])}

    return of


_DTYPES = {
    fmt.name: (None, *(out.name for out in outs if out.is_float))
    for fmt, outs in RESULT_FORMATS.items()
}

#: Every kernel that is drawn, by name.
KERNELS: Mapping[str, Entry] = {
    "matmul": Entry(matmul, _DTYPES, _product()),
    "gemm": Entry(gemm, _DTYPES, _product()),
    "matmul_nt": Entry(matmul_nt, _DTYPES, _product(tb=True)),
    "matmul_tn": Entry(matmul_tn, _DTYPES, _product(ta=True)),
    "matmul_tt": Entry(matmul_tt, _DTYPES, _product(ta=True, tb=True)),
}
