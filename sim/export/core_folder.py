"""Folder of an exported core: its files, written into an empty folder or over an own export."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hw.arch.errors import BadInputError
from sim.files import write_output

__all__ = ["MANIFEST", "require_folder", "write_folder"]

#: File that says which files of a folder an export wrote.
MANIFEST = "export.json"
_OPTION = "--output"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _refused(rule: str, folder: Path, found: str) -> BadInputError:
    return BadInputError(
        f"{_OPTION} must be {rule}, not {str(folder)!r}: {found}",
        where=_OPTION,
        value=str(folder),
        rule=rule,
    )


def require_folder(folder: Path) -> None:
    """Refuse a folder that holds anything but an export in which nothing has been changed.

    Files beside those of the export stay, as those that a build leaves.

    Parameters
    ----------
    folder : Path

    Raises
    ------
    BadInputError
        If it is no folder, cannot be written, holds no export, or a file of its export was changed.
    """
    rule = "a new or empty folder, or one of an export"
    if not str(folder) or folder.exists() and not folder.is_dir():
        raise _refused(rule, folder, "it is no folder")
    parent = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise _refused("in a folder that can be written", folder, f"{parent} cannot be")
    if not folder.exists() or not any(folder.iterdir()):
        return
    for name, digest in _written(folder, rule).items():
        path = folder / name
        if path.is_file() and _digest(path.read_bytes()) != digest:
            rule = "a folder whose export is unchanged"
            raise _refused(rule, folder, f"{name} has been changed; remove it, or choose another")


def _written(folder: Path, rule: str) -> dict[str, str]:
    """Digest of each file that the export in a folder wrote."""
    try:
        manifest: Any = json.loads((folder / MANIFEST).read_text())
        files = manifest["files"]
        return {str(name): str(digest) for name, digest in files.items()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        raise _refused(rule, folder, f"it holds files, and no {MANIFEST} of an export") from None


def write_folder(folder: Path, files: Mapping[str, str], about: Mapping[str, Any]) -> None:
    """Write an export; `require_folder` has accepted the folder.

    The list of files is written first: an interrupted export may be repeated.

    Parameters
    ----------
    folder : Path
    files : mapping of str to str
        Contents by name.
    about : mapping of str to object
        Fields of the list beside the files.

    Raises
    ------
    BadInputError
        If the folder has been changed meanwhile, or the operating system refuses.
    """
    require_folder(folder)
    former = _written(folder, "") if (folder / MANIFEST).exists() else {}
    for name in former.keys() & files.keys():
        (folder / name).unlink(missing_ok=True)
    digests = {name: _digest(text.encode()) for name, text in files.items()}
    manifest = {**about, "files": digests}
    write_output(folder / MANIFEST, json.dumps(manifest, indent=2) + "\n", where=_OPTION)
    for name, text in files.items():
        write_output(folder / name, text, where=_OPTION)
