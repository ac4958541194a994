"""Softmaxes of whole rows between two products: what is written as a loop over blocks of keys."""

import numpy as np
import pytest

import sw.language as tw
from hw.arch.config import named
from hw.numeric.formats import bf16
from sim.kernels import summed
from sim.run.driver import compile_job, run
from sim.run.job import Job, Problem
from sw.compiler import compile_kernel
from sw.ir.parse import parse_program
from sw.ir.text import print_program
from sw.passes.accumulate import accumulate
from sw.passes.check import check
from sw.passes.simplify import simplify
from sw.softmax.online import online
from sw.softmax.row_softmax import missed_row_softmaxes
from tests.sw.softmax import spellings
from tests.sw.softmax.test_online import answer, has_powers, tensors

TEXT = """\
def program(Q, K, V, O):
    (M, D), (S, E) = Q.shape, V.shape
    k, v = tw.load_tile(K), tw.load_tile(V)
    for i in tw.metapipe(M):
        q = tw.load_tile(Q[i, :])
        at = tw.row_index(i) + 3
        s = q @ k.T * 0.25
        s = tw.where(at >= tw.col_index(s), s, -tw.inf)
        top = tw.row_max(s)
        p = tw.exp(s - top)
        l = tw.row_sum(p)
        o = p.to(tw.bf16) @ v
        tw.store_tile(O[i, :], o / l)
"""
LOADS = "k, v = tw.load_tile(K), tw.load_tile(V)\n"
SCALE = "s = q @ k.T * 0.25\n"
MASK = "s = tw.where(at >= tw.col_index(s), s, -tw.inf)\n"
TOP = "top = tw.row_max(s)\n"
POWERS = "p = tw.exp(s - top)\n"
TOTAL = "l = tw.row_sum(p)\n"
SUMS = "o = p.to(tw.bf16) @ v\n"
RESULT = "tw.store_tile(O[i, :], o / l)\n"
INDENT = "        "

#: Replacements that leave the meaning, by name.
SPELLINGS = {
    "as it is": {},
    "divided before the product": {
        SUMS: "o = (p / l).to(tw.bf16) @ v\n",
        RESULT: "tw.store_tile(O[i, :], o)\n",
    },
    "times a reciprocal before the product": {
        SUMS: "o = (tw.reciprocal(l) * p).to(tw.bf16) @ v\n",
        RESULT: "tw.store_tile(O[i, :], o)\n",
    },
    "a reciprocal": {RESULT: "tw.store_tile(O[i, :], tw.reciprocal(l) * o)\n"},
    "the result rounded": {RESULT: "tw.store_tile(O[i, :], (o / l).to(tw.bf16))\n"},
    "the powers rounded first": {TOTAL: "l = tw.row_sum(p.to(tw.bf16))\n"},
    "a column of ones": {TOTAL: "l = p.to(tw.bf16) @ tw.full(S, 1, 1.0)\n"},
    "powers of two": {
        SCALE: "s = q @ k.T * (0.25 / 0.6931471805599453)\n",
        POWERS: "p = tw.exp2(s - top)\n",
    },
    "a quotient for a factor": {SCALE: "s = q @ k.T / 4.0\n"},
    "two negations": {SCALE: "s = -(q @ k.T) * -0.25\n"},
    "the mask turned": {MASK: "s = tw.where(at < tw.col_index(s), -tw.inf, s)\n"},
    "the mask added": {MASK: "s = s + tw.where(at >= tw.col_index(s), 0.0, -tw.inf)\n"},
    "the mask of numbers of keys": {
        MASK: "s = tw.where(at.to(tw.int32) >= tw.col_index(S), s, -tw.inf)\n"
    },
    "loads in the loop": {
        LOADS: "",
        SCALE: "s = q @ tw.load_tile(K).T * 0.25\n",
        SUMS: "o = p.to(tw.bf16) @ tw.load_tile(V)\n",
    },
    "buffers of what is loaded": {
        LOADS: "k, v = tw.buffer(tw.load_tile(K), slots=2), tw.buffer(tw.load_tile(V))\n",
    },
    "the maximum twice": {POWERS: "p = tw.exp(s - tw.row_max(s))\n"},
}

