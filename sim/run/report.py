"""Fields of a run's report, and its summary in text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sw.results import RunResult

__all__ = ["FIELDS", "describe_error", "describe_run", "tell"]

#: Fields of the report, in order; null if they do not apply.
FIELDS = tuple(RunResult.__annotations__)

_NAMES = {
    "rtl": "RTL",
    "cocotb": "RTL (cocotb)",
    "emulator": "emulator",
    "golden": "golden",
}


def describe_error(report: Mapping[str, Any]) -> str:
    """Golden's error against float64, relative to its bound or to the largest value."""
    if report["max_abs_err"] == 0:
        return "equal"
    if report["error_of_bound"] is not None:
        return f"error {report['error_of_bound']:.2f} of its bound"
    return f"error {report['max_rel_err']:.1e} of the largest value"


def describe_run(report: Mapping[str, Any]) -> str:
    """One line with kernel, sizes, formats, back end and chip."""
    params = ", ".join(f"{name} = {value}" for name, value in report["params"].items())
    return (
        f"{report['kernel']} of {params}; {report['dtype']} to {report['out_dtype']}; "
        f"{_NAMES[report['backend']]} on {report['config']}"
    )


def tell(
    report: Mapping[str, Any], problems: Sequence[str] = (), notes: Sequence[str] = ()
) -> list[str]:
    """Summary of the report in a few lines, the verdict last."""
    who = _NAMES[report["backend"]]
    lines = [describe_run(report)]
    if report["cycles"] is not None:
        warm = " of the second launch" if report["launches"] == 2 else ""
        lines.append(
            f"  {report['cycles']:,} cycles{warm}, utilization {report['utilization']:.4f} "
            f"of {report['peak_macs_per_cycle']:,} MAC/cycle"
            + (
                f" (predicted {report['predicted_cycles']:,} cycles)"
                if report["predicted_cycles"]
                else ""
            )
        )
    if report["dram_bytes_read"] is not None:
        lines.append(
            f"  {report['dram_bytes_read']:,} bytes read, "
            f"{report['dram_bytes_written']:,} bytes written, image {report['image_bytes']:,} bytes"
        )
    if report["bit_exact"]:
        lines.append(f"  {who} equals golden by bytes, memory around the outputs included")
    if report["max_abs_err"] is not None:
        lines.append(f"  golden against float64: {describe_error(report)}")
    if report["cycles_per_second"]:
        built = "cached" if report["cache_hit"] else f"{report['build_seconds']:.1f} s"
        lines.append(
            f"  model {built}, simulated in {report['run_seconds']:.1f} s "
            f"({report['cycles_per_second']:,.0f} cycles/s)"
        )
    lines += [f"  note: {note}" for note in notes]
    lines += [f"  WRONG: {problem}" for problem in problems]
    return [*lines, "VERIFIED" if report["verified"] else "NOT VERIFIED"]
