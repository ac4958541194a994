"""Loops of `tw.repeat`: parts of their bodies, launched for each iteration, equal golden."""

import numpy as np
import pytest

import sw.language as tw
from hw.arch.config import named
from sim.golden import golden
from sw.array_spec import arrays_of
from sw.ir.sizes import choose_sizes
from sw.parts import sections as module
from sw.parts.divide import divide
from sw.parts.launch_checks import require_launches
from sw.parts.part import in_order
from sw.passes.accumulate import accumulate
from sw.passes.check import check
from sw.passes.simplify import simplify
from sw.stages.refusal import Refusals
from tests.sw.parts.division_model import run_division


@tw.kernel("X[M, D], W[L, D, D] -> Y[M, D]: bf16")
def chain(X, W, Y):
    x = tw.load_tile(X)
    for n in tw.repeat(W.shape[0]):
        x = (x @ tw.load_tile(W[n])).to(tw.bf16)
    tw.store_tile(Y, x)


@tw.kernel("X[M, D], W[L, D, D], g[D] -> Y[M, D]")
def two_carries(X, W, g, Y):
    """Values before the loop, two carries, one with a computed start, and both behind it."""
    x, gain = tw.load_tile(X), tw.load_tile(g)
    y = tw.silu(x)
    total = x * gain
    for n in tw.repeat(W.shape[0]):
        x = (tw.silu(x @ tw.load_tile(W[n])) + y).to(tw.bf16)
        total = total + x * gain
    tw.store_tile(Y, x + total)


@tw.kernel("X[M, D], W[L, D, D], V[L, D, D] -> Y[M, D]: bf16")
def two_loops(X, W, V, Y):
    """The last layer's tile is the first one's of another loop, which goes backwards."""
    x = tw.load_tile(X)
    last = V.shape[0] - 1
    for n in tw.repeat(W.shape[0]):
        x = (x @ tw.load_tile(W[n])).to(tw.bf16)
    for n in tw.repeat(V.shape[0]):
        x = (x @ tw.load_tile(V[last - n])).to(tw.bf16)
    tw.store_tile(Y, x)


@tw.kernel("X[B, M, D], W[L, D, D], g[L, D], Kc[L, S, D] -> Y[M, D], Kc")
def caches(X, W, g, Kc, Y):
    """A tensor updated in place, a vector of each layer, a start that is a part of a tensor."""
    x = tw.load_tile(X[1])
    M = x.rows
    for n in tw.repeat(W.shape[0]):
        k = (x @ tw.load_tile(W[n])).to(tw.bf16)
        tw.store_tile(Kc[n, 2 : 2 + M, :], k)
        x = (x + tw.load_tile(Kc[n, :M, :]) * tw.load_tile(g[n])).to(tw.bf16)
    tw.store_tile(Y, x)


@tw.kernel("X[L, H, M, D], W[L, H, D, D] -> Y[L, H, M, D]")
def no_carry(X, W, Y):
    """Points inside, a loop over blocks inside these, nothing carried."""
    for n in tw.repeat(X.shape[0]):
        for h in tw.each(X.shape[1]):
            for i in tw.metapipe(X.shape[2]):
                tw.store_tile(Y[n, h, i, :], tw.load_tile(X[n, h, i, :]) @ tw.load_tile(W[n, h]))


@tw.kernel("X[M, D], g[L, D] -> Y[M, D]")
def widened(X, g, Y):
    """The carried tile is wider than its start, and read behind the loop by two operations."""
    x = tw.load_tile(X)
    for n in tw.repeat(g.shape[0]):
        x = tw.silu(x) * tw.load_tile(g[n])
    tw.store_tile(Y, x + abs(x))


SIZES = {
    chain: {"M": 3, "D": 16},
    two_carries: {"M": 3, "D": 16},
    two_loops: {"M": 3, "D": 16},
    caches: {"B": 2, "M": 2, "D": 16, "S": 5},
    no_carry: {"H": 2, "M": 3, "D": 16},
    widened: {"M": 3, "D": 16},
}


def lean(kernel, **sizes):
    return simplify(accumulate(check(kernel.trace(dtype=tw.bf16, out=tw.fp32, **sizes))))


def divided(program, config="small"):
    return divide(program, Refusals(named[config]).of)


def differing(program, found, seed):
    """Names of outputs whose bytes are not golden's."""
    rng = np.random.default_rng(seed)
    inputs = {
        each.name: (rng.normal(size=each.type.shape) / 2).astype(each.type.format.dtype)
        for each in program.tensors
        if each.type.role.value != "out"
    }
    wanted = golden(choose_sizes(program, {}, default=2), inputs)
    got = run_division(found, arrays_of(program), inputs, default=2)
    return [name for name, array in wanted.items() if array.tobytes() != got[name].tobytes()]


