"""Rings: a program with stages is the plain one, and what breaks their rules is refused."""

import re

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from hw.numeric.formats import bf16
from sim.run.driver import compile_job, run
from sim.run.job import Job, Problem
from sw.ir.text import print_program

SIZES = {"M": 40, "K": 70, "N": 30}


def staged(A, B, C):
    (M, K), N = A.shape, C.shape[1]
    ring = tw.ring(slots=4)
    for i in tw.metapipe(M, 16):
        for j in tw.metapipe(N, 16):
            with tw.load():
                for k in tw.metapipe(K, 32):
                    ring.put(tw.load_tile(A[i, k]), tw.load_tile(B[k, j]))
            with tw.compute():
                acc = tw.zeros(i, j)
                for _ in tw.metapipe(K, 32):
                    with ring.get() as (a, b):
                        acc += a @ b
            with tw.finish():
                tw.store_tile(C[i, j], acc)


def plain(A, B, C):
    (M, K), N = A.shape, C.shape[1]
    for i in tw.metapipe(M, 16):
        for j in tw.metapipe(N, 16):
            acc = tw.zeros(i, j)
            for k in tw.metapipe(K, 32):
                a, b = tw.load_tile(A[i, k]), tw.load_tile(B[k, j])
                a, b = tw.buffer(a, slots=4), tw.buffer(b, slots=4)
                acc += a @ b
            tw.store_tile(C[i, j], acc)


def product(function):
    function.__name__ = "product"
    return tw.kernel("A[M, K], B[K, N] -> C[M, N]")(function)


def without_names(program):
    """The text of a program, with values numbered and no lines of its source."""
    numbers = {}
    text = re.sub(r" @ .*|^source .*", "", print_program(program), flags=re.MULTILINE)
    text = re.sub(r"\b_\b", "k", text)
    return re.sub(r"%[\w.]+", lambda x: numbers.setdefault(x[0], f"%{len(numbers)}"), text)


def test_a_ring_is_the_plain_program_with_buffers_of_its_slots():
    first, second = (product(each).trace(dtype=bf16, **SIZES) for each in (staged, plain))
    assert without_names(first) == without_names(second)
    assert "slots=4" in print_program(first) and print_program(first).count(" loop ") == 0


def rectified(X, y, Z):
    """One tile a slot, in two loops, computed from a load and from a tile outside the stages."""
    (M, _), gain = X.shape, tw.load_tile(y)
    ring = tw.ring()
    with tw.load():
        for i in tw.metapipe(M, 8):
            for _ in tw.metapipe(1):
                ring.put(tw.maximum(tw.load_tile(X[i, :]), 0.0) * gain)
    with tw.compute():
        for i in tw.metapipe(M, 8):
            for _ in tw.metapipe(1):
                with ring.get() as x:
                    tw.store_tile(Z[i, :], x + 1.0)


def test_what_is_put_may_be_computed_in_loops_in_loops(seed):
    rng = np.random.default_rng(seed)
    x, y = (rng.normal(size=each).astype(bf16.dtype) for each in ((21, 24), 24))
    found = tw.kernel("X[M, N], y[N] -> Z[M, N]")(rectified)
    outputs = found.run(x, y, config="tiny", backend="golden")
    wanted = (np.maximum(x.astype(np.float32), 0) * y.astype(np.float32) + np.float32(1)).astype(
        bf16.dtype
    )
    assert (outputs.Z == wanted).all()


@pytest.mark.few(1)
@pytest.mark.parametrize("backend", ["emulator", "rtl"])
def test_a_ring_computes_the_product(backend, seed, heavy):
    problem = Problem(product(staged), named["tiny"], SIZES, bf16)
    job = Job(problem, backend=backend, seed=seed)
    outcome = run(job, *compile_job(job))
    assert outcome.report["verified"], outcome.problems
    plain_job = Job(Problem(product(plain), named["tiny"], SIZES, bf16), backend=backend, seed=seed)
    other = run(plain_job, *compile_job(plain_job))
    for each in ("cycles", "image_sha256"):
        assert other.report[each] == outcome.report[each]
    assert other.outputs["C"].tobytes() == outcome.outputs["C"].tobytes()


def in_turns(A, B, C, D):
    ring = tw.ring(slots=4)
    for X, Y in ((A, C), (B, D)):
        with tw.load():
            for i in tw.metapipe(X.shape[0], 8):
                ring.put(tw.load_tile(X[i, :]))
        with tw.compute():
            for i in tw.metapipe(X.shape[0], 8):
                with ring.get() as x:
                    tw.store_tile(Y[i, :], x)


