"""edge-d: full disks and read-only caches: exit codes as documented, nothing truncated or left."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

GOAL = (
    "disk full (tmpfs in a mount namespace), read-only cache: documented codes, nothing truncated"
)

_MOUNT = 'mount -t tmpfs -o "size=$1" tmpfs "$2" && cd "$2" && eval "$3"; code=$?; '
#: What lies there after a command, read inside the namespace: the disk goes with it.
_LIST = (
    'for file in $(find . -type f | sort); do echo "$file $(sha256sum < "$file")"; done; exit $code'
)
_RUN = "run matmul --config tiny --set M=64 --set N=64 --set K=8 --set out=fp32 --backend emulator"


def command(words):
    return f"{sys.executable} -m tilewright {words}"


def in_namespace(script, *arguments, **environment):
    """Run a shell script in a mount namespace of its own; exit code, output, lines of errors."""
    done = subprocess.run(
        ["unshare", "--map-root-user", "--mount", "sh", "-c", script, "sh", *map(str, arguments)],
        env=dict(os.environ, **environment),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr.splitlines()


@pytest.fixture
def disk(tmp_path):
    """Run commands in a folder of a small disk: code, files there before and after, error lines."""
    folder = tmp_path / "disk"
    folder.mkdir()
    before = "echo old > old; "

    def run(size, words, prepare="", **environment):
        kept = f"{before}{prepare} find . -type f | sort > /dev/null; "
        script = _MOUNT + _LIST
        act = f"{kept} {command(words)} > /dev/null"
        code, listed, errors = in_namespace(script, size, folder, act, **environment)
        _, expected, _ = in_namespace(script, size, folder, kept)
        return code, listed, expected, errors

    return run


_FILL = "head -c 1m /dev/zero > filler 2> /dev/null; "


@pytest.mark.slow
@pytest.mark.must("edge-d", goal=GOAL)
@pytest.mark.parametrize(
    ("size", "prepare", "words", "said"),
    [
        ("16k", "", f"{_RUN} --outputs o.npz", "--outputs 'o.npz' must have"),
        ("64k", _FILL, f"{_RUN} --outputs old", "--outputs 'old' must have"),
        ("64k", _FILL, f"{_RUN} --image-out old", "--image-out must be a file that can be written"),
        ("64k", _FILL, f"{_RUN} --image-out i --json old", "--image-out must be"),
        ("64k", _FILL, "config tiny --json old", "cannot write old: No space left"),
        ("64k", _FILL, "config tiny --json r.json", "cannot write r.json: No space left"),
        (
            "64k",
            _FILL,
            "verilog --component systolic --rows 1 --cols 1 -o old",
            "--output must be a file that can be written, not 'old': No space left",
        ),
    ],
)
def test_a_full_disk_refuses_an_output_and_keeps_the_old_one(
    disk, figure, size, prepare, words, said
):
    code, listed, expected, errors = disk(size, words, prepare)
    assert code == 2 and len(errors) == 1 and said in errors[0], errors
    assert listed == expected
    figure(f"exit 2: {errors[0]}")


@pytest.mark.slow
@pytest.mark.must("edge-d", goal=GOAL)
def test_a_full_standard_output_is_refused(disk, figure):
    words = "config tiny >> filler || exit $?; true"
    code, _, _, errors = disk("64k", words, _FILL)
    assert code == 2 and len(errors) == 1 and "standard output" in errors[0], errors
    figure(f"exit 2: {errors[0]}")


@pytest.mark.slow
@pytest.mark.must("edge-d", goal=GOAL)
def test_a_cache_on_a_full_disk_is_named_and_holds_no_half_of_anything(disk, figure, tmp_path):
    cache = tmp_path / "disk" / "cache"
    words = "run matmul --config tiny --set M=4 --set N=4 --set K=4"
    code, listed, _, errors = disk("600k", words, TILEWRIGHT_CACHE=str(cache))
    assert code == 3 and len(errors) == 1 and "TILEWRIGHT_CACHE" in errors[0], errors
    assert "No space left" in errors[0]
    left = [line.split()[0] for line in listed.splitlines() if ".lock" not in line]
    assert left == ["./old"]
    figure(f"exit 3, no file left: {errors[0][:60]}")


@pytest.mark.slow
@pytest.mark.must("edge-d", goal=GOAL)
def test_a_read_only_cache_serves_what_it_has_and_is_named_otherwise(tmp_path, figure):
    cache = tmp_path / "cache"
    cache.mkdir()
    script = 'mount --bind -o ro "$1" "$1" && mount -o remount,bind,ro "$1" && eval "$2"'
    words = "area --component systolic --rows 1 --cols 1 --format int8 > /dev/null"
    code, _, errors = in_namespace(script, cache, command(words), TILEWRIGHT_CACHE=str(cache))
    assert code == 3 and "TILEWRIGHT_CACHE" in errors[-1] and "Read-only" in errors[-1], errors
    assert list(cache.iterdir()) == []
    filled = subprocess.run(
        ["sh", "-c", command(words)],
        env=dict(os.environ, TILEWRIGHT_CACHE=str(cache)),
        check=False,
        capture_output=True,
    )
    assert filled.returncode == 0
    before = sorted(Path(cache).rglob("*"))
    code, _, _ = in_namespace(script, cache, command(words), TILEWRIGHT_CACHE=str(cache))
    assert code == 0 and sorted(Path(cache).rglob("*")) == before
    figure("empty: exit 3; filled: exit 0, unchanged")
