"""Divisions of kernels into parts: golden of the parts, in order, is golden of the kernel."""

import dataclasses
import random
from collections import Counter

import numpy as np
import pytest

import sw.language as tw
from hw.arch.config import named
from hw.arch.errors import BadInputError
from sim.golden import golden
from sw.array_spec import arrays_of
from sw.ir import nodes as ir
from sw.ir.rewrite import walk
from sw.ir.sizes import choose_sizes
from sw.ir.verify import VerifyError
from sw.kernels.gated_mlp import gated_mlp
from sw.kernels.residual import residual
from sw.parts import division_search, slices
from sw.parts.divide import divide
from sw.parts.points import peel
from sw.passes.accumulate import accumulate
from sw.passes.check import check
from sw.passes.simplify import simplify
from sw.stages.refusal import Refusals
from tests.sw.language.test_programs import load
from tests.sw.parts.division_model import run_division
from tests.sw.parts.random_kernels import draw_kernel, draw_layers

PROGRAMS = 100


def lean(kernel, **sizes):
    return simplify(accumulate(check(kernel.trace(dtype=tw.bf16, out=tw.fp32, **sizes))))


def served_by(config):
    """What the compiler recognises and what fits its chip."""
    return Refusals(config).of


def limited(draw):
    """An invented rule: so many operations, a product alone, perhaps narrow results."""
    most = draw.randint(1, 4)
    products = draw.randint(0, 2)
    narrow = draw.random() < 0.8

    def serves(program, arrays):
        nodes = list(walk(program.nodes))
        loops = [each for each in nodes if isinstance(each, ir.Loop)]
        maths = [each for each in nodes if isinstance(each, ir.Map | ir.Reduce)]
        dots = [each for each in nodes if isinstance(each, ir.Matmul)]
        columns = (each.shape[-1] for each in arrays if each.output)
        refused = (
            len(dots) > 1
            or any(isinstance(each, ir.Columns | ir.Join) for each in nodes)
            or len(maths) > (products if dots else most)
            or any(loop.mode != "metapipe" for loop in loops)
            or any(len(each.shape) > 2 for each in arrays)
            or (not narrow and 1 in columns)
        )
        return BadInputError("not served", kind="unserved") if refused else None

    return serves


def inputs_of(program, rng):
    return {
        each.name: (rng.normal(size=each.type.shape)).astype(each.type.format.dtype)
        for each in program.tensors
        if each.type.role.value != "out"
    }


def agree(program, found, rng, draw):
    """Whether the parts of a program have its bits."""
    indices = [each.index for each in walk(program.nodes) if isinstance(each, ir.Loop)]
    sizes = {index: draw.randint(1, 12) for index in indices}
    inputs = inputs_of(program, rng)
    wanted = golden(choose_sizes(program, sizes), inputs)
    got = run_division(found, arrays_of(program), inputs, sizes=sizes)
    return all(wanted[name].tobytes() == got[name].tobytes() for name in wanted)


@tw.kernel("A[B, M, K], W[B, K, N] -> C[B, M, N]")
def batched(A, W, C):
    for b in tw.each(A.shape[0]):
        for i in tw.metapipe(A.shape[1]):
            tw.store_tile(C[b, i, :], tw.load_tile(A[b, i, :]) @ tw.load_tile(W[b]))


@tw.kernel("X[M, N] -> Y[M, N]")
def softmax_and_x(X, Y):
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        e = tw.exp(x - tw.row_max(x))
        tw.store_tile(Y[i, :], e / tw.row_sum(e) + x)


@tw.kernel("X[M, N] -> Y[M, N]")
def row_by_row(X, Y):
    for row in range(X.shape[0]):
        tw.store_tile(Y[row, :], tw.load_tile(X[row, :]) * 2)


def test_a_long_loop_over_range_is_refused_before_the_search():
    """Each iteration is a part: the search would take minutes for a few hundred of them."""
    with pytest.raises(BadInputError) as found:
        divide(lean(row_by_row, M=256, N=16), served_by(named["tiny"]))
    assert "at most 64 stores to be divided into parts, not 256" in found.value.message
    assert "write `tw.metapipe` or `tw.each`" in found.value.message
    assert found.value.where.startswith("test_division.py:")
    assert len(divide(lean(row_by_row, M=4, N=16), served_by(named["tiny"])).parts) == 4


@tw.kernel("X[M, K], W[K, N] -> Y[M, N]")
def scaled_rows(X, W, Y):
    x = tw.load_tile(X)
    tw.store_tile(Y, (x / tw.row_max(x)).to(X.dtype) @ tw.load_tile(W))


