"""A missing tool is named with the line that installs it where we are."""

import platform
import re
import tomllib
from pathlib import Path

import pytest

from gen import tools
from gen.tools import install_package, install_program, require_package, require_programs
from hw.arch.errors import MissingToolError

ROOT = Path(__file__).resolve().parents[2]
ANYWHERE = (
    "Debian: sudo apt-get install g++; Fedora: sudo dnf install gcc-c++; macOS: xcode-select "
    "--install"
)


@pytest.mark.parametrize(
    ("system", "release", "program", "line"),
    [
        ("Linux", {"ID": "debian"}, "g++", "sudo apt-get install g++"),
        ("Linux", {"ID": "ubuntu", "ID_LIKE": "debian"}, "make", "sudo apt-get install make"),
        ("Linux", {"ID": "fedora"}, "g++", "sudo dnf install gcc-c++"),
        ("Linux", {"ID": "rocky", "ID_LIKE": "rhel fedora"}, "perl", "sudo dnf install perl"),
        ("Darwin", {}, "g++", "xcode-select --install"),
        ("Darwin", {}, "iverilog", "brew install icarus-verilog"),
        ("Linux", {"ID": "debian"}, "chromedriver", "sudo apt-get install chromium-driver"),
        ("Darwin", {}, "chromium", "brew install --cask chromium"),
        ("Linux", {"ID": "arch"}, "g++", ANYWHERE),
        ("Linux", None, "g++", ANYWHERE),
    ],
)
def test_a_program_is_installed_as_the_system_does_it(system, release, program, line, monkeypatch):
    def read_release():
        if release is None:
            raise OSError("no such file")
        return release

    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "freedesktop_os_release", read_release)
    assert install_program(program) == line


def test_packages_are_installed_by_make_in_a_clone_and_by_pip_elsewhere(monkeypatch, tmp_path):
    assert install_package("cocotb") == install_package("numpy") == "make setup"
    assert install_package("ray") == ".venv/bin/pip install -e '.[cluster]'"
    monkeypatch.setattr(tools, "__file__", str(tmp_path / "gen" / "tools.py"))
    assert install_package("matplotlib") == "pip install 'tilewright[charts]'"
    assert install_package("numpy") == "pip install tilewright"


def test_each_package_is_in_the_extra_that_installs_it():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    pinned = (ROOT / "requirements.txt").read_text()
    for package, extra in tools._EXTRAS.items():
        assert any(re.match(rf"{package}[=><]", line) for line in extras[extra]), package
        assert (f"\n{package}==" in pinned) == (extra not in tools._APART), package


def test_a_missing_tool_is_an_error_with_that_line(monkeypatch):
    with pytest.raises(MissingToolError) as caught:
        require_package("no-such-package", where="area")
    assert str(caught.value) == "no-such-package is not installed; fix: make setup"
    assert (caught.value.where, caught.value.rule) == ("area", "make setup")
    require_package("numpy", where="anything")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MissingToolError, match="perl is not installed; fix: "):
        require_programs("perl", where="verilator")
