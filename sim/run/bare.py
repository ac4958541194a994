"""Run a kernel and hold its answers against each other: golden, RTL, and the float64 reference."""

import dataclasses
import hashlib
import time
from typing import Any

import numpy as np
import numpy.typing as npt

from gen.verilog import Design, emit
from hw.config import ChipConfig
from hw.errors import BadInputError, HangError, NotBuiltError
from hw.numeric import reference
from hw.numeric.formats import Format, bf16
from hw.pcu.program import RESULT_FORMATS
from sim.drivers.matrix_unit import STREAMS, MatrixTiling, matrix_unit, run_matmul, waits
from sim.native.streams import StreamModel
from sim.operands import random_operand

__all__ = ["MatmulJob", "run"]

Array = npt.NDArray[Any]

_LARGEST_EXTENT = 1 << 16


def _digest(*arrays: Array) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


@dataclasses.dataclass(frozen=True)
class MatmulJob:
    """One matrix product: what to multiply, on what, and how to disturb it.

    Parameters
    ----------
    config : ChipConfig
        The configuration whose matrix unit is used.
    m, n, k : int
        Extents, 1 to 65,536.
    fmt, out : Format
        Operand format; format of the result: bf16 or fp32 for bf16, int32 for int8.
    seed : int
        Seed of the operands, of the stalls and of what uninitialised memory holds.
    stall : float
        Probability that a stream pauses in a cycle.
    operands : (A, B) or None
        M × K and K × N arrays; random ones by default.
    """

    config: ChipConfig
    m: int
    n: int
    k: int
    fmt: Format
    out: Format
    seed: int = 1
    stall: float = 0.0
    operands: tuple[Array, Array] | None = None

    def __post_init__(self) -> None:
        for name, value in (("M", self.m), ("N", self.n), ("K", self.k)):
            if not isinstance(value, int) or not 1 <= value <= _LARGEST_EXTENT:
                raise BadInputError(
                    f"{name} must be an integer from 1 to {_LARGEST_EXTENT}, not {value!r}",
                    where=name,
                    value=value,
                    rule=f"1 to {_LARGEST_EXTENT}",
                )
        if self.fmt not in RESULT_FORMATS:
            names = " or ".join(fmt.name for fmt in RESULT_FORMATS)
            raise BadInputError(
                f"operands must be {names}, not {self.fmt.name}",
                where="dtype",
                value=self.fmt.name,
                rule=names,
            )
        allowed = RESULT_FORMATS[self.fmt]
        if self.out not in allowed:
            names = " or ".join(fmt.name for fmt in allowed)
            raise BadInputError(
                f"result of {self.fmt.name} operands must be {names}, not {self.out.name}",
                where="out",
                value=self.out.name,
                rule=names,
            )
        for name, shape, array in zip(
            "AB", ((self.m, self.k), (self.k, self.n)), self.operands or (), strict=False
        ):
            if array.shape != shape or array.dtype != self.fmt.dtype:
                raise BadInputError(
                    f"{name} must be {shape[0]} × {shape[1]} of {self.fmt.name}, "
                    f"not {' × '.join(map(str, array.shape))} of {array.dtype}",
                    where=name,
                    value=list(array.shape),
                    rule=f"{shape[0]} × {shape[1]} of {self.fmt.name}",
                )


def _reference(job: MatmulJob, a: Array, b: Array, golden: Array) -> dict[str, Any]:
    """Errors of golden against float64, and whether they are within the bound."""
    with np.errstate(invalid="ignore", over="ignore"):
        exact = a.astype(np.float64) @ b.astype(np.float64)
        bound = reference.error_bound(a, b, out=job.out)
        error = np.abs(golden.astype(np.float64) - exact)
        promised = np.isfinite(bound)
        scale = np.abs(exact)
        relative = error[promised & (scale > 0)] / scale[promised & (scale > 0)]
    return {
        "error_bound": float(bound[promised].max()) if promised.any() else None,
        "max_abs_err": float(error[promised].max()) if promised.any() else None,
        "max_rel_err": float(relative.max()) if relative.size else None,
        "within_bound": bool((error[promised] <= bound[promised]).all()),
    }


