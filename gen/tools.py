"""External tools of a step: whether they are installed, and the command that installs them."""

import platform
import shutil
from importlib import metadata
from pathlib import Path

from hw.arch.errors import MissingToolError

__all__ = ["install_packages", "install_program", "require_package", "require_programs"]

#: Package of each program, by family of operating systems; macOS has one package for all.
_PROGRAMS = {
    "g++": {"debian": "g++", "fedora": "gcc-c++"},
    "make": {"debian": "make", "fedora": "make"},
    "perl": {"debian": "perl", "fedora": "perl"},
    "iverilog": {"debian": "iverilog", "fedora": "iverilog"},
    "vvp": {"debian": "iverilog", "fedora": "iverilog"},
}
_COMMANDS = {"debian": "sudo apt-get install", "fedora": "sudo dnf install"}
_MACOS = {"iverilog": "brew install icarus-verilog", "vvp": "brew install icarus-verilog"}
_NAMES = {"debian": "Debian", "fedora": "Fedora"}


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


def install_packages() -> str:
    """Command line that installs all Python packages, for a clone or a wheel."""
    root = Path(__file__).resolve().parent.parent
    return (
        "make setup" if (root / "Makefile").exists() else "pip install 'tilewright[sim,area,fpga]'"
    )


def require_package(package: str, *, where: str, extra: str | None = None) -> None:
    """Refuse a step that needs a Python package.

    Parameters
    ----------
    package : str
        Its name in the index.
    where : str
        The step, for the error report.
    extra : str, optional
        Extra of this project that has it, if no other step needs that.

    Raises
    ------
    MissingToolError
        If it is not installed; the message has the command that installs it.
    """
    try:
        metadata.distribution(package)
    except metadata.PackageNotFoundError:
        fix = install_packages()
        whose = f" (extra {extra!r})" if extra else ""
        raise MissingToolError(
            f"{package}{whose} is not installed; fix: {fix}", where=where, value=package, rule=fix
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
