"""``tilewright compare``: the profiles of two runs in one page."""

from __future__ import annotations

import argparse
from typing import Any

from sim.cli.options import Subparsers, add_json
from sim.files import write_output

__all__ = ["add", "execute"]


def add(subparsers: Subparsers) -> None:
    """Register the options of ``compare``."""
    parser = subparsers.add_parser(
        "compare",
        help="compare the profiles of two runs in one page",
        description="Compare two runs, whose profiles `tilewright run --profile FILE.json` has "
        "written, in one page.",
    )
    parser.add_argument("before", metavar="A.json", help="profile of one run")
    parser.add_argument("after", metavar="B.json", help="profile of the other")
    parser.add_argument(
        "-o", "--output", metavar="FILE.html", required=True, help="file for the page"
    )
    add_json(parser)


def execute(args: argparse.Namespace) -> dict[str, Any]:
    """Write the page of two profiles, and print their cycles."""
    from sim.profile.page_writer import page_of
    from sim.profile.run_profile import load_profile

    both = [
        load_profile(args.before, where="A.json").data,
        load_profile(args.after, where="B.json").data,
    ]
    before, after = (profile["cycles"] for profile in both)
    write_output(args.output, page_of(both), where="--output")
    change = f"{after / before - 1:+.1%}" if before else "from none"
    print(f"{before:,} cycles before, {after:,} after ({change}): {args.output}")
    return {"cycles": [before, after], "output": args.output}
