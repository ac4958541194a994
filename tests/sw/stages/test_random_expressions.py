"""Random element math of several tiles with statistics between: no plan is dead, all equal golden.

The formula is a kernel's text, so each tile, statistic and cast may stand beside any other one.
"""

import linecache

import numpy as np

import tilewright as tw
from tests.sw.stages.region_runs import operand

_FUNCTIONS = (
    "tw.exp({})",
    "tw.maximum({}, 0.1)",
    "tw.reciprocal({})",
    "tw.sqrt(tw.maximum({}, 0.0))",
    "({} * 0.5)",
    "abs({})",
    "tw.silu({})",
)
_STATISTICS = {
    0: ("tw.row_sum({})", "tw.row_max({})", "tw.row_mean({})"),
    1: ("tw.col_sum({})", "tw.col_max({})"),
}


def _formula(draw, depth, axis, names):
    kind = draw.random()
    if not depth or kind < 0.15:
        return draw.choice(names)
    left = _formula(draw, depth - 1, axis, names)
    if kind < 0.5:
        return f"({left} {draw.choice(list('+-*/'))} {_formula(draw, depth - 1, axis, names)})"
    return str(draw.choice(_FUNCTIONS if kind < 0.75 else _STATISTICS[axis])).format(left)


def _drawn(draw, number):
    """A kernel of two to five tiles, and the formats of these."""
    axis, count = int(draw.integers(2)), int(draw.integers(2, 6))
    inputs, forms = [f"x{at}" for at in range(count)], draw.choice([tw.bf16, tw.fp32], count)
    block = ("i, :", ":, i")[axis]
    lines = [f"{each} = tw.load_tile({each.upper()}[{block}])" for each in inputs]
    names = list(inputs)
    for at in range(int(draw.integers(1, 4))):
        lines.append(f"t{at} = {_formula(draw, 3, axis, names)}")
        names.append(f"t{at}")
    result = f"{names[-1]} * {draw.choice(inputs)} + {draw.choice(inputs)}"
    lines.append(f"tw.store_tile(Y[{block}], {result})")
    loads = ", ".join(
        f"{each.upper()}[M, N]: {form}" for each, form in zip(inputs, forms, strict=True)
    )
    text = (
        f'@tw.kernel("{loads} -> Y[M, N]: fp32")\n'
        f"def formula({', '.join(each.upper() for each in inputs)}, Y):\n"
        f"    for i in tw.metapipe(Y.shape[{axis}]):\n"
    )
    text += "".join(f"        {line}\n" for line in lines)
    path = f"<formula {number}>"
    linecache.cache[path] = len(text), None, text.splitlines(keepends=True), path
    scope = {"tw": tw}
    exec(compile(text, path, "exec"), scope)
    return scope["formula"], forms, text


def test_random_formulas_equal_golden(seed, draws):
    draw = np.random.default_rng(seed)
    for number in range(draws(8, 120)):
        kernel, forms, text = _drawn(draw, number)
        chip = ("small", "large", "tiny")[number % 3]
        sides = tuple(int(round(100 ** draw.random())) for _ in range(2))
        arrays = [operand(draw, sides, form) for form in forms]
        found = kernel.run(*arrays, config=chip, backend="emulator", seed=seed % 1000)
        assert found.verified, (chip, sides, found.problems, text)