def test_a_format_that_no_piece_may_have_is_named():
    """The product takes fp16, the lanes do not: the format is refused, not the division."""
    program = simplify(accumulate(check(scaled_rows.trace(M=20, K=24, N=16, dtype=tw.fp16))))
    small = named["small"]
    halves = dataclasses.replace(small, pcu=dataclasses.replace(small.pcu, formats=("fp16",)))
    with pytest.raises(BadInputError, match="Lanes take tiles of .*, and `.*` is fp16") as found:
        divide(program, served_by(halves))
    assert found.value.where.startswith("test_division.py:")


@tw.kernel("X[M, K], W[K, N] -> Y[M, N]")
def mean_squares(X, W, Y):
    for i in tw.metapipe(X.shape[0]):
        acc = tw.zeros(i, Y.shape[1])
        for k in tw.metapipe(X.shape[1]):
            acc += tw.load_tile(X[i, k]) @ tw.load_tile(W[k, :])
        scale = tw.rsqrt(tw.row_sum(acc * acc) / Y.shape[1])
        tw.store_tile(Y[i, :], acc * scale)


@pytest.mark.parametrize(
    ("kernel", "sizes", "parts"),
    [
        (gated_mlp, {"M": 20, "D": 16, "F": 24}, 4),
        (residual, {"M": 20, "K": 16, "N": 24}, 2),
        (batched, {"B": 3, "M": 20, "K": 24, "N": 16}, 1),
        (softmax_and_x, {"M": 20, "N": 24}, 2),
        (mean_squares, {"M": 20, "K": 24, "N": 16}, 2),
    ],
    ids=lambda each: getattr(each, "name", None),
)
def test_division_by_what_the_compiler_serves(kernel, sizes, parts, seed, draws):
    program = lean(kernel, **sizes)
    found = divide(program, served_by(named["small"]))
    # The compiler may serve more in a part one day.
    assert 1 <= len(found.parts) <= parts
    draw = random.Random(seed)
    for number in range(draws(3, 8)):
        assert agree(program, found, np.random.default_rng(seed + number), draw)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("file", "name", "sizes"),
    [
        ("softmax", "softmax", {"M": 13, "N": 24}),
        ("softmax", "attention", {"H": 3, "M": 13, "D": 16, "S": 24}),
        ("mlp", "rms_norm", {"M": 13, "D": 16}),
        ("mlp", "mlp", {"M": 13, "D": 16, "F": 24}),
        ("gemm", "gemm", {"M": 13, "K": 24, "N": 16}),
    ],
)
def test_programs_of_the_language_page_by_invented_rules(file, name, sizes, seed, draws):
    program = lean(load(file)[name], **sizes)
    draw = random.Random(seed)
    divided = 0
    for number in range(draws(8, 12)):
        try:
            found = divide(program, limited(draw))
        except BadInputError as error:
            assert error.message == "not served"
            continue
        divided += 1
        assert agree(program, found, np.random.default_rng(seed + number), draw)
    assert divided >= draws(2, 4)


def examine(draw, rng, programs, drawn=draw_kernel):
    """Divide random kernels; how many were divided, and the texts of those whose bits differ."""
    fates, wrong = Counter(), []
    for number in range(programs):
        kernel, sizes, text = drawn(draw, number)
        program = lean(kernel, **sizes)
        try:
            found = divide(program, limited(draw))
        except BadInputError as error:
            assert error.message == "not served" or "cannot be overwritten" in error.message
            fates["refused"] += 1
            continue
        fates["one" if len(found.parts) == 1 else "several"] += 1
        fates["repeated"] += any(each.repeat > 1 for part in found.parts for each in part.launches)
        if not agree(program, found, rng, draw):
            wrong.append(text)
    return fates, wrong


def test_random_kernels_have_the_bits_of_golden(seed, draws):
    print(f"seed {seed}")
    count = draws(30, PROGRAMS)
    fates, wrong = examine(random.Random(seed), np.random.default_rng(seed), count)
    print(dict(fates))
    assert not wrong, wrong[0]
    assert fates["several"] > draws(10, PROGRAMS // 3) and fates["repeated"] > draws(
        0, PROGRAMS // 8
    )


