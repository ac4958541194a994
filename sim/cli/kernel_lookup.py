"""Lookup of kernels by name: built-in ones, and those of a user's file (``FILE.py:KERNEL``)."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from hw.arch.errors import BadInputError, did_you_mean
from sim.user_files import IN_FILE, names_of

if TYPE_CHECKING:
    from sw.language import Kernel

__all__ = ["KERNEL", "file_kernels", "file_of", "load_kernel"]

#: Name of the argument that names a kernel.
KERNEL = "KERNEL"


def file_of(name: str) -> Path | None:
    """The file part of a kernel's name; None for a built-in kernel."""
    match = IN_FILE.fullmatch(name)
    return Path(match["file"]) if match else None


def load_kernel(name: str) -> Kernel:
    """Load a built-in kernel (``matmul``) or one of a file (``FILE.py:KERNEL``).

    ``FILE.py`` alone names the only kernel of the file. The file is executed as by ``import``;
    modules in its folder can be imported.

    Raises
    ------
    BadInputError
        If there is no such kernel, or the file cannot be read or fails; file and line are named.
    """
    match = IN_FILE.fullmatch(name)
    if match is None:
        return _own_kernel(name)
    kernels = file_kernels(Path(match["file"]))
    wanted = match["name"]
    if wanted is not None and wanted in kernels:
        return kernels[wanted]
    if wanted is None and len(set(kernels.values())) == 1:
        return next(iter(kernels.values()))
    names = [f"{match['file']}:{each}" for each in kernels]
    rule = f"one of {', '.join(names)}" if names else "a file with a function under @tw.kernel"
    if not kernels:
        message = f"{match['file']} must hold a kernel, a function under @tw.kernel(...)"
    elif wanted is None:
        message = f"{match['file']} has {len(kernels)} kernels; {KERNEL} must be {rule}"
    else:
        near = did_you_mean(wanted, kernels) or f"; it must be {rule}"
        message = f"unknown kernel {wanted!r} in {match['file']}{near}"
    raise BadInputError(message, kind="unknown-kernel", where=KERNEL, value=name, rule=rule)


def file_kernels(path: Path) -> dict[str, Kernel]:
    """Kernels of a file by variable name, in the file's order.

    Raises
    ------
    BadInputError
        If the file cannot be read or fails; file and line are named.
    """
    from sw.language import Kernel

    return {
        name: value
        for name, value in names_of(path, noun="Kernel", where=KERNEL).items()
        if isinstance(value, Kernel) and value.function.__code__.co_filename == str(path)
    }


def _own_kernel(name: str) -> Kernel:
    from sw.kernels import modules
    from sw.language import Kernel

    found = modules()
    names = list(found)
    if name not in names:
        known = f"one of {', '.join(names)}, or FILE.py:KERNEL"
        raise BadInputError(
            f"unknown kernel {name!r}{did_you_mean(name, names) or f'; it must be {known}'}",
            kind="unknown-kernel",
            where=KERNEL,
            value=name,
            rule=known,
        )
    kernel = getattr(import_module(found[name]), name)
    assert isinstance(kernel, Kernel)
    return kernel