def test_a_ring_may_be_filled_again_behind_the_stage_that_takes_it():
    kernel = tw.kernel("A[M, N], B[M, N] -> C[M, N], D[M, N]")(in_turns)
    a, b = (np.arange(40, dtype=np.float32).reshape(20, 2) + at for at in (0, 100))
    c, d = kernel(a, b)
    assert c.tobytes() == a.tobytes() and d.tobytes() == b.tobytes()


LOAD, PUT = "with tw.load():", "ring.put(tw.load_tile(A[i, :]))"
LOOP, GET = "for {} in tw.metapipe(8, 4):", "with ring.get() as a:"
#: A stage that fills the ring, and one that takes it.
FILL = [(0, LOAD), (1, LOOP.format("i")), (2, PUT)]
TAKE = [(0, "with tw.compute():"), (1, LOOP.format("i")), (2, GET), (3, "pass")]
#: Lines, each with its depth, and the message.
REFUSED = {
    "slots": ([(0, "tw.ring(slots=0)")], r"slots must be a whole number of 1 or more, not 0"),
    "put outside": ([(0, "for i in tw.metapipe(8, 4):"), (1, PUT)], r"in `with tw.load\(\):`"),
    "get outside": ([(0, GET), (1, "pass")], r"`ring.get` must stand in `with tw.compute\(\):`"),
    "get first": ([(0, "with tw.compute():"), (1, GET), (2, "pass")], "must follow a `ring.put`"),
    "nested": (
        [(0, LOAD), (1, "with tw.compute():"), (2, "pass")],
        "`tw.compute` must stand in no",
    ),
    "nothing": ([(0, LOAD), (1, "ring.put()")], "`ring.put` takes at least one tile"),
    "no tile": ([(0, LOAD), (1, "ring.put(3)")], "`put` takes tiles, not int"),
    "twice": (
        [(0, LOAD), (1, "ring.put(tw.load_tile(A))"), (1, "ring.put(tw.load_tile(A))")],
        "must fill one slot in an iteration, not two",
    ),
    "never taken": ([(0, LOAD), (1, "ring.put(tw.load_tile(A))")], "must be taken by `ring.get`"),
    "a store": (
        [(0, LOAD), (1, "tw.store_tile(C, tw.load_tile(A))")],
        r"`C` must not be stored in `with tw.load\(\):`",
    ),
    "other blocks": (
        [(0, LOAD), (1, LOOP.format("i")), (2, PUT), (0, "with tw.compute():")]
        + [(1, "for i in tw.metapipe(8, 2):"), (2, GET), (3, "pass")],
        "loops of `ring.put`: metapipe over 8 in 4, not metapipe over 8 in 2",
    ),
    "no loop": (
        [(0, LOAD), (1, LOOP.format("i")), (2, PUT), (0, "with tw.compute():"), (1, GET)]
        + [(2, "pass")],
        "loops of `ring.put`: metapipe over 8 in 4, not no loop",
    ),
    "taken twice": (
        [(0, LOAD), (1, "ring.put(tw.load_tile(A))"), (0, "with tw.compute():"), (1, GET)]
        + [(2, "pass"), (1, GET), (2, "pass")],
        "must take one slot in an iteration, not two",
    ),
    "filled again": (FILL + FILL + TAKE, "must follow the `ring.get` .* not fill it again after"),
    "taken again": (FILL + TAKE + TAKE, "must follow a `ring.put`, not another `ring.get`"),
    "filled at the end": (FILL + TAKE + FILL, "must be taken by `ring.get`"),
    "other loops around": (
        [(0, LOAD), (1, "ring.put(tw.load_tile(A))"), (0, LOOP.format("i"))]
        + [(1, "with tw.compute():"), (2, GET), (3, "pass")],
        "same loops around its stage as the `ring.put` of line 4",
    ),
    "carried": (
        [(0, LOAD), (1, "s = tw.zeros(1, 8)"), (1, LOOP.format("i"))]
        + [(2, "s = s + tw.col_sum(tw.load_tile(A[i, :]))"), (1, "ring.put(s)")],
        "takes what loads make, not what loops carry",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_ring_is_is_refused_at_its_line(name, tmp_path):
    lines, message = REFUSED[name]
    body = "".join(f"    {'    ' * depth}{line}\n" for depth, line in lines)
    path = tmp_path / "ringed.py"
    path.write_text(f"def program(A, C):\n    ring = tw.ring()\n{body}")
    scope = {"tw": tw}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    with pytest.raises(tw.ProgramError, match=message) as caught:
        tw.kernel("A[M, N] -> C[M, N]")(scope["program"]).trace(M=8, N=8, dtype=bf16)
    assert "ringed.py" in str(caught.value)
