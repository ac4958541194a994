"""Kernels compiled to images: answers by the emulator, choices, refusals, reports."""

import dataclasses
import json

import ml_dtypes
import numpy as np
import pytest

import sw.language as tw
from hw.arch.config import ChipConfig, named
from hw.arch.errors import BadInputError
from hw.numeric.formats import bf16, fp32, int8
from sim.emulator.emulated_launch import emulate
from sim.golden import golden
from sim.launch_memory import LaunchMemory
from sw.compiler import compile_kernel
from sw.kernels.gemm import gemm
from sw.kernels.matmul import matmul
from sw.kernels.transposed.matmul_nt import matmul_nt
from sw.kernels.transposed.matmul_tn import matmul_tn
from sw.kernels.transposed.matmul_tt import matmul_tt
from sw.passes.steps import PASSES

TINY, SMALL = named["tiny"], named["small"]


def compiled(kernel=matmul, config=TINY, shape=(20, 20, 20), dtype=bf16, **how):
    return compile_kernel(
        kernel, config, dims=dict(zip("MNK", shape, strict=True)), dtype=dtype, **how
    )


def answers(result, seed=1):
    """The emulator's C and golden's."""
    rng = np.random.default_rng(seed)
    shapes = {each.name: each.shape for each in result.arrays if not each.output}
    if result.dtype is bf16:
        arrays = {
            name: rng.standard_normal(shape).astype(ml_dtypes.bfloat16)
            for name, shape in shapes.items()
        }
    else:
        arrays = {name: rng.integers(-128, 128, shape, np.int8) for name, shape in shapes.items()}
    memory = LaunchMemory.of_kernel(result, seed=seed)
    raw = memory.bytes_before(arrays)
    before = bytes(raw)
    emulate(result.config, raw, list_address=memory.list_address, entries=memory.entries)
    assert memory.changed_outside(before, raw) is None
    return memory.read(raw, "C"), golden(result.golden_program, arrays)["C"]


TRANSPOSED = (matmul_nt, matmul_tn, matmul_tt)


@pytest.mark.few
@pytest.mark.parametrize("kernel", [matmul, gemm, *TRANSPOSED], ids=lambda each: each.name)
@pytest.mark.parametrize(
    ("config", "shape", "dtype", "out"),
    [
        ("tiny", (37, 21, 30), bf16, None),
        ("tiny", (10, 33, 50), int8, None),
        ("small", (70, 90, 100), bf16, fp32),
        ("small", (1, 50, 33), bf16, None),
    ],
)
def test_emulated_images_give_golden_bytes(kernel, config, shape, dtype, out):
    result = compiled(kernel, named[config], shape, dtype, out=out)
    emulated, expected = answers(result)
    assert emulated.tobytes() == expected.tobytes()


def test_bytes_do_not_depend_on_schedule_or_placement():
    shape = (50, 40, 45)
    first = compiled(config=SMALL, shape=shape)
    others = [
        compiled(config=SMALL, shape=shape, place_seed=2),
        compiled(config=SMALL, shape=shape, schedule=tw.Schedule(tile={"i": 24, "j": 16})),
        compiled(config=SMALL, shape=shape, schedule=tw.Schedule(row_par={"c": 2})),
        compiled(config=SMALL, shape=shape, schedule=tw.Schedule(col_par={"c": 2})),
        compiled(config=SMALL, shape=shape, schedule=first.schedule),
    ]
    expected = answers(first)[0].tobytes()
    for other in others:
        assert answers(other)[0].tobytes() == expected
    assert len({first.parts[0].image, *(each.parts[0].image for each in others[:4])}) == 5


def test_a_schedule_beats_the_compiler():
    own = compiled(config=SMALL, shape=(200, 64, 64))
    plan = own.parts[0].plan
    assert own.schedule.row_par["c"] == plan.row_par
    assert own.schedule.tile == {"i": plan.block_rows, "j": plan.columns}
    named_ = tw.Schedule(row_par={"c": 2}, tile={"i": 20}, slots={"c_tile": 1})
    chosen = compiled(config=SMALL, shape=(200, 64, 64), schedule=named_)
    assert chosen.parts[0].plan.row_par == 2
    assert chosen.parts[0].plan.block_rows <= 20
    assert chosen.parts[0].fit.homes["c0"].slots == 1
    tile = json.loads(chosen.schedule.to_json())["tile"]
    assert tile == {"i": 20, "j": chosen.parts[0].plan.columns}
    free = compiled(gemm, SMALL, (200, 64, 64))
    assert set(free.schedule.tile) == {"i", "j", "k"}
    assert free.schedule.row_par["acc"] == free.parts[0].plan.row_par


def test_rows_fewer_than_units_use_fewer_units():
    schedule = tw.Schedule(row_par={"c": 4})
    result = compiled(config=SMALL, shape=(3, 16, 16), schedule=schedule)
    assert result.parts[0].plan.row_par == 3
    assert "row_par=4 became 3: more units would find no rows" in result.report()


