"""Launch lists of different programs, so that every configuration follows another one."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from hw.arch.config import named
from hw.arch.errors import BadInputError
from hw.arch.launch import pack_list
from sim.campaign.case import Fields, Verdict
from sim.campaign.cases.program_case import hang_name, most_cycles, refusal_faults
from sim.campaign.generators.programs import Program, program_of, random_program
from sim.campaign.generators.random_memory import PLAIN, conditions_of, random_memory
from sim.campaign.models import Models
from sim.emulator import emulate
from sim.launch_memory import GUARD_BYTES, LaunchMemory
from sim.native.chip_model import RtlFaultError

__all__ = ["draw_list", "judge_list", "smaller_list"]

_MOST_SIDE = 30


def draw_list(rng: random.Random, shared: random.Random) -> dict[str, Any]:
    """Draw two to four programs for one chip."""
    chip = named[rng.choice(["tiny", "small"])]
    programs = [
        {**random_program(rng, chip, most=_MOST_SIDE, launches=False), "schedule": {}}
        for _ in range(rng.randint(2, 4))
    ]
    return {"programs": programs, "memory": random_memory(rng)}


def _placed(programs: list[Program], seed: int) -> tuple[list[LaunchMemory], bytearray]:
    """Lay out the programs one after the other, with the launch list at the front of memory."""
    config = programs[0].compiled.config
    entries: list[LaunchMemory] = []
    base = 2 * GUARD_BYTES  # the list, behind a guard
    parts = [np.random.default_rng(seed).bytes(base)]
    for program in programs:
        place = LaunchMemory.of_kernel(program.compiled, seed=seed, base=base)
        parts.append(bytes(place.bytes_before(program.inputs)[base:]))
        entries.append(place)
        base = place.size
    memory = bytearray(b"".join(parts))
    raw = pack_list([entry for place in entries for entry in place.list_entries], config.width_bits)
    memory[GUARD_BYTES : GUARD_BYTES + len(raw)] = raw
    return entries, memory


def judge_list(fields: Fields, models: Models | None) -> Verdict:
    """Compare every output of a list with its oracle, and the RTL with the emulator."""
    try:
        programs = [program_of(each) for each in fields["programs"]]
    except BadInputError as error:
        return Verdict("refused", refusal_faults(error))
    config = programs[0].compiled.config
    places, before = _placed(programs, fields["memory"]["seed"])
    after = bytearray(before)
    run = emulate(
        config, after, list_address=GUARD_BYTES, entries=sum(place.entries for place in places)
    )
    problems = [] if run.status == "done" else [f"emulator ended with {run.error_code.name}"]
    untouched = bytearray(after)
    for program, place in zip(programs, places, strict=True):
        for name, expected in program.oracle.items():
            if place.read(after, name).tobytes() != expected.tobytes():
                problems.append(f"emulator differs from the oracle in {name}")
        for name in place.changing:
            first, size = place.places[name]
            untouched[first : first + size] = before[first : first + size]
    if untouched != before:
        problems.append("emulator wrote outside the outputs")
    bins = {"two kernels" if len(programs) == 2 else "more than two kernels"}
    counts = {"lists": 1}
    if models is not None and not problems:
        predicted = sum(program.compiled.predicted_cycles for program in programs)
        memory = bytearray(before)
        try:
            launched = models.run(
                config,
                memory,
                list_address=GUARD_BYTES,
                entries=sum(place.entries for place in places),
                conditions=conditions_of(fields["memory"]),
                max_cycles=most_cycles(predicted, fields["memory"], 1),
            )
        except RtlFaultError as error:
            return Verdict("wrong", (f"RTL broke a rule: {error}",), frozenset(bins), counts)
        if launched.status != "done":
            who = hang_name(config, launched)
            problems.append(f"RTL ended with {launched.status}: {launched.hang_reason} {who}")
        elif memory != after:
            problems.append("RTL leaves other bytes in memory than the emulator")
    outcome = "wrong" if problems else "right"
    return Verdict(outcome, tuple(problems), frozenset(bins), counts)


def smaller_list(fields: Fields) -> Iterator[dict[str, Any]]:
    """Simplifications: memory without delays, one program fewer."""
    if fields["memory"] != PLAIN:
        yield {**fields, "memory": PLAIN}
    for index in range(len(fields["programs"])):
        rest = [each for number, each in enumerate(fields["programs"]) if number != index]
        if rest:
            yield {**fields, "programs": rest}
