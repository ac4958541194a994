"""Charts of a sweep by matplotlib: utilization, cycles against cost, and roofline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["draw_charts", "roof_ends"]

#: Equal records give equal files.
_SETTINGS: Any = {"svg.hashsalt": "tilewright", "svg.fonttype": "none", "axes.grid": True}


def draw_charts(records: Sequence[Mapping[str, Any]], folder: Path) -> list[Path]:
    """Draw the charts of verified points as SVG files; returns those that have any.

    Parameters
    ----------
    records : sequence of mapping
        With fields ``label``, ``group``, ``kernel``, ``config``, ``cycles``, ``cost``,
        ``cost_unit``, ``front``, ``utilization``, ``macs``, ``bytes``, ``peak_macs_per_cycle``,
        ``peak_bytes_per_cycle``.
    folder : Path
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as pyplot

    drawn = []
    with matplotlib.rc_context(_SETTINGS):
        for name, draw in (
            ("utilization", _utilization),
            ("cycles_against_cost", _cycles_against_cost),
            ("roofline", _roofline),
        ):
            height = 1.5 + 0.22 * len(records) if draw is _utilization else 5.0
            figure, axes = pyplot.subplots(figsize=(8, max(3.0, height)), layout="constrained")
            try:
                if draw(axes, records):
                    path = folder / f"{name}.svg"
                    figure.savefig(path, metadata={"Date": None})
                    drawn.append(path)
            finally:
                pyplot.close(figure)
    return drawn


def _utilization(axes: Any, records: Sequence[Mapping[str, Any]]) -> bool:
    """Bar per point with products: its share of the peak."""
    shown = [each for each in records if each["utilization"]]
    places = range(len(shown))
    axes.barh(places, [each["utilization"] for each in shown], color="tab:blue")
    axes.set_yticks(places, [each["label"] for each in shown], fontsize=7)
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_xlabel("utilization: share of the chip's peak multiply-accumulates")
    _note_left_out(axes, records, shown)
    return bool(shown)


def _cycles_against_cost(axes: Any, records: Sequence[Mapping[str, Any]]) -> bool:
    """A colour per problem; points of its front are filled and joined."""
    for number, group in enumerate(dict.fromkeys(each["group"] for each in records)):
        colour = f"C{number % 10}"
        mine = [each for each in records if each["group"] == group]
        best = sorted((each for each in mine if each["front"]), key=lambda each: each["cost"])
        axes.scatter(
            [each["cost"] for each in mine],
            [each["cycles"] for each in mine],
            edgecolors=colour,
            facecolors="none",
        )
        axes.plot(
            [each["cost"] for each in best],
            [each["cycles"] for each in best],
            "o-",
            color=colour,
            drawstyle="steps-post",
            label=group,
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.margins(0.08, 0.12)
    axes.set_xlabel(records[0]["cost_unit"] if records else "")
    axes.set_ylabel("cycles")
    # A chip is a column of points: its name stands below the lowest of them.
    for cost in dict.fromkeys(each["cost"] for each in records):
        mine = [each for each in records if each["cost"] == cost]
        names = ", ".join(dict.fromkeys(each["config"] for each in mine))
        _name_point(axes, names, cost, min(each["cycles"] for each in mine))
    if records:
        _legend(axes, title="filled: Pareto front")
    return bool(records)


def _name_point(axes: Any, name: str, x: float, y: float) -> None:
    axes.annotate(
        name, (x, y), xytext=(0, -13), textcoords="offset points", ha="center", fontsize=7
    )


def _legend(axes: Any, **options: Any) -> None:
    """A legend below the axes, where it covers no point."""
    axes.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, **options)


def _note_left_out(
    axes: Any, records: Sequence[Mapping[str, Any]], shown: Sequence[Mapping[str, Any]]
) -> None:
    """Name the kernels that a chart of products leaves out."""
    kept = {each["kernel"] for each in shown}
    kernels = dict.fromkeys(each["kernel"] for each in records if each["kernel"] not in kept)
    if kernels:
        axes.set_title(f"Without products, so not shown: {', '.join(kernels)}", fontsize=8)


def roof_ends(ridge: float, intensities: Sequence[float]) -> list[float]:
    """Intensities where a roof begins, bends and ends: all points of its chip are between."""
    return [min(ridge / 2, *intensities), ridge, max(ridge * 2, *intensities)]


def _roofline(axes: Any, records: Sequence[Mapping[str, Any]]) -> bool:
    """Products by intensity, under the roof of each chip."""
    shown = [each for each in records if each["macs"] and each["bytes"]]
    roofs = dict.fromkeys(
        (each["config"], each["peak_macs_per_cycle"], each["peak_bytes_per_cycle"])
        for each in shown
    )
    for number, (config, macs, width) in enumerate(roofs):
        colour = f"C{number % 10}"
        mine = [
            each
            for each in shown
            if (each["config"], each["peak_macs_per_cycle"]) == (config, macs)
        ]
        points = [(each["macs"] / each["bytes"], each["macs"] / each["cycles"]) for each in mine]
        ends = roof_ends(macs / width, [intensity for intensity, _ in points])
        roof = [min(macs, width * each) for each in ends]
        axes.plot(ends, roof, color=colour, label=f"{config}, {macs} MAC/cycle")
        axes.scatter(*zip(*points), color=colour, s=16)
        _name_point(axes, config, *min(points, key=lambda point: point[1]))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.margins(0.08, 0.12)
    axes.set_xlabel("multiply-accumulates per byte read or written, whichever are more")
    axes.set_ylabel("multiply-accumulates per cycle")
    _note_left_out(axes, records, shown)
    if shown:
        _legend(axes)
    return bool(shown)
