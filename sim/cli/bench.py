"""``tilewright bench``: our figures beside those of peers."""

import argparse
from typing import Any

from hw.errors import WrongResultError
from sim.cli.options import Subparsers, add_json, add_seed

__all__ = ["add", "execute"]


def add(subparsers: Subparsers) -> None:
    """Register the options of ``bench``."""
    parser = subparsers.add_parser(
        "bench",
        help="measure and compare with peers",
        description="Measure utilization on the RTL, and compare it with peers.",
    )
    parser.add_argument("--quick", action="store_true", help="three matmuls only")
    add_seed(parser)
    add_json(parser)


def execute(args: argparse.Namespace) -> dict[str, Any]:
    """Run the benchmarks and tabulate ratios to peers; exit code 0 only if all goals are met."""
    from sim.benchmarks import BENCHMARKS, measure
    from sim.progress import shown_progress

    rows = []
    print("utilization: of the chip's peak, cold, memory latency 100 cycles; ratio: ours / peer")
    for benchmark in BENCHMARKS:
        if args.quick and not benchmark.quick:
            continue
        with shown_progress() as progress, progress.step(benchmark.name):
            row = measure(benchmark, seed=args.seed, progress=progress)
        rows.append(row)
        verdict = "met" if row["met"] else "NOT MET" if row["verified"] else "WRONG RESULT"
        print(
            f"{row['id']:<30} {row['cycles']:>9,} cycles  {row['ours']:.3f}  goal "
            f"{row['goal']:.2f} {verdict}  peer {row['peer']:.3f}  ratio {row['ratio']:.2f}",
            flush=True,
        )
    for source in dict.fromkeys(row["peer_source"] for row in rows):
        print(f"peer: {source}")
    report = {"rows": rows}
    missed = [row["id"] for row in rows if not row["met"]]
    if missed:
        raise WrongResultError(f"goals are not met: {', '.join(missed)}", result=report)
    return report
