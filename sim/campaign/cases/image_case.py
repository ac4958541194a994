"""Random images without compiler: liveness proof, emulator and RTL must agree."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

from hw.arch.config import ChipConfig, named
from sim.campaign.case import Fields, Verdict
from sim.campaign.cases.program_case import hang_name
from sim.campaign.generators.chips import chip_fields, chip_of
from sim.campaign.generators.images import chip_program_of, placed_image, routable_image, take_away
from sim.campaign.generators.random_memory import PLAIN, conditions_of, random_memory
from sim.campaign.models import Models
from sim.emulator import emulate
from sim.native.chip_model import ChipRun, RtlFaultError
from sw.chip_program import ChipProgram
from sw.prove import Liveness, prove

__all__ = ["draw_image", "judge_image", "smaller_image"]

_CYCLES_A_VECTOR = 600


def draw_image(rng: random.Random, shared: random.Random) -> dict[str, Any]:
    """Draw an image for `tiny` or `small`; half of the draws lack a resource."""
    config = named[rng.choice(["tiny", "small"])]
    image = routable_image(rng, config)
    if rng.random() < 0.5:
        take_away(rng, image)
    return {
        "chip": chip_fields(config),
        "image": image,
        "data": rng.getrandbits(31),
        "memory": random_memory(rng),
    }


def judge_image(fields: Fields, models: Models | None) -> Verdict:
    """Compare liveness proof, emulator and RTL on an image."""
    config = chip_of(fields["chip"])
    try:
        raw = chip_program_of(config, fields["image"]).pack()
        program = ChipProgram.unpack(config, raw)
    except ValueError as error:
        return Verdict("refused", () if str(error) else ("refusal without a word",))
    liveness = prove(program)
    place, loaded = placed_image(config, fields["image"], raw, fields["data"])
    before = bytes(loaded)
    after = bytearray(before)
    problems = []
    if liveness.live:
        emulated = emulate(config, after, list_address=place.list_address)
        if emulated.status != "done":
            problems.append(f"image is live, but the emulator ended with {emulated.error_code}")
        outside = place.changed_outside(before, after)
        if outside is not None:
            problems.append(f"emulator wrote {place.where(outside)}")
    outcome = "live" if liveness.live else "dead"
    bins = frozenset({*_features(fields["image"]), outcome})
    counts = {"images": 1, f"images {outcome}": 1}
    if models is None or problems:
        return Verdict(outcome, tuple(problems), bins, counts)
    memory = bytearray(before)
    vectors = sum(part["ring"]["vectors"] * part["boxes"] for part in fields["image"]["sources"])
    try:
        run = models.run(
            config,
            memory,
            list_address=place.list_address,
            entries=1,
            conditions=conditions_of(fields["memory"]),
            max_cycles=200_000 + _CYCLES_A_VECTOR * vectors,
        )
    except RtlFaultError as error:
        return Verdict("wrong", (f"RTL broke a rule: {error}",), bins, counts)
    problems += _ending_faults(config, liveness, run)
    if not liveness.live:
        order = "open" if liveness.open_order else "fixed"
        counts[f"images dead, order of boxes {order}, RTL: {run.status}"] = 1
    if liveness.live and not problems and memory != after:
        problems.append("RTL leaves other bytes in memory than the emulator")
    return Verdict(outcome, tuple(problems), bins, counts)


def _ending_faults(config: ChipConfig, liveness: Liveness, run: ChipRun) -> list[str]:
    """Contradictions between the end of a launch and the proof, or an undefined end."""
    ended = run.status == "done"
    if liveness.live and not ended:
        return [f"image is live, but RTL ended with {run.status}: {hang_name(config, run)}"]
    if run.status == "hang" and not hang_name(config, run):
        return [f"hang without a name: {run.hang_reason}"]
    causes = "; ".join((*liveness.waits, *liveness.faults))
    # For an open order of boxes the proof decides by the worst case.
    if liveness.open_order:
        return []
    if liveness.waits and ended:
        return [f"image is not live ({causes}), but RTL ended"]
    # Leftover payloads do not keep a chip from ending.
    if not liveness.waits and run.status == "hang":
        return [f"image leaves something over ({causes}), but RTL hangs"]
    return []


def _features(image: Mapping[str, Any]) -> Iterator[str]:
    sources, sinks = image["sources"], image["sinks"]
    rings = [part["ring"] for part in (*sources, *sinks)]
    nests = [part[name] for part in (*sources, *sinks) for name in ("write", "read")]
    loops = [loop for nest in nests for loop in nest["loops"]]
    met = {
        "multicast": any(
            sum(sink["net"] == net for sink in sinks) > 1 for net in range(len(image["nets"]))
        ),
        "merge": any(len(net) > 1 for net in image["nets"]),
        "unequal turns": any(
            len({sources[each]["turns"] for each in net}) > 1 for net in image["nets"]
        ),
        "nest of loops": any(len(nest["loops"]) > 2 for nest in nests),
        "affine loop": any(loop[2] for loop in loops),
        "shifted loop": any(any(loop[4:]) for loop in loops),
        "filtered packets": any(sink["modulus"] > 1 for sink in sinks),
        "columns": any(nest["access"] == "COLUMN" for nest in nests),
        "elements of 1 byte": any(ring["element"] == 1 for ring in rings),
        "elements of 4 bytes": any(ring["element"] == 4 for ring in rings),
        "ring of one slot": any(ring["count"] == 1 for ring in rings),
    }
    return (name for name, holds in met.items() if holds)


def smaller_image(fields: Fields) -> Iterator[dict[str, Any]]:
    """Simplifications: memory without delays, one sink fewer, linear orders within slots."""
    if fields["memory"] != PLAIN:
        yield {**fields, "memory": PLAIN}
    image = fields["image"]
    for number, sink in enumerate(image["sinks"]):
        others = [each for at, each in enumerate(image["sinks"]) if at != number]
        if any(each["net"] == sink["net"] for each in others):
            renumbered = [
                {**each, "ring": {**each["ring"], "buffer": at % 2}}
                for at, each in enumerate(others)
            ]
            yield {**fields, "image": {**image, "sinks": renumbered}}
    for name in ("sources", "sinks"):
        for number, part in enumerate(image[name]):
            lanes = max(1, min(stride for _, stride, _, _ in part["write"]["loops"]))
            plain = {"access": "ROW", "loops": [[part["ring"]["vectors"], lanes, 0, 0]]}
            if part["write"] != plain and part["write"]["access"] == "ROW":
                parts = list(image[name])
                parts[number] = {**part, "write": plain}
                yield {**fields, "image": {**image, name: parts}}
