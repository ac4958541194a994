"""``tilewright run``: a kernel on a chip, compared with numpy."""

import argparse
from typing import Any

from hw.errors import NotBuiltError
from sim.cli.options import (
    Subparsers,
    add_config,
    add_json,
    add_seed,
    integer,
    probability,
    setting,
)

__all__ = ["add", "execute"]


def _error_at(text: str) -> tuple[str, int, str]:
    direction, _, rest = text.partition(":")
    beat, _, response = rest.partition(":")
    if direction not in ("read", "write") or response not in ("slverr", "decerr"):
        beat = ""
    if not (beat.isascii() and beat.isdigit()):
        raise argparse.ArgumentTypeError(
            f"must be read|write:BEAT:slverr|decerr, not {text!r}",
        )
    return direction, int(beat), response


def add(subparsers: Subparsers) -> None:
    """Register the options of ``run``."""
    parser = subparsers.add_parser(
        "run",
        help="compile a kernel, run it, compare the answer with numpy",
        description="Compile a kernel for a chip, run it, and compare the answer with numpy.",
    )
    parser.add_argument("kernel", metavar="KERNEL", help="name of a kernel (tilewright list)")
    add_config(parser)
    parser.add_argument(
        "--set",
        dest="settings",
        type=setting,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="kernel parameter or schedule option; may be repeated",
    )
    parser.add_argument(
        "--dtype", choices=("bf16", "int8"), default="bf16", help="operands (default bf16)"
    )
    parser.add_argument(
        "--backend",
        choices=("rtl", "cocotb", "emulator", "golden"),
        default="rtl",
        help="what computes the answer (default rtl)",
    )
    add_seed(parser)

    memory = parser.add_argument_group("memory model")
    memory.add_argument(
        "--latency",
        type=integer(1, 65535),
        default=100,
        metavar="CYCLES",
        help="cycles from a read address to its first beat (default 100)",
    )
    memory.add_argument(
        "--jitter",
        type=integer(0, 65535),
        default=0,
        metavar="CYCLES",
        help="random cycles more, at most (default 0)",
    )
    memory.add_argument(
        "--stall",
        type=probability,
        default=0.0,
        metavar="P",
        help="probability that an AXI channel pauses in a cycle (default 0)",
    )
    memory.add_argument(
        "--error-at",
        type=_error_at,
        metavar="SPEC",
        help="answer one beat with an error: read|write:BEAT:slverr|decerr",
    )
    memory.add_argument(
        "--max-cycles",
        type=integer(1),
        metavar="N",
        help="end the run as a hang after N cycles (default from the prediction)",
    )

    files = parser.add_argument_group("files")
    files.add_argument("--inputs", metavar="FILE.npz", help="operands, in place of random ones")
    files.add_argument("--outputs", metavar="FILE.npz", help="write the result there")
    files.add_argument("--rtl", metavar="FILE.v", help="simulate this Verilog, emit none")
    files.add_argument("--image-out", metavar="FILE", help="write the chip's image there")
    files.add_argument("--schedule", metavar="FILE", help="schedule, as JSON")
    files.add_argument("--waves", metavar="FILE.vcd", help="record waves there")
    files.add_argument("--no-cache", action="store_true", help="build the model anew")
    parser.add_argument("--warm", action="store_true", help="count cycles of a second launch")
    add_json(parser)


def execute(args: argparse.Namespace) -> dict[str, Any]:
    """Run the kernel; exit code 0 only if the answer is verified."""
    raise NotBuiltError("running a kernel is not built yet")
