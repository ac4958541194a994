"""``tilewright prove``: formal proofs of the blocks, and liveness of the kernels' images."""

import argparse
from typing import Any

from hw.errors import WrongResultError
from sim.cli.options import Subparsers, add_json

__all__ = ["CHOICES", "add", "execute"]

#: Blocks that have properties; gen.properties is too slow to import for a help.
CHOICES = ("stream", "fork", "merge", "packet_filter", "barrier", "tma", "array")


def add(subparsers: Subparsers) -> None:
    """Register the options of ``prove``."""
    parser = subparsers.add_parser(
        "prove",
        help="prove properties of a block",
        description="Prove properties of a block, or of all that have any, by k-induction.",
    )
    parser.add_argument(
        "block",
        metavar="BLOCK",
        nargs="?",
        choices=CHOICES,
        help=f"block to prove: {', '.join(CHOICES)} (default all)",
    )
    add_json(parser)


def execute(args: argparse.Namespace) -> dict[str, Any]:
    """Prove the properties asked for; exit code 0 only if each is proved."""
    from gen.formal import prove
    from gen.properties import PROPERTIES

    rows: list[dict[str, Any]] = []
    for property in PROPERTIES:
        if args.block not in (None, property.block):
            continue
        proof = prove(property)
        status = "proved" if proof.met else "vacuous" if proof.proved else "not proved"
        rows.append(
            {
                "block": property.block,
                "name": property.name,
                "method": "k-induction",
                "parameters": dict(property.parameters),
                "status": status,
                "cover_reached": f"{proof.reached} of {proof.covers}",
                "faults_caught": f"{proof.caught} of {proof.faults}",
                "seconds": round(proof.seconds, 3),
            }
        )
        print(
            f"{property.block:<14} {status:<10} {property.name} "
            f"(covers {rows[-1]['cover_reached']}, faults caught {rows[-1]['faults_caught']}, "
            f"{proof.seconds:.1f} s)",
            flush=True,
        )
    report = {"properties": rows}
    failed = [row["name"] for row in rows if row["status"] != "proved"]
    if failed:
        raise WrongResultError(f"not proved: {'; '.join(failed)}", result=report)
    return report
