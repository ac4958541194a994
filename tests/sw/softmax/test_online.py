"""The pass online: what it recognises, what it leaves, and the numbers of its form."""

import math
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import sw.language as tw
from hw.numeric.formats import bf16
from sim.golden import golden
from sim.kernels import summed
from sim.run.error_bounds import error_bounds
from sw.ir import nodes as ir
from sw.ir.parse import parse_program
from sw.ir.rewrite import walk
from sw.ir.sizes import choose_sizes
from sw.ir.text import print_program
from sw.kernels.flash_attention import flash_attention
from sw.passes.accumulate import accumulate
from sw.passes.check import check
from sw.passes.mask import mask
from sw.passes.simplify import simplify
from sw.softmax.online import missed_softmaxes, online
from tests.sw.kernels.kernels_by_definition import BY_DEFINITION
from tests.sw.softmax.spellings import COMPUTED, MASK, NEAR_MISSES, SCALE, SPELLINGS, program_of

TILES = {"i": 8, "j": 16, "attend.j": 16}


def has_powers(program):
    return any(isinstance(node, ir.Powers) for node in walk(program.nodes))


def tensors(rng, program, *, spread=1.0):
    return {
        each.name: (rng.standard_normal(each.type.shape) * spread).astype(ml_dtypes.bfloat16)
        for each in program.tensors[:3]
    }


def answer(program, arrays, **how):
    return golden(program, arrays, **how)["O"]


@pytest.mark.few(12)
@pytest.mark.parametrize("name", [*SPELLINGS, *COMPUTED])
def test_spellings_of_a_softmax_have_the_same_bits(name, seed):
    rng = np.random.default_rng(seed)
    plain, other = program_of({}), program_of((SPELLINGS | COMPUTED)[name])
    arrays = tensors(rng, plain)
    form = online(accumulate(check(other)))
    assert has_powers(form) and not any(missed_softmaxes(simplify(accumulate(other))))
    wanted = answer(summed(plain, TILES), arrays)
    assert answer(choose_sizes(form, TILES), arrays).tobytes() == wanted.tobytes()
    # Sizes may be chosen before.
    assert answer(summed(other, TILES), arrays).tobytes() == wanted.tobytes()
    assert parse_program(print_program(form)) == form


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_what_only_looks_like_it_keeps_its_form_and_the_reason_is_told(name):
    changes, reason = NEAR_MISSES[name]
    program = accumulate(check(program_of(changes, name="missed")))
    left = online(program)
    assert left.nodes == program.nodes and not has_powers(left)
    (problem,) = missed_softmaxes(simplify(program))
    assert problem.kind == "unserved" and problem.where.startswith("missed.py:")
    with pytest.raises(tw.ProgramError, match=reason):
        raise problem


@pytest.mark.parametrize("scale", ["-0.25", "0.0", "float('inf')", "float('nan')"])
def test_a_scale_that_is_not_positive_is_refused_at_its_line(scale):
    program = accumulate(program_of({SCALE: f"s = q @ k.T * {scale}\n"}, name="scaled"))
    with pytest.raises(tw.ProgramError, match="scaled by a positive number, not") as caught:
        online(program)
    assert caught.value.where == "scaled.py:9" and "exact=True" in caught.value.message


def test_the_page_on_the_pass_shows_its_form():
    page = (Path(__file__).parents[3] / "docs" / "online.md").read_text(encoding="utf-8")
    block = page.split("```text\n")[1].split("```")[0]
    printed = print_program(online(accumulate(program_of({MASK: ""}))), spans=False)
    lines = [line.split(" : ")[0].strip() for line in printed.splitlines()]
    first = next(number for number, line in enumerate(lines) if " = matmul " in line)
    wanted = [line.strip() for line in block.splitlines()]
    assert wanted[-1].startswith("} next ") and lines[first : first + len(wanted)] == wanted


def options(rng):
    """Sizes, options and blocks of a kernel call, log-uniform."""
    m, s, d, *tiles = (int(np.exp(rng.uniform(0, np.log(most)))) for most in (60, 60, 40, 40, 40))
    g, each = (int(rng.integers(1, 3)) for _ in range(2))
    chosen = ({}, {"causal": True}, {"window": int(rng.integers(1, 40))})[rng.integers(3)]
    sizes = {"H": g * each, "G": g, "M": m, "S": s, "D": d}
    return sizes, chosen, dict(zip(("i", "attend.j"), tiles, strict=True))


