"""Groups of tiles in a PCU: column passes that share their rows of activations, in RTL."""

import dataclasses

import numpy as np
import pytest

from hw.arch.pcu import FilterProgram, PcuProgram
from hw.numeric.formats import bf16, fp32, int8, int32
from sim.drivers.matrix_unit_driver import MatrixTiling
from sim.operands import random_operand
from sim.oracle import product
from tests.hw.units import PCU_CHIP as CHIP

C = CHIP.grid_columns
ACTIVATION, WEIGHT, RESULT = "pcu_i_activation", "pcu_i_weight", "pcu_o_result"


@dataclasses.dataclass
class Pass:
    """One pass: m rows, q column passes, tiles of k; of a weight stream for P units, one's share.

    The rows of each tile of A are sent q times, each time with the weights of other columns. The
    last packet of the P·q that belong to a tile of k has the mark, whichever unit takes it.
    """

    program: PcuProgram
    m: int
    q: int
    tiles: int
    rng: np.random.Generator

    def _tiling(self, m, n):
        return MatrixTiling(
            m=m,
            n=n,
            k=self.tiles * 8 * CHIP.width_bits // 8 // self.program.fmt.bits,
            columns=C,
            accumulator_rows=CHIP.pcu.accumulator_rows,
            fmt=self.program.fmt,
            out=self.program.out,
            packet_vectors=self.program.packet_vectors,
        )

    def streams(self):
        """Vectors of activations, of weights, and the results of the unit."""
        share, index = self.program.weight.modulus, self.program.weight.index
        tiling = self._tiling(self.m, self.q * C)
        operand = (self.program.fmt,)
        a = random_operand(self.rng, (self.m, tiling.k), *operand, special_share=0.02)
        units = [
            random_operand(self.rng, (tiling.k, self.q * C), *operand, special_share=0.02)
            for _ in range(share)
        ]
        rows = tiling.activations(a)[: self.tiles * self.m].reshape(self.tiles, self.m, -1)
        rows = np.repeat(rows, self.q, axis=0).reshape(self.tiles * self.q * self.m, -1)
        rows[:, -1] = np.arange(1, len(rows) + 1) % self.m == 0
        rows[-1, -1] = 3
        by_unit = np.stack(
            [
                tiling.weights(b, by_row=self.program.weights_by_row).reshape(
                    self.q, self.tiles, C, -1
                )
                for b in units
            ]
        )
        weights = by_unit.transpose(2, 1, 0, 3, 4).reshape(self.tiles, self.q * share, C, -1)
        weights[:, -1, -1, -1] = 3
        sums = product(a, units[index], self.program.out.dtype)
        golden = sums.reshape(self.m, self.q, C).transpose(1, 0, 2).reshape(-1, C)
        return rows, weights.reshape(-1, weights.shape[-1]), golden

    @property
    def result_tiling(self):
        """One block of all rows, as the results of a plain pass of q times the rows."""
        return self._tiling(self.q * self.m, C)


def run(model, program, shapes, seed, stall):
    """Run passes of m rows, q column passes and tiles of k; compare results by bytes."""
    rng = np.random.default_rng(seed)
    passes = [Pass(program, m, q, tiles, rng) for m, q, tiles in shapes]
    rows, weights, golden = zip(*(each.streams() for each in passes), strict=True)
    counts = [each.result_tiling.result_vectors for each in passes]
    model.reset(seed % (1 << 32))
    model.set("pcu_config", program.pack(0))
    crossed = model.run(
        {ACTIVATION: np.concatenate(rows), WEIGHT: np.concatenate(weights)},
        {RESULT: sum(counts)},
        stalls=dict.fromkeys((ACTIVATION, WEIGHT, RESULT), stall),
    )
    parts = np.split(crossed[RESULT].words, np.cumsum(counts)[:-1])
    for each, words, expected in zip(passes, parts, golden, strict=True):
        got = each.result_tiling.result(words)
        assert got.tobytes() == np.ascontiguousarray(expected).tobytes(), each
    return crossed


@pytest.mark.parametrize(
    "program",
    [
        PcuProgram(fmt=bf16, out=fp32, by_group=True),
        PcuProgram(fmt=bf16, out=bf16, by_group=True, weight=FilterProgram(3, 0)),
        PcuProgram(fmt=bf16, out=bf16, by_group=True, weight=FilterProgram(3, 2), packet_vectors=3),
        PcuProgram(
            fmt=int8, out=int32, by_group=True, weight=FilterProgram(2, 1), weights_by_row=True
        ),
    ],
    ids=["alone", "refused", "taken", "int8"],
)
@pytest.mark.parametrize("stall", [0.0, 0.5])
def test_column_passes_of_a_group_use_rows_one_after_another(pcu_units, program, stall, seed):
    """The mark is on a packet that the unit takes, or on one that another unit takes."""
    rng = np.random.default_rng(seed)
    shapes = [(16, 1, 3), (4, 4, 3), (1, 16, 4), (5, 3, 1), (2, 3, 5)]
    for _ in range(6):
        m = int(rng.integers(1, 9))
        shapes.append((m, int(rng.integers(1, 16 // m + 1)), int(rng.integers(1, 5))))
    run(pcu_units[2], program, shapes, seed, stall)


def test_without_the_field_the_mark_changes_nothing(pcu_units, seed):
    program = PcuProgram(fmt=bf16, out=fp32, weight=FilterProgram(2, 0))
    run(pcu_units[2], program, [(7, 1, 4), (16, 1, 2)], seed, 0.3)
