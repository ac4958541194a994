"""``tilewright bench``: measured utilization against that of published accelerators and GPUs."""

import argparse
from typing import Any

from hw.arch.errors import WrongResultError
from sim.cli.options import Subparsers, add_json, add_seed

__all__ = ["add", "execute"]


def add(subparsers: Subparsers) -> None:
    """Register the options of ``bench``."""
    parser = subparsers.add_parser(
        "bench",
        help="measure utilization; compare with published figures of peers",
        description="Measure the utilization of the RTL (fraction of its peak MAC rate) and "
        "compare it with published figures of peers.",
    )
    parser.add_argument("--quick", action="store_true", help="run only three matrix products")
    add_seed(parser)
    add_json(parser)


def _beside(peer: dict[str, Any]) -> str:
    """Output line of a peer."""
    least = "" if peer["least"] is None else f"{peer['least']:.3f} to "
    return (
        f"{peer['kind']:<11} {peer['name']:<12} {least}{peer['best']:.3f} of its own peak; "
        f"ours over its best {peer['ratio_of_utilization']:.2f} "
        f"({peer['conditions']}; {peer['source']})"
    )


def execute(args: argparse.Namespace) -> dict[str, Any]:
    """Run the benchmarks and print their peers; exit code 0 only if all goals are met."""
    from sim.benchmarks import BENCHMARKS, measure
    from sim.progress import shown_progress

    rows = []
    print(
        "utilization: the share of each machine's own peak; no ratio of speeds. "
        "Ours is of a cold launch at a memory latency of 100 cycles"
    )
    for benchmark in BENCHMARKS:
        if args.quick and not benchmark.quick:
            continue
        with shown_progress() as progress, progress.step(benchmark.name):
            row = measure(benchmark, seed=args.seed, progress=progress)
        rows.append(row)
        verdict = "met" if row["met"] else "NOT MET" if row["verified"] else "WRONG RESULT"
        print(
            f"{row['id']:<30} {row['cycles']:>9,} cycles  utilization {row['ours']:.3f}  goal "
            f"{row['goal']:.2f} {verdict}",
            flush=True,
        )
        for peer in row["peers"]:
            print(f"  {_beside(peer)}", flush=True)
    report = {"rows": rows}
    missed = [row["id"] for row in rows if not row["met"]]
    if missed:
        raise WrongResultError(f"goals are not met: {', '.join(missed)}", result=report)
    return report
