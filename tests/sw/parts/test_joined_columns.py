"""Points that multiply one tile by matrices of their own: one product, with the columns of all."""

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import AgcuConfig, ChipConfig, PmuConfig, named
from hw.arch.errors import BadInputError
from hw.arch.loops import BoxLoop
from sim.operands import random_operand
from sw.array_spec import ArraySpec, Segments, arrays_of
from sw.compiler import compile_kernel
from sw.parts.points.peel import peeled
from sw.passes.field_limits import Unfit
from sw.stages.segment_digits import in_segments, split_loops
from sw.stages.stage_graph import boxes_of
from tests.sw.parts.test_division import lean


@tw.kernel("n[M, D], W[H, D, E] -> Y[H, M, E]")
def heads(n, W, Y):
    for h in tw.each(W.shape[0]):
        tw.store_tile(Y[h], tw.load_tile(n) @ tw.load_tile(W[h]))


@tw.kernel("n[M, D], W[D, N] -> Y[M, N]")
def flat(n, W, Y):
    tw.store_tile(Y, tw.load_tile(n) @ tw.load_tile(W))


@tw.kernel("n[M, D], W[R, G, D, E] -> Y[G, R, M, E]: fp32")
def crossed(n, W, Y):
    for g in tw.each(W.shape[1]):
        for r in tw.each(W.shape[0]):
            tw.store_tile(Y[g, r], tw.load_tile(n) @ tw.load_tile(W[r, g]))


@tw.kernel("n[M, D], W[H, E, D], b[H, E], s[M, 1], R[H, M, E] -> Y[H, M, E]")
def epilogue(n, W, b, s, R, Y):
    for h in tw.each(W.shape[0]):
        y = tw.load_tile(n) @ tw.load_tile(W[h]).T * tw.load_tile(s) + tw.load_tile(b[h])
        tw.store_tile(Y[h], tw.maximum(y, 0.0) + tw.load_tile(R[h]))


@tw.kernel("n[M, D], W[H, D, E] -> Y[H, M, E]")
def blocks(n, W, Y):
    for h in tw.each(W.shape[0]):
        for i in tw.metapipe(n.shape[0]):
            for j in tw.metapipe(W.shape[2]):
                total = tw.zeros(i, j)
                for k in tw.metapipe(n.shape[1]):
                    total += tw.load_tile(n[i, k]) @ tw.load_tile(W[h, k, j])
                tw.store_tile(Y[h, i, j], total.to(tw.bf16))


@tw.kernel("n[M, D], W[D, H, E] -> Y[M, H, E]: fp32")
def inside(n, W, Y):
    """Columns of all points are adjacent, and so are those of the results."""
    for h in tw.each(W.shape[1]):
        total = tw.zeros(n.shape[0], W.shape[2])
        for k in tw.metapipe(n.shape[1]):
            total += tw.load_tile(n[:, k]) @ tw.load_tile(W[k, h, :])
        tw.store_tile(Y[:, h, :], total)


@tw.kernel("n[M, D], W[H, D, E] -> Y[H, M, 1]: fp32")
def row_sums(n, W, Y):
    for h in tw.each(W.shape[0]):
        tw.store_tile(Y[h], tw.row_sum(tw.load_tile(n) @ tw.load_tile(W[h])))


@tw.kernel("n[M, D], W[H, D, E] -> Y[H, M, E]")
def numbered(n, W, Y):
    for h in tw.each(W.shape[0]):
        y = tw.load_tile(n) @ tw.load_tile(W[h])
        tw.store_tile(Y[h], y * tw.col_index(W.shape[2]).to(tw.fp32))


@tw.kernel("n[M, D], W[H, D, E], Y[H, M, E] -> Y[H, M, E]")
def in_place(n, W, Y):
    for h in tw.each(W.shape[0]):
        tw.store_tile(Y[h], tw.load_tile(n) @ tw.load_tile(W[h]) + tw.load_tile(Y[h]))


@tw.kernel("n[M, D], W[H, D, E] -> Y[H, M, E]")
def descending(n, W, Y):
    H = W.shape[0]
    for h in tw.each(H):
        tw.store_tile(Y[h], tw.load_tile(n) @ tw.load_tile(W[H - 1 - h]))


@tw.kernel("n[M, D], W[H, D, E], V[H, E, D] -> Y[M, D]: fp32")
def summed(n, W, V, Y):
    """A sum over points, perhaps of one, of what each has of its own."""
    x = tw.load_tile(n)
    total = tw.zeros(x.rows, x.cols)
    for h in tw.each(W.shape[0]):
        y = tw.maximum(x @ tw.load_tile(W[h]), 0.0).to(tw.bf16)
        total += y @ tw.load_tile(V[h])
    tw.store_tile(Y, total)


KERNELS = (
    *(heads, crossed, epilogue, blocks, inside),
    *(in_place, descending, summed, row_sums, numbered),
)


def random_chip(draw):
    """A chip of 2 to 36 units, or None if there is none with these sides."""
    try:
        return ChipConfig(
            rows=int(draw.integers(2, 7)),
            columns=int(draw.integers(2, 7)),
            width_bits=int(draw.choice([64, 128, 256, 512])),
            pmu=PmuConfig(capacity_bytes=int(draw.choice([4096, 16384, 65536]))),
            agcu=AgcuConfig(count=int(draw.integers(1, 5))),
        )
    except BadInputError:
        return random_chip(draw)


