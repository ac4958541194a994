"""Result of a run from Python: arrays and figures by name, and its HTML view in notebooks."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from gen.floorplan import floorplan, stacked
from hw.arch.errors import BadInputError
from sim.files import plain
from sim.run.job import Problem
from sim.run.report import STATES, TALLIES, Outcome, describe_error, describe_run, tell
from sw import results

if TYPE_CHECKING:
    from sim.profile.run_profile import Profile
    from sw.compiled import Compiled

__all__ = ["RunResult", "picture", "page"]

#: Colour of each state of a unit.
_COLOURS = dict(zip(STATES, ("#0072b2", "#e69f00", "#cc79a7", "#d9d9d9", "#666666"), strict=True))
_GOOD, _BAD = "#00694d", "#a33c00"
_CELL = "padding:2px 8px;text-align:right"


class RunResult(results.RunResult):
    """Result of a run, with outputs by name and every field of the ``run`` report as attributes.

    Parameters
    ----------
    outcome : Outcome
    picture : str
        SVG of the chip; empty for the back end ``golden``.
    predict : callable or None
        Makes the field ``predicted_cycles`` when it is first read, if the report has none yet.
    profile : callable or None
        Makes the profile of the report when it is first asked for; None if there is none.
    """

    __slots__ = ("_outcome", "_picture", "_predict", "_profile")

    def __init__(
        self,
        outcome: Outcome,
        picture: str = "",
        predict: Callable[[], int | None] | None = None,
        profile: Callable[[dict[str, Any]], Profile] | None = None,
    ) -> None:
        object.__setattr__(self, "_profile", profile)
        object.__setattr__(self, "_outcome", outcome)
        object.__setattr__(self, "_picture", picture)
        object.__setattr__(self, "_predict", predict)

    def _found(self) -> Outcome:
        outcome = object.__getattribute__(self, "_outcome")
        assert isinstance(outcome, Outcome)
        return outcome

    def _complete(self) -> Outcome:
        """The outcome with every field of its report."""
        outcome, predict = self._found(), object.__getattribute__(self, "_predict")
        if predict is not None:
            outcome.report["predicted_cycles"] = predict()
            object.__setattr__(self, "_predict", None)
        return outcome

    @property
    def outputs(self) -> dict[str, npt.NDArray[Any]]:
        """Outputs by name."""
        return dict(self._found().outputs)

    @property
    def problems(self) -> tuple[str, ...]:
        """Reasons why it is not verified, one line per reason; empty if it is."""
        return self._found().problems

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks that do not affect the verdict: skipped checks, reduced hints."""
        return self._found().notes

    def profile(self) -> Profile:
        """Profile of the run: where the cycles of every unit went, as data and as a page.

        Raises
        ------
        BadInputError
            If the run had no chip, or the result is a copy or has been unpickled.
        """
        make = object.__getattribute__(self, "_profile")
        if make is None:
            raise BadInputError(
                "Profile must be of the result that a run on a chip has returned, not of a copy or "
                "of golden",
                where="profile",
                rule="the result of rtl, cocotb or emulator itself",
            )
        found: Profile = make(self.json())
        return found

    def json(self) -> dict[str, Any]:
        """The fields of the command's report as plain JSON data."""
        fields: dict[str, Any] = plain(self._complete().report)
        return fields

    def __getattr__(self, name: str) -> Any:
        # Copying and unpickling look up names before there is an outcome.
        if name.startswith("_"):
            raise AttributeError(name)
        outcome = self._complete() if name == "predicted_cycles" else self._found()
        for names in (outcome.outputs, outcome.report):
            if name in names:
                return names[name]
        known = ", ".join((*outcome.outputs, *outcome.report))
        raise AttributeError(f"result has no {name!r}; it has {known}")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"result cannot be changed, not in {name!r} either")

    def __reduce__(self) -> tuple[Any, ...]:
        return RunResult, (self._complete(), object.__getattribute__(self, "_picture"))

    def __dir__(self) -> list[str]:
        outcome = self._found()
        return [*super().__dir__(), *outcome.outputs, *outcome.report]

    def __repr__(self) -> str:
        outcome = self._complete()
        return "\n".join(tell(outcome.report, outcome.problems, outcome.notes))

    def _repr_html_(self) -> str:
        outcome, picture = self._found(), object.__getattribute__(self, "_picture")
        return page(self.json(), outcome.problems, outcome.notes, picture)


def picture(compiled: Compiled, problem: Problem, chip: str) -> str:
    """Draw units, links by net, and a legend of each part as SVG.

    Parameters
    ----------
    compiled : Compiled
    problem : Problem
        The compiled problem.
    chip : str
        Name of the configuration, for the heading.
    """
    sizes = ", ".join(f"{name} = {size}" for name, size in problem.dims.items())
    title = f"{problem.kernel.name} on {chip}: {sizes}"
    parts = len(compiled.parts)
    return stacked(
        [
            floorplan(
                problem.config,
                {at: name for name, at in part.placement.tiles.items()},
                {
                    name: [(hop.place, hop.program) for hop in hops]
                    for name, hops in part.routes.vectors.items()
                },
                agcus={number: name for name, number in part.netlist.fixed.items()},
                title=f"{title}; part {number} of {parts}" if parts > 1 else title,
            )
            for number, part in enumerate(compiled.parts, 1)
        ]
    )