#: Replacements that change it.
NEAR_MISSES = {
    "scores are stored": {RESULT: RESULT + INDENT + "tw.store_tile(P[i, :], s)\n"},
    "powers are stored": {RESULT: RESULT + INDENT + "tw.store_tile(P[i, :], p)\n"},
    "sums are stored": {RESULT: "tw.store_tile(O[i, :], o / l + l)\n"},
    "powers in fp16": {SUMS: "o = p.to(tw.fp16) @ v.to(tw.fp16)\n"},
    "no maximum": {POWERS: "p = tw.exp(s)\n"},
    "another maximum": {TOP: "top = tw.row_max(q @ k.T)\n"},
    "a maximum of columns": {TOP: "top = tw.col_max(s)\n"},
    "another sum": {TOTAL: "l = tw.row_sum(p * p)\n"},
    "another quotient": {RESULT: "tw.store_tile(O[i, :], l / o)\n"},
    "other powers": {SUMS: "o = (p * 2.0).to(tw.bf16) @ v\n"},
    "a bias of scores": {MASK: "s = s + tw.row_sum(q)\n"},
    "soft caps": {MASK: "s = tw.tanh(s)\n"},
    "a finite mask": {MASK: MASK.replace("-tw.inf", "-1e9")},
    "a scale that is not positive": {SCALE: "s = q @ k.T * -0.25\n"},
    "values that are computed": {SUMS: "o = p.to(tw.bf16) @ (v * 2.0).to(tw.bf16)\n"},
    "a mask from memory": {MASK: "s = tw.where(tw.load_tile(P[i, :]) > 0.0, s, -tw.inf)\n"},
}


SIZES = {"M": 20, "S": 37, "D": 16, "E": 24}


def kernel_of(changes):
    """The kernel with lines replaced; P is stored to, or loaded, where it is named."""
    text = TEXT
    for old, new in changes.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new) if new else text.replace(old, "pass\n")
    signature = "Q[M, D], K[S, D], V[S, E] -> O[M, E]"
    if "store_tile(P" in text:
        text = text.replace("(Q, K, V, O)", "(Q, K, V, O, P)")
        signature += ", P[M, S]"
    elif "load_tile(P" in text:
        text = text.replace("(Q, K, V, O)", "(Q, K, V, P, O)")
        signature = signature.replace(" ->", ", P[M, S] ->")
    space = {"tw": tw}
    exec(compile(text, "whole.py", "exec"), space)
    return tw.kernel(signature)(space["program"])


def whole_rows(changes, **sizes):
    """Trace of the program with lines replaced."""
    return kernel_of(changes).trace(dtype=bf16, **(SIZES | sizes))


@pytest.mark.few(5)
@pytest.mark.parametrize("name", SPELLINGS)
def test_whole_rows_have_the_bits_of_the_same_blocks(name, seed):
    rng = np.random.default_rng(seed)
    loop, other = spellings.program_of({}), whole_rows(SPELLINGS[name])
    arrays = tensors(rng, loop)
    form = online(accumulate(check(other)))
    assert has_powers(form) and parse_program(print_program(form)) == form
    for block in (16, 37, 64):
        wanted = answer(summed(loop, {"i": 8, "j": block}), arrays)
        assert answer(summed(other, {"i": 8, "keys": block}), arrays).tobytes() == wanted.tobytes()


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_what_only_looks_like_it_keeps_its_form(name):
    program = accumulate(whole_rows(NEAR_MISSES[name]))
    assert online(program).nodes == program.nodes


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("soft caps", "Scores must be a product, times a number, with -inf where keys are hidden"),
        ("another sum", "The sum must be that of the exponentials"),
        ("no maximum", None),
        ("powers are stored", None),
    ],
)
def test_a_reason_is_given_for_what_looks_like_it(name, reason):
    program = simplify(accumulate(check(whole_rows(NEAR_MISSES[name]))))
    found = {each.message.split(": ", 1)[-1] for each in missed_row_softmaxes(program)}
    assert found == ({reason} if reason else set())


