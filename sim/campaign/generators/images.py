"""Random images without compiler: loads, scratchpads, multicast and merged streams, stores."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import Any

import numpy as np

from hw.arch.agcu import AGCU_STREAMS, AgcuProgram
from hw.arch.boxes.issuer_program import IssuerProgram, Wait
from hw.arch.config import ChipConfig
from hw.arch.descriptor import BASE_ALIGNMENT, Descriptor, ElementFormat
from hw.arch.limits import MAX_MODULUS
from hw.arch.loops import BoxLoop, LoopProgram
from hw.arch.pmu import EngineProgram, PmuProgram
from hw.arch.words.pmu_word import Level, TokenSource
from hw.numeric.formats import int8
from sim.campaign.generators.image_nests import divisor, engine_of, random_read, random_write
from sim.launch_memory import LaunchMemory
from sw.array_spec import ArraySpec
from sw.chip_program import ChipProgram
from sw.fabric.assemble import assemble
from sw.fabric.route import place_and_route
from sw.netlist import Net, Netlist, Pin
from sw.prove.packets import engine_packets

__all__ = [
    "arrays_of",
    "chip_program_of",
    "placed_image",
    "random_image",
    "routable_image",
    "take_away",
]

_MOST_VECTORS, _MOST_BOX_ROWS, _MOST_RING = 1200, 128, 64
_ENGINES = 2


def _source(rng: random.Random, config: ChipConfig, number: int) -> dict[str, Any]:
    """A loaded tensor and the access pattern of its slots; `_settle` adds the repetitions."""
    element = rng.choice([1, 2, 4])
    room = config.pmu.capacity_bytes // 2 // (config.width_bits // 8)
    least = max(1, BASE_ALIGNMENT * 8 // config.width_bits)
    vectors = least * rng.choice([1, 2, 4, 4, 8, 8, 16, 32])
    vectors = min(vectors, room // 2)
    count = min(rng.choice([1, 2, 2, 3, 4, 8, _MOST_RING]), room // vectors, config.pmu.slots)
    ring = {"element": element, "vectors": vectors, "count": count, "buffer": number % _ENGINES}
    read = random_read(rng, config, vectors, element, plain=False)
    return {
        "ring": ring,
        "write": random_write(rng, config, vectors, element),
        "read": read,
        "last": Level.ADDRESS.value + rng.randrange(len(read["loops"]) + 1),
        "slots": rng.randint(1, min(count, 3)),
        "repeats": rng.choice([1, 1, 1, 2, 3]),
        "credits": count,
        "tokens": 1,
        "turns": rng.choice([1, 1, 1, 2, 3]),
    }


def _reader(config: ChipConfig, source: Mapping[str, Any], windows: int) -> EngineProgram:
    return engine_of(
        config,
        source["read"],
        source["ring"],
        windows=LoopProgram(windows),
        repeats=LoopProgram(source["repeats"]),
        slots=LoopProgram(source["slots"]),
        last_level=source["last"],
    )


def random_image(rng: random.Random, config: ChipConfig) -> dict[str, Any]:
    """Fields of an image with matching streams, before `take_away`."""
    most = min(AGCU_STREAMS * config.agcu.count, 4, _ENGINES * (config.pmu_count // 2))
    while True:
        sources = [_source(rng, config, number) for number in range(rng.randint(1, most))]
        nets, start = [], 0
        while start < len(sources):
            size = rng.randint(1, len(sources) - start)
            nets.append(list(range(start, start + size)))
            start += size
        sinks: list[dict[str, Any]] = []
        for number in range(rng.randint(len(nets), max(len(nets), most))):
            sinks.append({"net": number if number < len(nets) else rng.randrange(len(nets))})
        total = [_settle(rng, config, [sources[index] for index in net]) for net in nets]
        if len(sinks) > most or max(vectors for vectors, _ in total) > _MOST_VECTORS:
            continue
        if all(_sink(rng, config, sink, number, total) for number, sink in enumerate(sinks)):
            return {
                "sources": sources,
                "nets": nets,
                "sinks": sinks,
                "place_seed": rng.randint(1, 1000),
            }


def _settle(
    rng: random.Random, config: ChipConfig, merged: list[dict[str, Any]]
) -> tuple[int, int]:
    """Choose the number of windows of each source of a net so that it sends whole rotations.

    Returns
    -------
    vectors, packets : int
        Totals of the net; `packets` is 0 if packets differ in length.
    """
    packets, vectors = [], []
    lengths: set[int] = set()
    for source in merged:
        sent = engine_packets(_reader(config, source, 1))
        lengths |= set(sent.lengths.tolist())
        packets.append(len(sent.lengths))
        vectors.append(sent.vectors)
    rotations = math.lcm(
        *(
            count // math.gcd(count, source["turns"])
            for count, source in zip(packets, merged, strict=True)
        )
    ) * rng.randint(1, 4)
    total = 0
    for count, length, source in zip(packets, vectors, merged, strict=True):
        source["windows"] = source["turns"] * rotations // count
        source["boxes"] = source["windows"] * source["slots"]
        total += source["windows"] * length
    return total, total // lengths.pop() if len(lengths) == 1 else 0


def _sink(
    rng: random.Random,
    config: ChipConfig,
    sink: dict[str, Any],
    number: int,
    total: list[tuple[int, int]],
) -> bool:
    """Complete a sink of a net; False if its vectors do not fill whole rows of memory."""
    step = max(1, BASE_ALIGNMENT * 8 // config.width_bits)
    everything, packets = total[sink["net"]]
    modulus = divisor(rng, packets, MAX_MODULUS) if packets and rng.random() < 0.4 else 1
    taken = everything // modulus
    if taken % step:
        return False
    room = config.pmu.capacity_bytes // 2 // (config.width_bits // 8)
    vectors = step * divisor(rng, taken // step, min(room, 64) // step)
    element = rng.choice([1, 2, 4])
    count = min(rng.choice([1, 2, 2, 3, 5]), room // vectors, config.pmu.slots)
    sink |= {
        "ring": {
            "element": element,
            "vectors": vectors,
            "count": count,
            "buffer": number % _ENGINES,
        },
        "write": random_write(rng, config, vectors, element),
        "read": random_read(rng, config, vectors, element, plain=True),
        "boxes": taken // vectors,
        "modulus": modulus,
        "index": rng.randrange(modulus),
    }
    return True


def routable_image(rng: random.Random, config: ChipConfig) -> dict[str, Any]:
    """Return the first random image whose nets find room on the links."""
    while True:
        image = random_image(rng, config)
        try:
            chip_program_of(config, image)
        except ValueError:
            continue
        return image


def take_away(rng: random.Random, image: dict[str, Any]) -> None:
    """Plant a fault: remove a slot, credit or box, add a token to a wait, or change a turn."""
    source = rng.choice(image["sources"])
    match rng.choice(["slot", "slot", "credit", "credit", "token", "turn", "box", "sink box"]):
        case "slot" if source["ring"]["count"] > source["slots"]:
            source["ring"]["count"] -= 1
        case "credit" | "slot":
            source["credits"] -= 1
        case "token":
            source["tokens"] += 1
        case "turn":
            source["turns"] += 1
        case "box":
            source["boxes"] -= 1
        case "sink box":
            rng.choice(image["sinks"])["boxes"] -= 1


def _row_bytes(config: ChipConfig) -> int:
    return max(BASE_ALIGNMENT, config.width_bits // 8)


def _rows(config: ChipConfig, vectors: int) -> int:
    return vectors * (config.width_bits // 8) // _row_bytes(config)


def arrays_of(config: ChipConfig, image: Mapping[str, Any]) -> tuple[ArraySpec, ...]:
    """Arguments of the launch: loaded tensors, then stored tensors."""

    def spec(name: str, part: Mapping[str, Any], *, output: bool) -> ArraySpec:
        rows = max(1, _rows(config, part["ring"]["vectors"] * max(part["boxes"], 1)))
        return ArraySpec(name, (rows, _row_bytes(config)), int8, output=output)

    return (
        *(spec(f"X{n}", part, output=False) for n, part in enumerate(image["sources"])),
        *(spec(f"Y{n}", part, output=True) for n, part in enumerate(image["sinks"])),
    )


def placed_image(
    config: ChipConfig, image: Mapping[str, Any], raw: bytes, seed: int
) -> tuple[LaunchMemory, bytearray]:
    """Return the memory layout of a launch of an image, and memory with random inputs."""
    arrays = arrays_of(config, image)
    place = LaunchMemory.of_image(config, raw, arrays, seed=seed)
    rng = np.random.default_rng(seed)
    inputs = {
        spec.name: rng.integers(-128, 128, spec.shape, dtype=np.int8)
        for spec in arrays
        if not spec.output
    }
    return place, place.bytes_before(inputs)


def _both(engines: list[EngineProgram]) -> tuple[EngineProgram, EngineProgram | None]:
    return engines[0], engines[1] if len(engines) > 1 else None


def _units(config: ChipConfig, image: Mapping[str, Any]) -> dict[str, Any]:
    """Unit programs by name."""
    units: dict[str, Any] = {}
    writers: dict[str, list[EngineProgram]] = {}
    readers: dict[str, list[EngineProgram]] = {}
    for letter, parts in (("m", image["sources"]), ("n", image["sinks"])):
        for number, part in enumerate(parts):
            unit = f"{letter}{number // _ENGINES}"
            turns = LoopProgram(part["windows"] * part["slots"] if letter == "m" else part["boxes"])
            write = engine_of(
                config,
                part["write"],
                part["ring"],
                windows=turns,
                modulus=part.get("modulus", 1),
                index=part.get("index", 0),
            )
            read = (
                _reader(config, part, part["windows"])
                if letter == "m"
                else engine_of(config, part["read"], part["ring"], windows=turns)
            )
            writers.setdefault(unit, []).append(write)
            readers.setdefault(unit, []).append(read)
    for unit, engines in writers.items():
        tokens = [
            source if unit[0] == "m" and number < len(engines) else TokenSource.OFF
            for number, source in enumerate((TokenSource.R0, TokenSource.R1))
        ]
        units[unit] = PmuProgram(_both(engines), _both(readers[unit]), (tokens[0], tokens[1]))
    for index in range(config.agcu.count):
        agcu = _agcu(config, image, index)
        if agcu is not None:
            units[f"g{index}"] = agcu
    return units


def _agcu(config: ChipConfig, image: Mapping[str, Any], index: int) -> AgcuProgram | None:
    own = slice(AGCU_STREAMS * index, AGCU_STREAMS * (index + 1))
    sources, sinks = image["sources"][own], image["sinks"][own]
    if not sources and not sinks:
        return None
    descriptors: list[tuple[Descriptor, int]] = []
    streams = []
    for kind, parts, offset in (("load", sources, 0), ("store", sinks, len(image["sources"]))):
        for number, part in enumerate(parts):
            rows = _rows(config, part["ring"]["vectors"])
            tensor = Descriptor(
                base=0,
                format=ElementFormat.INT8,
                dims=(_row_bytes(config), max(1, rows * part["boxes"])),
                strides=(_row_bytes(config),),
                box=(_row_bytes(config), rows),
            )
            waits = (Wait(number, part["tokens"]),) if kind == "load" else ()
            loops = (BoxLoop(part["boxes"], 1, rows),)
            streams.append(IssuerProgram(len(descriptors), loops, waits))
            descriptors.append((tensor, offset + AGCU_STREAMS * index + number))
    return AgcuProgram(
        loads=tuple(streams[: len(sources)]),
        stores=tuple(streams[len(sources) :]),
        descriptors=tuple(descriptors),
        credits=tuple(source["credits"] for source in sources),
    )


def chip_program_of(config: ChipConfig, image: Mapping[str, Any]) -> ChipProgram:
    """Build the placed and routed program of a chip from the fields of an image.

    Raises
    ------
    ValueError
        If a unit program is invalid, or the nets cannot be routed.
    """
    units = _units(config, image)

    def end(letter: str, number: int, *, size: int = _ENGINES) -> Pin:
        return Pin(f"{letter}{number // size}", number % size)

    nets = []
    for number in range(len(image["sources"])):
        nets.append(
            Net(f"load{number}", ((end("g", number), 1),), (end("m", number),)),
        )
        nets.append(
            Net(f"free{number}", ((end("m", number), 1),), (end("g", number),), tokens=True),
        )
    for index, merged in enumerate(image["nets"]):
        turns = tuple((end("m", each), image["sources"][each]["turns"]) for each in merged)
        sinks = [n for n, sink in enumerate(image["sinks"]) if sink["net"] == index]
        nets.append(Net(f"data{index}", turns, tuple(end("n", each) for each in sinks)))
    for number in range(len(image["sinks"])):
        nets.append(Net(f"store{number}", ((end("n", number), 1),), (end("g", number),)))
    fixed = {name: int(name[1:]) for name in units if name.startswith("g")}
    netlist = Netlist(units, tuple(nets), fixed)
    placement, routes = place_and_route(netlist, config, seed=image["place_seed"])
    return assemble(netlist, placement, routes, config)