@pytest.mark.few(4)
@pytest.mark.parametrize(
    "number", [*range(20), *(pytest.param(each, marks=pytest.mark.slow) for each in range(20, 40))]
)
def test_random_calls_equal_the_definition_by_bytes_and_float64_within_the_bound(number, seed):
    rng = np.random.default_rng([seed, number])
    sizes, chosen, tiles = options(rng)
    program = check(flash_attention.trace(dtype=bf16, **sizes, **chosen))
    arrays = tensors(rng, program, spread=float(rng.choice([0.01, 1, 8])))
    form = summed(program, tiles)
    found = answer(form, arrays)
    wanted = BY_DEFINITION["flash_attention"](
        arrays, 16, found.dtype, **chosen, tile=tiles["i"], block=tiles["attend.j"]
    )
    assert found.tobytes() == wanted.tobytes(), (sizes, chosen, tiles)
    for each in (form, mask(form)):
        assert answer(each, arrays, poison=True).tobytes() == found.tobytes()
    with np.errstate(invalid="ignore"):
        exact = flash_attention.reference(*arrays.values(), **chosen)
    bound = error_bounds(form, arrays)["O"]
    error = np.abs(found.astype(np.float64) - exact)
    seen = ~np.isnan(exact)
    assert np.isfinite(bound[seen]).all() and (error <= bound)[seen].all()
    # A query that sees no key has no answer.
    assert np.isnan(found.astype(np.float64)[~seen]).all()


def test_the_bound_is_used(seed):
    rng = np.random.default_rng(seed)
    program = summed(program_of({MASK: ""}, M=40, S=200, D=32, E=32), {"i": 40, "j": 64})
    arrays = tensors(rng, program)
    q, k, v = (each.astype(np.float64) for each in arrays.values())
    e = np.exp(q @ k.T * 0.25)
    exact = e @ v / e.sum(axis=1, keepdims=True)
    error = np.abs(answer(program, arrays).astype(np.float64) - exact)
    bound = error_bounds(program, arrays)["O"]
    assert 0.1 < (error / bound).max() <= 1


def masked(arrays, condition):
    """float64 attention in which each query sees the keys of a condition."""
    q, k, v = (each.astype(np.float64) for each in arrays.values())
    query, key = np.arange(len(q))[:, np.newaxis], np.arange(len(k))
    s = np.where(condition(query, key), q @ k.T * 0.25, -np.inf)
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return e @ v / e.sum(axis=1, keepdims=True)


MASKS = {
    "length": ("tw.col_index(j) < 21", lambda q, k: k < 21),
    "last": ("tw.col_index(j) <= at", lambda q, k: k <= q + 3),
    "first": ("tw.col_index(j) > at - 5", lambda q, k: k > q - 2),
    "not the last": ("at != tw.col_index(j)", lambda q, k: k != q + 3),
}


@pytest.mark.parametrize("name", MASKS)
def test_any_mask_hides_keys(name, seed):
    text, condition = MASKS[name]
    rng = np.random.default_rng(seed)
    program = summed(program_of({MASK: f"s = tw.where({text}, s, -tw.inf)\n"}), TILES)
    assert has_powers(program)
    arrays = tensors(rng, program)
    error = np.abs(answer(program, arrays).astype(np.float64) - masked(arrays, condition))
    assert (error <= error_bounds(program, arrays)["O"]).all()
    # What is hidden may be anything but NaN and infinity among the values.
    hidden = ~condition(np.arange(20)[:, np.newaxis], np.arange(37)).any(axis=0)
    changed = dict(arrays, K=arrays["K"].copy())
    changed["K"][hidden] = np.nan
    assert answer(program, changed).tobytes() == answer(program, arrays).tobytes()


def test_a_shift_of_a_row_by_a_power_of_the_base_changes_no_bit(seed):
    # One more element of the sum shifts all scores of a query: by 64 · 4 · 0.25 / ln 2 in base 2,
    # so a factor of 1 / log2(e) makes the shift a whole number.
    rng = np.random.default_rng(seed)
    change = {SCALE: f"s = q @ k.T * {math.log(2)!r}\n", MASK: ""}
    program = summed(program_of(change), TILES)
    arrays = tensors(rng, program)
    # Whole numbers below 2^8: every score is exact, with and without the shift.
    for name in "QK":
        arrays[name] = rng.integers(-3, 4, arrays[name].shape).astype(ml_dtypes.bfloat16)
    arrays["K"][:, 0] = 8
    plain = None
    for shift in (0, 1, -3, 20):
        arrays["Q"][:, 0] = shift
        found = answer(program, arrays).tobytes()
        assert plain in (None, found)
        plain = found


