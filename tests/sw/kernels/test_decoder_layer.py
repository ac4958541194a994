"""The decoder layer: other numbers of past keys, what of the caches is written, its parts."""

import ast
import inspect

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from sim.golden import golden
from sim.run.driver import compile_job, run
from sim.run.job import Job, Problem
from sw.kernels import decoder_layer as module
from sw.kernels.decoder_layer import decoder_layer
from tests.sw.kernels.test_golden_kernels import operands, require_definition

SIZES = {"M": 3, "D": 24, "H": 4, "E": 16, "G": 2, "F": 40, "S": 80}


def problem_of(sizes, config="tiny", **options):
    return Problem(decoder_layer, named[config], sizes, tw.bf16, None, options)


def small_operands(rng, problem):
    """Values as those of a model: no score far from others."""
    return {
        each.name: (0.2 * rng.standard_normal(each.shape)).astype(each.format.dtype)
        for each in problem.inputs
    }


@pytest.mark.parametrize("past", [0, 1, 15, 61, 77])
def test_golden_is_the_definition_behind_any_number_of_keys(past, seed):
    rng = np.random.default_rng(seed)
    problem = problem_of(SIZES, past=past)
    inputs = operands(rng, problem)
    found = golden(problem.golden_program, inputs, function_bits=16)
    require_definition(problem, inputs, found, 16, past, past=past)


def test_only_the_rows_of_new_tokens_are_written(seed):
    rng = np.random.default_rng(seed)
    problem = problem_of(SIZES, past=20)
    inputs = small_operands(rng, problem)
    found = golden(problem.golden_program, inputs)
    for cache in ("Kc", "Vc"):
        changed = (found[cache] != inputs[cache]).any(axis=(0, 2))
        assert changed.nonzero()[0].tolist() == [20, 21, 22]


def test_a_token_does_not_see_those_behind_it(seed):
    rng = np.random.default_rng(seed)
    problem = problem_of(SIZES, past=20)
    inputs = small_operands(rng, problem)
    before = golden(problem.golden_program, inputs)["Y"]
    inputs["X"][2] *= -1
    inputs["Kc"][:, 23:] = inputs["Vc"][:, 23:] = np.nan
    after = golden(problem.golden_program, inputs)["Y"]
    assert (before[:2] == after[:2]).all() and (before[2] != after[2]).any()


def test_tokens_one_by_one_are_tokens_together(seed):
    """Without rounding, by the reference."""
    rng = np.random.default_rng(seed)
    inputs = small_operands(rng, problem_of(SIZES))
    *caches, together = decoder_layer.reference(*inputs.values(), past=20)
    single = dict(inputs)
    for row in range(3):
        single |= {name: inputs[name][row : row + 1] for name in ("X", "cos", "sin")}
        *changed, y = decoder_layer.reference(*single.values(), past=20 + row)
        single |= dict(zip(("Kc", "Vc"), changed))
        assert np.allclose(y[0], together[row], rtol=1e-12)
    for one, other in zip(changed, caches):
        assert np.allclose(one, other, rtol=1e-12)


@pytest.mark.slow
def test_the_emulator_is_golden_behind_other_keys(seed):
    sizes = {"M": 1, "D": 16, "H": 2, "E": 16, "G": 1, "F": 24, "S": 34}
    job = Job(problem_of(sizes, past=33), seed=seed, backend="emulator")
    compiled, fields = compile_job(job)
    assert run(job, compiled, fields).report["verified"]


def test_more_keys_than_rows_of_the_caches_are_refused():
    with pytest.raises(tw.ProgramError, match="`Kc` has elements 0 to 79 along S, and is read at"):
        decoder_layer.trace(dtype=tw.bf16, past=78, **SIZES)


def test_heads_that_share_no_keys_evenly_are_refused():
    with pytest.raises(
        tw.BadInputError, match="H must be a multiple of G = 2, the heads of keys, not 5"
    ):
        decoder_layer.trace(dtype=tw.bf16, **(SIZES | {"H": 5, "G": 2}))


def test_the_body_has_at_most_60_lines_with_its_helpers():
    tree = ast.parse(inspect.getsource(module))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    lines = {node.name: node.end_lineno - node.lineno for node in functions if node.name != "_"}
    assert (
        lines.keys() == {"_normed", "_turned", "layer", "decoder_layer"}
        and sum(lines.values()) <= 60
    )
