"""Python files of a user that name things by ``FILE.py:NAME``: kernels, and chips."""

from __future__ import annotations

import contextlib
import re
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from hw.arch.checks import read_text
from hw.arch.errors import BadInputError, TilewrightError

__all__ = ["IN_FILE", "names_of", "running_file"]

#: Name of something in a file; without ``:NAME``, of the only such thing.
IN_FILE = re.compile(r"(?P<file>.+\.py)(?::(?P<name>.*))?", re.DOTALL)
_OURS = ("gen", "hw", "sim", "sw")
_MODULE = "tilewright_file"


def names_of(path: Path, *, noun: str, where: str) -> dict[str, Any]:
    """Execute a file as by ``import`` and return what it names, in the file's order.

    Parameters
    ----------
    path : Path
    noun : str
        What the file holds, for messages.
    where : str
        Option or argument that names it.

    Raises
    ------
    BadInputError
        If the file cannot be read or fails; file and line are named.
    """
    source = read_text(path, noun=noun, where=where)
    module = ModuleType(_MODULE)
    module.__file__ = str(path)
    # Data classes of the file look up their module by its name.
    sys.modules[_MODULE] = module
    with running_file(path):
        # Without the loader of the import system: it would leave a folder beside the user's file.
        exec(compile(source, str(path), "exec", dont_inherit=True), module.__dict__)
    return vars(module)


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
