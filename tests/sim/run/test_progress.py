"""Progress: one line on a terminal, nothing anywhere else."""

import io
import sys

from sim.run import progress
from sim.run.progress import progress_line


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_sees_one_line_that_goes(monkeypatch):
    terminal = Terminal()
    now = iter([0.0, 0.1, 2.0, 2.1])
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(now))
    with progress_line("run") as show:
        for cycles in (100, 50_000, 60_000):
            show(cycles)
    shown = terminal.getvalue()
    assert shown == "\r\x1b[Krun: 50,000 cycles, 25,000 a second\r\x1b[K"


def test_nothing_else_sees_anything(monkeypatch):
    file = io.StringIO()
    monkeypatch.setattr(sys, "stderr", file)
    with progress_line("run") as show:
        assert show is None
    assert file.getvalue() == ""
