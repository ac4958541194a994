"""Random cases of a PCU: a program, the streams of its ports and the results by numpy."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from hw.arch.config import ChipConfig
from hw.arch.lanes.phase_word import PhaseSource
from hw.arch.lanes.softmax_program import SoftmaxProgram, SoftmaxRole
from hw.arch.pcu import FilterProgram, PcuInput, PcuProgram
from hw.numeric.formats import bf16, fp32, int8, int32
from hw.numeric.lane_model import LaneModel, VectorStream
from sim.drivers.matrix_unit_driver import MatrixTiling
from sim.drivers.products import Array, Words
from sim.drivers.random_lanes import random_program, random_streams, stream_payloads, words_of
from sim.drivers.softmax_case import packets_of_scores, random_scores, random_values
from sim.operands import random_operand
from sim.oracle import product

__all__ = ["PcuCase", "random_case"]

#: Most packets, of this unit and of others, that a filter counts in a random case.
_MODULUS = 3


class PcuCase(NamedTuple):
    """Program of a PCU, payloads by input port (n × words, marks in the last), and of results."""

    program: PcuProgram
    streams: Mapping[PcuInput, Words]
    results: Words


class _Pass(NamedTuple):
    """Rows, column passes and tiles of a product whose results are one pass."""

    rows: int
    columns: int
    tiles: int


def random_case(rng: np.random.Generator, chip: ChipConfig, *, rounds: int = 2) -> PcuCase:
    """A case of a product, of lanes, of lanes that take sums, or of a part in fused softmax.

    Each is as frequent.

    Parameters
    ----------
    rng : numpy.random.Generator
    chip : ChipConfig
        Its PCU has lanes.
    rounds : int
        Times that all phases of a lane program are run; passes of a product, and more.
    """
    kind = rng.integers(4)
    cut = int(rng.choice([0, 0, 1, 2, 3, 5, 255]))
    if kind == 0:
        return _product_case(rng, chip, cut, passes=rounds + int(rng.integers(3)))
    if kind == 3:
        return (_scores_case(rng, chip), _values_case(rng, chip, cut))[rng.integers(2)]
    alone = kind == 1
    own = PhaseSource.ACTIVATION if alone else PhaseSource.ACCUMULATORS
    lanes = random_program(rng, (own, own, PhaseSource.AUXILIARY))
    sources = {phase.source for phase in lanes.phases}
    rows = chip.pcu.accumulator_rows
    longest = rows if rng.integers(8) == 0 else min(6, rows)
    streams = random_streams(rng, lanes, width_bits=chip.width_bits, rounds=rounds, longest=longest)
    program = PcuProgram(packet_vectors=cut, lanes=lanes)
    if lanes.takes_auxiliary:
        program = dataclasses.replace(program, auxiliary=_filter(rng))
    given: dict[PcuInput, VectorStream] = {PcuInput.AUXILIARY: streams[PhaseSource.AUXILIARY]}
    if PhaseSource.ACCUMULATORS in sources:
        program = _product_program(rng, program, wide=True)
        lengths = np.diff(np.flatnonzero(streams[own].last), prepend=-1)
        passes = [_pass_of(rng, program, int(each)) for each in lengths]
        operands, streams[own] = _passes(rng, chip, program, passes)
        given |= operands
    elif PhaseSource.ACTIVATION in sources:
        program = dataclasses.replace(program, activation=_filter(rng))
        given[PcuInput.ACTIVATION] = streams[own]
    model = LaneModel(lanes, width_bits=chip.width_bits, function_bits=chip.pcu.function_bits)
    return _case(rng, program, given, model.run(streams))


def _product_case(rng: np.random.Generator, chip: ChipConfig, cut: int, passes: int) -> PcuCase:
    program = _product_program(rng, PcuProgram(packet_vectors=cut), wide=False)
    most = chip.pcu.accumulator_rows
    shapes = [_pass_of(rng, program, int(rng.integers(1, most + 1))) for _ in range(passes)]
    given, sums = _passes(rng, chip, program, shapes)
    if program.out == bf16:
        parts = np.split(sums.words, np.flatnonzero(sums.last)[:-1] + 1)
        sums = _marked([_two_rows(part) for part in parts])
    return _case(rng, program, given, sums)


def _scores_case(rng: np.random.Generator, chip: ChipConfig) -> PcuCase:
    """Blocks of keys in query groups, the last of whose weights have the mark `final`."""
    ends = rng.integers(3, size=int(rng.integers(2, 8))) == 0
    most = min(12, chip.pcu.accumulator_rows)
    shapes = [_Pass(int(rng.integers(1, most + 1)), 1, int(rng.integers(1, 4))) for _ in ends]
    keys = sum(each.rows for each in shapes)
    program = PcuProgram(
        softmax=random_scores(rng, keys, int(ends.sum())),
        weights_by_row=bool(rng.integers(2)),
        activation=_filter(rng),
        weight=_filter(rng),
    )
    given, sums = _passes(rng, chip, program, shapes)
    weights = given[PcuInput.WEIGHT]
    final = np.zeros(len(weights.words), bool)
    tiles = np.cumsum([each.tiles for each in shapes])
    final[tiles[ends] * chip.grid_columns - 1] = True
    given[PcuInput.WEIGHT] = weights._replace(final=final)
    scores = np.split(sums.words.view(np.float32), np.flatnonzero(sums.last)[:-1] + 1)
    begins = [True, *ends[:-1]]
    assert program.softmax is not None
    with np.errstate(all="ignore"):
        packets = packets_of_scores(chip, program.softmax, zip(scores, begins, strict=True))
    return _case(rng, program, given, packets)


def _values_case(rng: np.random.Generator, chip: ChipConfig, cut: int) -> PcuCase:
    program = PcuProgram(
        softmax=SoftmaxProgram(SoftmaxRole.VALUES),
        weights_by_row=True,
        activation=_filter(rng),
        weight=_filter(rng),
        packet_vectors=cut,
    )
    given, results = random_values(rng, chip, int(rng.integers(1, 4)))
    return _case(rng, program, given, results)


def _product_program(rng: np.random.Generator, program: PcuProgram, *, wide: bool) -> PcuProgram:
    """The program with random fields of the matrix unit; sums of 32 bits if they are ``wide``."""
    fmt, out = ((bf16, fp32), (int8, int32), (bf16, bf16))[rng.integers(2 if wide else 3)]
    return dataclasses.replace(
        program,
        fmt=fmt,
        out=out,
        weights_by_row=bool(rng.integers(2)),
        by_group=bool(rng.integers(2)),
        activation=_filter(rng),
        weight=_filter(rng),
    )


def _filter(rng: np.random.Generator) -> FilterProgram:
    modulus = int(rng.integers(1, _MODULUS + 1))
    return FilterProgram(modulus, int(rng.integers(modulus)))


def _pass_of(rng: np.random.Generator, program: PcuProgram, rows: int) -> _Pass:
    """A pass that leaves so many rows of sums."""
    dividing = [each for each in range(1, rows + 1) if rows % each == 0]
    columns = int(rng.choice(dividing)) if program.by_group else 1
    return _Pass(rows // columns, columns, int(rng.integers(1, 4)))


def _marked(packets: list[Words]) -> VectorStream:
    """Packets, each with `last` and `final` at its end."""
    lengths = np.array([len(each) for each in packets])
    last = np.zeros(lengths.sum(), bool)
    last[lengths.cumsum() - 1] = True
    return VectorStream(np.concatenate(packets), last, last)


def _two_rows(sums: Words) -> Words:
    """Rows of fp32 sums that bf16 holds exactly, two in a vector."""
    rows = np.zeros((len(sums) + len(sums) % 2, sums.shape[1]), np.uint32)
    rows[: len(sums)] = sums
    return (rows >> 16).astype(np.uint16).reshape(-1, 2 * sums.shape[1]).view(np.uint32)


def _passes(
    rng: np.random.Generator, chip: ChipConfig, program: PcuProgram, passes: list[_Pass]
) -> tuple[dict[PcuInput, VectorStream], VectorStream]:
    """Streams of the operands of products, and their sums, a row in a vector of words."""
    activations: list[Words] = []
    weights: list[Words] = []
    sums: list[Words] = []
    for each in passes:
        a_payloads, b_payloads, rows = _one_pass(rng, chip, program, each)
        activations.append(a_payloads)
        weights.append(b_payloads)
        sums.append(rows)
    given = {
        PcuInput.ACTIVATION: _unmarked(np.concatenate(activations)),
        PcuInput.WEIGHT: _unmarked(np.concatenate(weights)),
    }
    return given, _marked(sums)


def _unmarked(payloads: Words) -> VectorStream:
    """Stream of payloads; the inverse of `stream_payloads`."""
    marks = payloads[:, -1]
    return VectorStream(payloads[:, :-1], (marks & 1).astype(bool), (marks & 2).astype(bool))


def _one_pass(
    rng: np.random.Generator, chip: ChipConfig, program: PcuProgram, shape: _Pass
) -> tuple[Words, Words, Words]:
    """Payloads of both operands of a pass, and its sums."""
    columns = chip.grid_columns
    inner = shape.tiles * chip.width_bits // program.fmt.bits
    k = int(rng.integers(inner - inner // shape.tiles + 1, inner + 1))
    a = random_operand(rng, (shape.rows, k), program.fmt, special_share=0.01)
    b = random_operand(rng, (k, shape.columns * columns), program.fmt, special_share=0.01)
    tiling = MatrixTiling(
        m=shape.rows,
        n=shape.columns * columns,
        k=k,
        columns=columns,
        accumulator_rows=chip.pcu.accumulator_rows,
        fmt=program.fmt,
        out=program.out,
    )
    # By tile of k, then by column pass: rows of A again for each, and its columns of B.
    rows = tiling.activations(a)[: shape.tiles * shape.rows].reshape(shape.tiles, shape.rows, -1)
    moving = np.repeat(rows, shape.columns, axis=0).reshape(-1, rows.shape[-1])
    moving[:, -1] = np.arange(1, len(moving) + 1) % shape.rows == 0
    moving[-1, -1] = 3
    lines = tiling.weights(b, by_row=program.weights_by_row)
    weights = lines.reshape(shape.columns, shape.tiles, columns, -1).swapaxes(0, 1).copy()
    if program.by_group:
        weights[:, -1, -1, -1] = 3
    sums = product(a, b, program.out.dtype)
    sums = sums.reshape(shape.rows, shape.columns, columns).swapaxes(0, 1)
    return moving, weights.reshape(-1, weights.shape[-1]), _words(sums.reshape(-1, columns))


def _words(sums: Array) -> Words:
    """Rows of sums in 32 bits; bf16 as the fp32 of the same value."""
    if sums.dtype == bf16.dtype:
        high: Words = sums.view(np.uint16).astype(np.uint32) << np.uint32(16)
        return high
    return np.ascontiguousarray(sums).view(np.uint32)


def _case(
    rng: np.random.Generator,
    program: PcuProgram,
    given: Mapping[PcuInput, VectorStream],
    results: VectorStream,
) -> PcuCase:
    """The case, with packets of other units in the streams, and results cut into packets."""
    streams: dict[PcuInput, Words] = {}
    for port, taken in (
        (PcuInput.ACTIVATION, program.activation),
        (PcuInput.WEIGHT, program.weight),
        (PcuInput.AUXILIARY, program.auxiliary),
    ):
        if port in program.inputs:
            scores = program.softmax and program.softmax.role is SoftmaxRole.SCORES
            marked = bool(program.by_group or scores) and port is PcuInput.WEIGHT
            own = stream_payloads(given[port])
            streams[port] = _multicast(rng, own, taken, shift_final=marked)
    last = results.last.copy()
    ends = np.flatnonzero(results.last) + 1
    if program.packet_vectors:
        for start, end in zip([0, *ends], ends, strict=False):
            last[start + program.packet_vectors - 1 : end : program.packet_vectors] = True
    cut = VectorStream(results.words, last, results.final)
    return PcuCase(program, streams, stream_payloads(cut))


def _multicast(
    rng: np.random.Generator, own: Words, taken: FilterProgram, *, shift_final: bool
) -> Words:
    """A unit's packets among those of others, whose numbers its filter refuses.

    With ``shift_final`` the others have no mark `final`, but may have it in place of the own packet
    before them. Else they have any.
    """
    ends = np.flatnonzero(own[:, -1] & 1) + 1
    parts: list[Words] = []
    for packet in np.split(own, ends):
        others = [_other(rng, own.shape[1], shift_final) for _ in range(taken.modulus - 1)]
        before, mine, after = others[: taken.index], packet.copy(), others[taken.index :]
        if not len(mine) or not mine[-1, -1] & 1:
            # Nothing, or a packet without an end, is the last of the stream.
            parts += [*before, mine]
            break
        if shift_final and mine[-1, -1] == 3 and after and rng.integers(2):
            mine[-1, -1] = 1
            after[rng.integers(len(after))][-1, -1] = 3
        parts += [*before, mine, *after]
    return np.concatenate(parts)


def _other(rng: np.random.Generator, words: int, plain: bool) -> Words:
    """A packet of another unit."""
    packet = words_of(rng, int(rng.integers(1, 4)) * words).reshape(-1, words)
    packet[:, -1] = 0
    packet[-1, -1] = 1 if plain else 1 + 2 * int(rng.integers(2))
    return packet
