"""Random jobs of one PCU with lanes: a program, the packets that it takes, and what must come."""

import dataclasses

import numpy as np

from hw.arch.descriptor import MAX_BOX
from hw.arch.errors import BadInputError
from hw.arch.lanes.phase_word import PhaseSource, ResultForm
from hw.arch.limits import PACKET_VECTORS
from hw.arch.pcu import FilterProgram, PcuInput, PcuProgram
from hw.arch.words.pmu_word import Level
from hw.numeric.formats import bf16, int8
from hw.numeric.lane_model import LaneModel, VectorStream
from sim.oracle import product
from tests.hw.pcu.lane_programs import random_program, words_of
from tests.hw.pcu.softmax_program import SOFTMAX
from tests.units_lanes import CHIP, Feed, LaneJob

__all__ = ["Drawn", "broken", "data_of", "draw_job", "draw_softmax"]

_MOST_ROWS = 200


@dataclasses.dataclass(frozen=True)
class Drawn:
    """A job, the vectors of its streams by argument, and the results of its lanes."""

    job: LaneJob
    data: dict
    expected: VectorStream


def _count(program, source):
    return sum(phase.source is source for phase in program.joined)


def _feeds(rng, program, unit, config, rounds):
    """Streams for so many rounds of the phases."""
    words = config.grid_columns
    joined = any(len(each.phases) > 1 for each in program.joined)
    # Some packets are longer than a strip of joined phases.
    vectors = int(rng.integers(1, 150 if joined and rng.integers(3) == 0 else 9))
    final = int(rng.choice([Level.ADDRESS, Level.ADDRESS + 1]))
    feeds = {}
    if count := _count(program, PhaseSource.ACTIVATION):
        shape = (count, vectors, 1) if rng.integers(2) else (1, vectors, count)
        feeds[PcuInput.ACTIVATION] = Feed(rounds, *shape, final=final)
    elif count := _count(program, PhaseSource.ACCUMULATORS):
        tiles = int(rng.integers(1, 3))
        feeds[PcuInput.ACTIVATION] = Feed(rounds * count, tiles, vectors)
        feeds[PcuInput.WEIGHT] = Feed(rounds * count, tiles, words)
    beside = sum(
        phase.auxiliary_vectors(1 if phase.source is PhaseSource.STATISTICS else vectors, words)
        for phase in program.joined
        if phase.source is not PhaseSource.AUXILIARY
    )
    count = _count(program, PhaseSource.AUXILIARY)
    if count and beside:
        # Packets of one vector, so that they may begin anywhere.
        feeds[PcuInput.AUXILIARY] = Feed(rounds, count + beside, 1, final=final)
    elif count:
        feeds[PcuInput.AUXILIARY] = Feed(rounds, count, int(rng.integers(1, 9)), final=final)
    elif beside:
        feeds[PcuInput.AUXILIARY] = Feed(rounds, 1, beside, last=bool(rng.integers(2)))
    return feeds


def _filtered(rng, unit, feeds):
    """The unit and its streams, one of which may have packets that the unit does not take."""
    names = {PcuInput.AUXILIARY: "auxiliary"}
    if not unit.sums:
        names[PcuInput.ACTIVATION] = "activation"
    for port, name in names.items():
        if port in feeds and rng.integers(3) == 0:
            taken = FilterProgram(2, int(rng.integers(2)))
            unit = dataclasses.replace(unit, **{name: taken})
            packets = 2 * feeds[port].packets
            feeds = feeds | {port: dataclasses.replace(feeds[port], packets=packets, last=True)}
    return unit, feeds


def _taken(stream, taken):
    """Packets of a stream that a filter takes."""
    numbers = np.cumsum(stream.last) - stream.last
    mine = numbers % taken.modulus == taken.index
    return VectorStream(*(part[mine] for part in stream))


