"""Forward error analysis: bounds hold for every operation and kernel, and leave little room."""

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from hw.numeric.formats import bf16, fp32, int8, int32
from sim.golden import golden
from sim.operands import random_inputs
from sim.run.error_bounds import error_bounds
from sim.run.float64_error import compare_with_reference
from sim.run.job import Problem
from sim.run.operation_errors import EXACT, PROPAGATED, Estimate, own_error
from sw.ir.element_operations import OPERATIONS
from sw.kernels.layer_norm import layer_norm
from sw.kernels.rms_norm import rms_norm
from sw.kernels.silu import silu
from sw.kernels.softmax import softmax

COUNT = 20_000
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
NAMES = [each.name for each in OPERATIONS.values() if not each.internal]


def numbers(rng, count=COUNT):
    """Float64 of many exponents, zeros and numbers near 1 among them."""
    far = rng.normal(size=count) * 2.0 ** rng.integers(-60, 60, count)
    near = rng.normal(size=count) * 2.0 ** rng.integers(-8, 7, count)
    return np.where(rng.random(count) < 0.5, far, near) * (rng.random(count) < 0.98)


def operands(rng, name):
    drawn = [numbers(rng) for _ in range(OPERATIONS[name].operands)]
    if name in COMPARISONS:
        # Some equal, some near.
        drawn[1] = np.where(rng.random(COUNT) < 0.5, drawn[0] * (1 + 1e-3), drawn[1])
    return drawn


def test_every_operation_has_its_errors():
    assert set(EXACT) == set(PROPAGATED) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_an_error_of_operands_passes_on_at_most_so_much(name, seed):
    rng = np.random.default_rng(seed)
    exact = operands(rng, name)
    errors = [
        np.abs(x) * rng.choice([0, 1e-6, 1e-2, 2], COUNT) * (rng.random() < 0.9) for x in exact
    ]
    moved = [x + e * rng.choice([-1, -0.5, 0, 1], COUNT) for x, e in zip(exact, errors)]
    if name == "where":
        exact[0], moved[0] = exact[0] > 0, moved[0] > 0
        errors[0] = np.where(exact[0] == moved[0], 0.0, np.inf)
    with np.errstate(all="ignore"):
        here, there = EXACT[name](*exact), EXACT[name](*moved)
        most = PROPAGATED[name](here, *map(Estimate, exact, errors))
        if name in COMPARISONS:
            assert ((here == there) | (most == np.inf)).all() and (most == 0).any()
            return
        far = np.where(here == there, 0, np.abs(here - there))
        judged = np.isfinite(here) & (most < np.inf)
        # What float64 itself rounds here.
        slack = 1e-12 * (np.abs(here) + np.abs(there)) + 1e-300
        assert judged.mean() > 0.2 and (far <= most * (1 + 1e-9) + slack)[judged].all()


@pytest.mark.parametrize("bits", [12, 16, 24])
@pytest.mark.parametrize("name", sorted(set(NAMES) - {*COMPARISONS, "where"}))
def test_an_operation_adds_at_most_so_much(name, bits, seed):
    rng = np.random.default_rng(seed)
    given = [x.astype(np.float32) for x in operands(rng, name)]
    exact = [x.astype(np.float64) for x in given]
    with np.errstate(all="ignore"):
        wanted = EXACT[name](*exact)
        found = OPERATIONS[name].arithmetic(fp32, bits)(*given)
        estimates = [Estimate(x, np.zeros(x.shape)) for x in exact]
        most = own_error(name, np.abs(wanted), estimates, bits)
        most = most + PROPAGATED[name](wanted, *estimates)
        error = np.where(found == wanted, 0, np.abs(found - wanted))
        judged = (np.abs(wanted) + most < 2.0**127) & np.isfinite(wanted)
        assert judged.mean() > 0.3 and (error <= most)[judged].all()
        if name not in ("neg", "abs", "max", "min"):
            # The bound is not much more than what is found.
            assert (error > most / 16)[judged].any()


KERNELS = (softmax, rms_norm, layer_norm, silu)


def ran(kernel, seed, dtype, out, bits, *, judged=None, **options):
    dims = {"M": 20, "N": 2 + seed % 90}
    problem = Problem(kernel, named["tiny"], dims, dtype, out, options)
    inputs = random_inputs(problem.inputs, seed)
    answers = golden(problem.golden_program, inputs, function_bits=bits)
    return compare_with_reference(
        kernel,
        problem.golden_program,
        inputs,
        answers,
        problem.outputs,
        options=problem.params,
        function_bits=judged or bits,
    )


@pytest.mark.parametrize("bits", [12, 16, 24])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_kernels_keep_their_bounds_and_use_them(kernel, bits, seed):
    shares = []
    for number in range(8):
        dtype, out = ((bf16, bf16), (bf16, fp32), (fp32, fp32), (fp32, bf16))[number % 4]
        errors = ran(kernel, seed + number, dtype, out, bits)
        assert errors.within
        shares.append(errors.of_bound or 0)
    assert max(shares) > 0.5


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_functions_of_too_few_bits_leave_the_bound(kernel, seed):
    assert not ran(kernel, seed * 4 + 1, fp32, None, 12, judged=16).within


