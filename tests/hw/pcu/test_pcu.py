"""The PCU in RTL: eight columns a unit of one multicast stream, and programs of its word."""

import numpy as np
import pytest

from hw.arch.config import ChipConfig, PcuConfig
from hw.arch.lanes.lane_phase import LanePhase
from hw.arch.lanes.lane_program import LaneProgram
from hw.arch.lanes.phase_word import AuxiliaryUse, Fetched, PhaseSource, ResultForm
from hw.arch.pcu import FilterProgram, PcuInput, PcuProgram
from hw.arch.words.pcu_word import pcu_layout
from hw.numeric.formats import bf16, fp32, int8, int32
from sim.drivers.matrix_unit_driver import MatrixTiling
from sim.operands import random_operand
from sim.oracle import product
from tests.hw.units import PCU_CHIP as CHIP


@pytest.fixture
def model(pcu_units):
    return pcu_units[2]


@pytest.mark.parametrize(
    "program",
    [
        PcuProgram(fmt=bf16, out=fp32),
        PcuProgram(fmt=bf16, out=bf16, weight=FilterProgram(3, 1), packet_vectors=4),
        PcuProgram(fmt=int8, out=int32, weights_by_row=True, weight=FilterProgram(4, 3)),
        PcuProgram(
            fmt=bf16, out=fp32, activation=FilterProgram(2, 1), weight=FilterProgram(16, 15)
        ),
    ],
    ids=str,
)
@pytest.mark.parametrize("stall", [0.0, 0.5])
def test_a_unit_takes_its_own_packets_of_a_multicast_stream(model, program, stall, seed):
    """All units get every packet; each must compute as if it had been sent only its own."""
    rng = np.random.default_rng(seed)
    share = program.weight.modulus
    m, k, columns = 12, 20, CHIP.grid_columns
    tiling = MatrixTiling(
        m=m,
        n=columns,
        k=k,
        columns=columns,
        accumulator_rows=CHIP.pcu.accumulator_rows,
        fmt=program.fmt,
        out=program.out,
        packet_vectors=program.packet_vectors,
    )
    operands = []
    for _ in range(max(share, program.activation.modulus)):
        a = random_operand(rng, (m, k), program.fmt, special_share=0.02)
        b = random_operand(rng, (k, columns), program.fmt, special_share=0.02)
        operands.append((a, b))
    # Packet i of the multicast is for the unit i mod P: interleave tile by tile.
    tiles = tiling.tiles

    def interleaved(streams, packets):
        parts = [words.reshape(packets, -1, words.shape[1]) for words in streams]
        return np.stack(parts, axis=1).reshape(-1, streams[0].shape[1])

    own_a = operands[program.activation.index][0]
    own_b = operands[program.weight.index][1]
    activations = interleaved(
        [tiling.activations(a) for a, _ in operands[: program.activation.modulus]], tiles
    )
    weights = interleaved(
        [tiling.weights(b, by_row=program.weights_by_row) for _, b in operands[:share]], tiles
    )
    model.reset(seed)
    model.set("pcu_config", program.pack(0))
    crossed = model.run(
        {"pcu_i_activation": activations, "pcu_i_weight": weights},
        {"pcu_o_result": tiling.result_vectors},
        stalls=dict.fromkeys(("pcu_i_activation", "pcu_i_weight", "pcu_o_result"), stall),
    )
    result = tiling.result(crossed["pcu_o_result"].words)
    golden = product(own_a, own_b, program.out.dtype)
    assert result.tobytes() == golden.tobytes()


def test_foreign_packets_are_consumed_at_one_vector_a_cycle(model):
    tiling = MatrixTiling(m=16, n=2, k=64, columns=2, accumulator_rows=16, fmt=bf16, out=fp32)
    a = random_operand(np.random.default_rng(1), (16, 64), bf16)
    model.reset(1)
    model.set(
        "pcu_config", PcuProgram(fmt=bf16, out=fp32, activation=FilterProgram(16, 15)).pack(0)
    )
    words = tiling.activations(a)[: 15 * 16]
    crossed = model.run({"pcu_i_activation": words}, {})["pcu_i_activation"]
    assert crossed.last_cycle - crossed.first_cycle + 1 == len(words)


