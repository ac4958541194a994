"""Command line of the campaign: a run from a seed for some hours, or the repetition of one case."""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from sim.campaign.case import line
from sim.campaign.kinds import KINDS, judge
from sim.campaign.models import Models
from sim.campaign.runner import run_campaign

__all__ = ["main"]

#: Duration in hours from which a run must cover every feature bin.
_FULL_HOURS = 1.0


def _today() -> int:
    return int(datetime.date.today().strftime("%Y%m%d"))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m sim.campaign",
        description="Random test cases, compared across oracle, golden, emulator and RTL.",
    )
    parser.add_argument("--seed", type=int, default=_today(), help="seed (default: today's date)")
    parser.add_argument(
        "--hours", type=float, default=0.05, help="duration of the run in hours (default 0.05)"
    )
    parser.add_argument(
        "--kinds",
        default=",".join(KINDS),
        help=f"kinds of cases, separated by commas, of {', '.join(KINDS)} (default all)",
    )
    parser.add_argument("--corpus", type=Path, help="folder in which failing cases are kept")
    parser.add_argument("--case", help="run only this case, one line of JSON")
    parser.add_argument("--emulator", action="store_true", help="run without RTL")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns exit code 1 if a case failed."""
    parser = _parser()
    args = parser.parse_args(argv)
    kinds = tuple(args.kinds.split(","))
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown or not 0 < args.hours:
        parser.error(f"kinds must be of {', '.join(KINDS)}, and hours above 0")
    with Models() as opened:
        models = None if args.emulator else opened
        if args.case is not None:
            try:
                fields = json.loads(args.case)
                kind = fields["kind"]
            except (ValueError, KeyError, TypeError) as error:
                parser.error(f"case must be a JSON object with a kind: {error}")
            if kind not in KINDS:
                parser.error(f"kind of a case must be one of {', '.join(KINDS)}, not {kind!r}")
            verdict = judge(fields, models)
            print(line(fields))
            print(verdict.outcome, *verdict.problems, sep="\n  ")
            return 1 if verdict.problems else 0
        summary = run_campaign(
            args.seed, 3600 * args.hours, kinds=kinds, models=models, corpus=args.corpus
        )
    full = args.hours >= _FULL_HOURS and not args.emulator and set(kinds) == set(KINDS)
    return 1 if summary.failures or (full and summary.missing) else 0


if __name__ == "__main__":
    sys.exit(main())
