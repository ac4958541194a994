"""Lookup of kernels by name: built-in ones, and those of a user's file (``FILE.py:KERNEL``)."""

from __future__ import annotations

import contextlib
import re
import sys
import traceback
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from hw.arch.checks import read_text
from hw.arch.errors import BadInputError, TilewrightError, did_you_mean

if TYPE_CHECKING:
    from sw.language import Kernel

__all__ = ["KERNEL", "file_kernels", "file_of", "load_kernel", "running_file"]

#: Name of the argument that names a kernel.
KERNEL = "KERNEL"

_IN_FILE = re.compile(r"(?P<file>.+\.py)(?::(?P<kernel>.*))?", re.DOTALL)
_OURS = ("gen", "hw", "sim", "sw")
_MODULE = "tilewright_file"


def file_of(name: str) -> Path | None:
    """The file part of a kernel's name; None for a built-in kernel."""
    match = _IN_FILE.fullmatch(name)
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
    match = _IN_FILE.fullmatch(name)
    if match is None:
        return _own_kernel(name)
    kernels = file_kernels(Path(match["file"]))
    wanted = match["kernel"]
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

    source = read_text(path, noun="Kernel", where=KERNEL)
    module = ModuleType(_MODULE)
    module.__file__ = str(path)
    # Data classes of the file look up their module by its name.
    sys.modules[_MODULE] = module
    with running_file(path):
        # Without the loader of the import system: it would leave a folder beside the user's file.
        exec(compile(source, str(path), "exec", dont_inherit=True), module.__dict__)
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, Kernel) and value.function.__code__.co_filename == str(path)
    }


@contextlib.contextmanager
def running_file(path: Path | None) -> Iterator[None]:
    """Context manager for code of a user's file: its exceptions become errors at its lines.

    Parameters
    ----------
    path : Path or None
        None if no user file is involved.

    Raises
    ------
    BadInputError
        In place of any other exception that leaves the file's code.
    """
    if path is None:
        yield
        return
    # Last, so that a module in the file's folder hides none of this package.
    sys.path.append(str(path.parent.absolute()))
    # Modules beside the file leave no folder there, either.
    wrote, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    except TilewrightError:
        raise
    except (Exception, SystemExit) as error:
        line = _line(path, error)
        if line is None:
            raise
        text = " ".join(str(error).split())
        if isinstance(error, SyntaxError):
            text = error.msg
        name = type(error).__name__
        raise BadInputError(
            f"{path}:{line}: {name}: {text}" if text else f"{path}:{line}: {name}",
            kind="kernel-file",
            where=f"{path}:{line}",
            value=name,
            rule="a file that runs",
        ) from error
    finally:
        sys.dont_write_bytecode = wrote
        sys.path.remove(str(path.parent.absolute()))


def _line(path: Path, error: BaseException) -> int | None:
    """Line of the file that raised an exception; None if this package raised it."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return error.lineno or 1
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        if frame.f_code.co_filename == str(path):
            return line
        module = str(frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] in _OURS and module != __name__:
            return None
    # Python's compiler refuses null bytes and too deep nesting without a line number.
    return 1


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