def test_a_better_plan_overrules_the_programs_block_sizes():
    free = compiled(config=SMALL, shape=(200, 64, 64))
    hinted = compiled(config=SMALL, shape=(200, 64, 64), options={"MM": 8})
    assert hinted.parts[0].image == free.parts[0].image
    became = f"tile of i=8 became {free.parts[0].plan.block_rows}: a hint"
    assert became in hinted.report() and "tile of" not in free.report()
    bound = compiled(config=SMALL, shape=(200, 64, 64), schedule=tw.Schedule(tile={"i": 8}))
    assert bound.parts[0].plan.block_rows <= 8 and "tile of" not in bound.report()
    assert free.predicted_cycles < bound.predicted_cycles


def test_a_better_plan_overrules_the_programs_grid():
    free = compiled(config=SMALL, shape=(256, 256, 256))
    assert free.parts[0].plan.row_par != 4
    became = f"row_par=4 became {free.parts[0].plan.row_par}: a hint, and the fastest plan found"
    assert became in free.report()
    schedule = tw.Schedule(row_par={"c": 4})
    hinted = compiled(config=SMALL, shape=(256, 256, 256), schedule=schedule)
    assert hinted.parts[0].plan.row_par == 4
    assert "row_par" not in hinted.report()
    assert free.predicted_cycles < hinted.predicted_cycles


def test_report_and_figures():
    result = compiled(config=SMALL, shape=(64, 64, 64))
    assert result.macs == 64**3
    assert result.macs <= result.macs_issued
    assert result.peak_macs_per_cycle == 1024
    assert result.units_used["pcu"] == result.parts[0].plan.row_par * result.parts[0].plan.col_par
    assert result.predicted_cycles > result.macs / result.peak_macs_per_cycle
    assert result.predicted_cycles == result.prediction(100).cycles < result.prediction(400).cycles
    assert (
        f"grid {result.parts[0].plan.row_par} x {result.parts[0].plan.col_par}" in result.report()
    )
    assert [each.name for each in result.arrays] == ["A", "B", "C"]
    assert result.arrays[2].output


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("shape", "dtype", "utilization"),
    [
        ((256, 256, 256), bf16, 0.915),
        ((256, 256, 256), int8, 0.85),
        ((128, 128, 1024), bf16, 0.88),
        ((64, 64, 1024), bf16, 0.70),
        ((251, 257, 263), bf16, 0.78),
    ],
)
def test_default_plans_keep_the_grid_busy(shape, dtype, utilization):
    result = compiled(config=SMALL, shape=shape, dtype=dtype)
    assert result.macs / result.peak_macs_per_cycle / result.predicted_cycles >= utilization


def test_few_rows_run_at_the_speed_of_memory():
    result = compiled(config=SMALL, shape=(4, 1024, 1024))
    assert result.parts[0].plan.product.turned
    # Two AGCUs bring 64 bytes a cycle.
    assert 1024 * 1024 * 2 / 64 / result.predicted_cycles >= 0.88
    again = compiled(config=SMALL, shape=(4, 1024, 1024), schedule=result.schedule)
    assert again.parts[0].plan.product.turned
    # A schedule does not name the K-blocks, so the plan may be another one of about that speed.
    assert again.predicted_cycles <= 1.05 * result.predicted_cycles


def test_each_pass_has_a_text():
    result = compiled()
    assert list(result.texts) == [each.name for each in PASSES]
    assert "%c = matmul %a_tile, %b_tile" in result.ir("tile")
    with pytest.raises(BadInputError, match="did you mean 'route'"):
        result.ir("rout")


def test_predictions_know_that_slots_overlap():
    cycles = [
        compiled(
            config=SMALL,
            shape=(1024, 32, 256),
            schedule=tw.Schedule(slots={"a_tile": slots, "b_tile": slots, "c_tile": slots}),
        ).predicted_cycles
        for slots in (1, 2)
    ]
    assert cycles[0] > 1.3 * cycles[1]


def refuse(match, **how):
    with pytest.raises(BadInputError, match=match) as caught:
        compiled(**how)
    return caught.value


def test_refusals_of_chips():
    one = dataclasses.replace(SMALL, pattern="cccm/cccc/cccc/cccc")
    error = refuse("at least 2 PMUs for the buffers of A, B and C of a product, not 1", config=one)
    assert error.kind == "does-not-fit"
    narrow = dataclasses.replace(TINY, token_tracks=1)
    refuse("at least 2 token tracks or 2 AGCUs for free slots of A and of B", config=narrow)
    narrow = dataclasses.replace(TINY, tracks=1)
    refuse("at least 2 tracks or 2 AGCUs for the streams of A and of B", config=narrow)
    little = ChipConfig(rows=2, columns=2, width_bits=256, pmu=TINY.pmu)
    refuse("Buffer a0 needs .* slots", config=little, schedule=tw.Schedule(slots={"a_tile": 12}))
    few = dataclasses.replace(
        SMALL, pcu=dataclasses.replace(SMALL.pcu, accumulator_rows=16), width_bits=512
    )
    refuse(
        "Rows of a block .* a multiple of 32 and at most 16",
        kernel=matmul_tn,
        config=few,
        shape=(4, 4, 25),
    )


