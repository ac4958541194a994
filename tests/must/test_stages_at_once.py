"""attn-f: scores, softmax and values overlap, and what runs that miss a goal wait for."""

import math

import pytest

from hw.arch.config import named
from hw.numeric.formats import bf16
from sim.run.driver import compile_job, run
from sim.run.job import Job, Problem
from sw.kernels.flash_attention import flash_attention

#: Keys and as many queries on a chip, and their columns.
_CASES = [("small", 512, 128), ("large", 2048, 64)]


def report_of(config, side, depth, seed):
    dims = {"H": 1, "G": 1, "M": side, "S": side, "D": depth}
    job = Job(Problem(flash_attention, config, dims, bf16), seed=seed)
    compiled, fields = compile_job(job)
    outcome = run(job, compiled, fields)
    assert outcome.report["verified"], outcome.problems
    return outcome.report, unit_counters(compiled, outcome.report)


def unit_counters(compiled, report):
    """Counters of the scores units, and of the values units."""
    part = compiled.parts[0]
    found = {"scores": [], "sums": []}
    for name, place in part.placement.tiles.items():
        kind = name.rstrip("0123456789_")
        if kind in found:
            found[kind].append(report["counters"]["pcu_{}_{}".format(*place)])
    return found


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.must("attn-f", goal="both products and the softmax between them overlap, by counters")
@pytest.mark.parametrize(("chip", "side", "depth"), _CASES)
def test_products_and_softmax_overlap(chip, side, depth, seed, heavy, figure):
    config = named[chip]
    report, units = report_of(config, side, depth, seed)
    cycles = report["cycles"]
    least = {kind: min(each["busy"] for each in found) for kind, found in units.items()}
    assert len(units["scores"]) == len(units["sums"]) == config.pcu_count // 2
    # The lanes' cycles for the powers of a block, beside those of its product.
    lanes = config.grid_columns / config.pcu.lanes
    product = math.ceil(depth / config.grid_rows)
    one_after_another = product / (product + lanes)
    shares = {kind: busy / cycles for kind, busy in least.items()}
    figure(f"busy {shares}; {one_after_another:.2f} if a unit did one after the other")
    assert all(share >= 0.95 > one_after_another for share in shares.values())
    assert sum(least.values()) >= 1.9 * cycles
