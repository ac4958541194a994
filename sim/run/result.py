"""Result of a run from Python: arrays by name, and the fields of the report."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from sim.cli.envelope import plain
from sim.run.driver import Outcome
from sim.run.page import page
from sim.run.report import tell
from sw import results

__all__ = ["RunResult"]


class RunResult(results.RunResult):
    """Result of a run, with outputs by name and every field of the ``run`` report as attributes.

    Parameters
    ----------
    outcome : Outcome
    picture : str
        SVG of the chip; empty for the back end ``golden``.
    """

    __slots__ = ("_outcome", "_picture")

    def __init__(self, outcome: Outcome, picture: str = "") -> None:
        object.__setattr__(self, "_outcome", outcome)
        object.__setattr__(self, "_picture", picture)

    def _found(self) -> Outcome:
        outcome = object.__getattribute__(self, "_outcome")
        assert isinstance(outcome, Outcome)
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

    def json(self) -> dict[str, Any]:
        """The fields of the command's report as plain JSON data."""
        fields: dict[str, Any] = plain(self._found().report)
        return fields

    def __getattr__(self, name: str) -> Any:
        # Copying and unpickling look up names before there is an outcome.
        if name.startswith("_"):
            raise AttributeError(name)
        outcome = self._found()
        for names in (outcome.outputs, outcome.report):
            if name in names:
                return names[name]
        known = ", ".join((*outcome.outputs, *outcome.report))
        raise AttributeError(f"result has no {name!r}; it has {known}")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"result cannot be changed, not in {name!r} either")

    def __reduce__(self) -> tuple[Any, ...]:
        return RunResult, (self._found(), object.__getattribute__(self, "_picture"))

    def __dir__(self) -> list[str]:
        outcome = self._found()
        return [*super().__dir__(), *outcome.outputs, *outcome.report]

    def __repr__(self) -> str:
        outcome = self._found()
        return "\n".join(tell(outcome.report, outcome.problems, outcome.notes))

    def _repr_html_(self) -> str:
        outcome, picture = self._found(), object.__getattribute__(self, "_picture")
        return page(self.json(), outcome.problems, outcome.notes, picture)
