"""Files written whole or not at all."""

import contextlib
import os
from pathlib import Path

from hw.errors import BadInputError

__all__ = ["require_writable", "write_output", "write_whole"]


def require_writable(path: Path | str, *, where: str | None = None) -> Path:
    """Refuse an output file that could not be written, before the work that would fill it.

    Parameters
    ----------
    path : Path or str
        The file; folders above it that do not exist will be made by `write_whole`.
    where : str
        Option that named it.

    Raises
    ------
    BadInputError
        If it is a folder, or no folder above it can be written.
    """
    target = Path(path)
    folder = target.absolute().parent
    while not folder.exists():
        folder = folder.parent
    if target.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise BadInputError(
            f"Output must be a file that can be written, not {str(path)!r}",
            where=where,
            value=str(path),
            rule="a file in a folder that can be written",
        )
    return target


def write_whole(path: Path | str, data: str | bytes) -> None:
    """Replace a file by `data` in one step; an interruption leaves the old file, or none.

    A path that is not a regular file (a terminal, a pipe) cannot be replaced and is written to.
    """
    content = data.encode() if isinstance(data, str) else data
    given = Path(path)
    # Not what its links lead to: that of an open pipe has no name.
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


def write_output(path: Path | str, data: str | bytes, *, where: str) -> None:
    """`write_whole` of a file that the user named in the option `where`.

    Raises
    ------
    BadInputError
        If the system refuses, for whatever reason.
    """
    try:
        write_whole(path, data)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise BadInputError(
            f"{where} must be a file that can be written, not {str(path)!r}: {error.strerror}",
            kind="unwritable-file",
            where=where,
            value=str(path),
            rule="a file that can be written",
        ) from error
