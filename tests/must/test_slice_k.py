"""slice-k: what the README tells a newcomer to type works, and so does the wheel elsewhere."""

import os
import re
import shlex
import subprocess
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_GOAL = "every command of the README; a wheel outside the clone"


def blocks(language):
    return [
        text for kind, text in _BLOCK.findall((ROOT / "README.md").read_text()) if kind == language
    ]


def commands():
    lines = "\n".join(blocks("sh")).splitlines()
    return [line.partition("#")[0].strip() for line in lines if line.strip()]


def run(words, **options):
    # A make that runs this test must not pass its flags on.
    kept = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    done = subprocess.run(words, capture_output=True, text=True, timeout=900, env=kept, **options)
    assert done.returncode == 0, f"{shlex.join(map(str, words))}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_there_are_commands_to_try():
    found = commands()
    assert {"make run", "make test"} <= set(found) and len(found) > 10


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.must("slice-k", goal=_GOAL)
@pytest.mark.parametrize("command", [each for each in commands() if each != "make test"])
def test_a_command_of_the_readme(command, heavy, figure):
    said = run(shlex.split(command), cwd=ROOT)
    if command == "make run":
        shown = next(text for text in blocks("") if "VERIFIED" in text)
        # What is printed is what the page shows, but for the times.
        exact = [line for line in shown.splitlines() if "simulated" not in line]
        assert all(line in said.splitlines() for line in exact)
    if " run " in command:
        assert "VERIFIED" in said
    figure(f"{len(commands())} commands")


@pytest.mark.slow
@pytest.mark.must("slice-k", goal=_GOAL)
def test_python_of_the_readme(tmp_path):
    for number, text in enumerate(blocks("python")):
        (tmp_path / f"example{number}.py").write_text(text)
        run([ROOT / ".venv" / "bin" / "python", f"example{number}.py"], cwd=tmp_path)


@pytest.mark.slow
@pytest.mark.must("slice-k", goal=_GOAL)
def test_the_wheel_runs_outside_the_clone(tmp_path, heavy):
    pip = [ROOT / ".venv" / "bin" / "python", "-m", "pip", "--quiet", "--disable-pip-version-check"]
    built = ["wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", tmp_path, ROOT]
    run([*pip, *built], cwd=tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    venv.create(tmp_path / "venv", with_pip=False)
    python = tmp_path / "venv" / "bin" / "python"
    run([*pip, "--python", python, "install", "--no-index", "--no-deps", wheel], cwd=tmp_path)
    # Its dependencies, but none of the clone: a path file names the packages alone.
    site = Path(sysconfig.get_path("purelib", vars={"base": str(tmp_path / "venv")}))
    packages = ROOT / ".venv" / "lib" / site.parent.name / "site-packages"
    names = tmp_path / "packages"
    names.mkdir()
    for package in packages.iterdir():
        if "tilewright" not in package.name and package.suffix != ".pth":
            (names / package.name).symlink_to(package)
    (site / "dependencies.pth").write_text(f"{names}\n")
    said = run([python, "-c", "import hw, sim, sw; print(hw.__file__)"], cwd=tmp_path)
    assert said.startswith(str(tmp_path / "venv"))
    words = ["run", "matmul", "--config", "tiny", "--set", "M=9", "--set", "N=7", "--set", "K=20"]
    for backend in ("emulator", "rtl"):
        said = run(
            [tmp_path / "venv" / "bin" / "tilewright", *words, "--backend", backend], cwd=tmp_path
        )
        assert said.endswith("VERIFIED\n")