@pytest.mark.parametrize("layers", [1, 2, 3, 4])
@pytest.mark.parametrize("kernel", SIZES, ids=lambda each: each.name)
def test_launches_of_all_iterations_equal_golden(kernel, layers, seed):
    dims = {"V": layers, "L": layers} | SIZES[kernel]
    program = lean(kernel, **{name: dims[name] for name in kernel.signature.dims})
    found = divided(program)
    require_launches(found, arrays_of(program))
    assert differing(program, found, seed) == []


@pytest.mark.parametrize("layers", [2, 7])
def test_parts_do_not_depend_on_the_number_of_layers(layers):
    program = lean(two_carries, L=layers, **SIZES[two_carries])
    one = divided(lean(two_carries, L=3, **SIZES[two_carries]))
    found = divided(program)
    assert [part.program for part in found.parts] == [part.program for part in one.parts]
    assert [each.bytes for each in found.intermediates] == [
        each.bytes for each in one.intermediates
    ]
    groups = [launch.group for _, launch in in_order(part.launches for part in found.parts)]
    assert groups == sorted(groups) and len(set(groups)) == layers + 2


def test_a_tile_of_an_input_and_of_an_output_is_not_copied():
    found = divided(lean(chain, L=3, **SIZES[chain]))
    (part,) = found.parts
    tiles = [[each.array for each in launch.arguments] for launch in part.launches]
    assert tiles[0][1] == "X" and tiles[-1][-1] == "Y"
    assert tiles[0][-1] == tiles[1][1] == tiles[1][-1] == tiles[2][1]


def test_slots_that_do_not_alternate_are_found(seed, monkeypatch):
    """One slot of memory: an iteration of several parts reads what it has overwritten."""
    program = lean(two_carries, L=3, **SIZES[two_carries])
    right = divided(program)

    def one_slot(launch):
        arguments = (
            module.Argument(each.array, each.offset if each.array == "W" else 0, each.stride)
            for each in launch.arguments
        )
        return type(launch)(tuple(arguments), launch.repeat, launch.group)

    parts = tuple(
        type(part)(part.program, part.arrays, tuple(map(one_slot, part.launches)))
        for part in right.parts
    )
    wrong = type(right)(parts, right.intermediates)
    assert differing(program, right, seed) == [] and differing(program, wrong, seed) == ["Y"]


@tw.kernel("X[M, D], W[L, D, D] -> Y[M, D]: bf16")
def counted(X, W, Y):
    x = tw.load_tile(X)
    for n in tw.repeat(W.shape[0]):
        total = tw.zeros(*X.shape)
        for k in tw.metapipe(X.shape[1], until=n + 1):
            total += tw.load_tile(X[:, k]) @ tw.load_tile(W[n, k])
        x = (x + total).to(tw.bf16)
    tw.store_tile(Y, x)


@tw.kernel("X[M, D], K[L, M, D] -> K")
def crossed(X, K):
    x = tw.load_tile(X)
    for n in tw.repeat(K.shape[0]):
        x = (x + tw.load_tile(K[0])).to(tw.bf16)
        tw.store_tile(K[n], x)


@tw.kernel("X[M, D], g[L, D] -> Y[M, D]: bf16")
def condition(X, g, Y):
    x = tw.load_tile(X)
    positive = x > 0.0
    for n in tw.repeat(g.shape[0]):
        x = tw.where(positive, x * tw.load_tile(g[n]), 0.0).to(tw.bf16)
    tw.store_tile(Y, x)


@pytest.mark.parametrize(
    ("kernel", "sizes", "message"),
    [
        (condition, {"M": 3, "D": 16}, r"such as `positive` must be computed in the loop"),
        (counted, {"M": 3, "D": 16}, r"`n` of a loop that runs as launches must be an index of"),
        (crossed, {"M": 3, "D": 16}, r"`K`, which a loop of `tw.repeat` updates, must be indexed"),
    ],
    ids=["condition", "counted", "crossed"],
)
def test_what_launches_do_not_make_is_refused_at_its_line(kernel, sizes, message):
    with pytest.raises(tw.ProgramError, match=message) as found:
        divided(lean(kernel, L=3, **sizes))
    assert found.value.kind == "unserved"
    assert found.value.where.startswith("test_sections.py:")