def page(
    report: Mapping[str, Any], problems: Sequence[str], notes: Sequence[str], picture: str
) -> str:
    """Render a run as HTML.

    Parameters
    ----------
    report : mapping
        The fields of `sim.run.report.FIELDS`, as plain data.
    problems, notes : sequence of str
    picture : str
        SVG of the chip, or empty.
    """
    verdict, colour = ("VERIFIED", _GOOD) if report["verified"] else ("NOT VERIFIED", _BAD)
    head = f'<div style="font-size:1.5em;font-weight:bold;color:{colour}">{verdict}</div>'
    lines = [head, f"<div>{escape(describe_run(report))}</div>"]
    lines += [f'<div style="color:{_BAD}">{escape(each)}</div>' for each in problems]
    lines.append('<div style="display:flex;flex-wrap:wrap;gap:24px;margin:12px 0">')
    lines += [_figure(*figure) for figure in _figures(report)]
    lines.append("</div>")
    lines += [f"<div>note: {escape(note)}</div>" for note in notes]
    if picture:
        lines.append(f'<div style="overflow-x:auto">{picture}</div>')
    if report["counters"]:
        lines += _counters(report["counters"])
    lines += _fields(report)
    style = "font-family:sans-serif;color:black;background:white;padding:12px"
    return f'<div style="{style}">{"".join(lines)}</div>'


def _figures(report: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Name, value and explanation of each available figure."""
    figures = []
    if report["cycles"] is not None:
        predicted = report["predicted_cycles"]
        about = f"predicted {predicted:,}" if predicted else ""
        figures.append(("cycles", f"{report['cycles']:,}", about))
    if report["utilization"] is not None:
        peak = f"of {report['peak_macs_per_cycle']:,} MAC/cycle"
        figures.append(("utilization", f"{report['utilization']:.1%}", peak))
    elif report["memory_utilization"] is not None:
        figures.append(("memory", f"{report['memory_utilization']:.1%}", "of its peak"))
    if report["max_abs_err"] is not None:
        figures.append(("golden against float64", describe_error(report), ""))
    if report["dram_bytes_read"] is not None:
        moved = f"{report['dram_bytes_read']:,} read, {report['dram_bytes_written']:,} written"
        figures.append(("bytes of memory", moved, ""))
    return figures


def _figure(name: str, value: str, about: str) -> str:
    return (
        f'<div><div style="color:#555">{escape(name)}</div>'
        f'<div style="font-size:1.3em">{escape(value)}</div>'
        f'<div style="color:#555">{escape(about)}</div></div>'
    )


def _counters(counters: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Table of the units, each with a bar that divides its cycles by state."""
    states = [state for state in _COLOURS if any(state in unit for unit in counters.values())]
    heads = ["unit", "kind", "cycles by state", *states, *TALLIES]
    lines = ['<table style="border-collapse:collapse;margin:12px 0"><tr>']
    for head in heads:
        # The state's colour is that of its part of the bar.
        mark = f";border-bottom:4px solid {_COLOURS[head]}" if head in _COLOURS else ""
        align = "" if head in _COLOURS or head in TALLIES else ";text-align:left"
        lines.append(f'<th style="{_CELL}{mark}{align}">{head.replace("_", " ")}</th>')
    lines.append("</tr>")
    for name, unit in counters.items():
        counts = {state: unit.get(state) or 0 for state in states}
        shown = [*counts.values(), *(unit.get(tally) for tally in TALLIES)]
        cells = "".join(
            f'<td style="{_CELL}">{"" if each is None else f"{each:,}"}</td>' for each in shown
        )
        lines.append(
            f'<tr><td style="{_CELL};text-align:left">{escape(name)}</td>'
            f'<td style="{_CELL};text-align:left">{escape(str(unit["kind"]))}</td>'
            f"<td>{_bar(counts)}</td>{cells}</tr>"
        )
    return [*lines, "</table>"]


def _bar(counts: Mapping[str, int]) -> str:
    whole = sum(counts.values()) or 1
    parts = "".join(
        f'<div title="{state.replace("_", " ")}: {count:,} cycles" '
        f'style="width:{100 * count / whole:.2f}%;background:{_COLOURS[state]}"></div>'
        for state, count in counts.items()
        if count
    )
    return f'<div style="display:flex;width:220px;height:12px">{parts}</div>'


def _fields(report: Mapping[str, Any]) -> list[str]:
    """All fields of the report, collapsed."""
    rows = "".join(
        f'<tr><td style="text-align:left">{escape(name)}</td>'
        f'<td style="text-align:left">{escape(json.dumps(value))}</td></tr>'
        for name, value in report.items()
        if value is not None and name != "counters"
    )
    return [f"<details><summary>every field</summary><table>{rows}</table></details>"]
