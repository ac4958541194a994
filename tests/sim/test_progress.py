"""Progress: seen on a terminal after a second, gone at the end, and nowhere else."""

import contextlib
import fcntl
import io
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import threading
import time

import pytest

from hw.arch.errors import BadInputError
from sim.progress import Progress, shown_progress
from sim.progress_display import Notebook, ShownProgress

#: What a terminal gets to hide its cursor, and to show it again.
HIDE, SHOW = b"\x1b[?25l", b"\x1b[?25h"

WORK = """
import sys, time
from sim.progress import shown_progress
with shown_progress() as progress:
    with progress.step("resting", total=1000) as show:
        for done in range(0, {steps}):
            show(done * 10)
            time.sleep(0.01)
print("ended")
"""


class Paper:
    """A surface that keeps what was drawn, and forgets it at `clear`."""

    def __init__(self):
        self.texts = []
        self.cleared = 0

    def draw(self, picture):
        from rich.console import Console

        text = io.StringIO()
        Console(file=text, width=100).print(picture)
        self.texts.append(text.getvalue())

    def clear(self):
        self.cleared += 1


def on_terminal(steps, *, stdout=None, interrupt_after=None):
    """Exit code of the work on a terminal, and all that the terminal got."""
    words = [sys.executable, "-c", WORK.format(steps=steps)]
    return seen(words, stdout=stdout, interrupt_after=interrupt_after)


def seen(words, *, stdout=None, interrupt_after=None):
    """Exit code of a command on a terminal, and all that the terminal got."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    process = subprocess.Popen(
        words,
        stdin=theirs,
        stdout=stdout or theirs,
        stderr=theirs,
        env=dict(os.environ, TERM="xterm"),
        start_new_session=True,
        # What runs in the background of a shell ignores SIGINT, and so does what it starts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    os.close(theirs)
    got = b""
    if interrupt_after is not None:
        while interrupt_after not in got:
            got += os.read(ours, 4096)
        process.send_signal(signal.SIGINT)
    with contextlib.suppress(OSError):  # the end of a terminal is an error
        while part := os.read(ours, 4096):
            got += part
    os.close(ours)
    return process.wait(), got


def test_a_terminal_sees_share_and_time_left_and_nothing_of_it_stays():
    code, got = on_terminal(180)
    assert code == 0
    assert b"resting" in got and b" %" in got and b"about 0:0" in got
    assert got.count(HIDE) == got.count(SHOW) == 1
    # The last line is erased before anything else is printed.
    assert got.endswith(b"\x1b[2Kended\r\n")


def test_a_short_step_shows_nothing():
    assert on_terminal(5) == (0, b"ended\r\n")


def test_an_interrupt_gives_the_cursor_back():
    code, got = on_terminal(2000, interrupt_after=b"resting")
    assert code != 0 and got.count(HIDE) == got.count(SHOW) == 1
    assert got.index(HIDE) < got.index(SHOW)


def test_an_interrupted_command_says_so_in_one_line(tmp_path):
    words = ["-m", "tilewright", "verilog", "--config", "small", "-o", str(tmp_path / "small.v")]
    code, got = seen([sys.executable, *words], interrupt_after=b"emitting Verilog")
    assert code == 130 and got.count(HIDE) == got.count(SHOW) == 1
    assert got.endswith(b"\x1b[2Ktilewright verilog: interrupted\r\n")
    assert list(tmp_path.iterdir()) == []


def test_standard_output_stays_what_it_is(tmp_path):
    with (tmp_path / "out").open("w+b") as out:
        code, got = on_terminal(180, stdout=out)
        out.seek(0)
        assert (code, out.read()) == (0, b"ended\n")
    assert b"resting" in got


@pytest.mark.few(1)
@pytest.mark.parametrize("variables", [{}, {"FORCE_COLOR": "1", "TTY_COMPATIBLE": "1"}])
def test_nothing_else_sees_anything(variables):
    done = subprocess.run(
        [sys.executable, "-c", WORK.format(steps=130)],
        env=os.environ | variables,
        capture_output=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == (b"ended\n", b"")


def test_steps_of_several_threads_are_lines_and_none_is_left_between_steps():
    paper = Paper()
    with ShownProgress(paper, delay_seconds=0.0) as progress:
        meet = threading.Barrier(3)

        def build(number):
            with progress.step(f"part {number} of 2"):
                meet.wait()
                time.sleep(0.5)

        threads = [threading.Thread(target=build, args=(number,)) for number in (1, 2)]
        for thread in threads:
            thread.start()
        meet.wait()
        for thread in threads:
            thread.join()
        drawn = len(paper.texts)
        assert any("part 1 of 2" in text and "part 2 of 2" in text for text in paper.texts)
        assert paper.cleared == 1
        time.sleep(0.5)
        assert len(paper.texts) == drawn
    assert paper.cleared == 2


def test_the_share_stays_below_the_end_until_the_end():
    paper = Paper()
    with ShownProgress(paper, delay_seconds=0.0) as progress:
        with progress.step("simulating", total=1000) as show:
            show(400)
            time.sleep(0.5)
            show(5000)
            time.sleep(0.5)
    assert " 40 %" in paper.texts[0] and " 99 %" in paper.texts[-1]


def test_a_notebook_gets_one_output_that_ends_empty(monkeypatch):
    shown = []

    class Handle:
        def update(self, data, raw):
            shown.append(data["text/plain"])

    def display(data, raw, display_id):
        shown.append(data["text/plain"])
        return Handle()

    module = type(sys)("IPython.display")
    module.display = display
    monkeypatch.setitem(sys.modules, "IPython", type(sys)("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    with ShownProgress(Notebook(), delay_seconds=0.0) as progress:
        with progress.step("simulating"):
            time.sleep(0.5)
    assert len(shown) > 1 and "simulating" in shown[0] and shown[-1] == ""


def test_nobody_sees_what_is_not_wanted(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with shown_progress(False) as progress:
        assert type(progress) is Progress
    with pytest.raises(BadInputError, match="progress must be true or false, not 3"):
        with shown_progress(3):
            pass
