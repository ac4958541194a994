"""Sums over points whose tiles do not follow one another in memory: segments of one product."""

import numpy as np
import pytest

import sw.language as tw
from hw.arch.config import named
from hw.arch.errors import BadInputError
from sim.run.driver import compile_job, run
from sim.run.job import Job, Problem
from sw.array_spec import ArraySpec, Segments
from sw.kernels.conv2d import conv2d


@tw.kernel("X[T, H, W, C], F[U, R, S, C, K] -> Y[Q, K]")
def three_loops(X, F, Y):
    (U, R, S, _, _), Q = F.shape, Y.shape[0]
    acc = tw.zeros(Q, Y.shape[1])
    for u in tw.each(U):
        for r in tw.each(R):
            for s in tw.each(S):
                acc += tw.load_tile(X[u, r, s : s + Q]) @ tw.load_tile(F[u, r, s])
    tw.store_tile(Y, acc)


@tw.kernel("X[R, C, M], F[R, K, C] -> Y[M, K]")
def transposed(X, F, Y):
    acc = tw.zeros(Y.shape[0], Y.shape[1])
    for r in tw.each(X.shape[0]):
        acc += tw.load_tile(X[r]).T @ tw.load_tile(F[r]).T
    tw.store_tile(Y, acc)


@tw.kernel("X[R, M, C], F[R, L, K] -> Y[M, K]")
def first_rows(X, F, Y):
    """Both operands in segments: those of F are not all of its rows."""
    acc = tw.zeros(Y.shape[0], Y.shape[1])
    for r in tw.each(X.shape[0]):
        acc += tw.load_tile(X[r]) @ tw.load_tile(F[r, : X.shape[2], :])
    tw.store_tile(Y, tw.maximum(acc, 0.0))


def compiled(kernel, sizes, config, dtype=tw.bf16):
    job = Job(Problem(kernel, named[config], sizes, dtype, None, {}), backend="emulator")
    return job, *compile_job(job)


def convolution(channels, columns=20):
    sizes = {"N": 1, "R": 3, "S": 2, "C": channels, "K": 9, "P": 2, "Q": columns}
    sizes |= {"H": sizes["P"] + 2, "W": columns + 1}
    return {dim: sizes[dim] for dim in conv2d.signature.dims}


def test_a_convolution_is_one_image_repeated_for_each_row_of_pixels():
    _, found, _ = compiled(conv2d, convolution(16), "small")
    (part,) = found.parts
    assert part.points == 2


@pytest.mark.parametrize(("channels", "loops"), [(16, 1), (24, 1), (5, 2), (1, 2)])
def test_adjacent_tiles_are_one_segment(channels, loops):
    """Elements of a pixel that fill whole units of alignment follow those of the one before."""
    _, found, _ = compiled(conv2d, convolution(channels), "small")
    (part,) = found.parts
    (segments,) = [each.segments for each in part.part.arrays if each.segments is not None]
    assert len(segments.loops) == loops and segments.axis == 1
    assert segments.count == (3 if loops == 1 else 6)


@pytest.mark.few
@pytest.mark.parametrize("config", ["tiny", "small"])
@pytest.mark.parametrize("kernel", [transposed, first_rows])
def test_operands_along_either_axis_may_lie_in_segments(kernel, config, seed, draws):
    rng = np.random.default_rng(seed)
    for _ in range(draws(2, 4)):
        sizes = {dim: int(rng.integers(2, 40)) for dim in kernel.signature.dims}
        if "L" in sizes:
            sizes["L"] = sizes["C"] + int(rng.integers(1, 9))
        job, found, fields = compiled(kernel, sizes, config)
        outcome = run(job, found, fields)
        assert outcome.report["verified"], (sizes, outcome.problems)
        assert len(found.parts) == 1, sizes


def test_what_a_segment_does_not_have_is_zero_in_both_operands(seed):
    """Infinities beside a segment, in the next one, are in no product of its end."""
    rng = np.random.default_rng(seed)
    sizes = {"R": 3, "M": 9, "C": 5, "L": 7, "K": 6}
    problem = Problem(first_rows, named["small"], sizes, tw.bf16, None, {})
    x, f = (rng.normal(size=each.shape).astype(each.format.dtype) for each in problem.inputs)
    f[:, 5:] = np.inf
    job = Job(problem, backend="emulator", inputs={"X": x, "F": f})
    outcome = run(job, *compile_job(job))
    assert outcome.report["verified"], outcome.problems
    assert np.isfinite(outcome.outputs["Y"].astype(np.float32)).all()


def test_more_loops_than_a_load_stream_has_are_refused():
    sizes = {"T": 3, "H": 5, "W": 9, "C": 5, "U": 2, "R": 3, "S": 2, "Q": 8, "K": 4}
    wanted = "must step through memory in at most 2 loops, not 3"
    with pytest.raises(BadInputError, match=wanted):
        compiled(three_loops, sizes, "small")
    # Elements of a pixel that are adjacent to those of the next take one loop less.
    _, found, _ = compiled(three_loops, sizes | {"C": 8}, "small")
    assert len(found.parts) == 1


@pytest.mark.parametrize(("size", "value", "needed"), [("H", 9, 4), ("W", 20, 21)])
def test_sizes_that_need_padding_or_a_stride_are_refused(size, value, needed):
    wanted = rf"^{size} must be {needed}, filter and result together less one .*, not {value}"
    with pytest.raises(BadInputError, match=wanted):
        compiled(conv2d, convolution(8) | {size: value}, "small")


def test_reach_of_an_array_in_segments():
    spec = ArraySpec("X", (6, 20), tw.bf16, row_pitch=16)
    assert spec.reach == 5 * 16 + 40
    by_columns = ArraySpec("X", (6, 20), tw.bf16, False, 16, Segments(1, ((2, 512), (2, 64))))
    assert by_columns.reach == 512 + 64 + 5 * 16 + 10
    by_rows = ArraySpec("X", (6, 20), tw.bf16, False, 48, Segments(0, ((3, 512),)))
    assert by_rows.reach == 2 * 512 + 48 + 40