def run(
    job: MatmulJob,
    *,
    backend: str = "rtl",
    use_cache: bool = True,
    max_cycles: int | None = None,
    design: Design | None = None,
) -> tuple[dict[str, Any], Array]:
    """Multiply and compare.

    Returns
    -------
    report : dict
        Fields of the ``run`` report; hardware fields are None for ``golden``.
    result : (M, N) array
        The answer of the back end.

    Raises
    ------
    NotBuiltError
        If the back end does not exist yet.
    HangError
        If the simulation does not finish.
    """
    if backend not in ("rtl", "golden"):
        raise NotBuiltError(f"back end {backend!r} is not built yet; rtl and golden are")
    started = time.monotonic()
    rng = np.random.default_rng(job.seed)
    a, b = job.operands or (
        random_operand(rng, (job.m, job.k), job.fmt),
        random_operand(rng, (job.k, job.n), job.fmt),
    )
    golden = reference.cast(reference.matmul(a, b), job.out)
    errors = _reference(job, a, b, golden)
    macs = job.m * job.n * job.k
    peak = job.config.grid_rows * job.config.grid_columns * (16 // job.fmt.bits)
    report: dict[str, Any] = {
        "backend": backend,
        "dtype": job.fmt.name,
        "out_dtype": job.out.name,
        "params": {"M": job.m, "N": job.n, "K": job.k},
        "seed": job.seed,
        "stall": job.stall,
        "macs": macs,
        "peak_macs_per_cycle": peak,
        "input_sha256": _digest(a, b),
        "golden_sha256": _digest(golden),
        "compile_seconds": time.monotonic() - started,
        **{key: errors[key] for key in ("error_bound", "max_abs_err", "max_rel_err")},
    }
    if backend == "golden":
        report["verified"] = errors["within_bound"]
        report["output_sha256"] = report["golden_sha256"]
        return report, golden

    tiling = MatrixTiling(
        m=job.m,
        n=job.n,
        k=job.k,
        columns=job.config.grid_columns,
        accumulator_rows=job.config.pcu.accumulator_rows,
        fmt=job.fmt,
        to_bf16=job.out == bf16,
    )
    unit = matrix_unit(job.config)
    started = time.monotonic()
    design = design or emit(unit)
    report["emit_seconds"] = time.monotonic() - started
    report["verilog_sha256"] = design.sha256
    started = time.monotonic()
    with StreamModel(design, unit, seed=job.seed, use_cache=use_cache) as model:
        report["build_seconds"] = time.monotonic() - started
        report["cache_hit"] = model.cache_hit
        started = time.monotonic()
        stalls = dict.fromkeys(STREAMS, job.stall)
        try:
            result, cycles, transfers = run_matmul(
                model, tiling, a, b, stalls=stalls, limit_cycles=max_cycles or 1 << 40
            )
        except HangError as error:
            error.result = report
            raise
        seconds = time.monotonic() - started
        counted = waits(model.get("counters"))
        simulated = model.cycle
    exact = result.tobytes() == golden.tobytes()
    moved = sum(len(item.words) for item in transfers.values()) * tiling.vector_bytes
    report |= {
        "predicted_cycles": None
        if job.stall
        else tiling.undisturbed_cycles(job.config.pcu.cell_latency),
        "bit_exact": exact,
        "verified": exact and errors["within_bound"],
        "cycles": cycles,
        "macs_issued": counted["busy"] * peak,
        "utilization": macs / (cycles * peak),
        "units_used": {"matrix_unit": 1},
        "output_sha256": _digest(result),
        "counters": {
            "matrix_unit": {
                "kind": "matrix_unit",
                **counted,
                "macs": counted["busy"] * peak,
                "commands": None,
                "boxes": None,
                "bytes": moved,
            }
        },
        "run_seconds": seconds,
        "cycles_per_second": simulated / seconds,
    }
    return report, result
