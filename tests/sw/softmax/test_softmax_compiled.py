"""A softmax between two products, from the text of a kernel to results of a chip."""

import ml_dtypes
import numpy as np
import pytest

import sw.language as tw
import tilewright
from hw.arch.config import named
from hw.numeric.formats import bf16
from sim.kernels import summed
from sim.run.job import Problem
from sw.array_spec import arrays_of
from sw.kernels.flash_attention import attend, flash_attention
from sw.macs import count_macs
from sw.passes.accumulate import accumulate
from sw.passes.check import check
from sw.passes.simplify import simplify
from sw.softmax.online import online
from sw.stages.refusal import Refusals
from tests.sw.softmax.spellings import MASK, NEAR_MISSES, program_of

assert tilewright.__version__


@tw.kernel("Q[M, D], K[S, D], V[S, E] -> Y[M, E]")
def one_head(Q, K, V, Y, causal=False, window=0, exact=False):
    (M, D), S = Q.shape, K.shape[0]
    for i in tw.metapipe(M):
        seen = {}
        if causal or window:
            at, until = tw.row_index(i) + (S - M), i.stop + (S - M)
            seen = {"at": at, "until": until, "window": window}
        tw.store_tile(Y[i, :], attend(tw.load_tile(Q[i, :]), K, V, D**-0.5, **seen))


@one_head.reference
def _(Q, K, V, causal=False, window=0):
    heads = flash_attention.reference(Q[None], K[None], V[None], causal=causal, window=window)
    return heads[0]


def drawn(rng, most=90):
    sizes = dict(zip("MSDE", (int(np.exp(rng.uniform(0, np.log(most)))) for _ in range(4))))
    options = ({}, {"causal": True}, {"window": int(rng.integers(1, 60))})[rng.integers(3)]
    return sizes, options


def arrays(rng, sizes):
    shapes = (("M", "D"), ("S", "D"), ("S", "E"))
    spread = rng.choice([0.01, 1, 8])
    return [
        (rng.standard_normal([sizes[each] for each in shape]) * spread).astype(ml_dtypes.bfloat16)
        for shape in shapes
    ]


@pytest.mark.few(1)
@pytest.mark.parametrize("config", ["tiny", "small", "large"])
def test_random_kernels_equal_golden_on_the_emulator(config, seed):
    rng = np.random.default_rng(seed)
    for _ in range(6):
        sizes, options = drawn(rng, 30 if config == "tiny" else 90)
        with np.errstate(invalid="ignore"):
            result = one_head.run(*arrays(rng, sizes), config=config, backend="emulator", **options)
        assert result.verified, (sizes, options, result.problems)


@pytest.mark.slow
@pytest.mark.parametrize("config", ["tiny", "small"])
def test_random_kernels_equal_golden_on_the_rtl(config, seed):
    rng = np.random.default_rng(seed)
    for _ in range(6):
        sizes, options = drawn(rng, 30 if config == "tiny" else 90)
        with np.errstate(invalid="ignore"):
            result = one_head.run(*arrays(rng, sizes), config=config, **options)
        assert result.verified, (sizes, options, result.problems)


def test_the_block_of_keys_is_that_of_the_schedule_and_of_golden(seed):
    sizes = {"M": 20, "S": 150, "D": 16, "E": 16}
    for block in (16, 48):
        schedule = tw.Schedule(tile={"attend.j": block})
        problem = Problem(one_head, named["small"], sizes, bf16, schedule=schedule)
        compiled = problem.compile()
        assert compiled.schedule.tile == {"attend.j": block}
        (part,) = compiled.parts
        assert part.sizes["attend.j"] == block and f"of {block} keys" in part.choice
        assert "softmax(0.25 Q @ K.T) @ V" in compiled.ir("stage")
        assert " powers " in compiled.ir("online") and " powers " not in compiled.ir("accumulate")
    chosen = Problem(one_head, named["small"], sizes, bf16).compile()
    assert chosen.schedule.tile["attend.j"] % named["small"].grid_rows == 0
    for field, value in (("tile", {"i": 8}), ("slots", {"attend.k": 2})):
        schedule = tw.Schedule(**{field: value})
        with pytest.raises(tw.ProgramError, match="tile of `attend.j` is, the keys of a block"):
            Problem(one_head, named["small"], sizes, bf16, schedule=schedule).compile()


def test_only_products_of_seen_keys_count(seed):
    rng = np.random.default_rng(seed)
    for _ in range(12):
        sizes, options = drawn(rng, 60)
        problem = Problem(one_head, named["small"], sizes, bf16, options=options)
        m, s, d, e = (sizes[each] for each in "MSDE")
        behind = np.arange(m)[:, np.newaxis] + s - m - np.arange(s)
        seen = np.ones((m, s), np.bool_)
        if options:
            seen = (behind >= 0) & (behind < options.get("window", s + m))
        wanted = int(seen.sum()) * (d + e)
        compiled = problem.compile()
        assert wanted == compiled.macs == count_macs(compiled.golden_program)
        assert wanted == count_macs(problem.golden_program)
        assert compiled.macs_issued > wanted and "useful" in compiled.report()


def test_hidden_keys_may_hold_anything(seed):
    rng = np.random.default_rng(seed)
    sizes = {"M": 30, "S": 50, "D": 16, "E": 16}
    q, k, v = arrays(rng, sizes)
    plain = one_head.run(q, k, v, config="small", backend="emulator", causal=True)
    k[40:] = np.nan
    poisoned = one_head.run(q, k, v, config="small", backend="emulator", causal=True)
    first, second = (np.asarray(each.outputs["Y"], np.float32) for each in (plain, poisoned))
    assert poisoned.verified and first[:20].tobytes() == second[:20].tobytes()
    assert np.isnan(second[20:]).all()


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_a_near_miss_is_refused_on_chips_with_its_reason(name):
    changes, reason = NEAR_MISSES[name]
    program = simplify(online(accumulate(check(program_of(changes, name="missed")))))
    problem = Refusals(named["small"]).of(program, arrays_of(program))
    assert isinstance(problem, tw.ProgramError) and problem.where.startswith("missed.py:")
    with pytest.raises(tw.ProgramError, match=reason):
        raise problem


def test_the_printed_form_is_no_near_miss():
    program = simplify(accumulate(check(program_of({MASK: ""}))))
    problem = Refusals(named["small"]).of(program, arrays_of(program))
    assert problem is not None and "softmax" not in problem.message
    assert summed(program_of({}), exact=True) != summed(program_of({}))
