"""``tilewright run``: compile a kernel, run it on a chip, compare the result with numpy."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hw.arch.errors import BadInputError, DeviceError, HangError, WrongResultError, shown
from sim.cli.kernel_lookup import file_of
from sim.cli.kernel_options import add_problem, read_problem
from sim.cli.options import Subparsers, add_json, add_seed, kept, probability
from sim.cli.profile_files import add_profile, require_profile, wants_profile, write_profile
from sim.files import require_space, write_output
from sim.rules import JITTER, LATENCY, MAX_CYCLES, WAVES, validating
from sim.user_files import running_file

if TYPE_CHECKING:
    from gen.design import Design
    from sim.backends.interface import Answer
    from sim.run.job import Job
    from sim.run.report import Outcome
    from sw.compiled import Compiled

__all__ = ["add", "execute"]

DEFAULT_LATENCY = 100
_MOST_DIGITS = 64
# More than the overhead of an npz file per array.
_HEAD_BYTES = 1024


def _error_at(text: str) -> tuple[str, int, str]:
    direction, _, rest = text.partition(":")
    beat, _, response = rest.partition(":")
    if direction not in ("read", "write") or response not in ("slverr", "decerr"):
        beat = ""
    if not (beat.isascii() and beat.isdigit() and len(beat) <= _MOST_DIGITS):
        raise argparse.ArgumentTypeError(
            f"must be read|write:BEAT:slverr|decerr, not {shown(text)}",
        )
    return direction, int(beat), response


def add(subparsers: Subparsers) -> None:
    """Register the options of ``run``."""
    parser = subparsers.add_parser(
        "run",
        help="compile a kernel, run it, compare the result with numpy",
        description="Compile a kernel for a chip, run it, and compare the result with numpy.",
    )
    add_problem(parser)
    parser.add_argument(
        "--backend",
        choices=("rtl", "cocotb", "emulator", "golden"),
        default="rtl",
        help="native RTL model, RTL in cocotb, emulator, or golden interpreter (default rtl)",
    )
    add_seed(parser)

    memory = parser.add_argument_group("memory model")
    memory.add_argument(
        "--latency",
        type=kept(LATENCY),
        default=DEFAULT_LATENCY,
        metavar="CYCLES",
        help="cycles from a read address to its first beat (default 100)",
    )
    memory.add_argument(
        "--jitter",
        type=kept(JITTER),
        default=0,
        metavar="CYCLES",
        help="most random additional cycles per burst (default 0)",
    )
    memory.add_argument(
        "--stall",
        type=probability,
        default=0.0,
        metavar="P",
        help="probability per cycle that an AXI channel stalls (default 0)",
    )
    memory.add_argument(
        "--error-at",
        type=_error_at,
        metavar="SPEC",
        help="return an error response to one beat: read|write:BEAT:slverr|decerr",
    )
    memory.add_argument(
        "--max-cycles",
        type=kept(MAX_CYCLES),
        metavar="N",
        help="report a hang after N cycles (default from the predicted cycles)",
    )

    files = parser.add_argument_group("files")
    files.add_argument("--inputs", metavar="FILE.npz", help="operands (default random)")
    files.add_argument("--outputs", metavar="FILE.npz", help="write the results here")
    files.add_argument("--rtl", metavar="FILE.v", help="simulate this Verilog; emit none")
    files.add_argument(
        "--image-out",
        metavar="FILE",
        help="write the chip's image here; of a "
        "kernel of several parts, FILE with the number of the part before the suffix",
    )
    files.add_argument("--waves", metavar="FILE.vcd", help="record waveforms here")
    add_profile(files)
    files.add_argument("--no-cache", action="store_true", help="rebuild the simulation model")
    parser.add_argument("--warm", action="store_true", help="report a second, warm launch")
    add_json(parser)


def _design(path: str | None) -> "Design | None":
    from sim.run.verilog_file import read_design

    if path is None:
        return None
    with validating("--rtl"):
        return read_design(path)


def _job(args: argparse.Namespace) -> "Job":
    """Build the job that the options describe; all checks of the options are made here."""
    if args.image_out and args.backend == "golden":
        raise BadInputError(
            "--image-out must not be given with back end golden, which has no image",
            where="--image-out",
            value=args.backend,
            rule="not with golden",
        )

    problem, inputs = read_problem(args, args.inputs)

    from sim.native.conditions import ErrorAt, MemoryConditions
    from sim.run.job import Job

    with validating():
        conditions = MemoryConditions(
            latency=args.latency,
            jitter=args.jitter,
            stall=args.stall,
            seed=args.seed,
            error=ErrorAt(*args.error_at) if args.error_at else None,
        )
    return Job(
        problem=problem,
        backend=args.backend,
        seed=args.seed,
        conditions=conditions,
        inputs=inputs,
        warm=args.warm,
        max_cycles=args.max_cycles,
        design=_design(args.rtl),
        waves=WAVES.check("--waves", args.waves) if args.waves else None,
        use_cache=not args.no_cache,
    )


def _image_file(name: str, part: int, parts: int) -> str:
    """File of a part's image; of several, each has its number before the suffix."""
    path = Path(name)
    return name if parts == 1 else str(path.with_name(f"{path.stem}.{part}{path.suffix}"))


def _run(
    args: argparse.Namespace, job: "Job", compiled: "Compiled | None", fields: dict[str, Any]
) -> "Outcome":
    """Run a job and write its profile, also if the launch hangs or ends with an error."""
    from sim.run.driver import run

    if not wants_profile(args) or compiled is None:
        return run(job, compiled, fields)

    from dataclasses import replace

    from sim.profile.collect import sample_distance

    if job.backend == "rtl":
        job = replace(job, sample_every=sample_distance(job, compiled))
    answers: list[Answer] = []
    try:
        outcome = run(job, compiled, fields, answers)
    except (HangError, DeviceError) as error:
        write_profile(args, job, compiled, error.result, answers, error.message)
        raise
    write_profile(args, job, compiled, outcome.report, answers)
    return outcome


def execute(args: argparse.Namespace) -> dict[str, Any]:
    """Run the kernel; exit code 0 only if the result is verified."""
    require_profile(args)
    job = _job(args)
    if args.outputs:
        size = sum(spec.bytes + _HEAD_BYTES for spec in job.problem.outputs)
        require_space(args.outputs, size, where="--outputs")

    from dataclasses import replace

    from sim.cli.npz import pack_arrays
    from sim.progress import shown_progress
    from sim.run.driver import compile_job, predicted_cycles
    from sim.run.report import tell

    with shown_progress() as progress, running_file(file_of(args.kernel)):
        job = replace(job, progress=progress)
        compiled, fields = compile_job(job)
        if compiled is not None:
            fields["predicted_cycles"] = predicted_cycles(job, compiled)
        if args.image_out and compiled is not None:
            for number, part in enumerate(compiled.parts, 1):
                file = _image_file(args.image_out, number, len(compiled.parts))
                write_output(file, part.image, where="--image-out")
        fields["config"] = args.config
        outcome = _run(args, job, compiled, fields)
    if args.outputs:
        write_output(args.outputs, pack_arrays(outcome.outputs), where="--outputs")
    print("\n".join(tell(outcome.report, outcome.problems, outcome.notes)))
    if outcome.problems:
        raise WrongResultError(outcome.problems[0], result=outcome.report)
    return outcome.report