def test_a_note_says_why_rows_pass_through_memory():
    kernel = kernel_of(NEAR_MISSES["soft caps"])
    compiled = compile_kernel(kernel, named["small"], dims=SIZES, dtype=bf16)
    assert len(compiled.parts) > 1
    assert any("a softmax of rows is not fused: " in each for each in compiled.notes)


def test_one_key_keeps_its_form():
    program = accumulate(check(whole_rows({}, S=1)))
    assert online(program).nodes == program.nodes


def test_an_index_of_the_program_is_not_taken_twice():
    changes = {"for i in tw.metapipe(M):\n": "for keys in tw.metapipe(M):\n        i = keys\n"}
    form = print_program(online(accumulate(check(whole_rows(changes)))), spans=False)
    assert "loop.metapipe keys over 20" in form and "loop.metapipe keys.2 over 37" in form


@tw.kernel("Q[H, M, D], K[H, S, D], V[H, S, E] -> Y[H, M, E]")
def heads(Q, K, V, Y, causal=False):
    (H, M, D), S = Q.shape, K.shape[1]
    for h in tw.each(H):
        for i in tw.metapipe(M):
            s = tw.load_tile(Q[h, i, :]) @ tw.load_tile(K[h]).T * D**-0.5
            if causal:
                s = tw.where(tw.row_index(i) + S - M >= tw.col_index(S), s, -tw.inf)
            p = tw.exp(s - tw.row_max(s))
            p = p / tw.row_sum(p)
            tw.store_tile(Y[h, i, :], p.to(tw.bf16) @ tw.load_tile(V[h]))


@pytest.mark.few(2)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("config", ["tiny", "small", "large"])
def test_chips_compute_whole_rows_in_one_part(config, causal, seed):
    rng = np.random.default_rng(seed)
    sizes = {"H": 2, "M": int(rng.integers(2, 60)), "S": int(rng.integers(60, 90))}
    sizes |= {"D": int(rng.integers(1, 20)), "E": int(rng.integers(1, 20))}
    job = Job(Problem(heads, named[config], sizes, bf16, options={"causal": causal}), "emulator")
    compiled, fields = compile_job(job)
    outcome = run(job, compiled, fields)
    assert outcome.report["verified"], outcome.problems
    assert len(compiled.parts) == 1 and compiled.parts[0].softmax is not None


def softmax(s):
    p = tw.exp(s - tw.row_max(s))
    return p / tw.row_sum(p)


SELF = "X[M, D], Wq[H, D, E], Wk[H, D, E], Wv[H, D, E], Wo[H, E, D] -> Y[M, D]"


@tw.kernel(SELF)
def self_attention(X, Wq, Wk, Wv, Wo, Y):
    """Keys and values are computed of the rows that attend to them."""
    x, y = tw.load_tile(X), tw.zeros(*X.shape)
    for h in tw.each(Wq.shape[0]):
        q, k, v = ((x @ tw.load_tile(w[h])).to(X.dtype) for w in (Wq, Wk, Wv))
        p = softmax(q @ k.T * Wq.shape[2] ** -0.5)
        y += (p.to(X.dtype) @ v).to(X.dtype) @ tw.load_tile(Wo[h])
    tw.store_tile(Y, y)


@tw.kernel(SELF)
def stored_attention(X, Wq, Wk, Wv, Wo, Y):
    """The same, with keys and values that the program stores itself."""
    (M, D), (H, _, E) = X.shape, Wq.shape
    x, y = tw.load_tile(X), tw.zeros(M, D)
    keys = tw.local(H, M, E, dtype=X.dtype, spill=True)
    values = tw.local(H, M, E, dtype=X.dtype, spill=True)
    for h in tw.each(H):
        tw.store_tile(keys[h], x @ tw.load_tile(Wk[h]))
        tw.store_tile(values[h], x @ tw.load_tile(Wv[h]))
    for h in tw.each(H):
        q = (x @ tw.load_tile(Wq[h])).to(X.dtype)
        p = softmax(q @ tw.load_tile(keys[h]).T * E**-0.5)
        y += (p.to(X.dtype) @ tw.load_tile(values[h])).to(X.dtype) @ tw.load_tile(Wo[h])
    tw.store_tile(Y, y)


