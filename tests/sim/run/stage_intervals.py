"""Initiation interval of a pipeline on the RTL, by the counters of its units.

Two launches have the same stages, and differ in their iterations alone. The cycles between them,
over the busy cycles that the stage with most of them has more, are the initiation interval over the
slowest stage. A PCU is busy in the cycles in which a vector enters its array, or a group its lanes,
or these must wait for results of the group before. Counters of one stage are compared, for the
placement of a longer launch may be another, and of equal plans, for a longer launch may have more
PCUs or larger slabs: else the ratio may be below 1.
"""

from hw.arch.unit_kind import PCU
from hw.numeric.formats import bf16
from sim.run.driver import compile_job, run
from sim.run.job import Job, Problem

__all__ = ["interval_ratio", "report_of"]


def report_of(kernel, config, dims, seed):
    """Report of a run that equals golden, and the compilation."""
    job = Job(Problem(kernel, config, dims, bf16), seed=seed)
    compiled, fields = compile_job(job)
    outcome = run(job, compiled, fields)
    assert outcome.report["verified"], outcome.problems
    return outcome.report, compiled


def plan_of(kernel, config, dims):
    """Stages in PCUs, and the block of a pipeline: what launches of one plan have in common."""
    (part,) = Problem(kernel, config, dims, bf16).compile().parts
    pipeline = part.pipeline
    block = pipeline and (pipeline.block_rows, pipeline.block_columns, pipeline.block_keys)
    return frozenset(part.placement.tiles), block


def busy_of(report, compiled):
    """Busy cycles of each stage in a PCU."""
    (part,) = compiled.parts
    names = {
        name: f"{PCU.name}_{row}_{column}" for name, (row, column) in part.placement.tiles.items()
    }
    counters = report["counters"]
    return {stage: counters[unit]["busy"] for stage, unit in names.items() if unit in counters}


def interval_ratio(kernel, config, dims, block, iterations, seed):
    """Initiation interval over the slowest stage, and both as text.

    The shorter launch has 2, 4, 8 … iterations, the first number with the plan of the longer one.

    Parameters
    ----------
    kernel : Kernel
    config : ChipConfig
    dims : mapping of str to int
        Dimensions but M.
    block : int
        Rows of an iteration.
    iterations : int
        Those that one launch has more than the other.
    seed : int
    """
    shorter = (2 << step for step in range(iterations.bit_length() - 1))
    counts = ((count, count + iterations) for count in shorter)
    launches = ([{"M": count * block, **dims} for count in pair] for pair in counts)
    few, many = next(
        [report_of(kernel, config, each, seed) for each in pair]
        for pair in launches
        if len({plan_of(kernel, config, each) for each in pair}) == 1
    )
    before, after = busy_of(*few), busy_of(*many)
    cycles = many[0]["cycles"] - few[0]["cycles"]
    busy = {stage: after[stage] - before[stage] for stage in after}
    slowest = max(busy, key=lambda stage: busy[stage])
    ratio = cycles / busy[slowest]
    return ratio, f"{cycles:,} cycles, {slowest} busy {busy[slowest]:,}: {ratio:.4f}"
