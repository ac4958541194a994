"""``tilewright prove``: formal proofs of the blocks, and liveness of the kernels' images."""

import argparse
from typing import TYPE_CHECKING, Any

from hw.arch.errors import WrongResultError
from sim.cli.options import Subparsers, add_json
from sim.progress import Progress, shown_progress

if TYPE_CHECKING:
    from gen.formal import Property
    from gen.proof import Proof

__all__ = ["CHOICES", "add", "execute"]

#: Blocks that have properties; gen.properties is too slow to import for a help.
CHOICES = (
    "stream",
    "fork",
    "merge",
    "packet_filter",
    "barrier",
    "barrier_bank",
    "tma",
    "reduction_interlock",
    "array",
    "images",
)


def add(subparsers: Subparsers) -> None:
    """Register the options of ``prove``."""
    parser = subparsers.add_parser(
        "prove",
        help="prove properties of blocks and the liveness of images",
        description="Prove properties of blocks by k-induction or PDR, and the liveness of the "
        "kernels' images.",
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
    """Prove the requested properties; exit code 0 only if all are proved or hold to their bound."""
    with shown_progress() as progress:
        rows = _proved(args.block, progress)
    report = {"properties": rows}
    failed = [row["name"] for row in rows if row["status"] not in ("proved", "bounded")]
    if failed:
        raise WrongResultError(f"not proved: {'; '.join(failed)}", result=report)
    return report


def _proved(block: str | None, progress: Progress) -> list[dict[str, Any]]:
    """Report rows of the properties of one block or of all; each is printed when it is done."""
    from gen.formal import prove
    from gen.properties import PROPERTIES

    rows: list[dict[str, Any]] = []
    for property in PROPERTIES:
        if block in (None, property.block):
            with progress.step(f"proving: {property.name}"):
                proof = prove(property)
            rows.append(_row(property, proof))
            _tell(rows[-1])
    if block in (None, "images"):
        from sim.image_proofs import prove_images

        for row in prove_images(progress):
            rows.append(row)
            _tell(row)
    return rows


def _row(property: "Property", proof: "Proof") -> dict[str, Any]:
    return {
        "block": property.block,
        "name": property.name,
        "method": property.method,
        "parameters": dict(property.parameters)
        | ({"cycles": property.cycles} if property.cycles else {}),
        "status": _status(proof),
        "cover_reached": f"{proof.reached} of {proof.covers}",
        "faults_caught": f"{proof.caught} of {len(proof.faults)}",
        "faults_equivalent": proof.equivalent,
        "seconds": round(proof.seconds, 3),
    }


def _status(proof: "Proof") -> str:
    """Status of a property in one word; a vacuous or unfailable check does not count as proved."""
    if proof.met or not proof.holds:
        return proof.outcome.value
    return "vacuous" if proof.reached < proof.covers else "untested"


def _tell(row: dict[str, Any]) -> None:
    covers = f"covers {row['cover_reached']}, " if row["cover_reached"] else ""
    sizes = ", ".join(f"{name} {value}" for name, value in row["parameters"].items())
    print(
        f"{row['block']:<14} {row['status']:<10} {row['name']}, at {sizes} "
        f"({covers}{_faults(row)}, {row['seconds']:.1f} s)",
        flush=True,
    )


def _faults(row: dict[str, Any]) -> str:
    """Number of planted faults detected, and the reasons why others were not."""
    said = f"faults caught {row['faults_caught']}"
    if "faults_equivalent" not in row:
        return said
    caught, count = (int(number) for number in row["faults_caught"].split(" of "))
    equivalent = row["faults_equivalent"]
    others = {"proved equivalent": equivalent, "open": count - caught - equivalent}
    return said + "".join(f", {number} {kind}" for kind, number in others.items() if number)
