"""Tilewright: generate dataflow accelerators, program them, and verify results on the RTL.

The package for users (``import tilewright as tw``): the tile language, running and compiling of
kernels, the errors, and the entry point of the ``tilewright`` command. Names of the language are
imported on first use, because the command's help needs none of them.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from hw import __version__
from hw.arch.errors import (
    BadInputError,
    DeviceError,
    HangError,
    MissingToolError,
    TilewrightError,
)
from sw.actions import ACTIONS as _ALL_ACTIONS
from sw.actions import register as _register

if TYPE_CHECKING:
    from hw.arch.config import ChipConfig, PcuConfig
    from sim.function_units import op
    from sim.native.conditions import ErrorAt
    from sw.hand_placement import units
    from sw.language import (
        Axis,
        Bound,
        Format,
        Kernel,
        ProgramError,
        Schedule,
        TensorView,
        Tile,
        bf16,
        buffer,
        check_schedule,
        col_index,
        col_max,
        col_min,
        col_sum,
        compute,
        dynamic,
        e4m3,
        e5m2,
        each,
        exp,
        exp2,
        finish,
        fma,
        fp16,
        fp32,
        full,
        gather,
        gelu,
        inf,
        int8,
        int32,
        join_cols,
        kernel,
        load,
        load_tile,
        local,
        log,
        matmul,
        maximum,
        metapipe,
        minimum,
        reciprocal,
        register,
        repeat,
        ring,
        row_index,
        row_max,
        row_mean,
        row_min,
        row_sum,
        rsqrt,
        scatter,
        sigmoid,
        silu,
        split_cols,
        sqrt,
        store_tile,
        tanh,
        where,
        zeros,
    )
    from sw.results import KernelProgram, RunResult
    from sw.tensor_map import TensorMap
    from sw.tuned import Tuning
else:

    def __getattr__(name: str) -> Any:
        """A public name, imported on first use."""
        if name.startswith("_"):
            raise AttributeError(f"module 'tilewright' has no attribute {name!r}")
        home = import_module(_HOMES.get(name, "sw.language"))
        if name in __all__ or name in home.__all__:
            return getattr(home, name)
        raise import_module("sw.language.idioms").missing_name("tilewright", name, tuple(__all__))


__all__ = [
    "Axis",
    "BadInputError",
    "bf16",
    "Bound",
    "buffer",
    "check_schedule",
    "ChipConfig",
    "col_index",
    "col_max",
    "col_min",
    "col_sum",
    "compute",
    "DeviceError",
    "dynamic",
    "e4m3",
    "e5m2",
    "each",
    "ErrorAt",
    "exp",
    "exp2",
    "finish",
    "fma",
    "Format",
    "fp16",
    "fp32",
    "full",
    "gather",
    "gelu",
    "HangError",
    "inf",
    "int32",
    "int8",
    "join_cols",
    "Kernel",
    "kernel",
    "KernelProgram",
    "load",
    "load_tile",
    "local",
    "log",
    "main",
    "matmul",
    "maximum",
    "metapipe",
    "minimum",
    "MissingToolError",
    "op",
    "PcuConfig",
    "ProgramError",
    "reciprocal",
    "register",
    "repeat",
    "ring",
    "row_index",
    "row_max",
    "row_mean",
    "row_min",
    "row_sum",
    "rsqrt",
    "RunResult",
    "scatter",
    "Schedule",
    "sigmoid",
    "silu",
    "split_cols",
    "sqrt",
    "store_tile",
    "tanh",
    "TensorMap",
    "TensorView",
    "Tile",
    "TilewrightError",
    "Tuning",
    "units",
    "where",
    "zeros",
    "__version__",
]

#: Modules of the public names that are not of the language.
_HOMES = {
    "ChipConfig": "hw.arch.config",
    "ErrorAt": "sim.native.conditions",
    "KernelProgram": "sw.results",
    "op": "sim.function_units",
    "PcuConfig": "hw.arch.config",
    "RunResult": "sw.results",
    "TensorMap": "sw.tensor_map",
    "Tuning": "sw.tuned",
    "units": "sw.hand_placement",
}


def __dir__() -> list[str]:
    """Public names for completion, including those not imported yet."""
    return sorted(__all__)


def _late(action: str) -> Callable[..., Any]:
    """Wrapper of a kernel action that imports its implementation at the first call."""

    def act(*arguments: Any, **options: Any) -> Any:
        from sim.image_run import run_image
        from sim.kernels import call
        from sim.run.api import compile_kernel, run_kernel
        from sim.run.tuning import tune_kernel

        actions: dict[str, Callable[..., Any]] = {
            "call": call,
            "run": run_kernel,
            "compile": compile_kernel,
            "tune": tune_kernel,
            "launch": run_image,
        }
        return actions[action](*arguments, **options)

    return act


for _action in _ALL_ACTIONS:
    _register(_action, _late(_action))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the ``tilewright`` command.

    Parameters
    ----------
    argv : sequence of str
        Arguments without the program's name; the process's own by default.

    Returns
    -------
    int
        Exit code: 0 verified, 1 wrong result, 2 bad input, 3 missing tool, 4 hang, 5 device error,
        130 interrupted.
    """
    from sim.cli.app import main as run

    return run(argv)
