# amaranth: UnusedElaboratable=no
"""The matrix unit in RTL against numpy, by bytes: shapes, formats, layouts, stalls, cycles."""

import dataclasses

import numpy as np
import pytest

from hw.arch.errors import BadInputError, HangError
from hw.matrix.matrix_unit import MatrixUnit
from hw.numeric.formats import Format, bf16, fp32, int8, int32
from sim.drivers.matrix_unit_driver import MatrixTiling
from sim.operands import random_operand
from sim.oracle import product
from tests.hw.units import ACCUMULATOR_ROWS, CELLS, CELLS_SIZE, PCU_CHIP, PCUS
from tests.hw.units import MATRIX_UNITS as UNITS
from tests.native.product_runs import STREAMS, run_matmul


@pytest.fixture
def built(pcu_units):
    return pcu_units


@dataclasses.dataclass
class Case:
    """One product on one unit."""

    name: str
    m: int
    n: int
    k: int
    fmt: Format = bf16
    out: Format = fp32
    seed: int = 0
    special_share: float = 0.0
    by_row: bool = False
    stalls: tuple[float, float, float] = (0.0, 0.0, 0.0)

    @property
    def tiling(self) -> MatrixTiling:
        return MatrixTiling(
            m=self.m,
            n=self.n,
            k=self.k,
            columns=UNITS[self.name][0] // 2,
            accumulator_rows=ACCUMULATOR_ROWS,
            fmt=self.fmt,
            out=self.out,
        )

    def operands(self):
        rng = np.random.default_rng(self.seed)
        return tuple(
            random_operand(rng, shape, self.fmt, special_share=self.special_share)
            for shape in ((self.m, self.k), (self.k, self.n))
        )


def run(model, case, **options):
    """Cycles, and whether the result equals numpy's bytes."""
    model.reset(case.seed)
    a, b = case.operands()
    result, cycles, _ = run_matmul(
        model,
        case.tiling,
        a,
        b,
        prefix=f"{case.name}_",
        weights_by_row=case.by_row,
        stalls=dict(zip(STREAMS, case.stalls, strict=True)),
        **options,
    )
    golden = product(a, b, case.out.dtype)
    return cycles, result.tobytes() == golden.tobytes()


def counters(model, name):
    word = model.get(f"{name}_counters")
    names = ("busy", "wait_input", "wait_room", "idle")
    return {key: word >> 48 * index & (1 << 48) - 1 for index, key in enumerate(names)}


def random_cases(seed, count):
    rng = np.random.default_rng(seed)
    for index in range(count):
        fmt = int8 if index % 4 == 3 else bf16
        sides = rng.integers(1, 71, 3)
        if index % 8 == 0:
            sides[rng.integers(3)] = 1
        yield Case(
            name=rng.choice(list(UNITS)),
            m=int(sides[0]),
            n=int(sides[1]),
            k=int(sides[2]),
            fmt=fmt,
            out=int32 if fmt == int8 else (fp32, bf16)[index % 2],
            seed=int(rng.integers(1 << 32)),
            special_share=0.02 if index % 3 == 0 else 0.0,
            by_row=bool(rng.integers(2)),
            stalls=tuple(rng.choice([0.0, 0.2, 0.5, 0.9], 3)),
        )


@pytest.mark.parametrize("count", [15, pytest.param(120, marks=pytest.mark.slow)])
def test_random_products_equal_numpy_under_random_stalls(built, count, seed):
    *_, model = built
    for case in random_cases(seed, count):
        assert run(model, case)[1], case


@pytest.mark.parametrize("fmt", [bf16, int8], ids=lambda fmt: fmt.name)
@pytest.mark.parametrize("by_row", [False, True])
@pytest.mark.parametrize("name", UNITS)
def test_cycles_follow_a_closed_form(built, name, by_row, fmt):
    *_, model = built
    rows, latency = UNITS[name]
    columns = rows // 2
    for m, n, k in ((32, columns, 8 * rows), (64, 3 * columns, 4 * rows), (31, 5, 50)):
        case = Case(name, m, n, k, fmt=fmt, out=fmt.accumulator, by_row=by_row)
        predicted = case.tiling.undisturbed_cycles(latency)
        assert predicted is not None
        assert run(model, case) == (predicted, True), case