def test_a_reference_takes_the_options_it_names(seed):
    assert ran(rms_norm, seed, bf16, fp32, 16, eps=0.5).within

    @tw.kernel("X[M, N], g[N] -> Y[M, N]")
    def fixed(X, g, Y, eps=1e-5):
        rms_norm.function(X, g, Y, eps)

    fixed.reference(lambda X, g: rms_norm.reference(X, g))
    assert ran(fixed, seed, bf16, fp32, 16).within
    assert not ran(fixed, seed, bf16, fp32, 16, eps=0.5).within


def bounds_of(body, *arrays, out=None):
    """Bounds of a kernel of one line, on arrays X and Z of a shape."""
    names = ", ".join("XZ"[: len(arrays)])

    space = {"body": body, "load": tw.load_tile, "store": tw.store_tile}
    loads = ", ".join(f"load({name})" for name in names.split(", "))
    exec(f"def program({names}, Y):\n    store(Y, body({loads}))", space)
    signature = ", ".join(f"{name}[M, N]" for name in names.split(", ")) + " -> Y[M, N]"
    kernel = tw.kernel(signature)(space["program"])
    bound = kernel.bind(*arrays)
    program = kernel.trace(dtype=bound.formats, out=out, **bound.dims)
    (found,) = error_bounds(program, bound.arrays).values()
    return found


def row(*values, dtype=np.float32):
    return np.array([values], dtype)


def test_where_nothing_can_be_promised_nothing_is():
    inf, nan = np.inf, np.nan
    x = row(1, 3e38, inf, nan)
    assert np.isfinite(bounds_of(lambda x: x + x, x)).tolist() == [[True, False, True, False]]
    assert bounds_of(lambda x: x - x, row(inf)) == inf
    # A reciprocal of zero, and of what may be zero.
    assert bounds_of(lambda x: 1 / x, row(0)) == inf
    third = 1 / 3
    assert bounds_of(lambda x: tw.reciprocal(x * third - third), row(1)) == inf
    assert bounds_of(lambda x: tw.reciprocal(x * third - third), row(2)) < 1e-3
    # A comparison that an error decides, and one that it does not.
    decided = bounds_of(lambda x: tw.where(x * third > third, x, -x), row(1, 2))
    assert decided.tolist() == [[2, 0]]
    # Integers that wrap or are saturated.
    assert bounds_of(lambda x: x * x, row(1 << 15, 1 << 16, dtype=np.int32)).tolist() == [[0, inf]]
    saturated = bounds_of(lambda x: x + x, row(63, 64, dtype=np.int8), out=int8)
    assert saturated.tolist() == [[0, inf]]
    assert (bounds_of(lambda x: x + x, row(63, 64, dtype=np.int8), out=int32) == 0).all()


def test_an_infinity_that_only_passes_costs_no_bound():
    masked = row(0, 1, -np.inf, 2).astype(ml_dtypes.bfloat16)
    found = bounds_of(lambda x: tw.exp(x - tw.row_max(x)), masked, out=fp32)
    assert (found < 1e-4).all() and (found > 0).all()
    none = bounds_of(lambda x: tw.exp(x - tw.row_max(x)), row(-np.inf, -np.inf))
    assert (none == np.inf).all()
    kept = bounds_of(lambda x: tw.where(x >= 0, x, -tw.inf), row(1, -1))
    assert kept.tolist() == [[0, 0]]
    in_doubt = bounds_of(lambda x: tw.where(x * 0.1 > 0.1, x, -tw.inf), row(1, -1))
    assert in_doubt.tolist() == [[np.inf, 0]]


def test_tiles_are_split_joined_transposed_and_counted(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(6, 6)).astype(np.float32)

    def turned(x):
        a, b = tw.split_cols(x * 3, 2)
        y = tw.buffer(tw.join_cols(b, a).T)
        return tw.where(tw.row_index(y) > 0, y, 0.0)

    found = bounds_of(turned, x)
    exact = np.concatenate([x[:, 3:], x[:, :3]], axis=1).T * 3.0
    assert (found[0] == 0).all() and (found[1:] > 0).all()
    assert (found <= np.abs(exact) * 2.0**-23).all()


def test_a_run_says_that_no_element_has_a_bound():
    x = np.full((2, 3), np.nan, np.float32)
    result = softmax.run(x, config="tiny", backend="golden")
    assert result.verified and result.error_bound is None
    assert result.notes == ("no element has a bound: float64 error not checked",)


def test_a_run_names_the_element_that_is_farthest_off():
    @tw.kernel("X[M, N] -> Y[M, N]")
    def halved(X, Y):
        for i in tw.metapipe(X.shape[0]):
            tw.store_tile(Y[i, :], tw.load_tile(X[i, :]) * 0.5)

    halved.reference(lambda X: np.where(X == 3, 7, X / 2))
    result = halved.run(row(1, 2, 3), config="tiny", backend="golden")
    assert not result.verified
    assert result.problems == (
        "golden differs from the float64 reference beyond rounding: "
        "Y[0, 2] is 1.5 and should be 7, give or take 8.9e-08",
    )
    assert "of its bound" in repr(result) and "e+07 of its bound" in repr(result)
