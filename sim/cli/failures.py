"""Mapping of exceptions to refusals, which have an exit code and a one-line message."""

import errno
import os
from pathlib import Path

from hw.arch.errors import BadInputError, MissingToolError, TilewrightError, shown

__all__ = ["UnusableCacheError", "as_refusal"]

_FULL = (errno.ENOSPC, errno.EDQUOT)


class UnusableCacheError(MissingToolError):
    """A cache folder that cannot be made, read or written, or whose disk is full."""

    kind = "unusable-cache"


def as_refusal(error: BaseException) -> TilewrightError | None:
    """Convert an exception to a refusal that says what to do about it.

    Parameters
    ----------
    error : BaseException
        The exception that ended the command.

    Returns
    -------
    TilewrightError or None
        The error itself if it is one of ours; a refusal for an error of the operating system or
        for exhausted memory or stack; None for an internal fault.
    """
    if isinstance(error, TilewrightError):
        return error
    if isinstance(error, MemoryError):
        return MissingToolError(
            "Memory of this machine must hold the problem, not run out: choose smaller sizes",
            kind="no-memory",
            rule="smaller sizes",
        )
    if isinstance(error, RecursionError):
        return BadInputError(
            "Input must be nested less deeply than Python's stack, not overflow it",
            kind="too-deep",
            rule="nested less deeply",
        )
    if isinstance(error, OSError) and error.filename is not None:
        return _of_system(error)
    return None


def _of_system(error: OSError) -> TilewrightError:
    from sim.cache import cache_directory

    name = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else None
    named = shown(name) if name else "a file"
    said = error.strerror or str(error)
    cache = cache_directory()
    if name is not None and _inside(Path(name), cache):
        return UnusableCacheError(
            f"Cache must be a folder with room that can be written, not {shown(str(cache))}: "
            f"{said}; TILEWRIGHT_CACHE names another",
            where="TILEWRIGHT_CACHE",
            value=str(cache),
            rule="a folder with room that can be written",
        )
    if error.errno in _FULL:
        return MissingToolError(
            f"Disk must have room, not be full: {named}: {said}",
            kind="disk-full",
            where=name,
            value=name,
            rule="a disk with room",
        )
    return BadInputError(
        f"cannot use {named}: {said}", kind="unusable-file", where=name, value=name
    )


def _inside(path: Path, folder: Path) -> bool:
    """Whether a path equals a folder, or lies below or above it (the folder could not be made)."""
    path, folder = Path(os.path.abspath(path)), Path(os.path.abspath(folder))
    return path.is_relative_to(folder) or folder.is_relative_to(path)
