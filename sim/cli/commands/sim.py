"""``tilewright sim``: cocotb testbenches of the blocks and of the chip."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gen.tools import require_package
from hw.arch.errors import BadInputError, WrongResultError, did_you_mean
from sim.cli.commands.listing import modules
from sim.cli.options import DEFAULT_CONFIG, Subparsers, add_json, add_seed
from sim.cli.stand_alone import add_settings, require_no_settings, stand_alone
from sim.cli.unit_options import add_bench_unit, bench_unit, component_name
from sim.components import COMPONENTS
from sim.files import require_writable
from sim.progress import shown_progress
from sim.rules import WAVES, validating

if TYPE_CHECKING:
    from sim.cocotb.bench_runner import BenchResult

__all__ = ["add", "execute"]

_DEFAULT_WAVES = "default"
#: Testbenches whose units have the parameters that are set.
_TAKES_SETTINGS = ("fp", "tma_host")


def add(subparsers: Subparsers) -> None:
    """Register the options of ``sim``."""
    parser = subparsers.add_parser(
        "sim",
        help="run the cocotb testbench of a block",
        description="Run the cocotb testbench of a block, or of all blocks.",
    )
    parser.add_argument(
        "block",
        type=component_name,
        metavar="BLOCK",
        nargs="?",
        help="block or component of `tilewright list` (default all blocks)",
    )
    parser.add_argument("--component", type=component_name, metavar="NAME", help="same as BLOCK")
    add_settings(parser)
    parser.add_argument("--list", action="store_true", help="list the blocks")
    parser.add_argument(
        "--simulator",
        choices=("verilator", "icarus"),
        default="verilator",
        help="simulator (default verilator)",
    )
    parser.add_argument(
        "--waves",
        nargs="?",
        const=_DEFAULT_WAVES,
        metavar="FILE.vcd",
        help="record waveforms here (default build/waves/BLOCK.vcd)",
    )
    add_bench_unit(parser)
    add_seed(parser)
    add_json(parser)


#: Testbenches of the components that `COMPONENTS` lacks, where their names differ.
_BENCHES = {"array": "grid", "tensor_top": "tensor_host"}


def _of_component(args: argparse.Namespace) -> dict[str, Any]:
    """Set BLOCK to the testbench of the requested component; return its unit under test."""
    if None not in (args.block, args.component) and args.block != args.component:
        rule = "must be left out where BLOCK is given"
        raise BadInputError(f"--component {rule}", where="--component", value=args.component)
    name = args.block = args.block or args.component
    bench = _BENCHES.get(name) or (COMPONENTS[name].bench if name in COMPONENTS else None)
    if bench not in _TAKES_SETTINGS:
        units = "a floating-point unit, tma_unit or tma_top"
        require_no_settings(args, f"for {units}, whose testbench takes it")
    if bench is None or bench == name:
        return {}
    args.block = bench
    unit = _tested_unit(args, name) if args.settings or bench == "fp" else {}
    print(f"{name}: tested by the testbench {bench}")
    return unit


def _tested_unit(args: argparse.Namespace, name: str) -> dict[str, Any]:
    """The unit with the parameters that are set, and the environment that selects it."""
    from hw.arch.config import named

    if args.block == "tma_host":
        from sim.cocotb.tma_choice import TmaChoice

        with validating("--set"):
            chosen = TmaChoice.of(COMPONENTS[name].values(named[DEFAULT_CONFIG], args.settings))
            return {"component": chosen.design(), "environment": chosen.environment}
    from sim.cocotb.unit_choice import environment_of_fp
    from sim.native.bundle import Bundle

    args.component, args.config = name, None
    unit, values = stand_alone(args, named[DEFAULT_CONFIG])
    return {"component": Bundle({name: unit}), "environment": environment_of_fp(name, values)}


def _chosen(args: argparse.Namespace, known: list[str]) -> list[str]:
    """The blocks to run."""
    if args.block is not None and args.block not in known:
        known = [*known, *(name for name in (*COMPONENTS, "array") if name not in known)]
        rule = f"one of {', '.join(known)}"
        raise BadInputError(
            f"unknown block {args.block!r}{did_you_mean(args.block, known) or f'; {rule}'}",
            kind="unknown-block",
            where="BLOCK",
            value=args.block,
            rule=rule,
        )
    if args.waves not in (None, _DEFAULT_WAVES):
        # A block that stands behind the option is taken for its file.
        WAVES.check("--waves (BLOCK comes before it)", args.waves, where="--waves")
        if args.block is None:
            raise BadInputError(
                "BLOCK must be given with a file for --waves: every block has its own",
                where="--waves",
                value=args.waves,
                rule="one block a file",
            )
        require_writable(args.waves, where="--waves")
    return known if args.block is None else [args.block]


def _waves(args: argparse.Namespace, block: str) -> Path | None:
    if args.waves is None:
        return None
    return Path(f"build/waves/{block}.vcd" if args.waves == _DEFAULT_WAVES else args.waves)


def _row(result: "BenchResult", command: str) -> dict[str, Any]:
    return {
        "block": result.block,
        "tests": result.tests,
        "seed": result.seed,
        "passed": result.passed,
        "failed": result.failed,
        "seconds": round(result.seconds, 3),
        "build_seconds": round(result.build_seconds, 3),
        "cache_hit": result.cache_hit,
        "simulator": result.simulator,
        "failures": list(result.failures),
        "command": command,
    }


def _totals(args: argparse.Namespace, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Report fields: totals over the blocks, and each block's figures."""
    sums = ("tests", "passed", "failed", "seconds")
    return {
        "block": args.block,
        "seed": args.seed,
        **{name: round(sum(row[name] for row in rows), 3) for name in sums},
        "blocks": rows,
    }


