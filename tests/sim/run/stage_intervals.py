"""Initiation interval of a pipeline on the RTL, by the counters of its units.

Two launches differ in their iterations alone. The cycles between them, over the busy cycles that
the PCU with most of them has more, are the initiation interval over the slowest stage.
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


def interval_ratio(kernel, config, dims, block, iterations, seed):
    """Initiation interval over the slowest stage, and both as text.

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
    few, many = (
        report_of(kernel, config, {"M": rows, **dims}, seed)[0]
        for rows in (2 * block, (2 + iterations) * block)
    )
    cycles = many["cycles"] - few["cycles"]
    busy = {
        name: unit["busy"] - few["counters"][name]["busy"]
        for name, unit in many["counters"].items()
        if unit["kind"] == PCU.name
    }
    slowest = max(busy, key=lambda name: busy[name])
    ratio = cycles / busy[slowest]
    return ratio, f"{cycles:,} cycles, {slowest} busy {busy[slowest]:,}: {ratio:.4f}"