@pytest.mark.few(1)
@pytest.mark.parametrize("config", ["tiny", "small"])
def test_computed_keys_and_values_are_stored_first(config, seed):
    rng = np.random.default_rng(seed)
    sizes = {"H": int(rng.integers(1, 4)), "D": int(rng.integers(1, 20))}
    sizes |= {"M": int(rng.integers(2, 40)), "E": int(rng.integers(1, 20))}
    shapes = [(sizes["M"], sizes["D"]), *[(sizes["H"], sizes["D"], sizes["E"])] * 3]
    shapes.append((sizes["H"], sizes["E"], sizes["D"]))
    arrays = [rng.standard_normal(each).astype(bf16.dtype) for each in shapes]
    found = []
    for kernel in (self_attention, stored_attention):
        names = (each.name for each in kernel.signature.inputs)
        inputs = dict(zip(names, arrays, strict=True))
        job = Job(Problem(kernel, named[config], sizes, bf16), "emulator", inputs=inputs)
        compiled, fields = compile_job(job)
        outcome = run(job, compiled, fields)
        assert outcome.report["verified"], outcome.problems
        assert any(each.softmax for each in compiled.parts)
        found.append((outcome.outputs["Y"].tobytes(), len(compiled.parts)))
    assert found[0] == found[1]


def test_rows_are_not_stored_for_what_keeps_its_form():
    @tw.kernel("Q[M, D], X[S, D], V[S, D], P[M, S] -> Y[M, D]")
    def masked(Q, X, V, P, Y):
        k = (tw.load_tile(X) * 2.0).to(X.dtype)
        s = tw.where(tw.load_tile(P) > 0.0, tw.load_tile(Q) @ k.T, -tw.inf)
        tw.store_tile(Y, softmax(s).to(X.dtype) @ tw.load_tile(V))

    program = accumulate(check(masked.trace(dtype=bf16, M=20, S=30, D=16)))
    assert online(program).nodes == program.nodes


#: Windows of keys around a query, written as one comparison and as two.
WINDOWS = (
    "s = tw.where(abs(at - tw.col_index(s)) <= 5, s, -tw.inf)\n",
    "s = tw.where(6 > abs(tw.col_index(s) - at), s, -tw.inf)\n",
    "s = tw.where(abs(at - tw.col_index(s)) > 5, -tw.inf, s)\n",
    "s = tw.where(at - tw.col_index(s) < 6, tw.where(at + 5 >= tw.col_index(s), s, -tw.inf), "
    "-tw.inf)\n",
)


@pytest.mark.parametrize("mask", WINDOWS)
def test_a_window_of_absolute_differences_hides_the_same_keys(mask, seed):
    rng = np.random.default_rng(seed)
    wanted, other = whole_rows({MASK: WINDOWS[-1]}), whole_rows({MASK: mask})
    arrays = tensors(rng, wanted)
    sizes = {"i": 8, "keys": 16}
    assert has_powers(online(accumulate(check(other))))
    assert answer(summed(other, sizes), arrays).tobytes() == (
        answer(summed(wanted, sizes), arrays).tobytes()
    )


@pytest.mark.parametrize("config", ["tiny", "small"])
def test_a_window_of_absolute_differences_is_one_part(config, seed):
    products = set()
    for mask in WINDOWS:
        problem = Problem(kernel_of({MASK: mask}), named[config], SIZES, bf16)
        job = Job(problem, seed=seed, backend="emulator")
        compiled, fields = compile_job(job)
        assert len(compiled.parts) == 1
        assert run(job, compiled, fields).report["verified"]
        products.add(compiled.macs)
    assert len(products) == 1


@pytest.mark.slow
def test_keys_outside_of_a_window_keep_their_form():
    mask = "s = tw.where(abs(at - tw.col_index(s)) >= 2, s, -tw.inf)\n"
    compiled = compile_kernel(kernel_of({MASK: mask}), named["small"], dims=SIZES, dtype=bf16)
    assert any("A mask must compare numbers of keys" in each for each in compiled.notes)
