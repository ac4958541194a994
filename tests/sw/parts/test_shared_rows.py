"""Points that share rows of a tensor: their rows are one loop, of which it has segments."""

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from hw.numeric.formats import bf16, fp32
from sim.run.api import compile_kernel
from sw import compiler
from sw.array_spec import Segments, arrays_of
from sw.ir.nodes import Loop, Reduce
from sw.ir.rewrite import walk
from sw.ir.types import Role
from sw.parts.points.peel import peeled
from tests.sw.parts.test_division import lean


@tw.kernel("X[B, H, D], g[H, D] -> Y[B, H, D]")
def gain_of_head(X, g, Y):
    """Heads behind one another: row h of g for each row h of a point."""
    for n in tw.each(X.shape[0]):
        for h in tw.metapipe(X.shape[1]):
            x = tw.load_tile(X[n, h, :])
            y = x * tw.rsqrt(tw.row_mean(x * x) + 1e-5)
            tw.store_tile(Y[n, h, :], y * tw.load_tile(g[h, :]))


@tw.kernel("X[B, H, D], g[H, D] -> Y[B, H, D]")
def gain_of_point(X, g, Y):
    """Heads between one another: the row of a point for all its rows."""
    for h in tw.each(X.shape[1]):
        for n in tw.metapipe(X.shape[0]):
            x = tw.load_tile(X[n, h, :])
            y = x * tw.rsqrt(tw.row_mean(x * x) + 1e-5)
            tw.store_tile(Y[n, h, :], y * tw.load_tile(g[h]))


@tw.kernel("X[B, H, D], s[B, D], t[B, 1] -> Y[B, H, D]")
def modulated(X, s, t, Y):
    """Element math on the row of a point, and a column of one element for each point."""
    for n in tw.each(X.shape[0]):
        for h in tw.metapipe(X.shape[1]):
            x = tw.load_tile(X[n, h, :])
            d = x - tw.row_mean(x)
            y = d * tw.rsqrt(tw.row_mean(d * d) + 1e-5)
            tw.store_tile(Y[n, h, :], y * (1 + tw.load_tile(s[n, :])) + tw.load_tile(t[n, :]))


@tw.kernel("X[B, S, H, D], c[S, D], m[B, D] -> Y[B, H, S, D]")
def turned_heads(X, c, m, Y):
    """Two loops over points, blocks of columns, and a result whose rows are in another order."""
    B, S, H, D = X.shape
    for b in tw.each(B):
        for h in tw.each(H):
            for i in tw.metapipe(S):
                for j in tw.metapipe(D):
                    x = tw.load_tile(X[b, i, h, j]) * tw.load_tile(c[i, j])
                    tw.store_tile(Y[b, h, i, j], x + tw.exp(tw.load_tile(m[b, j])))


@tw.kernel("X[B, S, H, D] -> Y[B, H, S, D]")
def moved_heads(X, Y):
    B, S, H, _ = X.shape
    for b in tw.each(B):
        for h in tw.each(H):
            for i in tw.metapipe(S):
                tw.store_tile(Y[b, h, i, :], tw.load_tile(X[b, i, h, :]))


@tw.kernel("X[B, H, D], g[B, D] -> Y[B, H, D]")
def numbered_columns(X, g, Y):
    for n in tw.each(X.shape[0]):
        for h in tw.metapipe(X.shape[1]):
            for j in tw.metapipe(X.shape[2]):
                y = tw.load_tile(X[n, h, j]) * tw.load_tile(g[n, j])
                tw.store_tile(Y[n, h, j], tw.where(tw.col_index(j) < 5, y, -1.0))


@tw.kernel("X[B, H, D], g[B, D] -> Y[B, H, D]")
def sums_down(X, g, Y):
    """A sum of the only row of a point is no sum of its rows."""
    for n in tw.each(X.shape[0]):
        for h in tw.metapipe(X.shape[1]):
            g_sum = tw.col_sum(tw.load_tile(g[n, :]))
            tw.store_tile(Y[n, h, :], tw.load_tile(X[n, h, :]) + g_sum)


@tw.kernel("X[B, D], g[D] -> Y[B, D], m[B, 1]: fp32")
def rows_alone(X, g, Y, m):
    """No loop over blocks of rows: a point is a row."""
    for n in tw.each(X.shape[0]):
        x = tw.load_tile(X[n]) * tw.load_tile(g)
        top = tw.row_max(x)
        tw.store_tile(m[n, :], top)
        tw.store_tile(Y[n], tw.exp(x - top))


@tw.kernel("X[B, H, D], g[H, D], s[B, 1] -> Y[B, H, D]")
def whole_tiles(X, g, s, Y):
    """A point is a tile of all its rows."""
    for n in tw.each(X.shape[0]):
        x = tw.load_tile(X[n])
        d = x - tw.row_mean(x)
        tw.store_tile(Y[n], d * tw.load_tile(g) + tw.load_tile(s[n, :]))


