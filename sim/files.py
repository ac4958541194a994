"""Atomic output files, and checks that they can be written before any work."""

import contextlib
import enum
import math
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hw.arch.errors import BadInputError, shown

__all__ = [
    "require_space",
    "require_suffix",
    "require_writable",
    "write_output",
    "write_whole",
    "plain",
]


def require_suffix(path: str, suffixes: Sequence[str], *, where: str) -> None:
    """Refuse an output file whose suffix does not tell its form.

    Raises
    ------
    BadInputError
    """
    if Path(path).suffix not in suffixes:
        rule = " or ".join(filter(None, (", ".join(suffixes[:-1]), suffixes[-1])))
        rule = f"a file that ends in {rule}"
        raise BadInputError(
            f"{where} must be {rule}, not {shown(path)}", where=where, value=path, rule=rule
        )


def _unwritable(path: Path | str, where: str | None, reason: object = None) -> BadInputError:
    detail = "" if reason is None else f": {reason}"
    return BadInputError(
        f"{where or 'Output'} must be a file that can be written, not {shown(str(path))}{detail}",
        kind="unwritable-file",
        where=where,
        value=str(path),
        rule="a file in a folder that can be written",
    )


def require_writable(path: Path | str, *, where: str | None = None) -> Path:
    """Refuse an output file that cannot be written, before any work.

    Parameters
    ----------
    path : Path or str
        The file; `write_whole` creates missing parent folders.
    where : str
        Option that named it.

    Raises
    ------
    BadInputError
        If the name is empty or invalid, names a folder or a device that accepts no data, or lies
        in a folder that cannot be written.
    """
    if not str(path):
        raise BadInputError(
            f"{where or 'Output'} must name a file, not be empty",
            where=where,
            value="",
            rule="the name of a file",
        )
    target = Path(path)
    if not target.name:
        raise _unwritable(path, where)
    try:
        os.lstat(target.with_name(f".{target.name}.{os.getpid()}.partial"))
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        # Name too long, NUL in the name, or a parent that is a file.
        raise _unwritable(path, where, _reason(error)) from error
    if target.exists() and not target.is_file() and not target.is_dir():
        return _require_device(target, where)
    folder = target.absolute().parent
    while not folder.exists():
        folder = folder.parent
    if target.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise _unwritable(path, where)
    if _is_system(folder):
        raise _unwritable(path, where, "the system keeps no files there")
    return target


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


def _require_device(target: Path, where: str | None) -> Path:
    """Refuse a device that accepts no data; pipes are not probed, because they may block."""
    if stat.S_ISCHR(target.stat().st_mode):
        try:
            handle = os.open(target, os.O_WRONLY | os.O_NOCTTY)
            try:
                os.write(handle, b"")
            finally:
                os.close(handle)
        except OSError as error:
            raise _unwritable(target, where, _reason(error)) from error
    return target


def _is_system(folder: Path) -> bool:
    """Whether a folder lies in /proc or /sys, where root may write but can make no files."""
    return folder.resolve().parts[:2] in ((os.sep, "proc"), (os.sep, "sys"))


def require_space(path: Path | str, size: int, *, where: str | None = None) -> None:
    """Refuse an output for which the disk has too little space, before any work.

    Parameters
    ----------
    path : Path or str
        The file, which `require_writable` has accepted.
    size : int
        Bytes that will be written.

    Raises
    ------
    BadInputError
        If fewer bytes are free: an existing file stays until its replacement is complete.
    """
    target = Path(path)
    if target.exists() and not target.is_file():
        return
    folder = Path(os.path.realpath(target)).parent
    while not folder.exists():
        folder = folder.parent
    disk = os.statvfs(folder)
    free = disk.f_bavail * disk.f_frsize
    # Some file systems do not report free space.
    if disk.f_blocks and free < size:
        raise BadInputError(
            f"Disk of {where or 'output'} {shown(str(path))} must have {size} bytes free, "
            f"not {free}",
            kind="disk-full",
            where=where,
            value=str(path),
            rule=f"{size} bytes free",
        )


def write_whole(path: Path | str, data: str | bytes) -> None:
    """Replace a file by `data` atomically; an interruption leaves the old file, or none.

    A path that is not a regular file (a terminal, a pipe) is written to directly.

    Raises
    ------
    OSError
        If the operating system refuses; the error names the file.
    """
    content = data.encode() if isinstance(data, str) else data
    given = Path(path)
    try:
        # The given path, not its target: an open pipe's target has no name.
        if given.exists() and not given.is_file():
            given.write_bytes(content)
            return
        # The file a link points to is replaced, not the link.
        target = Path(os.path.realpath(given))
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
        try:
            partial.write_bytes(content)
            os.replace(partial, target)
        except BaseException:
            with contextlib.suppress(OSError):
                partial.unlink()
            raise
    except OSError as error:
        # The error of a full disk names no file.
        error.filename = error.filename or str(path)
        raise


def write_output(path: Path | str, data: str | bytes, *, where: str) -> None:
    """`write_whole` for a file that the user named in the option `where`.

    Raises
    ------
    BadInputError
        If the operating system refuses, for any reason.
    """
    try:
        write_whole(path, data)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _unwritable(path, where, _reason(error)) from error


def plain(value: Any) -> Any:
    """Convert `value` to JSON data; NaN and infinities become null."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, os.PathLike):
        return str(value)
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return str(value)
