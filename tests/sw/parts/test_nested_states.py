"""Points around loops that carry tiles: all points share the launches of an iteration."""

import pytest

import tilewright as tw
from hw.arch.config import named
from sim.run.job import Problem
from sw.parts.carried_loops import without_carried_loops
from sw.parts.nested_states import nested_states
from tests.sw.verified_kernels import lean, verified


@tw.kernel("Q[H, C, L, D], K[H, C, L, D], V[H, C, L, D] -> Y[H, C, L, D], S[H, D, D]: fp32")
def chunks_of_heads(Q, K, V, Y, S):
    """Linear attention: each head has a state, which every chunk changes."""
    H, C, _, D = Q.shape
    for h in tw.each(H):
        s = tw.zeros(D, D, tw.fp32)
        for c in tw.each(C):
            q, k, v = (tw.load_tile(each[h, c]) for each in (Q, K, V))
            tw.store_tile(Y[h, c], q @ s.to(tw.bf16))
            s = s * 0.75 + k.T @ v
        tw.store_tile(S[h], s)


def blocks_of_heads(size):
    @tw.kernel("Q[H, T, D], K[H, T, D], V[H, T, D] -> Y[H, T, D]")
    def heads(Q, K, V, Y):
        """The same with blocks of a given size, of which the last one may be shorter."""
        H, T, D = Q.shape
        for h in tw.each(H):
            s = tw.zeros(D, D, tw.fp32)
            for c in tw.metapipe(T, size):
                q, k, v = (tw.load_tile(each[h, c]) for each in (Q, K, V))
                tw.store_tile(Y[h, c], q @ s.to(tw.bf16))
                s = s * 0.75 + k.T @ v

    return heads


@tw.kernel(
    "X[B, H, T, N], S[B, H, N], w[N] -> Y[B, H, T, N]: fp32, Z[B, H, N]: fp32, M[B, H, N]: fp32"
)
def scans_of_batches(X, S, w, Y, Z, M):
    """Two loops over points around two carried tiles that begin as loaded ones."""
    B, H, T, _ = X.shape
    decay = tw.load_tile(w)
    for b in tw.each(B):
        for h in tw.each(H):
            first = tw.load_tile(S[b, h])
            s, m = first.to(tw.fp32), tw.maximum(first * 0.5, 0.0)
            for t in tw.each(T):
                x = tw.load_tile(X[b, h, t])
                late = tw.row_index(1) + (t - 2 * h) > 3
                s = s * decay + tw.where(late, x, -x) + first * 0.125
                m = tw.maximum(m, s)
                tw.store_tile(Y[b, h, t], s)
            tw.store_tile(Z[b, h], s + m)
            tw.store_tile(M[b, h], m)


@tw.kernel("X[H, T, M, N], W[H, N, N] -> Y[H, T, M, N]")
def computed_before(X, W, Y):
    """A product of each point in front of its carrying loop."""
    H, T, _, N = X.shape
    for h in tw.each(H):
        w = (tw.load_tile(W[h]) @ tw.load_tile(W[h]).T).to(tw.bf16)
        s = tw.zeros(X.shape[2], N, tw.bf16)
        for t in tw.each(T):
            s = (s @ w * 0.125 + tw.load_tile(X[h, t])).to(tw.bf16)
            tw.store_tile(Y[h, t], s)


@tw.kernel("X[H, T, N], C[N] -> Y[H, T, N], C[N]")
def in_place(X, C, Y):
    """Each point reads what the one before has stored."""
    H, T, N = X.shape
    for h in tw.each(H):
        s = tw.load_tile(C).to(tw.fp32)
        for t in tw.each(T):
            s = s * 0.5 + tw.load_tile(X[h, t])
            tw.store_tile(Y[h, t], s)
        tw.store_tile(C, s)


@tw.kernel("X[L, T, N] -> Y[L, T, N], Z[1, N]")
def in_carrying_layers(X, Y, Z):
    """Layers that carry a tile around steps that carry another one."""
    L, T, N = X.shape
    x = tw.zeros(1, N, tw.fp32)
    for n in tw.repeat(L):
        h = x * 0.25
        for t in tw.each(T):
            h = tw.maximum(h * 0.5, tw.load_tile(X[n, t]))
            tw.store_tile(Y[n, t], h)
        x = x + h
    tw.store_tile(Z, x)


CASES = (
    (chunks_of_heads, {"H": 9, "C": 9, "L": 8, "D": 16}),
    (chunks_of_heads, {"H": 2, "C": 10, "L": 12, "D": 8}),
    (blocks_of_heads(8), {"H": 3, "T": 77, "D": 16}),
    (blocks_of_heads(7), {"H": 1, "T": 63, "D": 8}),
    (scans_of_batches, {"B": 2, "H": 3, "T": 9, "N": 16}),
    (scans_of_batches, {"B": 1, "H": 11, "T": 10, "N": 24}),
    (computed_before, {"H": 2, "T": 9, "M": 8, "N": 16}),
    (in_place, {"H": 2, "T": 9, "N": 16}),
    (in_carrying_layers, {"L": 2, "T": 9, "N": 16}),
)


@pytest.mark.few(2)
@pytest.mark.parametrize(("kernel", "sizes"), CASES, ids=lambda each: getattr(each, "name", None))
@pytest.mark.parametrize("config", ["tiny", "small", "large"])
def test_states_of_points_have_golden_s_bits(kernel, sizes, config, seed):
    verified(kernel, sizes, config, seed, backend="emulator")


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("kernel", "sizes"),
    [
        (chunks_of_heads, {"H": 2, "C": 9, "L": 4, "D": 8}),
        (scans_of_batches, {"B": 1, "H": 2, "T": 9, "N": 16}),
        (blocks_of_heads(4), {"H": 2, "T": 38, "D": 8}),
    ],
    ids=lambda each: getattr(each, "name", None),
)
def test_states_of_points_on_the_rtl(kernel, sizes, seed, heavy):
    verified(kernel, sizes, "tiny", seed)


def outermost(kernel, **sizes):
    """The loop over points without carries."""
    return without_carried_loops(lean(kernel, **sizes), {}).nodes[-1]


def test_points_are_computed_together_if_they_do_not_depend_on_one_another():
    assert nested_states(outermost(scans_of_batches, B=2, H=3, T=9, N=8)).count == 6
    assert nested_states(outermost(blocks_of_heads(8), H=4, T=77, D=8)).loop.extent == 9


@pytest.mark.parametrize(
    ("kernel", "sizes"),
    [
        (computed_before, {"H": 9, "T": 9, "M": 8, "N": 8}),
        (in_place, {"H": 9, "T": 9, "N": 8}),
    ],
    ids=lambda each: getattr(each, "name", None),
)
def test_other_points_have_launches_of_their_own(kernel, sizes):
    loop = outermost(kernel, **sizes)
    assert loop.mode == "repeat" and nested_states(loop) is None


@pytest.mark.parametrize("heads", [3, 12])
def test_points_share_the_launches_of_an_iteration(heads):
    chunks = 9
    sizes = {"H": heads, "C": chunks, "L": 8, "D": 16}
    compiled = Problem(chunks_of_heads, named["small"], sizes, tw.bf16).compile()
    # Two for each chunk, and some for the starts and the ends of all heads.
    assert 2 * chunks < len(compiled.launches) < 3 * chunks
