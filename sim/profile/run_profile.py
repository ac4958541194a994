"""Profile of a run as a user has it: its data, its page, and files of both."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hw.arch.errors import BadInputError, shown
from sim.files import require_suffix, require_writable, write_output
from sim.profile.page_writer import page_of
from sim.profile.picture import picture_of
from sim.profile.schema import check_profile, parse_profile
from sim.profile.trace_events import trace_of

__all__ = ["SUFFIXES", "Profile", "load_profile"]

#: Suffixes of the files of a profile: the page, its data, and a picture.
SUFFIXES = (".html", ".json", ".svg")
#: Height of the page in a notebook.
_HEIGHT = 760


class Profile:
    """Profile of a run.

    Parameters
    ----------
    data : mapping
        In the form of `sim.profile.schema`.

    Raises
    ------
    BadInputError
        If it is no profile; the message names the field.
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = check_profile(dict(data))

    @property
    def data(self) -> dict[str, Any]:
        """Every field, as plain JSON data."""
        return self._data

    @property
    def findings(self) -> list[str]:
        """Findings about the run in sentences, in the order in which to remove what holds it up."""
        return [each["text"] for each in self._data["findings"]]

    def html(self) -> str:
        """The page: one file that needs nothing else."""
        return page_of([self._data])

    def json(self) -> str:
        """The data as JSON."""
        return json.dumps(self._data, separators=(",", ":"))

    def svg(self) -> str:
        """A picture: what every unit did over time, and the causes of its cycles."""
        return picture_of(self._data)

    def text(self, path: str) -> str:
        """Content of a file of this name: page, data or picture, by its suffix.

        Parameters
        ----------
        path : str
            Ends in one of ``SUFFIXES``.
        """
        return {".html": self.html, ".json": self.json, ".svg": self.svg}[Path(path).suffix]()

    def trace(self) -> str:
        """The timeline as trace events, for Perfetto."""
        return trace_of(self._data)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page, the data or the picture, by the suffix of the file.

        Parameters
        ----------
        path : path
            Ends in ``.html``, ``.json`` or ``.svg``.

        Raises
        ------
        BadInputError
            If it has another suffix, or cannot be written.
        """
        name = os.fspath(path)
        require_suffix(name, SUFFIXES, where="path")
        require_writable(name, where="path")
        write_output(name, self.text(name), where="path")

    def __repr__(self) -> str:
        data = self._data
        kind = "predicted cycles" if data["predicted"] else "cycles"
        head = f"{data['kernel']} on {data['config']}: {data['cycles']:,} {kind}"
        return "\n".join([head, *(f"  {each}" for each in self.findings)])

    def _repr_html_(self) -> str:
        # A frame keeps the page's styles and scripts apart from those of the notebook.
        page = html.escape(self.html(), quote=True)
        return f'<iframe srcdoc="{page}" style="width:100%;height:{_HEIGHT}px;border:0"></iframe>'


def load_profile(path: str | os.PathLike[str], *, where: str = "profile") -> Profile:
    """Read a profile from a JSON file.

    Parameters
    ----------
    path : path
    where : str
        What named the file.

    Raises
    ------
    BadInputError
        If it cannot be read, or is no profile; the message names the field.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise BadInputError(
            f"{where} must be a file that can be read, not {shown(os.fspath(path))}: {error}",
            kind="unreadable-file",
            where=where,
            value=os.fspath(path),
            rule="a file that can be read",
        ) from error
    return Profile(parse_profile(text))