def execute(args: argparse.Namespace) -> dict[str, Any]:
    """Run the requested testbenches; exit code 0 only if every test passes."""
    summaries = {row["name"]: row["summary"] for row in modules("sim.tb")}
    if args.list:
        for name, summary in summaries.items():
            print(f"{name:<14}{summary}")
        return {"blocks": [{"block": name, "summary": text} for name, text in summaries.items()]}
    name = args.block or args.component
    asked = _of_component(args)
    options = "".join(f" --set {name}={value}" for name, value in args.settings)
    chosen = _chosen(args, list(summaries))
    unit = bench_unit(args)
    if unit is not None:
        asked["component"], asked["environment"], options = unit
    for package in ("cocotb", "cocotbext-axi"):
        require_package(package, where="sim")

    from sim.cocotb.bench_runner import run_bench

    rows: list[dict[str, Any]] = []
    for block in chosen:
        print(f"{block}: {summaries[block]}", flush=True)
        waves = _waves(args, block)
        with shown_progress() as progress:
            result = run_bench(
                block,
                seed=args.seed,
                simulator=args.simulator,
                waves=waves,
                progress=progress,
                **asked,
            )
        command = result.command.replace(f"sim {block} ", f"sim {name or block} ") + options
        rows.append(_row(result, command))
        built = "cached" if result.cache_hit else f"{result.build_seconds:.1f} s"
        print(
            f"{block}: {result.passed} of {result.tests} tests passed "
            f"in {result.seconds:.1f} s (build {built})",
            flush=True,
        )
        if waves is not None:
            print(f"{block}: waves in {waves}")
        for failure in result.failures:
            print(f"{block}: FAILED {failure}")
        if result.failed:
            print(f"{block}: log in {result.log}; repeat with: {command}", flush=True)
    totals = _totals(args, rows)
    if totals["failed"]:
        names = ", ".join(row["block"] for row in rows if row["failed"])
        raise WrongResultError(
            f"{totals['failed']} of {totals['tests']} tests failed, in {names}",
            where=names,
            value=totals["failed"],
            rule="every test passes",
            result=totals,
        )
    return totals
