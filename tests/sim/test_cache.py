"""The cache of builds: one builder per key, nothing half built, no left-overs of killed ones."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from hw.arch.errors import BadInputError
from sim.cache import cache_bytes, cache_directory, cached, free_cache
from sim.progress import Progress

BUILDER = """
import subprocess, sys
from sim.cache import cached

def make(work):
    (work / "object.o").write_bytes(bytes(1 << 20))
    print(work, flush=True)
    # As a compiler does that outlives the one who started it, and goes on writing.
    subprocess.run(["sh", "-c", "i=0; while [ $i -lt 600 ]; do i=$((i+1)); "
                    "echo > file$i || exit 1; sleep 0.05; done"], cwd=work)

cached("verilator", [sys.argv[1]], "result", make, name="the model")
"""


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "a cache"))


def build(content, kind="verilator", **options):
    def make(work):
        (work / "result").write_text(content)

    return cached(kind, [content], "result", make, name="it", **options)


@contextmanager
def builder(content):
    """Process that builds for ever, and the folder it builds in."""
    words = [sys.executable, "-c", BUILDER, content]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            work = Path(process.stdout.readline().strip())
            # Until it has become another program, a compiler holds the locks of who starts it.
            while not (work / "file1").exists():
                time.sleep(0.01)
            yield process, work
        finally:
            # The compiler that it started, too, if it lives.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def folders():
    return [path for path in cache_directory().glob("*/*") if path.is_dir()]


def test_a_second_build_of_the_same_content_is_found():
    folder, hit = build("a")
    assert not hit and (folder / "result").read_text() == "a"
    assert build("a") == (folder, True)
    assert build("b") != (folder, True)
    assert build("a", use_cache=False) == (folder, False)


def test_a_build_that_fails_leaves_nothing():
    def make(work):
        (work / "object.o").write_text("half")
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        cached("verilator", ["a"], "result", make, name="it")
    assert folders() == []


def test_what_a_killed_builder_left_is_removed_by_the_next_of_any_key():
    with builder("killed") as (process, work):
        assert (work / "object.o").exists()
        process.send_signal(signal.SIGKILL)
        process.wait()
    folder, _ = build("another", kind="verilog")
    assert not work.exists()
    assert folders() == [folder]


def test_a_builder_that_lives_is_left_alone():
    with builder("living") as (process, work):
        build("another")
        assert process.poll() is None and (work / "object.o").exists()
        with pytest.raises(BadInputError, match="while a build is running"):
            free_cache()
        assert (work / "object.o").exists()


def test_old_files_that_were_being_written_are_removed_and_new_ones_are_not():
    key = "0" * 32
    area = cache_directory() / "area"
    area.mkdir(parents=True)
    old, new, foreign = (
        area / name for name in (f"{key}.7.partial", f"{key}.8.partial", "mine.partial")
    )
    for path in (old, new, foreign):
        path.write_text("")
        os.utime(path, (1, 1) if path != new else None)
    build("a")
    assert [path.exists() for path in (old, new, foreign)] == [False, True, True]


def test_two_builds_of_one_key_are_one_and_the_second_says_that_it_waits():
    said, made = [], []

    class Told(Progress):
        @contextmanager
        def step(self, text, total=None):
            said.append(text)
            yield lambda done: None

    def make(work):
        made.append(work)
        time.sleep(0.5)
        (work / "result").write_text("")

    def once(_):
        return cached("verilator", ["a"], "result", make, name="tile_pcu", progress=Told())

    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(once, range(3)))
    assert len(made) == 1 and sorted(hit for _, hit in results) == [False, True, True]
    assert said == ["waiting: another process builds tile_pcu"] * 2


def test_a_finished_build_is_read_where_nothing_can_be_written():
    folder, _ = build("a")
    lock = folder.with_suffix(".lock")
    lock.unlink()
    for path in (folder.parent, cache_directory()):
        path.chmod(0o555)
    try:
        assert build("a") == (folder, True)
        # Root may write anywhere, but nobody tried.
        assert not lock.exists()
    finally:
        for path in (folder.parent, cache_directory()):
            path.chmod(0o755)


def test_freeing_removes_what_is_ours_and_nothing_else():
    assert free_cache() == 0
    for kind in ("verilator", "verilog"):
        build("a" * 1000, kind=kind)
    mine = cache_directory() / "verilog" / "mine.v"
    mine.write_text("module mine; endmodule")
    assert cache_bytes() == 2000
    assert free_cache() == 2000
    assert cache_bytes() == 0 and mine.exists()
    assert [path.name for path in cache_directory().rglob("*") if path.is_file()] == ["mine.v"]
    assert build("a" * 1000)[1] is False
