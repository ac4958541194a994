"""attn-d: bytes of attention on the RTL of `small`, exact by formula."""

import math
import re

import pytest

from hw.arch.config import named
from hw.arch.launch import ARGUMENT_BYTES, ENTRY_BYTES, HEADER_BYTES
from hw.numeric.formats import bf16
from sim.run.driver import compile_job, run
from sim.run.job import Job, Problem
from sw.chip_map import chip_map
from sw.kernels.flash_attention import flash_attention
from tests.sw.kernels.kernels_by_definition import window_parts

#: Heads, groups, queries, keys, depth, whether causal, the window; whether keys and
#: values, of a window those of a part, fit.
CASES = [
    (1, 1, 700, 700, 128, False, 0, False),
    (1, 1, 512, 512, 128, False, 0, True),
    (1, 1, 300, 700, 256, False, 0, False),
    (4, 2, 100, 300, 64, False, 0, True),
    (2, 1, 333, 333, 32, True, 0, True),
    (1, 1, 700, 700, 128, True, 0, False),
    (1, 1, 500, 900, 128, True, 0, False),
    (1, 1, 700, 700, 128, True, 150, True),
]
#: The line of a map that says how queries and keys are cut.
_CUT = re.compile(
    r"(\d+) groups of (\d+) queries, (?:\d+ to )?(\d+) blocks? of (\d+) keys each, (.*)"
)


def keys_of(group, queries, block, rows, keys, *, causal):
    """Keys that a group of queries reads: those of all blocks up to its last visible key."""
    if not causal:
        return keys
    last = min((group + 1) * queries, rows) + keys - rows
    return min(math.ceil(last / block) * block, keys)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.must("attn-d", goal="bytes of attention in and out, exact by formula")
@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_attention_moves_the_bytes_of_the_formula(case, seed, heavy, figure):
    heads, groups, rows, keys, depth, causal, window, fits = case
    dims = {"H": heads, "G": groups, "M": rows, "S": keys, "D": depth}
    config = named["small"]
    problem = Problem(
        flash_attention, config, dims, bf16, options={"causal": causal, "window": window}
    )
    job = Job(problem, seed=seed)
    compiled = compile_job(job)
    outcome = run(job, *compiled)
    assert outcome.report["verified"], outcome.problems
    # Without a mask, the heads of a group are more rows of it; else each reads keys and values.
    heads_run, rows_run = (heads, rows) if causal else (groups, rows * heads // groups)
    parts = window_parts(rows_run, keys, window, heads)
    cuts = _CUT.findall(chip_map(compiled[0]))
    query, pair = 2 * depth, 2 * 2 * depth
    kinds, read = list(dict.fromkeys(kind for kind, *_ in parts)), heads * rows * query
    assert len(cuts) == len(kinds)
    for kind, (first, end), (start, stop) in parts:
        *sizes, where = cuts[kinds.index(kind)]
        count, queries, most, block = map(int, sizes)
        own = end - first, stop - start
        assert (count, most) == (math.ceil(own[0] / queries), math.ceil(own[1] / block))
        assert where == ("kept on chip" if fits else "loaded for each group")
        used = own[1]
        if not fits:
            each = (keys_of(group, queries, block, *own, causal=causal) for group in range(count))
            used = sum(each)
        read += heads_run * used * pair
    beat = config.width_bits // 8
    arguments = math.ceil(len(problem.arrays) * ARGUMENT_BYTES / beat) * beat
    images = outcome.report["image_bytes"] - len(kinds) * HEADER_BYTES
    launch = len(kinds) * (ENTRY_BYTES + arguments) + images
    figure(f"{case}: {queries} queries a group, {outcome.report['dram_bytes_read']:,} bytes read")
    assert outcome.report["dram_bytes_read"] == read + launch
    assert outcome.report["dram_bytes_written"] == heads * rows * query