def test_one_huge_score_takes_all(seed):
    rng = np.random.default_rng(seed)
    program = summed(program_of({MASK: ""}), TILES)
    arrays = tensors(rng, program)
    arrays["Q"][:] = 1
    for key, size in ((0, 1e4), (20, 1e6), (36, 300)):
        arrays["K"][:] = 0.5
        arrays["K"][key] = size
        wanted = np.broadcast_to(arrays["V"][key], (20, 24)).astype(np.float64)
        error = np.abs(answer(program, arrays).astype(np.float64) - wanted)
        # Its power is less than 1, and divided by itself: the reciprocal and the cast round.
        assert (error <= 2.0**-7 * np.abs(wanted)).all()


def test_special_scores(seed):
    rng = np.random.default_rng(seed)
    program = summed(program_of({MASK: ""}), TILES)
    arrays = tensors(rng, program)
    arrays["Q"][:] = np.abs(arrays["Q"]) + ml_dtypes.bfloat16(0.1)
    arrays["K"][30:] = -np.inf
    kept = {"Q": arrays["Q"], "K": arrays["K"][:30], "V": arrays["V"][:30]}
    short = summed(program_of({MASK: ""}, S=30), TILES)
    # Scores of -inf count as hidden keys; blocks of 16 end at 32 and at 30.
    assert answer(program, arrays).tobytes() == answer(short, kept).tobytes()
    arrays["K"][5] = np.nan
    assert np.isnan(answer(program, arrays).astype(np.float32)).all()
    arrays["K"][:] = -np.inf
    assert np.isnan(answer(program, arrays).astype(np.float32)).all()


def test_exact_keeps_the_printed_form(seed):
    rng = np.random.default_rng(seed)
    shapes = ((2, 9, 16), (1, 20, 16), (1, 20, 16))
    arrays = [rng.standard_normal(each).astype(ml_dtypes.bfloat16) for each in shapes]
    sizes = {"H": 2, "G": 1, "M": 9, "S": 20, "D": 16}
    program = check(flash_attention.trace(dtype=bf16, **sizes))
    named = dict(zip("QKV", arrays, strict=True))
    printed = answer(summed(program, exact=True), named)
    assert not has_powers(summed(program, exact=True))
    import tilewright

    assert tilewright.__version__
    assert flash_attention(*arrays, exact=True).tobytes() == printed.tobytes()
    assert flash_attention(*arrays).tobytes() == answer(summed(program), named).tobytes()


#: Faults of the form: what a node becomes.
FAULTS = {
    "no rescaling": lambda node: (
        ir.Buffer(node.operands[:1], node.results, node.span)
        if isinstance(node, ir.Rescale)
        else node
    ),
    "another scale": lambda node: node.replace(scale=0.5) if isinstance(node, ir.Powers) else node,
    "twos for ones": lambda node: (
        node.replace(value=ir.Constant(2.0))
        if isinstance(node, ir.Full) and node.value.value == 1
        else node
    ),
    "a start of m above all scores": lambda node: (
        node.replace(value=ir.Constant(400.0))
        if isinstance(node, ir.Full) and node.value.value < -1
        else node
    ),
    "a mask one key late": lambda node: (
        node.replace(op="gt") if isinstance(node, ir.Map) and node.op == "ge" else node
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_of_the_form_are_found(name, seed):
    rng = np.random.default_rng(seed)
    sizes = {"H": 1, "G": 1, "M": 20, "S": 37, "D": 16}
    program = summed(check(flash_attention.trace(dtype=bf16, causal=True, **sizes)), TILES)

    def broken(nodes):
        return tuple(
            node.replace(nodes=broken(node.body)) if node.body else FAULTS[name](node)
            for node in nodes
        )

    arrays = tensors(rng, program)
    arrays["K"] *= np.linspace(0.1, 4, 37).astype(ml_dtypes.bfloat16)[:, np.newaxis]
    wanted = BY_DEFINITION["flash_attention"](arrays, 16, bf16.dtype, causal=True, tile=8, block=16)
    assert answer(program, arrays).tobytes() == wanted.tobytes()
    faulty = program.after("fault", broken(program.nodes))
    assert answer(faulty, arrays).tobytes() != wanted.tobytes()