@pytest.mark.parametrize("name", UNITS)
def test_a_tile_shorter_than_the_grid_is_deep_waits_for_its_sums_and_no_longer(built, name):
    *_, model = built
    rows, latency = UNITS[name]
    for m in range(1, rows * latency + 4):
        case = Case(name, m, 2, 6 * rows, seed=m)
        assert run(model, case)[1], case
        waited = counters(model, name)["wait_room"]
        gap = max(0, rows * latency + 2 - m)
        weights = rows // 2 + (rows - 1) * latency + 4
        if m > weights:  # else the next weights are waited for as well
            assert waited == 5 * gap, (m, waited)
        if gap == 0:
            assert waited == 0


def test_operands_change_no_cycle(built):
    *_, model = built
    case = Case("d", 32, 8, 64, seed=1)
    plain = run(model, case)
    for seed in range(2, 6):
        assert run(model, dataclasses.replace(case, seed=seed, special_share=0.3)) == plain


@pytest.mark.parametrize("stalls", [(0.0, 0.0, 0.0), (0.5, 0.0, 0.0), (0.0, 0.9, 0.0), (0, 0, 0.9)])
def test_counters_add_up_to_all_cycles(built, stalls):
    *_, model = built
    case = Case("b", 20, 6, 40, seed=3, stalls=stalls)
    assert run(model, case)[1]
    counted = counters(model, "b")
    assert sum(counted.values()) == model.cycle
    assert counted["busy"] == len(case.tiling.activations(case.operands()[0]))


@pytest.mark.parametrize("out", [fp32, bf16], ids=lambda fmt: fmt.name)
def test_sums_that_underflow_do_not_tell_how_far_k_was_padded(built, out):
    *_, model = built
    rng = np.random.default_rng(7)
    for k in (1, 3, 4, 5):
        model.reset(k)
        case = Case("b", 6, 2, k, out=out)
        # Products of subnormals underflow from below; those with 2^-64 leave tiny sums.
        a, b = (
            bf16.from_bits(rng.choice([0x0001, 0x8001, 0x9F80], shape))
            for shape in ((6, k), (k, 2))
        )
        result, *_ = run_matmul(model, case.tiling, a, b, prefix="b_")
        assert result.tobytes() == product(a, b, out.dtype).tobytes(), k


def test_a_product_can_follow_another_without_reset(built):
    *_, model = built
    model.reset(5)
    for seed in range(6):
        case = Case("c", 5 + seed, 3, 9 + seed, seed=seed, fmt=bf16, out=(fp32, bf16)[seed % 2])
        a, b = case.operands()
        result, *_ = run_matmul(model, case.tiling, a, b, prefix="c_")
        golden = product(a, b, case.out.dtype)
        assert result.tobytes() == golden.tobytes(), case


def test_a_missing_weight_vector_is_a_hang_that_names_the_streams(built):
    *_, model = built
    model.reset(1)
    case = Case("a", 8, 2, 4)
    a, b = case.operands()
    model.set("a_int8", 0)
    with pytest.raises(HangError, match=r"a_i_weight 1 of 1.*a_o_result 0 of 8"):
        model.run(
            {
                "a_i_activation": case.tiling.activations(a),
                "a_i_weight": case.tiling.weights(b)[:1],
            },
            {"a_o_result": 8},
            quiet_cycles=200,
        )


def test_a_grid_that_does_not_fit_the_link_is_refused():
    with pytest.raises(BadInputError, match="must be twice its columns, not 8 for 8"):
        MatrixUnit(rows=8, columns=8, formats=(bf16, int8), latency=2, accumulator_rows=16)


def test_identical_modules_are_defined_once(built):
    design, *_ = built
    # The PCUs in the same model have grids too.
    grids = [*(rows for rows, _ in UNITS.values()), *(len(PCUS) * [PCU_CHIP.grid_rows])]
    grids += len(CELLS) * [CELLS_SIZE[0]]
    rows, cells = sum(grids), sum(rows * rows // 2 for rows in grids)
    of = {
        kind: {name: n for name, n in design.instances.items() if name.startswith(kind)}
        for kind in ("stationary_row_", "cell_")
    }
    assert {kind: sum(counts.values()) for kind, counts in of.items()} == {
        "stationary_row_": rows,
        "cell_": cells,
    }
    assert len(of["cell_"]) == 3 + len(CELLS)
    assert design.text.count("\nmodule cell_bf16_int8_l2(") == 1
