"""Log of a sweep: one JSON line per finished point, in a folder that one sweep at a time uses."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hw.arch.errors import BadInputError

__all__ = ["PointLog", "opened"]

_FILE = "points.jsonl"
_LOCK = ".lock"
#: Fields that each line must have, with their types.
_FIELDS = {"key": str, "point": dict, "status": str}


class PointLog:
    """Finished points of a folder, each once; one that is added is on disk when `add` returns.

    Parameters
    ----------
    folder : Path

    Members
    -------
    records : dict of str to dict
        The records by key, in the order in which the points ended.

    Raises
    ------
    BadInputError
        If a line is no record of a point. A last line without its end is one whose writer was
        killed: it is dropped.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / _FILE
        self.records: dict[str, dict[str, Any]] = {}
        content = self._file.read_bytes() if self._file.exists() else b""
        whole, _, rest = content.rpartition(b"\n")
        if rest:
            with self._file.open("r+b") as stream:
                stream.truncate(len(content) - len(rest))
        for number, line in enumerate(whole.splitlines(), 1):
            record = self._read(number, line)
            self.records[record["key"]] = record

    def _read(self, number: int, line: bytes) -> dict[str, Any]:
        where = f"{self._file}:{number}"
        try:
            record = json.loads(line)
        except ValueError as error:
            raise BadInputError(
                f"{where} must be JSON: {error}", where=where, rule="one JSON object per line"
            ) from error
        for field, kind in _FIELDS.items():
            if not isinstance(record, dict) or not isinstance(record.get(field), kind):
                raise BadInputError(
                    f"{where} must be a point of a sweep; its field `{field}` is missing or no "
                    f"{kind.__name__}",
                    where=where,
                    value=field,
                    rule=f"fields {', '.join(_FIELDS)}",
                )
        return dict(record)

    def add(self, record: dict[str, Any]) -> None:
        """Append a record; it is on disk afterwards."""
        self.records[record["key"]] = record
        with self._file.open("ab") as stream:
            stream.write(json.dumps(record).encode() + b"\n")
            stream.flush()
            os.fsync(stream.fileno())


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[PointLog]:
    """Context manager: the log of a folder, which is made if needed and locked meanwhile.

    Raises
    ------
    BadInputError
        If another sweep uses the folder, or its log is not one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / _LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise BadInputError(
                f"Folder of a sweep must be used by one sweep at a time; another one uses {folder}",
                where="--out",
                value=str(folder),
                rule="one sweep at a time",
            ) from error
        yield PointLog(folder)
