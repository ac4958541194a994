"""Random programs: golden, oracle, emulator and RTL must agree bit by bit, or refuse clearly."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Iterator
from typing import Any

from hw.arch.config import ChipConfig, named
from hw.arch.errors import BadInputError
from sim.campaign.case import Fields, Verdict
from sim.campaign.features import program_features
from sim.campaign.generators.chips import chip_of, random_chip
from sim.campaign.generators.programs import Prepared, prepared, random_program
from sim.campaign.generators.random_memory import PLAIN, conditions_of
from sim.campaign.models import Models
from sim.native.chip_model import ChipRun, RtlFaultError
from sim.run.endings import waiting_units
from sim.run.job import Problem
from sw.kernels.matmul import matmul

__all__ = [
    "draw_chip",
    "draw_program",
    "hang_name",
    "judge_program",
    "most_cycles",
    "refusal_faults",
    "smaller_program",
]

#: Cycles predicted of a launch list that still goes to the RTL.
_MOST_RTL_CYCLES = 20_000
_MOST_SIDES = (12, 40, 90, 90, 300)
_CHIP_TILES, _CHIP_CELLS = 12, 512
#: One in so many launches is run twice, for the same cycles.
_AGAIN = 12


def draw_program(rng: random.Random, shared: random.Random) -> dict[str, Any]:
    """Draw a program for `tiny` or `small`."""
    chip = named[rng.choice(["tiny", "small"])]
    return random_program(rng, chip, most=rng.choice(_MOST_SIDES))


@functools.lru_cache(maxsize=64)
def _multiplies(chip: ChipConfig) -> bool:
    """Whether the smallest matrix product fits a chip."""
    try:
        Problem(matmul, chip, dict.fromkeys("MKN", 1), chip.pcu.operands[0]).compile()
    except BadInputError:
        return False
    return True


def draw_chip(rng: random.Random, shared: random.Random) -> dict[str, Any]:
    """Draw a program for a random chip, which `shared` makes equal for several cases.

    Chips on which no product fits are rejected, because their RTL would not be exercised.
    """
    while True:
        chip = random_chip(shared, most_tiles=_CHIP_TILES, most_cells=_CHIP_CELLS)
        if _multiplies(chip):
            return random_program(rng, chip, most=rng.choice((8, 30, 60)))


def refusal_faults(error: BadInputError) -> tuple[str, ...]:
    """Failures of a refusal: it must name value and rule, and no plan may lack liveness."""
    faults = []
    if "None" in error.message or not error.message:
        faults.append(f"refusal says nothing: {error.message}")
    if error.kind == "not-live":
        faults.append(f"compiler made a program that is not live: {error.message}")
    if error.rule is None or error.value is None:
        faults.append(f"refusal must have value and rule: {error.message}")
    return tuple(faults)


def most_cycles(predicted: int, memory: Fields, launches: int) -> int:
    """Cycles after which a launch list counts as a hang."""
    slowed = predicted * (2 + (memory["latency"] + memory["jitter"]) / 50)
    return 100_000 + int(10 * launches * slowed / (1 - max(memory["stalls"])))


def hang_name(config: ChipConfig, run: ChipRun) -> str:
    """The waits of a launch that hangs, in words; empty if no unit is named."""
    return "; ".join(waiting_units(config, run.counters, run.counter_steps))


def judge_program(fields: Fields, models: Models | None) -> Verdict:
    """Compare all results of a program; without models, those that need no RTL."""
    try:
        ready = prepared(fields)
    except BadInputError as error:
        return Verdict("refused", refusal_faults(error), frozenset({"refused"}))
    problems = _answers(fields, ready)
    program = ready.program
    bins = set(program_features(fields, program))
    counts = {"programs": 1}
    if models is not None and not problems and _is_short(fields, ready):
        again = fields["memory"]["seed"] % _AGAIN == 0
        problems += _rtl(fields, ready, models, again=again)
        bins |= {"on RTL", "same cycles again"} if again else {"on RTL"}
        counts["programs on RTL"] = 1
        if isinstance(fields["chip"], dict):
            counts["programs on RTL of random chips"] = 1
    return Verdict("right" if not problems else "wrong", tuple(problems), frozenset(bins), counts)


def _is_short(fields: Fields, ready: Prepared) -> bool:
    """Whether the launch list is predicted to be short enough for the RTL."""
    cycles = ready.program.compiled.predicted_cycles * fields["launches"]
    return bool(cycles <= _MOST_RTL_CYCLES)


def _answers(fields: Fields, ready: Prepared) -> list[str]:
    """Differences between golden, oracle and emulator, one line each."""
    problems = []
    program = ready.program
    run = ready.emulated
    if run.status != "done":
        problems.append(f"emulator ended with {run.error_code.name}")
    outputs = ready.outputs(ready.after)
    written = sum(
        math.prod(each.shape[:-1]) * each.row_bytes for each in program.compiled.intermediates
    )
    for name, expected in program.golden.items():
        if program.oracle[name].tobytes() != expected.tobytes():
            problems.append(f"golden differs from the oracle in {name}")
        if outputs[name].tobytes() != program.oracle[name].tobytes():
            problems.append(f"emulator differs from the oracle in {name}")
        written += expected.nbytes
    outside = ready.place.changed_outside(ready.before, ready.after)
    if outside is not None:
        problems.append(f"emulator wrote {ready.place.where(outside)}")
    if run.bytes_written != written * fields["launches"]:
        problems.append(f"emulator wrote {run.bytes_written} bytes, not {written}")
    return problems


def _rtl(fields: Fields, ready: Prepared, models: Models, *, again: bool) -> list[str]:
    """Failures of an RTL launch, and of a second one that must be identical."""
    config = ready.program.compiled.config
    memory = bytearray(ready.before)
    limit = most_cycles(
        ready.program.compiled.predicted_cycles, fields["memory"], fields["launches"]
    )

    def launched(memory: bytearray) -> ChipRun:
        return models.run(
            config,
            memory,
            list_address=ready.place.list_address,
            entries=ready.place.entries,
            conditions=conditions_of(fields["memory"]),
            max_cycles=limit,
        )

    try:
        run = launched(memory)
    except RtlFaultError as error:
        return [f"RTL broke a rule: {error}"]
    if run.status != "done":
        who = hang_name(config, run) or f"code {run.error_code} detail {run.error_detail}"
        return [f"RTL ended with {run.status}: {run.hang_reason} {who}"]
    problems = []
    for name, expected in ready.program.oracle.items():
        if ready.place.read(memory, name).tobytes() != expected.tobytes():
            problems.append(f"RTL differs from the oracle in {name}")
    outside = ready.place.changed_outside(ready.before, memory)
    if outside is not None:
        problems.append(f"RTL wrote {ready.place.where(outside)}")
    emulated = ready.emulated
    for noun, got, expected_bytes in (
        ("written", run.bytes_written, emulated.bytes_written),
        ("read", run.bytes_read, emulated.bytes_read + emulated.launch_bytes_read),
    ):
        if got != expected_bytes:
            problems.append(f"bytes {noun} by RTL must be {expected_bytes}, not {got}")
    if again and not problems:
        cycles = launched(bytearray(ready.before)).cycles
        if cycles != run.cycles:
            problems.append(f"cycles of the same launch must be {run.cycles}, not {cycles}")
    return problems


def smaller_program(fields: Fields) -> Iterator[dict[str, Any]]:
    """Cases that are simpler in one respect, the greatest simplification first."""
    plain = dict(fields)
    for name, simple in (
        ("launches", 1),
        ("memory", PLAIN),
        ("schedule", {}),
        ("place_seed", 1),
        ("out", None),
    ):
        if plain[name] != simple:
            yield {**plain, name: simple}
    for field, choices in plain["schedule"].items():
        for name in choices:
            rest = {each: value for each, value in choices.items() if each != name}
            yield {**plain, "schedule": {**plain["schedule"], field: rest}}
    for name, size in plain["dims"].items():
        for less in dict.fromkeys((1, size // 2, size - 1)):
            if 0 < less < size:
                yield {**plain, "dims": {**plain["dims"], name: less}}
    if plain["operands"]["kind"] != "6":
        yield {**plain, "operands": {**plain["operands"], "kind": "6"}}
    if isinstance(plain["chip"], dict):
        yield from ({**plain, "chip": chip} for chip in _plainer(plain["chip"]))


def _plainer(chip: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Variants of a chip with one field as in `tiny`."""
    usual: dict[str, Any] = {
        "tracks": 3,
        "token_tracks": 2,
        "pattern": "checkerboard",
        "pcu": {"accumulator_rows": 256, "cell_latency": 2, "function_bits": 16, "lanes": 2},
        "pmu": {"capacity_bytes": 4096, "slots": 16},
        "agcu": {"count": 1, "axi_address_bits": 48, "landing_beats": 256, "outstanding": 64},
    }
    for name, value in usual.items():
        changed = {**chip[name], **value} if isinstance(value, dict) else value
        if changed != chip[name]:
            made = {**chip, name: changed}
            try:
                chip_of(made)
            except (TypeError, ValueError):
                continue
            yield made
