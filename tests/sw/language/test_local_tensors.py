"""Local tensors: numpy = golden = emulator = RTL; one that stays on the chip is the tile itself."""

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from hw.arch.errors import BadInputError
from hw.numeric.formats import bf16, fp32
from sim.run.driver import compile_job, run
from sim.run.job import Job, Problem


@tw.kernel("X[M, K], W[K, F], V[F, N] -> Y[M, N]: fp32")
def two_products(X, W, V, Y, spill=True):
    (M, K), F, N = X.shape, W.shape[1], V.shape[1]
    hidden = tw.local(M, F, dtype=tw.bf16, spill=spill)
    for i in tw.metapipe(M):
        for f in tw.metapipe(F):
            acc = tw.zeros(i, f)
            for k in tw.metapipe(K):
                acc += tw.load_tile(X[i, k]) @ tw.load_tile(W[k, f])
            tw.store_tile(hidden[i, f], tw.maximum(acc, 0.0))
    for i in tw.metapipe(M):
        for j in tw.metapipe(N):
            acc = tw.zeros(i, j)
            for f in tw.metapipe(F):
                acc += tw.load_tile(hidden[i, f]) @ tw.load_tile(V[f, j])
            tw.store_tile(Y[i, j], acc)


@tw.kernel("X[H, M, N] -> Y[H, M, N], T[H, N, M]")
def heads(X, Y, T, spill=True):
    """Loops over points around both, two loads, one of other blocks."""
    H, M, N = X.shape
    doubled = tw.local(H, M, N, dtype=tw.bf16, spill=spill)
    for h in tw.each(H):
        for i in tw.metapipe(M):
            tw.store_tile(doubled[h, i, :], tw.load_tile(X[h, i, :]) * 2.0)
        for i in tw.metapipe(M):
            tw.store_tile(Y[h, i, :], tw.load_tile(doubled[h, i, :]) + 1.0)
        for j in tw.metapipe(N):
            tw.store_tile(T[h, j, :], tw.load_tile(doubled[h, :, j]).T)


@tw.kernel("X[M, N], g[N] -> Y[M, N]")
def on_chip(X, g, Y, spill=False):
    M, N = X.shape
    scaled = tw.local(M, N, dtype=tw.bf16, spill=spill)
    for i in tw.metapipe(M):
        tw.store_tile(scaled[i, :], tw.load_tile(X[i, :]) * 3.0)
    gain = tw.load_tile(g)
    for i in tw.metapipe(M):
        tw.store_tile(Y[i, :], tw.load_tile(scaled[i, :]) * gain)


@tw.kernel("X[M, N], g[N] -> Y[M, N]")
def tile_itself(X, g, Y):
    gain = tw.load_tile(g)
    for i in tw.metapipe(X.shape[0]):
        x = (tw.load_tile(X[i, :]) * 3.0).to(tw.bf16)
        tw.store_tile(Y[i, :], x * gain)


def draw(rng, *shape):
    return rng.normal(size=shape).astype(bf16.dtype)


def float32(array):
    return array.astype(fp32.dtype)


def in_order(a, b):
    """Product whose terms are added in ascending order, with one rounding each."""
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for k in range(a.shape[1]):
        term = float32(a[:, k : k + 1]).astype(np.float64) * float32(b[k]).astype(np.float64)
        total = (total.astype(np.float64) + term).astype(np.float32)
    return total


def test_a_local_tensor_holds_its_format(seed):
    rng = np.random.default_rng(seed)
    x, w, v = draw(rng, 9, 5), draw(rng, 5, 7), draw(rng, 7, 3)
    hidden = np.maximum(in_order(x, w), 0).astype(bf16.dtype)
    assert (two_products(x, w, v) == in_order(hidden, v)).all()
    x = draw(rng, 3, 5, 6)
    doubled = (float32(x) * 2).astype(bf16.dtype)
    y, t = heads(x)
    assert (y == (float32(doubled) + 1).astype(bf16.dtype)).all()
    assert (t == doubled.transpose(0, 2, 1)).all()


