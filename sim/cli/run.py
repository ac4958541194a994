"""``tilewright run``: a kernel on a chip, compared with numpy."""

import argparse
from typing import TYPE_CHECKING, Any

from hw.errors import BadInputError, NotBuiltError, WrongResultError, did_you_mean
from sim.cli.options import (
    Subparsers,
    add_config,
    add_json,
    add_seed,
    integer,
    load_config,
    probability,
    setting,
    settings,
    validating,
)
from sim.files import require_writable, write_whole

if TYPE_CHECKING:
    from hw.numeric.formats import Format

__all__ = ["FIELDS", "add", "execute"]

DEFAULT_LATENCY = 100

#: Fields of the report, in order; those of parts that took no part are null.
FIELDS = (
    "kernel config backend dtype out_dtype params schedule seed latency jitter stall verified "
    "bit_exact error_bound max_abs_err max_rel_err cycles macs macs_issued peak_macs_per_cycle "
    "utilization predicted_cycles launch_to_first_mac launches dram_bytes_read dram_bytes_written "
    "units_used config_sha256 image_sha256 image_bytes verilog_sha256 input_sha256 output_sha256 "
    "golden_sha256 counters cycles_per_second compile_seconds emit_seconds build_seconds "
    "run_seconds cache_hit"
).split()


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
        default=DEFAULT_LATENCY,
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


def _refuse_unbuilt(args: argparse.Namespace) -> None:
    """Options of parts that do not exist yet fail by name rather than being ignored."""
    unbuilt = {
        "--latency": args.latency != DEFAULT_LATENCY,
        "--jitter": args.jitter != 0,
        "--error-at": args.error_at is not None,
        "--image-out": args.image_out is not None,
        "--schedule": args.schedule is not None,
        "--waves": args.waves is not None,
        "--warm": args.warm,
    }
    for option, given in unbuilt.items():
        if given:
            raise NotBuiltError(
                f"{option} is not built yet: runs use one matrix unit, without memory or image",
                where=option,
            )
    if args.backend not in ("rtl", "golden"):
        raise NotBuiltError(
            f"back end {args.backend!r} is not built yet; rtl and golden are", where="--backend"
        )


def _operands(path: str, fmt: "Format") -> dict[str, Any]:
    """Arrays A and B of an npz file; bf16 as its bits in uint16."""
    import numpy as np

    with validating("--inputs"), np.load(path, allow_pickle=False) as arrays:
        missing = {"A", "B"} - set(arrays.files)
        if missing:
            raise ValueError(f"{path} must have the arrays A and B, not {arrays.files}")
        pair = {}
        for name in "AB":
            array = arrays[name]
            if array.ndim != 2:
                raise ValueError(f"{name} must be a matrix, not of {array.ndim} dimensions")
            pair[name] = fmt.from_bits(array) if array.dtype == "uint16" else array
    return pair


def _print(report: dict[str, Any], where: str) -> None:
    params = " × ".join(str(report["params"][name]) for name in "MKN")
    print(f"{report['kernel']} {params}, {report['dtype']} to {report['out_dtype']}, on {where}")
    if report["cycles"] is not None:
        print(
            f"  {report['cycles']} cycles, utilization {report['utilization']:.4f} "
            f"of {report['peak_macs_per_cycle']} MAC/cycle"
        )
        waits = next(iter(report["counters"].values()))
        names = ("busy", "wait_input", "wait_room", "idle")
        print("  " + ", ".join(f"{name} {waits[name]}" for name in names))
        print(
            f"  {waits['bytes']} bytes over the streams, "
            f"RTL {'equals' if report['bit_exact'] else 'DIFFERS from'} golden"
        )
    if report["max_abs_err"] is not None:
        print(
            f"  golden against float64: error {report['max_abs_err']:.3g}, "
            f"bound {report['error_bound']:.3g}"
        )
    print("VERIFIED" if report["verified"] else "NOT VERIFIED")


def execute(args: argparse.Namespace) -> dict[str, Any]:
    """Run the kernel; exit code 0 only if the answer is verified."""
    if args.kernel != "matmul":
        raise BadInputError(
            f"unknown kernel {args.kernel!r}{did_you_mean(args.kernel, ['matmul'])}",
            kind="unknown-kernel",
            where="KERNEL",
            value=args.kernel,
            rule="one of matmul",
        )
    chosen = settings(args.settings, ("M", "N", "K", "out"))
    config = load_config(args.config)
    _refuse_unbuilt(args)
    if args.outputs:
        require_writable(args.outputs, where="--outputs")

    import io

    import numpy as np

    from gen.verilog import Design
    from hw.numeric.formats import named as formats
    from sim.drivers.matrix_unit import matrix_unit
    from sim.run.bare import MatmulJob, run

    fmt = formats[args.dtype]
    pair = _operands(args.inputs, fmt) if args.inputs else None
    extents: dict[str, Any] = {"M": 256, "N": 256, "K": 256}
    if pair:
        extents = {"M": pair["A"].shape[0], "N": pair["B"].shape[1], "K": pair["A"].shape[1]}
    for key, value in chosen.items():
        if key != "out":
            extents[key] = value
    out = str(chosen.get("out", "bf16" if args.dtype == "bf16" else "int32"))
    if out not in formats:
        raise BadInputError(
            f"unknown format {out!r}{did_you_mean(out, formats)}",
            where="out",
            value=out,
            rule=f"one of {', '.join(formats)}",
        )
    job = MatmulJob(
        config=config,
        m=extents["M"],
        n=extents["N"],
        k=extents["K"],
        fmt=fmt,
        out=formats[out],
        seed=args.seed,
        stall=args.stall,
        operands=(pair["A"], pair["B"]) if pair else None,
    )
    design = None
    if args.rtl:
        with validating("--rtl"), open(args.rtl, encoding="utf-8") as handle:
            design = Design(
                top=matrix_unit(config).definition_name, text=handle.read(), instances={}
            )
    measured, result = run(
        job,
        backend=args.backend,
        use_cache=not args.no_cache,
        max_cycles=args.max_cycles,
        design=design,
    )
    report = dict.fromkeys(FIELDS) | {"kernel": args.kernel, "config": args.config} | measured
    if args.outputs:
        buffer = io.BytesIO()
        np.savez(buffer, C=job.out.bits_of(result) if out == "bf16" else result)
        write_whole(args.outputs, buffer.getvalue())
    place = f"one matrix unit of {args.config} (kernels do not run on the whole chip yet)"
    _print(report, place if args.backend == "rtl" else "golden")
    if not report["verified"]:
        raise WrongResultError("result is not verified", result=report)
    return report
