"""Benchmarks: utilization of a chip's RTL in matrix products, against published peers."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hw.arch.config import named as configurations
from hw.numeric.formats import named as formats
from sim.progress import Progress
from sim.run.driver import compile_job, run
from sim.run.job import Job, Problem
from sw.kernels.matmul import matmul

__all__ = ["BENCHMARKS", "Benchmark", "Peer", "measure", "peers"]


@dataclasses.dataclass(frozen=True)
class Benchmark:
    """One matrix product with its peers and its least required utilization.

    Parameters
    ----------
    config : str
        Named configuration.
    dtype : str
        Format of the operands.
    m, n, k : int
    peers : tuple of str
        Keys of ``peers.toml``.
    goal : float
        Least utilization of a cold launch at a memory latency of 100 cycles.
    quick : bool
        Whether ``bench --quick`` runs it.
    """

    config: str
    dtype: str
    m: int
    n: int
    k: int
    peers: tuple[str, ...]
    goal: float
    quick: bool = False

    @property
    def name(self) -> str:
        """Name of the benchmark."""
        return f"matmul-{self.m}x{self.n}x{self.k}-{self.dtype}-{self.config}"

    @property
    def command(self) -> str:
        """Command that repeats this measurement."""
        return (
            f"tilewright run matmul --config {self.config} --dtype {self.dtype} "
            f"--set M={self.m} --set N={self.n} --set K={self.k}"
        )


@dataclasses.dataclass(frozen=True)
class Peer:
    """Published or measured utilization of another machine, as a fraction of its own peak.

    Parameters
    ----------
    name : str
    kind : str
        ``accelerator``, a matrix engine like ours, or ``gpu``.
    best : float
        Largest utilization in the source.
    conditions, source : str
    least : float or None
        Smallest utilization, if the source states a range.
    """

    name: str
    kind: str
    best: float
    conditions: str
    source: str
    least: float | None = None

    def row(self, ours: float) -> dict[str, Any]:
        """Report fields, with the ratio of our utilization to the peer's best."""
        return {**dataclasses.asdict(self), "ratio_of_utilization": ours / self.best}


#: All benchmarks, with the project's goals.
BENCHMARKS = (
    Benchmark(
        "small", "bf16", 256, 256, 256, ("redmule", "opengemm", "h200_gemm_256"), 0.80, quick=True
    ),
    Benchmark(
        "small", "bf16", 512, 512, 512, ("redmule", "opengemm", "h200_gemm_512"), 0.88, quick=True
    ),
    Benchmark("small", "int8", 256, 256, 256, ("opengemm", "redmule"), 0.80, quick=True),
    Benchmark("small", "int8", 512, 512, 512, ("opengemm", "redmule"), 0.88),
    Benchmark("small", "bf16", 1024, 1024, 1024, ("redmule", "opengemm", "h200_gemm_1024"), 0.88),
)


def peers() -> Mapping[str, Peer]:
    """All peers with their sources, by key."""
    table = tomllib.loads((Path(__file__).parent / "peers.toml").read_text(encoding="utf-8"))
    return {
        key: Peer(**{name.replace("class", "kind"): value for name, value in entry.items()})
        for key, entry in table.items()
    }


def measure(benchmark: Benchmark, *, seed: int, progress: Progress) -> dict[str, Any]:
    """Measure one benchmark on the RTL; returns its report row with the peers, accelerators first.

    Raises
    ------
    HangError, DeviceError
        If the launch hangs or ends with an error.
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
    ours = report["utilization"]
    known = peers()
    beside = sorted((known[key] for key in benchmark.peers), key=lambda peer: peer.kind)
    return {
        "id": benchmark.name,
        "ours": ours,
        "peers": [peer.row(ours) for peer in beside],
        "goal": benchmark.goal,
        "met": bool(report["verified"]) and ours >= benchmark.goal,
        "command": benchmark.command,
        "cycles": report["cycles"],
        "verified": report["verified"],
        "cycles_per_second": report["cycles_per_second"],
    }
