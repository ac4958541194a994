"""The PCU in RTL: eight columns a unit of one multicast stream, and programs of its word."""

import numpy as np
import pytest

from hw.arch.pcu import FilterProgram, PcuProgram, pcu_layout
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
        to_bf16=program.out == bf16,
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
    model.set("pcu_config", program.pack())
    crossed = model.run(
        {"pcu_i_activation": activations, "pcu_i_weight": weights},
        {"pcu_o_result": tiling.result_vectors},
        stalls=dict.fromkeys(("pcu_i_activation", "pcu_i_weight", "pcu_o_result"), stall),
    )
    result = tiling.result(crossed["pcu_o_result"].words)
    golden = product(own_a, own_b, program.out.dtype)
    assert result.tobytes() == golden.tobytes()


def test_foreign_packets_are_consumed_at_one_vector_a_cycle(model):
    tiling = MatrixTiling(m=16, n=2, k=64, columns=2, accumulator_rows=16, fmt=bf16, to_bf16=False)
    a = random_operand(np.random.default_rng(1), (16, 64), bf16)
    model.reset(1)
    model.set("pcu_config", PcuProgram(fmt=bf16, out=fp32, activation=FilterProgram(16, 15)).pack())
    words = tiling.activations(a)[: 15 * 16]
    crossed = model.run({"pcu_i_activation": words}, {})["pcu_i_activation"]
    assert crossed.last_cycle - crossed.first_cycle + 1 == len(words)


def test_programs_pack_into_their_word_and_back():
    for program in (
        PcuProgram(fmt=bf16, out=bf16, weight=FilterProgram(8, 7)),
        PcuProgram(fmt=int8, out=int32, weights_by_row=True, activation=FilterProgram(16, 0)),
        PcuProgram(fmt=bf16, out=fp32, packet_vectors=255),
    ):
        word = program.pack()
        assert 0 <= word < 1 << pcu_layout().size
        assert PcuProgram.unpack(word) == program


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
        (lambda: PcuProgram(fmt=fp32, out=fp32), r"operands must be bf16 or int8, not fp32"),
    ],
)
def test_programs_that_cannot_work_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
