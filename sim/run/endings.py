"""Mapping of a failed launch (hang, device error) to its exception, with the units that wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from hw.arch.config import ChipConfig
from hw.arch.counters import ACTIVITIES, engine_states, named_counters, unit_kinds
from hw.arch.error_codes import LaunchError, ReadPhase, error_detail, error_unit
from hw.arch.errors import DeviceError, HangError
from hw.arch.limits import COUNTER_WORDS
from sim.backends.interface import Answer
from sim.run.job import Job
from sw.prove import prove

if TYPE_CHECKING:
    from sw.compiled import Compiled

__all__ = ["raise_ending", "raise_for_ending", "waiting_units"]

_WAITS = {"wait_input": "for input", "wait_room": "for room"}
#: Units named in a message; the report's counters have them all.
_MOST_NAMED = 6


def raise_for_ending(
    job: Job, compiled: Compiled, answer: Answer, result: Mapping[str, Any]
) -> NoReturn:
    """Raise the exception of a kernel's launch that hung or ended with an error.

    Raises
    ------
    HangError, DeviceError
        As of `raise_ending`; the message also names the part, and says whether it is live.
    """
    raise_ending(
        job.problem.config,
        answer,
        result,
        part=_part(compiled, answer),
        liveness=_liveness(compiled) if answer.status != "error" else "",
    )


def raise_ending(
    config: ChipConfig,
    answer: Answer,
    result: Mapping[str, Any],
    *,
    part: str = "",
    liveness: str = "",
) -> NoReturn:
    """Raise the exception of a launch that hung or ended with an error.

    Raises
    ------
    HangError
        If the watchdog ended the launch; the message names the units, engines and barriers that
        wait.
    DeviceError
        If the chip ended the launch with an error; the message names code, detail and unit.
    """
    if answer.status == "error":
        code, detail, unit = _device(config, answer)
        where = f"entry {answer.error_entry} of the launch list{part}"
        raise DeviceError(
            f"chip ended the launch with {code}{detail}{f' of {unit}' if unit else ''}, {where}",
            where=unit or where,
            value=code,
            rule="the launch ends without an error",
            result=result,
        )
    waiting = waiting_units(config, answer.counters, answer.counter_steps)
    parts = [f"no end: {answer.reason or 'the launch stands still'}"]
    if waiting:
        more = len(waiting) - _MOST_NAMED
        parts.append("; ".join(waiting[:_MOST_NAMED]) + (f"; {more} more" if more > 0 else ""))
    if answer.owed:
        parts.append(
            "memory owes " + "; ".join(f"{name}: {what}" for name, what in answer.owed.items())
        )
    parts.append(liveness)
    raise HangError(
        "; ".join(part for part in parts if part),
        where=waiting[0].partition(" ")[0].rstrip(":") if waiting else None,
        value=answer.cycles,
        rule="the launch ends",
        result=result,
    )


def _part(compiled: Compiled, answer: Answer) -> str:
    """The part whose entry ended with an error, if there are several."""
    owners = [number for number, _ in compiled.launches]
    if len(compiled.parts) == 1:
        return ""
    return f", part {owners[answer.error_entry % len(owners)] + 1} of {len(compiled.parts)}"


def _device(config: ChipConfig, answer: Answer) -> tuple[str, str, str | None]:
    """Name of the error code, detail in words, and unit."""
    codes = {each.value: each.name for each in LaunchError}
    code = codes.get(answer.error_code, f"code {answer.error_code}")
    if code in ("READ_SLVERR", "READ_DECERR"):
        phases = {each.value: each.name.lower() for each in ReadPhase}
        return code, f" at the {phases.get(answer.error_detail, 'unknown part')}", None
    if code != "UNIT":
        return code, "", None
    unit = error_unit(config, answer.error_unit)
    return code, f" error {error_detail(answer.error_detail)}", unit


def waiting_units(
    config: ChipConfig, counters: Sequence[int] | None, steps: Sequence[int]
) -> list[str]:
    """Cause of the wait of each stalled unit, one line per unit; empty without counters.

    Parameters
    ----------
    config : ChipConfig
    counters : sequence of int or None
        Counter words of all units.
    steps : sequence of int
        Increment of each word over some further cycles.
    """
    if counters is None:
        return []
    lines = []
    for index, (name, kind) in enumerate(unit_kinds(config).items()):
        words = slice(COUNTER_WORDS * index, COUNTER_WORDS * (index + 1))
        counted = named_counters(kind, counters[words])
        moved = named_counters(kind, steps[words]) if steps else counted
        activity = max(ACTIVITIES, key=moved.__getitem__)
        engines = _engines(counted["state"]) if "state" in counted else []
        if activity in _WAITS or engines:
            what = f"waits {_WAITS[activity]}" if activity in _WAITS else "stands"
            held = f" ({', '.join(engines)})" if engines else ""
            lines.append(f"{name} {what}{held}")
    return lines


def _engines(word: int) -> list[str]:
    """Engines of a PMU that have not ended, each with the cause of its wait."""
    lines = []
    for name, state in engine_states(word).items():
        if not state["enabled"] or state["done"]:
            continue
        writes = name.startswith("w")
        if not state["entered"]:
            barrier = "empty" if writes else "full"
            phase = state["lap"] if not writes else 1 - state["lap"]
            held = f"barrier {barrier} of slot {state['slot']} in phase {phase}"
        elif not state["port"]:
            held = "its port for data" if writes else "its port for room"
        elif not state["reported"]:
            held = "its token to be taken"
        else:
            held = "nothing"
        lines.append(f"{name} on {held}")
    return lines


def _liveness(compiled: Compiled) -> str:
    """Result of the liveness proof in words."""
    several = len(compiled.parts) > 1
    for number, part in enumerate(compiled.parts, 1):
        liveness = prove(part.chip, repeat=part.part.repeat)
        if not liveness.live:
            image = f"image of part {number}" if several else "image"
            return f"the {image} is not live: {'; '.join((*liveness.waits, *liveness.faults))}"
    images = "images are" if several else "image is"
    return f"the {images} live, so either more cycles are needed or the hardware is at fault"
