"""Random programs as source text: what is traced equals what Python does with plain arrays.

The answer is independent of the tracer: the same text runs with a stand-in for the language whose
loops really iterate and whose tiles are numpy arrays. A program may be refused, but never be
understood wrongly.
"""

import linecache
import random
from collections import Counter
from types import SimpleNamespace

import numpy as np

import sw.language as tw
from sim.golden import golden
from sw.ir.sizes import choose_sizes
from sw.passes.accumulate import accumulate
from sw.passes.check import check
from sw.passes.simplify import simplify

PROGRAMS = 120
ROWS, COLS = 7, 3
NAMES = ("a", "b", "c", "d")


class Rows:
    """A tensor of plain numbers that takes blocks for indices."""

    def __init__(self, array):
        self.array = array

    def __getitem__(self, key):
        return self.array[tuple(slice(x, x + 1) if isinstance(x, int) else x for x in key)]


def blocks(extent, size):
    for start in range(0, extent, size):
        yield slice(start, min(start + size, extent))


def store(target, value):
    target[...] = value


#: The language on plain arrays.
PLAIN = SimpleNamespace(
    int32=np.int32,
    metapipe=blocks,
    each=range,
    load_tile=lambda view: view,
    store_tile=store,
    full=lambda rows, cols, value, dtype=None: np.full((rows, cols), value, np.int32),
    col_sum=lambda x: x.sum(axis=0, keepdims=True, dtype=np.int32),
    maximum=np.maximum,
    minimum=np.minimum,
)


def statement(draw, indices):
    name = draw.choice(NAMES)
    # What is rebound from itself is a carry; the rest is mostly refused.
    first = name if draw.random() < 0.85 else draw.choice(NAMES)
    choice = draw.random()
    if indices and choice < 0.4:
        row = f"tw.col_sum(tw.load_tile(A[{draw.choice(indices)}, :]))"
        return f"{name} = {first} + {row}"
    if choice < 0.45:
        return f"{name} = {draw.choice(NAMES)}"
    if choice < 0.55:
        # A name that holds what another held an iteration ago, and one further back.
        moved = draw.sample(NAMES, draw.randint(2, 4))
        return f"{', '.join(moved)} = {moved[0]} + {moved[1]}, {', '.join(moved[:-1])}"
    if choice < 0.58:
        return f"n = n + {draw.choice((0, 0, 1))}"
    operation = draw.choice(("{} + {}", "{} - {}", "tw.maximum({}, {})", "tw.minimum({}, {} * n)"))
    return f"{name} = {operation.format(first, draw.choice(NAMES))}"


def body(draw, depth, indices):
    for _ in range(draw.randint(1, 4)):
        yield statement(draw, indices)
    if depth < 3 and draw.random() < (1.0 if depth == 0 else 0.5):
        index = "ijk"[depth]
        points = draw.random() < 0.4
        loop = (
            f"tw.each({draw.randint(1, ROWS)})"
            if points
            else f"tw.metapipe({ROWS}, {draw.randint(1, 4)})"
        )
        yield f"for {index} in {loop}:"
        yield from (f"    {line}" for line in body(draw, depth + 1, [*indices, index]))
        for _ in range(draw.randint(0, 2)):
            yield statement(draw, indices)


def source(draw):
    kinds = draw.choice(("", ", tw.int32"))
    yield "def program(A, C):"
    yield "    n = 2"
    for name in NAMES:
        yield f"    {name} = tw.full(1, {COLS}, {draw.randint(0, 3)}{kinds})"
    if draw.random() < 0.5:
        yield f"    {' = '.join(draw.sample(NAMES, draw.randint(2, 4)))}"
    yield from (f"    {line}" for line in body(draw, 0, []))
    for number, name in enumerate(NAMES):
        yield f"    tw.store_tile(C[{number}:{number + 1}, :], {name})"


def function(text, language, file):
    names = {"tw": language}
    exec(compile(text, file, "exec"), names)
    return names["program"]


def test_programs_are_understood_or_refused(seed):
    print(f"seed {seed}")
    draw = random.Random(seed)
    fates = Counter()
    for number in range(PROGRAMS):
        text = "\n".join(source(draw)) + "\n"
        file = f"program_{number}.py"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        array = np.random.default_rng(number).integers(-9, 9, (ROWS, COLS)).astype(np.int32)
        wanted = np.zeros((len(NAMES), COLS), np.int32)
        function(text, PLAIN, file)(Rows(array), Rows(wanted))
        kernel = tw.kernel(f"A[M, N] -> C[{len(NAMES)}, N]: int32")(function(text, tw, file))
        try:
            traced = kernel.trace(M=ROWS, N=COLS, dtype=tw.int32)
        except tw.ProgramError as error:
            assert error.kind in ("carry", "state", "scope"), (text, str(error))
            fates[error.kind] += 1
            continue
        fates["traced"] += 1
        program = accumulate(choose_sizes(check(traced)))
        for each in (program, simplify(program)):
            for poison in (False, True):
                found = golden(each, {"A": array}, poison=poison)["C"]
                assert (found == wanted).all(), text
    print(dict(fates))
    assert fates["traced"] > PROGRAMS / 4
    assert min(fates[kind] for kind in ("scope", "state")) > 0
