"""Bounded reading of text files named by the user, with one-line errors."""

import os
from pathlib import Path

from hw.arch.errors import BadInputError, shown

__all__ = ["MOST_BYTES", "read_text"]

#: Largest file that is read; an endless device must not fill the memory.
MOST_BYTES = 64 << 20


def read_text(path: str | os.PathLike[str], *, noun: str, where: str | None = None) -> str:
    """Text of a file.

    Parameters
    ----------
    path : str or path
    noun : str
        What the file is, for messages.
    where : str
        Option that named it.

    Raises
    ------
    BadInputError
        If it cannot be read, is not UTF-8, or exceeds `MOST_BYTES`.
    """
    name = os.fspath(path)
    try:
        with Path(name).open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) <= MOST_BYTES:
            return content.decode("utf-8")
        rule = f"have at most {MOST_BYTES} bytes"
    except UnicodeDecodeError as error:
        rule = f"be UTF-8 text; byte {error.start} is {error.object[error.start]:#04x}"
    except (OSError, ValueError) as error:
        # ValueError: a name that no file can have.
        said = error.strerror if isinstance(error, OSError) else error
        raise BadInputError(
            f"cannot read {shown(name)}: {said}", kind="unreadable-file", where=where, value=name
        ) from error
    raise BadInputError(f"{noun} {shown(name)} must {rule}", where=where, value=name, rule=rule)
