"""Options of the commands that compile a kernel: sizes, formats, chip, schedule."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from hw.arch.checks import read_text
from sim.cli.kernel_lookup import KERNEL, file_of, load_kernel
from sim.cli.options import add_config, setting
from sim.rules import load_config
from sim.user_files import running_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sim.run.job import Problem
    from sw.language import Schedule

__all__ = ["FORMATS", "add_problem", "read_problem"]

#: Formats of operands that ``--dtype`` takes.
FORMATS = ("bf16", "fp16", "int8", "e4m3", "e5m2", "fp32", "int32")


def add_problem(parser: argparse.ArgumentParser) -> None:
    """Register the options that `read_problem` reads."""
    parser.add_argument(
        "kernel",
        metavar=KERNEL,
        help="kernel of `tilewright list`, or FILE.py:KERNEL; FILE.py if it has only one kernel",
    )
    add_config(parser)
    parser.add_argument(
        "--set",
        dest="settings",
        type=setting,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="size, kernel option or schedule choice; may be repeated",
    )
    parser.add_argument(
        "--dtype", choices=FORMATS, default="bf16", help="operand format (default bf16)"
    )
    parser.add_argument("--schedule", metavar="FILE", help="schedule in JSON")


def read_problem(
    args: argparse.Namespace, inputs: str | None = None
) -> tuple[Problem, Mapping[str, Any] | None]:
    """Build the problem that the options describe, and read the arrays of an input file.

    Parameters
    ----------
    args : Namespace
        With the options of `add_problem`.
    inputs : str or None
        npz file whose arrays determine the sizes.

    Raises
    ------
    BadInputError
        If an option is invalid, or code in the user's file fails, at its line.
    """
    kernel = load_kernel(args.kernel)
    config = load_config(args.config)

    from hw.numeric.formats import named as formats
    from sim.cli.npz import read_inputs
    from sim.cli.settings import problem_of_settings

    dtype = formats[args.dtype]
    arrays = read_inputs(inputs, kernel, dtype) if inputs is not None else None
    with running_file(file_of(args.kernel)):
        problem = problem_of_settings(
            kernel,
            config,
            dtype,
            args.settings,
            extents=kernel.bind(**arrays).dims if arrays else None,
            schedule=_schedule(args.schedule),
        )
    return problem, arrays


def _schedule(path: str | None) -> Schedule | None:
    from sw.language import Schedule

    if path is None:
        return None
    return Schedule.from_json(read_text(path, noun="Schedule", where="--schedule"), file=path)