def job(kernel, backend="emulator", config="small", options=None, **sizes):
    return Job(Problem(kernel, named[config], sizes, bf16, options=options or {}), backend=backend)


def outcome_of(*arguments, **options):
    made = job(*arguments, **options)
    found = run(made, *compile_job(made))
    assert found.report["verified"], found.problems
    return found


@pytest.mark.few(1)
@pytest.mark.parametrize("config", ["tiny", "small", "large"])
def test_a_spilled_tensor_passes_through_memory_between_two_images(config, seed, draws):
    rng = np.random.default_rng(seed)
    for _ in range(draws(2, 3)):
        M, K, F, N = (int(each) for each in rng.integers(1, 80, 4))
        made = job(two_products, config=config, M=M, K=K, F=F, N=N)
        compiled = made.problem.compile()
        assert [(each.name, each.shape) for each in compiled.intermediates] == [("hidden", (M, F))]
        found = run(made, *compile_job(made))
        assert found.report["verified"], found.problems


def test_loops_over_points_may_stand_around_both(seed):
    rng = np.random.default_rng(seed)
    H, M, N = (int(each) for each in rng.integers(1, 24, 3))
    outcome_of(heads, H=H, M=M, N=N)


@pytest.mark.few(1)
@pytest.mark.parametrize("backend", ["emulator", "rtl"])
def test_on_the_chip_it_is_the_tile_itself(backend, heavy):
    sizes = {"M": 33, "N": 24}
    one, other = (outcome_of(each, backend, "tiny", **sizes) for each in (on_chip, tile_itself))
    for each in ("cycles", "image_sha256"):
        assert one.report[each] == other.report[each]
    assert one.outputs["Y"].tobytes() == other.outputs["Y"].tobytes()
    spilled = outcome_of(on_chip, backend, "tiny", options={"spill": True}, **sizes)
    if backend == "rtl":
        assert spilled.report["predicted_cycles"] > one.report["predicted_cycles"]
    assert spilled.outputs["Y"].tobytes() == one.outputs["Y"].tobytes()


@pytest.mark.slow
def test_two_products_on_the_rtl(heavy):
    outcome_of(two_products, "rtl", "tiny", M=37, K=20, F=25, N=11)


def test_what_cannot_stay_on_the_chip_is_refused_at_its_line():
    with pytest.raises(BadInputError, match=r"`hidden` stays on the chip, so its tiles .* \(line"):
        job(two_products, options={"spill": False}, M=40, K=40, F=40, N=40).problem.compile()
    with pytest.raises(BadInputError, match=r"spill=True\)` to pass it through memory") as caught:
        job(heads, options={"spill": False}, H=2, M=40, N=40).problem.compile()
    assert caught.value.where.startswith("test_local_tensors.py:")


@tw.kernel("X[M, N] -> Y[M, N]")
def normed_twice(X, Y):
    """Statistics of a tile that is not loaded: more lanes than one image has."""
    M, N = X.shape
    powers = tw.local(M, N, dtype=tw.bf16)
    for i in tw.metapipe(M):
        tw.store_tile(powers[i, :], tw.exp(tw.load_tile(X[i, :])))
    for i in tw.metapipe(M):
        x = tw.load_tile(powers[i, :])
        tw.store_tile(Y[i, :], x / tw.row_sum(x) + tw.row_max(x))


def test_its_tiles_are_not_cut_between_images():
    with pytest.raises(BadInputError, match=r"`powers` stays on the chip: `tw.local\(..., spill="):
        job(normed_twice, "emulator", "tiny", M=8, N=8).problem.compile()