def test_refusals_of_schedules():
    for choice, match in (
        (
            tw.Schedule(row_par={"c": 9}),
            "row_par x col_par of `c` must be at most the chip's 8 PCUs",
        ),
        (
            tw.Schedule(col_par={"c": 9}),
            "col_par of `c` must be one of 1, 2, 3, 4, 5, 6, 7, 8, not 9",
        ),
        (tw.Schedule(place={"c": "pcu[0, :]"}), "Schedule.place of `c` is not supported"),
        (tw.Schedule(sum_par={"c": 2}), "Schedule.sum_par of `c` is not supported"),
        (tw.Schedule(tile={"kk": 2}), "Schedule.tile has `kk`"),
    ):
        refuse(match, config=SMALL, schedule=choice)
    refuse("must be 1 or more, not 0|must be a whole number", options={"MM": 0})
    refuse("has no parameter `NM`", options={"NM": 4})


def test_what_hardware_does_not_serve_is_refused_at_its_line():
    @tw.kernel("A[M, K], B[K, N] -> C[M, N]")
    def turned(A, B, C):
        for j in tw.metapipe(B.shape[1], 8):
            b = tw.load_tile(B[:, j])
            for i in tw.metapipe(A.shape[0], 8):
                tw.store_tile(C[i, j], tw.load_tile(A[i, :]) @ b)

    match = r"test_compiler.py:\d+: Loops in the order j, i are not supported"
    with pytest.raises(tw.ProgramError, match=match) as caught:
        compile_kernel(turned, TINY, dims={"M": 8, "N": 16, "K": 8}, dtype=bf16)
    assert caught.value.kind == "unserved"
    assert caught.value.where.startswith("test_compiler.py:")


def test_a_transpose_may_be_of_a_buffer_or_of_the_sum_of_blocks():
    @tw.kernel("A[K, M], B[N, K] -> C[M, N]")
    def blocks(A, B, C):
        for i in tw.metapipe(C.shape[0]):
            for j in tw.metapipe(C.shape[1]):
                acc = tw.zeros(i, j)
                for k in tw.metapipe(B.shape[1]):
                    b = tw.buffer(tw.load_tile(B[j, k]))
                    acc += tw.load_tile(A[k, i]).T @ b.T
                tw.store_tile(C[i, j], acc)

    @tw.kernel("A[M, K], B[N, K] -> C[M, N]")
    def kept(A, B, C):
        b = tw.buffer(tw.load_tile(B).T)
        tw.store_tile(C, tw.load_tile(A).T.T @ b)

    for kernel in (blocks, kept):
        result = compiled(kernel, SMALL, (70, 50, 90))
        emulated, expected = answers(result)
        assert emulated.tobytes() == expected.tobytes()


def test_a_matrix_times_its_own_transpose():
    @tw.kernel("A[M, K] -> C[M, M]")
    def squares(A, C):
        for i in tw.metapipe(C.shape[0]):
            a = tw.load_tile(A[i, :])
            for j in tw.metapipe(C.shape[1]):
                tw.store_tile(C[i, j], a @ tw.load_tile(A[j, :]).T)

    for config, shape in ((TINY, (20, 30)), (SMALL, (100, 70))):
        dims = dict(zip("MK", shape, strict=True))
        result = compile_kernel(squares, config, dims=dims, dtype=bf16)
        emulated, expected = answers(result)
        assert emulated.tobytes() == expected.tobytes()


@pytest.mark.slow
def test_a_transposed_operand_costs_no_time():
    for dtype in (bf16, int8):
        plain = compiled(config=SMALL, shape=(256, 256, 256), dtype=dtype)
        for kernel in TRANSPOSED:
            result = compiled(kernel, SMALL, (256, 256, 256), dtype)
            assert result.predicted_cycles <= 1.02 * plain.predicted_cycles


@tw.kernel("A[M, K], B[K, N] -> C[M, N]")
def with_a_dead_loop(A, B, C):
    for i in tw.metapipe(A.shape[0]):
        a = tw.load_tile(A[i, :])
        unread = tw.zeros(i, 1)
        for k in tw.metapipe(A.shape[1]):
            unread += tw.row_sum(tw.load_tile(A[i, k]))
        tw.store_tile(C[i, :], a @ tw.load_tile(B))


def test_a_loop_that_nothing_stored_depends_on_needs_no_size():
    result = compiled(with_a_dead_loop, shape=(20, 18, 20))
    got, wanted = answers(result)
    assert got.tobytes() == wanted.tobytes()
    assert "unread" not in result.ir("simplify")


def test_whole_matrices_need_no_loop():
    @tw.kernel("A[M, K], B[K, N] -> C[M, N]")
    def whole(A, B, C):
        tw.store_tile(C, tw.load_tile(A) @ tw.load_tile(B))

    result = compiled(whole, SMALL, (40, 30, 20))
    emulated, expected = answers(result)
    assert emulated.tobytes() == expected.tobytes()
    assert result.schedule.tile == {}
