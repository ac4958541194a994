"""Viewer state of recorded waves: a GTKWave save file with the handshakes of each part."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from sim.files import write_output

__all__ = ["write_waves_view"]

_VAR = re.compile(r"\$var \w+ 1 \S+ (?P<name>\S+) \$end")
#: Signals of a bit that tell what moves through a port.
_HANDSHAKE = re.compile(r"(valid|ready|last)$")
#: Words of a save file: a title between signals, and a signal shown in binary.
_TITLE, _BINARY = "@200", "@28"


def write_waves_view(waves: Path) -> Path | None:
    """Write a save file beside recorded waves, ``FILE.vcd.gtkw``, and return its path.

    It opens the waves with the ports of the chip and of each part: a group for each, with the
    handshakes of its streams.

    Parameters
    ----------
    waves : Path
        A value change dump; without one, as of a launch that did not begin, nothing is written.
    """
    if not waves.exists():
        return None
    lines = [f'[dumpfile] "{waves.resolve()}"', "[timestart] 0"]
    group = None
    for scope, name in _ports(waves):
        if _HANDSHAKE.search(name):
            if scope != group:
                lines += [_TITLE, f"-{scope}", _BINARY]
                group = scope
            lines.append(f"{scope}.{name}")
    view = waves.with_name(f"{waves.name}.gtkw")
    write_output(view, "\n".join(lines) + "\n", where="--waves")
    return view


def _ports(waves: Path) -> Iterator[tuple[str, str]]:
    """Signals of a bit in the outermost scopes, with their scope."""
    scopes: list[str] = []
    with waves.open(encoding="utf-8", errors="replace") as text:
        for line in text:
            if "$scope" in line:
                scopes.append(line.split()[2])
            elif "$upscope" in line:
                scopes.pop()
            elif "$enddefinitions" in line:
                return
            elif len(scopes) == 1 and (found := _VAR.search(line)):
                yield scopes[0], found["name"]