@tw.kernel("X[B, H, D] -> Y[B, H, D]")
def tiles_down(X, Y):
    for n in tw.each(X.shape[0]):
        x = tw.load_tile(X[n])
        tw.store_tile(Y[n], x - tw.col_max(x))


SIZES = {"B": 4, "S": 3, "H": 8, "D": 16}


def peeled_of(kernel, **sizes):
    program = lean(kernel, **{dim: (SIZES | sizes)[dim] for dim in kernel.signature.dims})
    return peeled(program, {each.name: each for each in arrays_of(program)})


def rows_of(part):
    """Rows of its loop, row pitch and segments of each tensor."""
    (rows,) = [each.extent for each in part.program.nodes if isinstance(each, Loop)]
    return rows, [(each.row_pitch, each.segments) for each in part.arrays]


def whole(*loops):
    return Segments(0, loops)


@pytest.mark.parametrize(
    "kernel, places",
    [
        (gain_of_head, [(None, None), (None, whole((4, 0))), (None, None)]),
        (gain_of_point, [(None, None), (None, whole((4, 0))), (None, None)]),
        (modulated, [(None, None), (0, whole((4, 32))), (0, whole((4, 16))), (None, None)]),
        (numbered_columns, [(None, None), (0, whole((4, 32))), (None, None)]),
        (whole_tiles, [(None, None), (None, whole((4, 0))), (0, whole((4, 16))), (None, None)]),
    ],
    ids=lambda each: getattr(each, "name", ""),
)
def test_rows_of_all_points_are_one_loop(kernel, places):
    first, other, apart = peeled_of(kernel)
    assert sum(each.segments is not None for each in other.arrays) > len(
        [each for _, each in places if each]
    )
    assert rows_of(first) == (32, places)
    assert [each.repeat for each in first.launches] == [1]
    assert sum(each.repeat for each in apart.launches) == (8 if kernel is gain_of_point else 4)


def test_two_loops_over_points_are_joined_from_the_innermost_on():
    """X[b, i, h, :] in the order of Y[b, h, i, :]: 3 rows, 8 heads apart by 32 bytes, 4 batches."""
    all_points, _, heads, _, apart = peeled_of(turned_heads)
    assert rows_of(all_points) == (
        96,
        [
            (256, whole((4, 768), (8, 32))),
            (None, whole((32, 0))),
            (0, whole((4, 32))),
            (None, None),
        ],
    )
    assert rows_of(heads)[0] == 24 and rows_of(apart)[0] == 3


def test_points_of_a_row_are_rows():
    first, apart = peeled_of(rows_alone)
    assert rows_of(first) == (4, [(None, None)] * 4)
    assert [each.repeat for each in apart.launches] == [4]


@pytest.mark.parametrize("kernel", [sums_down, tiles_down], ids=lambda each: each.name)
def test_statistics_of_columns_keep_points_apart(kernel):
    for part in peeled_of(kernel):
        assert not any(isinstance(each, Loop) and each.extent > 8 for each in part.program.nodes)
        down = [each for each in walk(part.program.nodes) if isinstance(each, Reduce)]
        rows = {each.operands[0].type.rows.size for each in down}
        assert rows == ({1} if kernel is sums_down else {8})


def drawn(kernel, sizes, dtype, draw):
    shapes = [
        each.type.shape for each in lean(kernel, **sizes).tensors if each.type.role is Role.IN
    ]
    return [draw.normal(size=each).astype(dtype.dtype) for each in shapes]


@pytest.mark.few(3)
@pytest.mark.parametrize("dtype", [bf16, fp32], ids=str)
@pytest.mark.parametrize("chip", ["tiny", "small", "large"])
@pytest.mark.parametrize(
    "kernel",
    [
        gain_of_head,
        gain_of_point,
        modulated,
        turned_heads,
        moved_heads,
        numbered_columns,
        rows_alone,
        whole_tiles,
    ],
    ids=lambda each: each.name,
)
def test_random_sizes_equal_golden(kernel, chip, dtype, seed):
    draw = np.random.default_rng(seed)
    choices = {
        "B": [1, 2, 3, 4, 8],
        "S": [1, 2, 5, 16, 17],
        "H": [1, 2, 4, 6, 12, 16, 32],
        "D": [8, 16, 40, 64, 128],
    }
    for _ in range(3):
        sizes = {dim: int(draw.choice(choices[dim])) for dim in kernel.signature.dims}
        found = kernel.run(*drawn(kernel, sizes, dtype, draw), config=chip, backend="emulator")
        assert found.verified, (sizes, found.problems)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "kernel, sizes, most",
    [
        # Points one after another took 138,196 cycles, 81,855, 212,790, 1,850, 67,740 and 50,740.
        (gain_of_head, {"B": 128, "H": 8, "D": 64}, 18_100),
        (gain_of_point, {"B": 16, "H": 32, "D": 128}, 18_100),
        (modulated, {"B": 128, "H": 8, "D": 64}, 37_000),
        (moved_heads, {"B": 4, "S": 1, "H": 32, "D": 64}, 900),
        (rows_alone, {"B": 40, "D": 100}, 3_300),
        (whole_tiles, {"B": 8, "H": 16, "D": 256}, 9_900),
    ],
    ids=lambda each: getattr(each, "name", ""),
)
def test_few_rows_of_a_point_fill_the_lanes(kernel, sizes, most):
    compiled = compile_kernel(kernel, named["small"], dtype=bf16, **sizes)
    assert len(compiled.images) == 1 and compiled.predicted_cycles <= most


