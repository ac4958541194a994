"""Bottlenecks planted in runs: what is planted, what relieves it, what a profile should name."""

import dataclasses

from hw.arch.config import named
from sw.language import Schedule
from tests.profiled_run import profiled

__all__ = [
    "PCU",
    "PORT",
    "SMALL",
    "Planted",
    "chip",
    "names_it",
    "profile_of_planted",
    "slots",
    "speedup",
]


@dataclasses.dataclass(frozen=True)
class Planted:
    """A bottleneck in a run of a kernel.

    `planted` and `relief` are options of `tests.profiled_run.profiled`: with the bottleneck, and
    without it. `first` is the cause that the first finding must have, and how the name of its unit
    begins; several, if the machine has several names for one thing. On a chip that is not
    among the named ones the profile is predicted, as its model is not built.
    """

    kernel: object
    dims: dict
    planted: dict
    relief: dict
    first: tuple
    backend: str = "rtl"


def profile_of_planted(case):
    """Profile of the run with the bottleneck."""
    return profiled(case.kernel, case.dims, backend=case.backend, **case.planted)


def speedup(case):
    """Cycles with the bottleneck over those without it: predicted, if memory never pauses."""
    pauses = "channel_stalls" in case.planted or "stall" in case.planted
    backend = "rtl" if pauses else "emulator"
    runs = [
        profiled(case.kernel, case.dims, backend=backend, **options)
        for options in (case.planted, case.relief)
    ]
    return runs[0]["cycles"] / runs[1]["cycles"]


def names_it(profile, case):
    """Whether the first finding is what was planted."""
    found = profile["findings"][0]
    return any(found["cause"] == cause and found["by"].startswith(by) for cause, by in case.first)


def chip(name, *, agcus=None, lanes=None, link=None):
    """A named chip with other AGCUs, lanes or links."""
    found = named[name]
    if link:
        found = dataclasses.replace(found, width_bits=link)
    if agcus:
        found = dataclasses.replace(found, agcu=dataclasses.replace(found.agcu, count=agcus))
    if lanes:
        found = dataclasses.replace(found, pcu=dataclasses.replace(found.pcu, lanes=lanes))
    return found


def slots(**numbers):
    """Options of a run with so many slots of some buffers."""
    return {"schedule": Schedule(slots=numbers)}


#: Options of a run on `small`.
SMALL = {"config": "small"}
#: First findings that name a slow PCU, and a port or link.
PCU = (("busy", "pcu"), ("unit", "pcu"))
PORT = (("port", "agcu"), ("busy", "agcu"))