def _sums(unit, feeds, data, config):
    """Rows of sums, a packet for each pass, from an independent product."""
    words = config.grid_columns
    activation, weight = feeds[PcuInput.ACTIVATION], feeds[PcuInput.WEIGHT]
    kind = bf16.dtype if unit.fmt is bf16 else int8.dtype
    shape = (activation.slots, activation.packets)
    left = data["X"].view(kind).reshape(*shape, activation.vectors, -1)
    right = data["W"].view(kind).reshape(*shape, weight.vectors, -1)
    rows = []
    for a, b in zip(left, right, strict=True):
        a, b = (np.concatenate(list(each), axis=1) for each in (a, b))
        with np.errstate(all="ignore"):
            rows.append(product(a, np.ascontiguousarray(b.T), unit.fmt.accumulator.dtype))
    last = np.arange(1, len(rows) * activation.vectors + 1) % activation.vectors == 0
    return VectorStream(np.concatenate(rows).view(np.uint32).reshape(-1, words), last, last)


def expected_of(unit, feeds, data, config):
    """Results of the lanes by their golden model."""
    job = LaneJob(unit, feeds, 1, config)
    streams = job.streams(data)
    for source, taken in (
        (PhaseSource.ACTIVATION, unit.activation),
        (PhaseSource.AUXILIARY, unit.auxiliary),
    ):
        if source in streams:
            streams[source] = _taken(streams[source], taken)
    if unit.sums:
        streams.pop(PhaseSource.ACTIVATION)
        streams[PhaseSource.ACCUMULATORS] = _sums(unit, feeds, data, config)
    bits = config.pcu.function_bits
    model = LaneModel(unit.lanes, width_bits=config.width_bits, function_bits=bits)
    return model.run(streams)


def data_of(rng, feeds, config):
    """Random vectors for the streams."""
    words = config.grid_columns
    names = {PcuInput.ACTIVATION: "X", PcuInput.WEIGHT: "W", PcuInput.AUXILIARY: "Y"}
    return {
        names[port]: words_of(rng, feed.slots * feed.rows * words).reshape(-1, words)
        for port, feed in feeds.items()
    }


def draw_job(rng, *, config=CHIP, rounds=None, **fixed):
    """A random job whose unit can run it, whose boxes fit, and that has results."""
    while True:
        lanes = random_program(rng, **fixed)
        fmt = (bf16, int8)[rng.integers(2)]
        sums = _count(lanes, PhaseSource.ACCUMULATORS) > 0
        length = int(rng.choice([0, 0, 1, 2, 5, PACKET_VECTORS.high]))
        try:
            unit = PcuProgram(
                **({"fmt": fmt, "out": fmt.accumulator} if sums else {}),
                packet_vectors=length,
                lanes=lanes,
            )
        except BadInputError:
            continue
        if all(phase.result is ResultForm.NONE for phase in lanes.phases):
            continue
        feeds = _feeds(rng, lanes, unit, config, rounds or int(rng.integers(1, 5)))
        unit, feeds = _filtered(rng, unit, feeds)
        if any(feed.rows > _MOST_ROWS for feed in feeds.values()):
            continue
        data = data_of(rng, feeds, config)
        expected = expected_of(unit, feeds, data, config)
        return Drawn(LaneJob(unit, feeds, len(expected.words), config), data, expected)


def draw_softmax(rng, *, config=CHIP):
    """A softmax of random extents: of each slot, which is read three times."""
    slots, vectors = int(rng.integers(1, 9)), int(rng.integers(1, 33))
    feeds = {PcuInput.ACTIVATION: Feed(slots, 1, vectors, repeats=3)}
    unit = PcuProgram(lanes=SOFTMAX, packet_vectors=int(rng.choice([0, 1, vectors])))
    data = data_of(rng, feeds, config)
    expected = expected_of(unit, feeds, data, config)
    return Drawn(LaneJob(unit, feeds, len(expected.words), config), data, expected)


def broken(rng, job):
    """The job with one stream that is longer, shorter or without marks."""
    port = list(job.feeds)[rng.integers(len(job.feeds))]
    feed = job.feeds[port]
    name = ("slots", "packets", "vectors", "last")[rng.integers(4)]
    value = getattr(feed, name)
    other = not value if name == "last" else max(1, value + int(rng.choice([-1, 1])))
    if name in ("packets", "vectors") and feed.rows // value * other > MAX_BOX:
        other = max(1, value - 1)
    feeds = job.feeds | {port: dataclasses.replace(feed, **{name: other})}
    return dataclasses.replace(job, feeds=feeds)
