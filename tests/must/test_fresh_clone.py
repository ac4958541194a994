"""slice-a: a fresh clone, empty caches: `make run` in minutes, again in seconds; `make test`."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
_GOAL = (
    "make run < 240 s cold, ≤ 20 s again; make test ≤ 900 s, ≤ 8 Verilator builds; "
    "no network after make setup"
)


class Newcomer:
    """Somebody with a fresh clone and empty caches."""

    def __init__(self, folder: Path) -> None:
        self.clone = folder / "clone"
        self.cache = folder / "cache"
        kept = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
        self.environment = kept | {
            "PIP_CACHE_DIR": str(folder / "pip"),
            "XDG_CACHE_HOME": str(self.cache),
            "TILEWRIGHT_CACHE": str(self.cache / "tilewright"),
        }
        subprocess.run(["git", "clone", "--quiet", ROOT, self.clone], check=True)

    def make(self, target: str, *, network: bool = True, **variables: str) -> tuple[str, float]:
        """What a target says, and its seconds."""
        words = ["make", target]
        if not network:
            # A network namespace of its own, with no interface that is up.
            words = ["unshare", "--map-root-user", "--net", *words]
        started = time.monotonic()
        done = subprocess.run(
            words,
            cwd=self.clone,
            env=self.environment | variables,
            capture_output=True,
            text=True,
            timeout=1800,
        )
        assert done.returncode == 0, f"make {target}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
        return done.stdout, time.monotonic() - started


def _verilated(folder: Path) -> bool:
    """Whether Verilator made it: links of what it made before, and its runtime, are no builds."""
    links = (folder / "harness.cpp").exists()
    return bool([*folder.glob("*__ALL.a")]) or (
        not links and bool([*folder.glob("libmodel.so"), *folder.glob("V*")])
    )


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.must("slice-a", goal=_GOAL)
def test_a_fresh_clone(tmp_path, heavy, figure):
    assert shutil.which("unshare"), "unshare, of util-linux, shows that no network is used"
    newcomer = Newcomer(tmp_path)
    said, cold = newcomer.make("run")
    again, warm = newcomer.make("run", network=False)
    for text in (said, again):
        lines = text.splitlines()
        assert lines[-1] == "VERIFIED"
        for word in ("cycles", "utilization", "bytes", "error"):
            assert any(word in line for line in lines)
    tests = tmp_path / "cache" / "tests"
    _, seconds = newcomer.make("test", network=False, TILEWRIGHT_CACHE=str(tests))
    builds = sum(map(_verilated, [*tests.glob("verilator/*"), *tests.glob("cocotb/*")]))
    figure(f"make run {cold:.0f} s, again {warm:.0f} s; make test {seconds:.0f} s, {builds} builds")
    assert cold < 240 and warm <= 20
    assert seconds <= 900 and builds <= 8
