"""Fault-injection cases: memory errors at any beat, and a flipped bit of an image."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Any

from hw.arch.config import named
from hw.arch.counters import unit_kinds
from hw.arch.error_codes import LaunchError, error_detail, error_unit
from hw.arch.errors import BadInputError
from hw.arch.unit_kind import AGCU
from sim.campaign.case import Fields, Verdict, line
from sim.campaign.cases.program_case import hang_name, most_cycles, refusal_faults, smaller_program
from sim.campaign.generators.programs import Prepared, prepared, random_program
from sim.campaign.generators.random_memory import conditions_of
from sim.campaign.models import Models
from sim.emulator import emulate
from sim.native.chip_model import ChipRun, RtlFaultError
from sim.native.conditions import MOST_ERRORS, ErrorAt
from sw.chip_program import ChipProgram
from sw.prove import Liveness, prove

__all__ = ["draw_axi", "draw_bit", "judge_axi", "judge_bit", "smaller_axi", "smaller_bit"]

_MOST_SIDE = 24
_DIRECTIONS = ("read", "read", "write", "write", "launch")


def _shared_program(shared: random.Random) -> dict[str, Any]:
    chip = named[shared.choice(["tiny", "tiny", "small"])]
    program = random_program(shared, chip, most=_MOST_SIDE)
    return {**program, "schedule": {}, "launches": min(program["launches"], 2)}


def draw_axi(rng: random.Random, shared: random.Random) -> dict[str, Any]:
    """Draw one to three errors, each at a fraction of the beats of its direction."""
    errors = [
        [rng.choice(_DIRECTIONS), round(rng.random(), 6), rng.choice(["slverr", "decerr"])]
        for _ in range(rng.randint(1, MOST_ERRORS))
    ]
    return {"program": _shared_program(shared), "errors": errors}


def draw_bit(rng: random.Random, shared: random.Random) -> dict[str, Any]:
    """Draw one bit, at a fraction of the image, and whether its checksum is right all the same."""
    bit = round(rng.random(), 6)
    return {"program": _shared_program(shared), "bit": bit, "signed": rng.random() < 0.8}


def _launch(
    fields: Fields,
    ready: Prepared,
    models: Models,
    memory: bytearray,
    errors: tuple[ErrorAt, ...] | None = None,
    *,
    longest: int | None = None,
) -> ChipRun:
    """Run the launch list of a program."""
    compiled = ready.program.compiled
    predicted = compiled.predicted_cycles
    return models.run(
        compiled.config,
        memory,
        list_address=ready.place.list_address,
        entries=ready.place.entries,
        conditions=conditions_of(fields["memory"], errors),
        max_cycles=longest or most_cycles(predicted, fields["memory"], fields["launches"]),
    )


class _Shared:
    """Cache of the last program and its fault-free launch."""

    def __init__(self) -> None:
        self._key: tuple[str, int] | None = None
        self._found: tuple[Prepared, ChipRun] | None = None

    def of(self, fields: Fields, models: Models) -> tuple[Prepared, ChipRun]:
        """Memory and fault-free run of a program, cached for the last program."""
        key = line(fields), id(models)
        if self._found is None or self._key != key:
            ready = prepared(fields)
            memory = bytearray(ready.before)
            run = _launch(fields, ready, models, memory)
            self._key, self._found = key, (ready, run)
        return self._found


_shared = _Shared()


def _next_is_right(fields: Fields, ready: Prepared, models: Models) -> list[str]:
    """Failures of the launch that follows a faulty one."""
    memory = bytearray(ready.before)
    run = _launch(fields, ready, models, memory)
    if run.status != "done":
        return [f"next launch ended with {run.status}, code {run.error_code}"]
    return [] if memory == ready.after else ["next launch has other bytes"]


def judge_axi(fields: Fields, models: Models | None) -> Verdict:
    """Check that a launch with errors reports one of them, and that the next launch is right."""
    program = fields["program"]
    if models is None:
        return Verdict("not run")
    try:
        ready, clean = _shared.of(program, models)
    except BadInputError as error:
        return Verdict("refused", refusal_faults(error))
    errors = tuple(_planted(each, clean) for each in fields["errors"])
    memory = bytearray(ready.before)
    try:
        run = _launch(program, ready, models, memory, errors)
    except RtlFaultError as error:
        return Verdict("wrong", (f"RTL broke a rule: {error}",))
    problems = _error_faults(ready, run, errors)
    outside = ready.place.changed_outside(ready.before, memory)
    if outside is not None:
        problems.append(f"RTL wrote {ready.place.where(outside)}")
    problems += _next_is_right(program, ready, models)
    bins = {f"{each.direction} error" for each in errors}
    bins |= {each.response.upper() for each in errors}
    if run.errors_met > 1:
        bins.add("several errors")
    counts = {"AXI errors": run.errors_met, "launches with AXI errors": 1}
    return Verdict(run.status, tuple(problems), frozenset(bins), counts)


def _planted(given: list[Any], clean: ChipRun) -> ErrorAt:
    """The error at a fraction of the beats of the fault-free run."""
    direction, share, response = given
    *agcus, launch = (port.beats for port in clean.ports)
    beats = {
        "read": sum(port["R"] for port in agcus),
        "write": sum(port["W"] for port in agcus),
        "launch": launch["R"],
    }[direction]
    return ErrorAt(direction, int(share * beats), response)


def _error_faults(ready: Prepared, run: ChipRun, errors: tuple[ErrorAt, ...]) -> list[str]:
    """Failures in the final status of the launch."""
    config = ready.program.compiled.config
    if not run.errors_met:
        return [f"no planted error was met, and the launch ended with {run.status}"]
    if run.status != "error":
        return [f"launch ended with {run.status} in spite of an error: {hang_name(config, run)}"]
    own = {f"READ_{each.response}".upper() for each in errors if each.direction == "launch"}
    units = {
        f"{each.direction}_{each.response}".upper() for each in errors if each.direction != "launch"
    }
    if run.error_code != LaunchError.UNIT.value:
        code = LaunchError(run.error_code).name
        return [] if code in own else [f"error must be one of {sorted(own)}, not {code}"]
    detail = error_detail(run.error_detail)
    unit = error_unit(config, run.error_unit)
    if detail not in units or unit_kinds(config).get(str(unit)) is not AGCU:
        return [f"error must be {sorted(units)} of an AGCU, not {detail} of {unit}"]
    return []


def judge_bit(fields: Fields, models: Models | None) -> Verdict:
    """Classify the launch of an image with a flipped bit; check that the next launch is right."""
    program = fields["program"]
    try:
        ready, clean = _shared.of(program, models) if models else (prepared(program), None)
    except BadInputError as error:
        return Verdict("refused", refusal_faults(error))
    place = ready.place
    first, size = place.places["image"]
    byte, bit = divmod(int(fields["bit"] * 8 * size), 8)
    before = bytearray(ready.before)
    before[first + byte] ^= 1 << bit
    if fields["signed"]:
        place.sign(before)
    liveness = _read_by_software(ready, before)
    if models is None or clean is None:
        return Verdict("read")
    memory = bytearray(before)
    try:
        run = _launch(program, ready, models, memory, longest=20 * clean.cycles + 50_000)
        outcome, problems = _class_of(ready, run, before, memory)
        problems += _liveness_faults(liveness, run)
        if not fields["signed"] and (outcome != "refused" or memory != before):
            problems.append(f"image with a wrong checksum must be refused, not {outcome}")
    except RtlFaultError:
        outcome, problems = "rule broken and reported", []
    problems += _next_is_right(program, ready, models)
    bins = frozenset({outcome})
    return Verdict(outcome, tuple(problems), bins, {"image bits": 1, f"bit: {outcome}": 1})


def _read_by_software(ready: Prepared, before: bytearray) -> Liveness | None:
    """Liveness of the image, None if it is refused; the emulator accepts or clearly refuses it."""
    config = ready.program.compiled.config
    liveness = None
    with contextlib.suppress(BadInputError):
        liveness = prove(ChipProgram.unpack(config, ready.place.image_in(before)))
    with contextlib.suppress(BadInputError):
        memory = bytearray(before)
        emulate(config, memory, list_address=ready.place.list_address, entries=ready.place.entries)
    return liveness


def _liveness_faults(liveness: Liveness | None, run: ChipRun) -> list[str]:
    """Contradictions of the proof and the RTL: it ends unless engines or boxes wait for ever."""
    if liveness is None:
        return []
    if liveness.live and run.hang_reason.startswith("no beat"):
        return [f"image is live, but RTL hangs: {run.hang_reason}"]
    if liveness.open_order:
        return []
    if liveness.waits and run.status == "done":
        return [f"image is not live ({'; '.join(liveness.waits)}), but RTL ended"]
    if not liveness.waits and run.hang_reason.startswith("no beat"):
        return [f"image leaves something over ({'; '.join(liveness.faults)}), but RTL hangs"]
    return []


def _class_of(
    ready: Prepared, run: ChipRun, before: bytearray, memory: bytearray
) -> tuple[str, list[str]]:
    """Class of the launch of an image with a flipped bit."""
    config = ready.program.compiled.config
    if run.status == "hang":
        if hang_name(config, run) or any(port.reads_owed or port.writes_owed for port in run.ports):
            return "hang named", []
        return "hang", [f"hang without a name: {run.hang_reason}"]
    if run.status == "error":
        if run.error_code == LaunchError.UNIT.value:
            return "error", []
        named_code = run.error_code in {each.value for each in LaunchError}
        return "refused", [] if named_code else [f"error code {run.error_code} has no name"]
    outputs = ready.outputs(memory)
    right = all(outputs[name].tobytes() == ready.program.oracle[name].tobytes() for name in outputs)
    inside = ready.place.changed_outside(before, memory) is None
    return ("harmless" if right and inside else "wrong output reported"), []


def _plain_program(fields: Fields) -> Iterator[dict[str, Any]]:
    for program in smaller_program(fields["program"]):
        yield {**fields, "program": program}


def smaller_axi(fields: Fields) -> Iterator[dict[str, Any]]:
    """Simplifications: fewer errors, then a simpler program."""
    for index in range(len(fields["errors"])):
        rest = [each for number, each in enumerate(fields["errors"]) if number != index]
        if rest:
            yield {**fields, "errors": rest}
    yield from _plain_program(fields)


def smaller_bit(fields: Fields) -> Iterator[dict[str, Any]]:
    """Simplifications: a simpler program, with the bit at the same fraction of its image."""
    yield from _plain_program(fields)
