"""Whether what a store overwrites has been read before, in any timing: dependence of vectors.

A vector that a store takes depends on vectors that loads have sent, through buffers, lanes and
merged streams. What it depends on has been read from memory when it is written.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import numpy.typing as npt

from hw.arch.boxes.issuer_program import IssuerProgram
from hw.arch.descriptor import Descriptor, Mode
from hw.arch.lanes.lane_room import strip_units
from hw.arch.lanes.phase_word import AuxiliaryUse, PhaseSource, ResultForm
from hw.arch.pcu import FilterProgram, PcuInput, PcuProgram
from hw.arch.pmu import PmuProgram
from hw.arch.unit_kind import AGCU, PCU, PMU
from sw.chip_program import ChipProgram
from sw.fabric.nets import Input, Junction, MergeInput, Nets, Output
from sw.prove.phase_runs import units_beside
from sw.prove.stream_packets import StreamPackets, lane_runs
from sw.prove.unrolled_loops import MOST_STEPS, box_sizes, visits

__all__ = ["BoxStream", "is_read_first", "rows_of_boxes"]

Ints = npt.NDArray[np.int64]

#: Most vectors of a store that one of a load may meet.
_MOST_MET = 64


@dataclasses.dataclass(frozen=True)
class BoxStream:
    """Boxes of one program of a load or store stream.

    Parameters
    ----------
    index, port : int
        AGCU, and number of the stream.
    issuer : IssuerProgram
    begin, end : int
        Numbers of its first box and behind its last one, among those of the stream.
    descriptor : Descriptor
    base : int
        Address of the tensor.
    points : (boxes, 5) array of int or None
        Coordinates of each box; None for rows by number.
    """

    index: int
    port: int
    issuer: IssuerProgram
    begin: int
    end: int
    descriptor: Descriptor
    base: int
    points: Ints | None


def is_read_first(program: ChipProgram, nets: Nets, load: BoxStream, store: BoxStream) -> bool:
    """Whether all that a load reads and a store overwrites has come before it is written.

    It has if the store writes only after all boxes of the load, or if each vector that it writes
    depends on those that the load has read from the same bytes.
    """
    beat = program.config.width_bits // 8
    taken, sent = (
        np.cumsum(box_sizes(program.agcus[each.index], each.issuer, beat)) for each in (store, load)
    )
    before = int(taken[store.begin - 1]) if store.begin else 0
    packets = StreamPackets(program, nets)
    end, root = Input(AGCU, (store.index,), store.port), Output(AGCU, (load.index,), load.port)
    first = _vectors_before(program, nets, packets, end, np.array([before + 1])).get(root)
    if first is None:
        return False
    if first[0] >= int(sent[load.end - 1]):
        return True
    read, written = (_vector_runs(each, beat) for each in (load, store))
    if read is None or written is None:
        return False
    counts = before + 1 + np.arange(len(written[0]))
    known = _vectors_before(program, nets, packets, end, counts)[root]
    return _precede(read, written, known - (int(sent[load.begin - 1]) if load.begin else 0))


def _precede(read: tuple[Ints, Ints], written: tuple[Ints, Ints], known: Ints) -> bool:
    """Whether vectors that are written follow, of those read, all that they meet.

    Parameters
    ----------
    read, written : (array, array)
        First byte of each vector, and the byte behind it; equal if it has none in the tensor.
    known : array
        Vectors that have been read at least when each is written.
    """
    some = written[0] < written[1]
    order = np.flatnonzero(some)[np.argsort(written[0][some])]
    first, last, known = written[0][order], written[1][order], known[order]
    if (last[:-1] > first[1:]).any():
        return False
    number = np.flatnonzero(read[0] < read[1])
    low = np.searchsorted(last, read[0][number], side="right")
    high = np.searchsorted(first, read[1][number], side="left")
    for _ in range(_MOST_MET):
        met = low < high
        if not met.any():
            return True
        low, high, number = low[met], high[met], number[met]
        if (known[low] <= number).any():
            return False
        low = low + 1
    return False


def _vector_runs(stream: BoxStream, beat: int) -> tuple[Ints, Ints] | None:
    """First byte of each vector of a stream, and the byte behind it; None if that is not known."""
    descriptor, points = stream.descriptor, stream.points
    size = descriptor.format.bytes
    plain = descriptor.mode is Mode.TILE and set(descriptor.element_strides) == {1}
    if points is None or not plain or descriptor.box[0] * size % beat:
        return None
    across, count = descriptor.box[0] * size // beat, math.prod(descriptor.box[1:])
    if len(points) * count * across > MOST_STEPS:
        return None
    begin, elements = rows_of_boxes(descriptor, stream.base, points)
    each = beat // size
    steps = points[:, :1, np.newaxis] + each * np.arange(across)
    first, last = (
        begin[:, :, np.newaxis] + np.clip(steps + ends, 0, elements[:, :, np.newaxis]) * size
        for ends in (0, each)
    )
    return first.reshape(-1), last.reshape(-1)


def rows_of_boxes(descriptor: Descriptor, base: int, points: Ints) -> tuple[Ints, Ints]:
    """Address of the tensor's row in which each row of each box lies, and the elements of that row.

    Rows of a box are in the order in which it is moved. One outside the tensor has no elements.

    Parameters
    ----------
    descriptor : Descriptor
    base : int
        Address of the tensor.
    points : (boxes, 5) array of int
        Coordinates of each box.

    Returns
    -------
    (array, array)
        A line per box.
    """
    # Dimension 1 is the fastest of those that are not along a row.
    outer = descriptor.box[:0:-1]
    lines = np.indices(outer).reshape(len(outer), math.prod(outer)).T[:, ::-1]
    at = points[:, np.newaxis, 1 : descriptor.rank] + lines
    inside = ((at >= 0) & (at < np.array(descriptor.dims[1:], np.int64))).all(axis=2)
    begin = base + (at * np.array(descriptor.strides, np.int64)).sum(axis=2)
    elements = np.full(inside.shape, descriptor.dims[0])
    if descriptor.shortfall:
        elements -= descriptor.shortfall * (at[:, :, 0] == descriptor.dims[1] - 1)
    return begin, elements * inside


def _vectors_before(
    program: ChipProgram, nets: Nets, packets: StreamPackets, end: Input | MergeInput, counts: Ints
) -> dict[Output, Ints]:
    """Least numbers of vectors that outputs have sent when an input takes vectors of some numbers.

    A slot is read when all its writers have filled it. Results of lanes follow the elements that
    they are of, and the packets of earlier phases. The dependence ends at sums of products. Of
    packets that a unit does not take, those count that come before the last one it takes.

    Parameters
    ----------
    program : ChipProgram
    nets : Nets
    packets : StreamPackets
    end : Input or MergeInput
    counts : array
        Numbers of the vectors, from 1; 0: none is taken.
    """
    root = nets.feeds.get(end)
    found: dict[Output, Ints] = {}
    if isinstance(root, Junction):
        for turn, needed in enumerate(_of_sources(packets, root, counts)):
            _join(found, _vectors_before(program, nets, packets, MergeInput(root, turn), needed))
        return found
    if root is None:
        return found
    found[root] = counts
    if root.kind is AGCU:
        return found
    unit = program.unit(root.at)
    inputs: list[tuple[Input, Ints]] = []
    if isinstance(unit, PmuProgram):
        inputs = _of_slots(packets, root, unit, counts)
    elif isinstance(unit, PcuProgram):
        inputs = _of_phases(packets, root, unit, counts)
    for each, needed in inputs:
        _join(found, _vectors_before(program, nets, packets, each, needed))
    return found


def _join(found: dict[Output, Ints], more: dict[Output, Ints]) -> None:
    for root, counts in more.items():
        found[root] = np.maximum(found.get(root, 0), counts)


def _of_sources(packets: StreamPackets, root: Junction, counts: Ints) -> list[Ints]:
    """Vectors that each source of a merge has sent before some of the merged stream."""
    merged = packets.leaving(root)
    rotation = packets.rotations[root]
    lengths = np.append(merged.lengths, merged.tail)[: len(rotation.sources)]
    ends = np.cumsum(lengths)
    packet = np.minimum(np.searchsorted(ends, counts), len(ends) - 1)
    inside = np.minimum(counts, ends[packet]) - (ends - lengths)[packet]
    found = []
    for source in range(packets.turns(root)):
        mine = rotation.sources == source
        whole = np.cumsum(lengths * mine) - lengths * mine
        found.append(whole[packet] + inside * mine[packet])
    return found


def _of_slots(
    packets: StreamPackets, root: Output, unit: PmuProgram, counts: Ints
) -> list[tuple[Input, Ints]]:
    """Vectors that the writers of a buffer have taken before it sends some."""
    reader = unit.readers[root.port]
    if reader is None:
        return []
    passes = visits(reader)
    ends = np.cumsum(passes.vectors)
    visit = np.searchsorted(ends, counts)
    turn = passes.turn[np.minimum(visit, len(ends) - 1)]
    found = []
    for number in unit.partners(len(unit.writers) + root.port):
        writer = unit.writers[number]
        if writer is None:
            continue
        filled, end = visits(writer), Input(PMU, root.at, number)
        totals = np.cumsum(np.bincount(filled.turn, filled.vectors)).astype(np.int64)
        needed = totals[np.minimum(turn, len(totals) - 1)] * ((counts > 0) & (visit < len(ends)))
        took = FilterProgram(writer.modulus, writer.index)
        found.append((end, _arrived(packets, end, took, needed)))
    return found


def _arrived(packets: StreamPackets, end: Input, took: FilterProgram, needed: Ints) -> Ints:
    """Vectors that have arrived at an input before it has so many of the packets that it takes."""
    if took.modulus == 1:
        return needed
    arriving = packets.arriving(end)
    places = np.flatnonzero(arriving.taken_vectors(took.modulus, took.index)) + 1
    return np.append(0, places)[np.minimum(needed, len(places))]


def _of_phases(
    packets: StreamPackets, root: Output, unit: PcuProgram, counts: Ints
) -> list[tuple[Input, Ints]]:
    """Vectors that lanes have taken from each stream before they send some results."""
    if unit.lanes is None:
        return []
    runs, phases = lane_runs(packets, root.at, unit), unit.lanes.joined
    config = packets.config
    strip = strip_units(width_bits=config.width_bits, lanes=config.pcu.lanes)
    words = packets.config.grid_columns
    ends = np.cumsum(runs.sizes)
    run = np.minimum(np.searchsorted(ends, counts), len(ends) - 1)
    results = np.minimum(counts, ends[run]) - (ends - runs.sizes)[run]
    whole = results == runs.sizes[run]
    sends = [0 if each.result is ResultForm.NONE else each.result.per_word for each in phases]
    form, units, beside, strips = (
        np.array(values, np.int64)
        for values in (
            sends,
            [each.elements_per_word for each in phases],
            [units_beside(each, words) for each in phases],
            [strip if len(each.phases) > 1 else 1 for each in phases],
        )
    )
    phase_of = runs.phases[run]
    # Units of a packet that the results are of, with those of their strip: all for its last vector.
    own = results * form[phase_of]
    issued = -(-own // strips[phase_of]) * strips[phase_of]
    source = np.where(whole, runs.counts[run], -(-issued // np.maximum(units[phase_of], 1))).clip(
        0, runs.counts[run]
    )
    latched = np.array([each.latches for each in phases], np.int64)[phase_of] * (results > 0)
    # The last phase of a strip sends results before it has taken all vectors beside the strip.
    takes_last = [each.phases[-1].auxiliary is not AuxiliaryUse.NONE for each in phases]
    served = np.where(np.array(takes_last)[phase_of], own, issued)
    aside = np.where(
        whole | (beside[phase_of] == 0),
        runs.besides[run],
        -(-served // np.maximum(beside[phase_of], 1)) + latched,
    ).clip(0, runs.besides[run])
    found = []
    for port, stream, took in (
        (PcuInput.ACTIVATION, PhaseSource.ACTIVATION, unit.activation),
        (PcuInput.AUXILIARY, PhaseSource.AUXILIARY, unit.auxiliary),
    ):
        if port not in unit.inputs:
            continue
        mine = np.array([each.source is stream for each in phases])[runs.phases]
        after = np.where(mine, runs.firsts + runs.counts, 0)
        needed = np.where(mine[run], runs.firsts[run] + source, 0)
        if stream is PhaseSource.AUXILIARY:
            after = np.maximum(after, np.where(runs.besides, runs.beside_firsts + runs.besides, 0))
            needed = np.maximum(needed, np.where(aside, runs.beside_firsts[run] + aside, 0))
        earlier = np.append(0, np.maximum.accumulate(after))[run]
        end = Input(PCU, root.at, port)
        total = np.maximum(needed, earlier) * (counts > 0)
        found.append((end, _arrived(packets, end, took, total)))
    return found