MADE = "h = tw.local(8, 8, dtype=tw.bf16, spill=True)"
STORED = "tw.store_tile(h, tw.load_tile(X))"
DONE = "tw.store_tile(Y, tw.load_tile(h))"
LOOP = "for i in tw.metapipe(8, 4):"
#: Lines of a kernel of X[8, 8] and Y[8, 8], and the message.
REFUSED = {
    "in a loop": ([LOOP, f"    {MADE}"], "`local` must be called outside all loops"),
    "no size": (["tw.local(dtype=tw.bf16)"], "`local` takes a size for each axis, not none"),
    "size": (["tw.local(0, dtype=tw.bf16)"], "`local` takes numbers of 1 or more, not 0"),
    "format": (["tw.local(8, dtype='bf15')"], "`local`: Format must be one of"),
    "spill": (["tw.local(8, dtype=tw.bf16, spill=2)"], "spill must be True or False, not 2"),
    "not stored": ([MADE, DONE], "`h` must be written whole, not 0 of its 64 elements"),
    "in part": (
        [MADE, "tw.store_tile(h[:4, :], tw.load_tile(X[:4, :]))", DONE],
        "`h` must be written whole, not 32 of its 64 elements",
    ),
    "too early": ([MADE, DONE, STORED], "`h` is local and must be stored whole before the loop"),
    "in one loop": (
        [MADE, LOOP, "    tw.store_tile(h[i, :], tw.load_tile(X[i, :]))"]
        + ["    tw.store_tile(Y[i, :], tw.load_tile(h[:, i]).T)"],
        "`h` is local and must be stored whole before the loop that loads it",
    ),
    "scatter": (
        [MADE, "tw.scatter(h, tw.load_tile(X), tw.load_tile(X))"],
        "`h` is local and cannot be scattered to",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_uses_that_break_a_rule_are_refused(name):
    lines, message = REFUSED[name]
    names = {"tw": tw}
    body = "".join(f"    {each}\n" for each in lines)
    exec(compile(f"def f(X, Y):\n{body}", "local_case.py", "exec"), names)
    found = tw.kernel("X[M, N] -> Y[M, N]")(names["f"])
    with pytest.raises(BadInputError, match=message):
        Problem(found, named["small"], {"M": 8, "N": 8}, bf16)


@tw.kernel("X[M, N], Z[M, N] -> Y[M, N], Z")
def updated(X, Z, Y):
    """The old Z is loaded with a local tensor, in other loops than the one that stores the new."""
    M, N = X.shape
    first, second = (tw.local(M, N, dtype=tw.bf16, spill=True) for _ in range(2))
    for i in tw.metapipe(M):
        tw.store_tile(first[i, :], tw.load_tile(Z[i, :]) * 2.0)
    for i in tw.metapipe(M):
        tw.store_tile(second[i, :], tw.load_tile(first[i, :]) + tw.load_tile(Z[i, :]))
    for i in tw.metapipe(M):
        tw.store_tile(Z[i, :], tw.load_tile(X[i, :]))
    for i in tw.metapipe(M):
        tw.store_tile(Y[i, :], tw.load_tile(second[i, :]) + tw.load_tile(Z[i, :]))


def test_the_order_of_a_tensor_updated_in_place_is_kept(seed):
    outcome_of(updated, M=9, N=16)
    x, z = (draw(np.random.default_rng(seed), 9, 16) for _ in range(2))
    new, y = updated(x, z)
    first = (float32(z) * 2).astype(bf16.dtype)
    second = (float32(first) + float32(z)).astype(bf16.dtype)
    assert (y == (float32(second) + float32(x)).astype(bf16.dtype)).all() and (new == x).all()


@tw.kernel("X[M, N], Z[M, N] -> Y[M, N], Z")
def falling(X, Z, Y):
    """Each iteration loads what the one before it stored."""
    h = tw.local(*X.shape, dtype=tw.bf16, spill=True)
    tw.store_tile(h, tw.load_tile(X) * 2.0)
    for m in tw.each(X.shape[0]):
        tw.store_tile(Z[m, :], tw.load_tile(Z[0, :]) + 1.0)
    tw.store_tile(Y, tw.load_tile(h))


def test_a_loop_that_stores_what_it_loads_is_refused_beside_local_tensors():
    with pytest.raises(BadInputError, match="would be accessed in another order"):
        job(falling, M=8, N=8).problem.compile()