@tw.kernel("X[B, S, D], g[D] -> Y[B, T, D]")
def norms_with_gaps(X, g, Y):
    """The first S of T rows of each sample: results lie in segments, too."""
    B, S, _ = X.shape
    for b in tw.each(B):
        for i in tw.metapipe(S):
            x = tw.load_tile(X[b, i, :])
            y = x * tw.rsqrt(tw.row_mean(x * x) + 1e-5)
            tw.store_tile(Y[b, i, :], y * tw.load_tile(g))
        for i in tw.metapipe(Y.shape[1] - S):
            tw.store_tile(Y[b, S + i.start : S + i.stop, :], tw.load_tile(X[b, i, :]))


@pytest.mark.few(1)
@pytest.mark.parametrize("chip", ["tiny", "small", "large"])
def test_results_may_lie_in_segments(chip, seed):
    """Norms of 32 rows of 5 samples took a launch each, of two groups of rows."""
    draw = np.random.default_rng(seed)
    x, g = (draw.normal(size=each).astype(bf16.dtype) for each in ((5, 32, 64), 64))
    found = norms_with_gaps.run(x, g, T=40, config=chip, backend="emulator")
    assert found.verified, found.problems
    parts = compiler.compile_kernel(
        norms_with_gaps, named[chip], dims={"B": 5, "S": 32, "T": 40, "D": 64}, dtype=bf16
    ).parts
    assert [launch.repeat for launch in parts[0].part.launches] == [1]


@pytest.mark.few(1)
@pytest.mark.parametrize("kernel", [gain_of_head, modulated], ids=lambda each: each.name)
def test_rows_are_in_the_order_that_fits(kernel):
    """Twelve heads are no groups of 16 rows, but 32 points are: a fifth of the cycles."""
    sizes = {"B": 32, "H": 12, "D": 128}
    compiled = compiler.compile_kernel(kernel, named["small"], dims=sizes, dtype=bf16)
    (part,) = compiled.parts
    places = [each.segments for each in part.part.arrays if each.output]
    assert places == [whole((12, 256))]
    assert compiled.predicted_cycles <= (13_900 if kernel is gain_of_head else 27_000)
    text = "part 1: Y: 12 segments 256 bytes apart, each 32 rows 3072 bytes apart"
    assert text in compiled.ir("divide")


def test_the_faster_of_both_is_taken():
    """Neither 12 heads nor 5 points are groups of 16 rows, or parts of one: they stay apart.

    Two points are beside one another.
    """
    kernel, sizes = gain_of_head, {"B": 5, "H": 12, "D": 64}
    compiled = compiler.compile_kernel(kernel, named["small"], dims=sizes, dtype=bf16)
    assert [(each.part.points, each.iterations) for each in compiled.parts] == [(2, 2), (1, 1)]


@pytest.mark.slow
def test_segments_on_the_rtl(heavy, seed):
    draw = np.random.default_rng(seed)
    for kernel, sizes in (
        (gain_of_head, {"B": 5, "H": 8, "D": 40}),
        (modulated, {"B": 6, "H": 16, "D": 64}),
        (turned_heads, {"B": 2, "S": 16, "H": 8, "D": 64}),
        (whole_tiles, {"B": 3, "H": 32, "D": 80}),
        (modulated, {"B": 32, "H": 3, "D": 64}),
        (norms_with_gaps, {"B": 3, "S": 32, "T": 35, "D": 48}),
    ):
        given = {"T": sizes["T"]} if "T" in sizes else {}
        found = kernel.run(
            *drawn(kernel, sizes, bf16, draw), config="small", backend="rtl", **given
        )
        assert found.verified, (kernel.name, found.problems)
        assert abs(found.cycles / found.predicted_cycles - 1) <= 0.05
