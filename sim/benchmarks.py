"""Benchmarks: products of matrices on the RTL of a whole chip, beside figures of peers."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hw.configs import named as configurations
from hw.numeric.formats import named as formats
from sim.progress import Progress
from sim.run.driver import compile_job, run
from sim.run.job import Job
from sim.run.problem import Problem
from sw.kernels.matmul import matmul

__all__ = ["BENCHMARKS", "Benchmark", "measure", "peers"]


@dataclasses.dataclass(frozen=True)
class Benchmark:
    """One product: what to multiply, whose figure it stands beside, and what it must reach.

    Parameters
    ----------
    config : str
        Named configuration.
    dtype : str
        Format of the operands.
    m, n, k : int
    peer : str
        Key of the figure in ``peers.toml``: a share of the peer's own peak.
    goal : float
        Least utilization, cold, at a memory latency of 100 cycles.
    quick : bool
        One of the three that ``bench --quick`` runs.
    """

    config: str
    dtype: str
    m: int
    n: int
    k: int
    peer: str
    goal: float
    quick: bool = False

    @property
    def name(self) -> str:
        """Name of the row."""
        return f"matmul-{self.m}x{self.n}x{self.k}-{self.dtype}-{self.config}"

    @property
    def command(self) -> str:
        """Command that measures it alone."""
        return (
            f"tilewright run matmul --config {self.config} --dtype {self.dtype} "
            f"--set M={self.m} --set N={self.n} --set K={self.k}"
        )


#: Every benchmark; the goals are the project's.
BENCHMARKS = (
    Benchmark("small", "bf16", 256, 256, 256, "h200_gemm_256", 0.80, quick=True),
    Benchmark("small", "bf16", 512, 512, 512, "h200_gemm_512", 0.88, quick=True),
    Benchmark("small", "int8", 256, 256, 256, "opengemm", 0.80, quick=True),
    Benchmark("small", "int8", 512, 512, 512, "opengemm", 0.88),
    Benchmark("small", "bf16", 1024, 1024, 1024, "h200_gemm_1024", 0.88),
)


def peers() -> Mapping[str, Mapping[str, Any]]:
    """Figures of peers with their sources, by key."""
    return tomllib.loads((Path(__file__).parent / "peers.toml").read_text(encoding="utf-8"))


def measure(benchmark: Benchmark, *, seed: int, progress: Progress) -> dict[str, Any]:
    """Row of one benchmark: utilization on the RTL, the peer's, their ratio.

    Raises
    ------
    HangError, DeviceError
        If the launch does not end well.
    """
    problem = Problem(
        kernel=matmul,
        config=configurations[benchmark.config],
        dims={"M": benchmark.m, "N": benchmark.n, "K": benchmark.k},
        dtype=formats[benchmark.dtype],
    )
    job = Job(problem=problem, seed=seed, progress=progress)
    compiled, fields = compile_job(job)
    report = run(job, compiled, fields | {"config": benchmark.config}).report
    peer = peers()[benchmark.peer]
    ours = report["utilization"]
    return {
        "id": benchmark.name,
        "ours": ours,
        "peer": peer["value"],
        "peer_source": peer["source"],
        "ratio": ours / peer["value"],
        "goal": benchmark.goal,
        "met": bool(report["verified"]) and ours >= benchmark.goal,
        "command": benchmark.command,
        "cycles": report["cycles"],
        "verified": report["verified"],
        "cycles_per_second": report["cycles_per_second"],
    }