def operands(kernel, draw):
    """Operands of random sizes: few rows, and columns of a point that often are whole vectors."""
    most = {"M": 30, "D": 60, "E": 60, "H": 9, "G": 4, "R": 4}
    sizes = {each: int(np.exp(draw.uniform(0, np.log(most[each])))) for each in most}
    if draw.random() < 0.6:
        sizes["E"] = int(draw.choice([8, 16, 32, 48, 64]))
    inputs = (each for each in kernel.signature.arguments if each.role.value != "out")
    shapes = [[sizes.get(dim, 1) for dim in each.dims] for each in inputs]
    return [random_operand(draw, each, tw.bf16) for each in shapes]


@pytest.mark.few(4)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda each: each.name)
def test_random_chips_equal_golden(kernel, seed, draws):
    draw = np.random.default_rng(seed)
    for _ in range(draws(4, 40)):
        given, config = operands(kernel, draw), random_chip(draw)
        found = kernel.run(*given, config=config, backend="emulator")
        assert found.verified, (config, [each.shape for each in given], found.problems)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [heads, crossed, epilogue], ids=lambda each: each.name)
def test_the_rtl_equals_golden_under_random_stalls(kernel, seed, heavy):
    draw = np.random.default_rng(seed)
    sizes = {"M": 5, "D": 70, "E": 32, "H": 5, "G": 2, "R": 3}
    inputs = (each for each in kernel.signature.arguments if each.role.value != "out")
    shapes = [[sizes.get(dim, 1) for dim in each.dims] for each in inputs]
    given = [random_operand(draw, each, tw.bf16) for each in shapes]
    found = kernel.run(*given, config="small", backend="rtl", jitter=20)
    assert found.verified, found.problems


def compiled(kernel, config, **sizes):
    return compile_kernel(kernel, named[config], dims=sizes, dtype=tw.bf16)


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 4, 64])
@pytest.mark.parametrize("config", ["small", "large"])
def test_heads_take_as_long_as_one_product(config, rows):
    one = compiled(heads, config, M=rows, D=512, H=12, E=64)
    (part,) = one.parts
    weights = next(each for each in part.part.arrays if each.name == "W")
    assert weights.shape == (512, 768)
    assert weights.segments == Segments(1, ((12, 512 * 64 * 2),))
    assert [each.repeat for each in part.part.launches] == [1]
    whole = compiled(flat, config, M=rows, D=512, N=768)
    assert one.prediction().cycles <= 1.02 * whole.prediction().cycles


def test_adjacent_columns_are_no_segments():
    (part,) = compiled(inside, "small", M=4, D=64, H=6, E=32).parts
    assert [each.segments for each in part.part.arrays] == [None] * 3
    assert [each.shape for each in part.part.arrays] == [(4, 64), (64, 192), (4, 192)]


@pytest.mark.parametrize(
    ("kernel", "sizes", "config"),
    [
        (in_place, {"M": 2, "D": 8, "E": 48, "H": 2}, "small"),
        (in_place, {"M": 4, "D": 32, "E": 32, "H": 4}, "large"),
        (summed, {"M": 4, "D": 32, "E": 30, "H": 1}, "small"),
        (summed, {"M": 15, "D": 16, "E": 1, "H": 1}, "tiny"),
    ],
)
def test_boxes_beside_a_product_stay_within_segments(kernel, sizes, config, seed):
    draw = np.random.default_rng(seed)
    inputs = (each for each in kernel.signature.arguments if each.role.value != "out")
    given = [random_operand(draw, [sizes[dim] for dim in each.dims], tw.bf16) for each in inputs]
    found = kernel.run(*given, config=config, backend="emulator")
    assert found.verified, found.problems


def test_a_plan_of_short_points_overlaps_as_launches():
    """Their columns have no wide passes: one product takes longer than launches that overlap."""
    (part,) = compiled(heads, "large", M=200, D=128, H=6, E=80).parts
    assert part.points == 6


def test_columns_that_do_not_divide_into_boxes_are_launches():
    (part,) = compiled(heads, "small", M=4, D=64, H=6, E=20).parts
    assert part.points == 6


@pytest.mark.parametrize("kernel", [row_sums, numbered], ids=lambda each: each.name)
def test_statistics_and_numbers_of_columns_are_those_of_a_point(kernel):
    program = lean(kernel, M=4, D=64, H=6, E=32)
    assert len(peeled(program, {each.name: each for each in arrays_of(program)})) == 1


def test_boxes_of_columns_stay_within_their_segment():
    """Element (r, 24·s + c) of three segments, 4,096 bytes apart, of eight rows of 24."""
    array = ArraySpec("W", (8, 72), tw.bf16, row_pitch=64, segments=Segments(1, ((3, 4096),)))
    loops = [BoxLoop(9, 0, 8), BoxLoop(2, 1, 4)]
    (box, _), found = in_segments((array,), boxes_of((array,), "W", (8, 4)), loops, 0)
    assert (box.dims, box.strides, box.box) == ((24, 8, 3), (64, 4096), (8, 4, 1))
    assert found == [BoxLoop(3, 2, 1), BoxLoop(3, 0, 8), BoxLoop(2, 1, 4)]
    first = boxes_of((array,), "W", (8, 4), 0, 32)
    (box, _), found = in_segments((array,), first, [BoxLoop(2, 0, 8)], 32)
    assert (box.base, box.dims, found) == (4096 + 16, (16, 8, 2), [BoxLoop(2, 0, 8)])
    assert split_loops((24, 3), 8, 0, ((9, 8),)) == 2
    for width, first, loop in ((16, 0, (2, 16)), (8, 16, (3, 8)), (8, 0, (4, 8))):
        with pytest.raises(Unfit):
            split_loops((24, 3), width, first, (loop,))
    with pytest.raises(Unfit, match="Columns of a box"):
        in_segments((array,), boxes_of((array,), "W", (48, 4)), [], 0)
