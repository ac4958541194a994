"""The tile language of kernels; `tilewright` is its public interface."""

from collections.abc import Callable

from sw.ir.affine import Axis
from sw.ir.element_operations import FUNCTIONS
from sw.ir.format_rules import Format, bf16, e4m3, e5m2, fp16, fp32, int8, int32
from sw.language.bind import Bound
from sw.language.element_math import element_function
from sw.language.kernel import Kernel, kernel, register
from sw.language.loop_statements import each, metapipe, repeat
from sw.language.program_error import ProgramError
from sw.language.ring_stages import compute, finish, load, ring
from sw.language.schedule import Schedule, check_schedule
from sw.language.signature import dynamic
from sw.language.tensor import TensorView, local
from sw.language.tile_operations import (
    buffer,
    col_index,
    col_max,
    col_min,
    col_sum,
    full,
    gather,
    inf,
    join_cols,
    load_tile,
    matmul,
    row_index,
    row_max,
    row_mean,
    row_min,
    row_sum,
    scatter,
    split_cols,
    store_tile,
    zeros,
)
from sw.language.tile_value import Tile

__all__ = [
    "Axis",
    "bf16",
    "Bound",
    "buffer",
    "check_schedule",
    "col_index",
    "col_max",
    "col_min",
    "col_sum",
    "compute",
    "dynamic",
    "e4m3",
    "e5m2",
    "each",
    "finish",
    "Format",
    "fp16",
    "fp32",
    "full",
    "gather",
    "inf",
    "int32",
    "int8",
    "join_cols",
    "Kernel",
    "kernel",
    "load",
    "load_tile",
    "local",
    "matmul",
    "metapipe",
    "ProgramError",
    "register",
    "repeat",
    "ring",
    "row_index",
    "row_max",
    "row_mean",
    "row_min",
    "row_sum",
    "scatter",
    "Schedule",
    "split_cols",
    "store_tile",
    "TensorView",
    "Tile",
    "zeros",
    *FUNCTIONS,
]


def __getattr__(name: str) -> Callable[..., Tile]:
    """Element-wise function of a name in `sw.ir.element_operations.FUNCTIONS`."""
    if name not in FUNCTIONS:
        raise AttributeError(f"module 'sw.language' has no attribute {name!r}")
    return element_function(name)
