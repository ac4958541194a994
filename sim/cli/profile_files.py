"""Files of a run's profile that the options of ``run`` name."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hw.arch.errors import BadInputError
from sim.files import require_suffix, write_output

if TYPE_CHECKING:
    from sim.backends.interface import Answer
    from sim.run.job import Job
    from sw.compiled import Compiled

__all__ = ["add_profile", "require_profile", "wants_profile", "write_profile"]


def add_profile(group: argparse._ArgumentGroup) -> None:
    """Add the options."""
    group.add_argument(
        "--profile",
        metavar="FILE",
        help="write a profile here: a page (.html), its data (.json), or a picture (.svg)",
    )
    group.add_argument(
        "--trace", metavar="FILE.json", help="write the timeline here as trace events (Perfetto)"
    )


def wants_profile(args: argparse.Namespace) -> bool:
    """Whether the options name a file to write."""
    return bool(args.profile or args.trace)


def require_profile(args: argparse.Namespace) -> None:
    """Refuse a profile that the back end cannot give, or a file of another form.

    Raises
    ------
    BadInputError
    """
    if not wants_profile(args):
        return
    from sim.profile.run_profile import SUFFIXES

    option = "--profile" if args.profile else "--trace"
    if args.backend == "golden":
        raise BadInputError(
            f"{option} must not be given with back end golden, which has no units",
            where=option,
            value=args.backend,
            rule="not with golden",
        )
    if args.profile:
        require_suffix(args.profile, SUFFIXES, where="--profile")


def write_profile(
    args: argparse.Namespace,
    job: Job,
    compiled: Compiled | None,
    report: Mapping[str, Any],
    answers: Sequence[Answer],
    message: str = "",
) -> None:
    """Write the files that the options name, also of a launch that did not end well.

    Parameters
    ----------
    args : Namespace
    job, compiled, report, answers, message
        As of `sim.profile.collect.profile_of`.
    """
    from sim.profile.collect import profile_of
    from sim.profile.run_profile import Profile

    profile = Profile(profile_of(job, compiled, report, answers, message=message))
    if args.profile:
        write_output(args.profile, profile.text(args.profile), where="--profile")
    if args.trace:
        write_output(args.trace, profile.trace(), where="--trace")
    for name in filter(None, (args.profile, args.trace)):
        print(f"written: {name}")
