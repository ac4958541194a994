"""Outcome of a run: the fields of its report, counters by unit, and a summary in text."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt

from hw.arch.config import ChipConfig
from hw.arch.counters import ACTIVITIES, named_counters, unit_kinds
from hw.arch.limits import COUNTER_WORDS
from hw.arch.unit_kind import PCU
from hw.numeric.formats import Format
from sw.results import RunResult

__all__ = [
    "FIELDS",
    "describe_error",
    "describe_run",
    "tell",
    "STATES",
    "TALLIES",
    "report_counters",
    "Outcome",
]

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
        share = report["error_of_bound"]
        return f"error {share:{'.2f' if share < 100 else '.1e'}} of its bound"
    return f"error {report['max_rel_err']:.1e} of the largest value"


def describe_run(report: Mapping[str, Any]) -> str:
    """One line with kernel, sizes, formats, back end and chip."""
    params = ", ".join(f"{name} = {value}" for name, value in report["params"].items())
    return (
        f"{report['kernel']} of {params}; {report['dtype']} to {report['out_dtype']}; "
        f"{_NAMES[report['backend']]} on {report['config']}"
    )


def _rate(report: Mapping[str, Any]) -> str:
    """Share of the peak: of the multiply-accumulates or, without products, of the memory."""
    if report["utilization"] is not None:
        peak = report["peak_macs_per_cycle"]
        return f", utilization {report['utilization']:.4f} of {peak:,} MAC/cycle"
    if report["memory_utilization"] is not None:
        return f", memory at {report['memory_utilization']:.4f} of its peak"
    return ""


def _predicted_rate(report: Mapping[str, Any]) -> str:
    """Share of the multiply-accumulates in the predicted cycles."""
    peak = report["peak_macs_per_cycle"]
    if not report["macs"]:
        return ""
    share = report["macs"] / (report["predicted_cycles"] * peak)
    return f", utilization {share:.4f} of {peak:,} MAC/cycle"


def _images(report: Mapping[str, Any]) -> str:
    """Size of the kernel's image, or the number and size of its images."""
    size = f"{report['image_bytes']:,} bytes"
    return f"image {size}" if report["parts"] == 1 else f"{report['parts']} images of {size}"


def tell(
    report: Mapping[str, Any], problems: Sequence[str] = (), notes: Sequence[str] = ()
) -> list[str]:
    """Summary of the report in a few lines, the verdict last."""
    who = _NAMES[report["backend"]]
    lines = [describe_run(report)]
    if report["cycles"] is not None:
        warm = " of the second launch" if report["launches"] == 2 else ""
        predicted = report["predicted_cycles"]
        lines.append(
            f"  {report['cycles']:,} cycles{warm}{_rate(report)}"
            + (f" (predicted {predicted:,} cycles)" if predicted else "")
        )
    elif report["predicted_cycles"] is not None:
        lines.append(f"  predicted {report['predicted_cycles']:,} cycles{_predicted_rate(report)}")
    if report["dram_bytes_read"] is not None:
        lines.append(
            f"  {report['dram_bytes_read']:,} bytes read, "
            f"{report['dram_bytes_written']:,} bytes written, {_images(report)}"
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


#: States of a unit in a report: in each cycle of a launch it is in exactly one.
STATES = (*ACTIVITIES, "launch")
#: Other counts of a unit in a report.
TALLIES = ("macs", "commands", "boxes", "bytes")


def report_counters(
    config: ChipConfig, operand: Format, words: Sequence[int], launch_cycles: int | None
) -> dict[str, dict[str, Any]]:
    """Counters by unit name; None for counters that a kind of unit does not have.

    Parameters
    ----------
    config : ChipConfig
    operand : Format
        Operand format, which determines the multiply-accumulates per vector that enters an array.
    words : sequence of int
        Counter words of all units, in the order of `hw.arch.counters`.
    launch_cycles : int or None
        Cycles outside the kernel, in which no unit runs: reported as each unit's state ``launch``.
    """
    products = config.grid_rows * config.grid_columns * (16 // operand.bits)
    report: dict[str, dict[str, Any]] = {}
    for index, (name, kind) in enumerate(unit_kinds(config).items()):
        counted = named_counters(kind, words[COUNTER_WORDS * index : COUNTER_WORDS * (index + 1)])
        macs = counted["vectors"] * products if kind is PCU else None
        values = counted | {"launch": launch_cycles, "macs": macs}
        report[name] = {"kind": kind.name} | {
            each: values.get(each) for each in (*STATES, *TALLIES)
        }
    return report


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Result of a job.

    Members
    -------
    report : dict
        The fields of `FIELDS`.
    outputs : mapping of str to array
    problems : tuple of str
        Reasons why it is not verified, one line per reason.
    notes : tuple of str
        Further remarks.
    """

    report: dict[str, Any]
    outputs: Mapping[str, npt.NDArray[Any]]
    problems: tuple[str, ...]
    notes: tuple[str, ...] = ()