def test_random_layers_have_the_bits_of_golden(seed, draws):
    print(f"seed {seed}")
    count = draws(20, PROGRAMS)
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    fates, wrong = examine(draw, rng, count, draw_layers)
    print(dict(fates))
    assert not wrong, wrong[0]
    assert fates["several"] > draws(6, PROGRAMS // 2)


def asked_by(serves, lost=None):
    """A rule that refuses one more program, and the programs that it was asked for."""
    asked = []

    def counted(program, arrays):
        asked.append(program)
        if program == lost:
            return BadInputError("lost", kind="unserved")
        return serves(program, arrays)

    return counted, asked


def test_a_second_division_takes_the_steps_of_the_first(seed, draws):
    """If a part is not served any more, only what stands in its place is searched for."""
    print(f"seed {seed}")
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    again, anew, others = 0, 0, 0
    for number in range(draws(30, PROGRAMS)):
        kernel, sizes, text = draw_layers(draw, number)
        program, rule, former = lean(kernel, **sizes), limited(draw), {}
        try:
            found = divide(program, rule, former=former)
        except BadInputError:
            continue
        assert divide(program, rule, former=former) == found, text
        lost = draw.choice(found.parts).program
        (second, asked), (scratch, every) = asked_by(rule, lost), asked_by(rule, lost)
        try:
            other = divide(program, second, former=former)
            divide(program, scratch)
        except BadInputError:
            continue
        assert agree(program, other, rng, draw), text
        again, anew, others = again + len(asked), anew + len(every), others + 1
    print(f"{others} programs: {again} asked for, {anew} without the first division")
    assert others > draws(5, PROGRAMS // 8)
    assert again < 0.9 * anew


@tw.kernel("X[M, N], T[M, N] -> T, E[M, N]")
def old_and_new(X, T, E):
    for i in tw.metapipe(X.shape[0]):
        x, t = tw.load_tile(X[i, :]), tw.load_tile(T[i, :])
        tw.store_tile(T[i, :], t + x)
        tw.store_tile(E[i, :], abs(t * x) - tw.row_sum(t))


@tw.kernel("X[G, M, N], T[G, S, N] -> T, E[G, M, S]")
def cache(X, T, E):
    past = T.shape[1] - X.shape[1]
    for g in tw.each(X.shape[0]):
        x = tw.load_tile(X[g])
        tw.store_tile(T[g, past:, :], x * 0.5)
        tw.store_tile(E[g], x @ tw.load_tile(T[g]).T)


@tw.kernel("X[M, K], W[G, K, N], T[G, S, N] -> T, E[G, M, S]")
def turned_cache(X, W, T, E):
    past = T.shape[1] - X.shape[0]
    for g in tw.each(T.shape[0]):
        a, b = tw.split_cols(tw.load_tile(X) @ tw.load_tile(W[g]), 2)
        rows = tw.join_cols(-b, a * 0.5)
        tw.store_tile(T[g, past:, :], rows)
        tw.store_tile(E[g], (rows * 2.0).to(tw.bf16) @ tw.load_tile(T[g]).T)


def test_updates_in_place_keep_their_order(seed, draws, monkeypatch):
    def wrong(kernel, **sizes):
        program = lean(kernel, **sizes)
        draw = random.Random(seed)
        found = []
        for _ in range(draws(8, 12)):
            try:
                found.append(divide(program, limited(draw)))
            except BadInputError as error:
                assert error.message == "not served"
        rng = np.random.default_rng(seed)
        assert any(len(each.parts) > 1 for each in found)
        return sum(not agree(program, each, rng, draw) for each in found)

    assert not wrong(old_and_new, M=13, N=16) + wrong(cache, G=3, M=5, S=9, N=16)
    assert not wrong(turned_cache, G=3, M=5, K=8, S=9, N=16)
    monkeypatch.setattr(division_search, "ready", lambda *_: True)
    assert wrong(old_and_new, M=13, N=16)


def _same_place(loop_points, made):
    """Launches whose iterations all write where the first one does."""
    return tuple(
        dataclasses.replace(
            launch,
            arguments=tuple(dataclasses.replace(each, stride=0) for each in launch.arguments),
        )
        for launch in _LAUNCHES(loop_points, made)
    )


def _no_sums(nodes):
    """Live nodes whose loops forget what they carry."""
    return tuple(
        each.replace(nodes=_no_sums(each.body), nexts=each.carries)
        if isinstance(each, ir.Loop)
        else each
        for each in _LIVE(nodes)
    )


def _first_block(value, depends, loops):
    """Places of values whose views forget points."""
    found = _PLACE(value, depends, loops)
    if found is None:
        return None
    entries = (
        each if each.axis else dataclasses.replace(each, start=each.start * 0) for each in found[1]
    )
    return found[0], tuple(entries)


_LAUNCHES, _LIVE, _PLACE = peel.launches_of, slices.live, slices._place


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("module", "name", "fault"),
    [
        (peel, "launches_of", _same_place),
        (slices, "live", _no_sums),
        (slices, "_place", _first_block),
    ],
    ids=["strides", "carry", "place"],
)
def test_planted_faults_are_found(module, name, fault, seed, monkeypatch):
    monkeypatch.setattr(module, name, fault)
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    for _ in range(20):
        try:
            if examine(draw, rng, 10)[1]:
                return
        except VerifyError:
            # The verifier of the IR sees some of them before any bit is wrong.
            return
    raise AssertionError("no program showed the fault")