def test_programs_pack_into_their_word_and_back():
    for program in (
        PcuProgram(fmt=bf16, out=bf16, weight=FilterProgram(8, 7)),
        PcuProgram(fmt=int8, out=int32, weights_by_row=True, activation=FilterProgram(16, 0)),
        PcuProgram(fmt=bf16, out=fp32, packet_vectors=255),
    ):
        word = program.pack(0)
        assert 0 <= word < 1 << pcu_layout(0).size
        assert PcuProgram.unpack(word, 0) == program
        # A PCU with lanes has a wider word; without a lane program the rest of it is 0.
        assert program.pack(2) == word
        assert PcuProgram.unpack(word, 2) == program


def lane_program(source, **fields):
    return LaneProgram((LanePhase(source, result=ResultForm.BF16, **fields),), (1, 2, 3, 4))


ADDED = {"auxiliary": AuxiliaryUse.VECTOR, "y": Fetched.AUXILIARY}


def test_lane_programs_pack_into_their_word_and_back():
    for program, inputs in (
        (PcuProgram(lanes=lane_program(PhaseSource.ACTIVATION)), [PcuInput.ACTIVATION]),
        (
            PcuProgram(
                lanes=lane_program(PhaseSource.ACTIVATION, **ADDED),
                activation=FilterProgram(3, 2),
                auxiliary=FilterProgram(16, 15),
                packet_vectors=7,
            ),
            [PcuInput.ACTIVATION, PcuInput.AUXILIARY],
        ),
        (PcuProgram(lanes=lane_program(PhaseSource.AUXILIARY)), [PcuInput.AUXILIARY]),
        (
            PcuProgram(
                fmt=int8,
                out=int32,
                weights_by_row=True,
                weight=FilterProgram(2, 1),
                by_group=True,
                lanes=lane_program(PhaseSource.ACCUMULATORS, **ADDED),
            ),
            [*PcuInput],
        ),
    ):
        word = program.pack(2)
        assert 0 <= word < 1 << pcu_layout(2).size
        assert PcuProgram.unpack(word, 2) == program
        assert [*program.inputs] == inputs
        with pytest.raises(ValueError, match="with a lane program must be at least 1, not 0"):
            program.pack(0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FilterProgram(17, 0), r"modulus must be from 1 to 16, not 17"),
        (lambda: FilterProgram(0, 0), r"modulus must be from 1 to 16, not 0"),
        (lambda: FilterProgram(4, 4), r"index must be from 0 to 3, not 4"),
        (
            lambda: PcuProgram(fmt=int8, out=bf16),
            r"results of int8 operands must be int32, not bf16",
        ),
        (
            lambda: PcuProgram(fmt=bf16, out=fp32, packet_vectors=256),
            r"Vectors of a PCU's result packet must be an integer from 0 to 255, not 256",
        ),
        (
            lambda: PcuProgram(
                lanes=LaneProgram(
                    (
                        LanePhase(PhaseSource.ACTIVATION, result=ResultForm.WORD),
                        LanePhase(PhaseSource.ACCUMULATORS, result=ResultForm.WORD),
                    )
                )
            ),
            r"not take activations beside sums",
        ),
        (
            lambda: PcuProgram(out=bf16, lanes=lane_program(PhaseSource.ACCUMULATORS)),
            r"Sums of bf16 operands must be fp32 where the lanes take them, not 'bf16'",
        ),
        (
            lambda: PcuProgram(fmt=int8, out=int32, lanes=lane_program(PhaseSource.ACTIVATION)),
            r"Operand format must be bf16 where no phase takes sums",
        ),
        (
            lambda: PcuProgram(by_group=True, lanes=lane_program(PhaseSource.AUXILIARY)),
            r"Tiles by group must be False where no phase takes sums, not True",
        ),
        (
            lambda: PcuProgram(auxiliary=FilterProgram(2, 0)),
            r"Filter of the auxiliary port must take every packet",
        ),
        (lambda: PcuConfig(lanes=3), r"Lanes must be 0 or a power of two from 1 to 8"),
        (
            lambda: ChipConfig(rows=2, columns=2, width_bits=64, pcu=PcuConfig(lanes=4)),
            r"Lanes must be at most the 2 words of a vector, not 4",
        ),
        (
            lambda: PcuProgram(fmt=fp32, out=fp32),
            r"operands must be bf16, fp16, int8, e4m3 or e5m2, not fp32",
        ),
    ],
)
def test_programs_that_cannot_work_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
