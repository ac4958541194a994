"""Checks that no output file of a command line is also an input or another output."""

import argparse
import os
from collections.abc import Iterator, Mapping, Sequence

from hw.arch.errors import BadInputError
from sim.files import require_writable

__all__ = ["STANDARD_OUTPUT", "require_apart", "require_not_named_again", "require_own_files"]

#: Names of standard output as a file.
STANDARD_OUTPUT = ("-", "/dev/stdout")

#: Attribute and option of each output file, and below of each input file.
_OUTPUTS = {
    "outputs": "--outputs",
    "image_out": "--image-out",
    "waves": "--waves",
    "profile": "--profile",
    "trace": "--trace",
    "output": "--output",
    "waivers": "--waivers",
    "json": "--json",
}
_INPUTS = {
    "inputs": "--inputs",
    "schedule": "--schedule",
    "before": "A.json",
    "after": "B.json",
    "rtl": "--rtl",
    "liberty": "--liberty",
    "config": "--config",
    "name": "NAME|FILE",
    "kernel": "KERNEL",
}


def _identity(path: str, *, dash: bool) -> object:
    """Key that is equal for all names of a file; None for the null device, which may be shared."""
    if dash and path in STANDARD_OUTPUT:
        return STANDARD_OUTPUT
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return os.path.realpath(path) if "\0" not in path else path
    if os.path.exists(os.devnull) and os.path.samestat(found, os.stat(os.devnull)):
        return None
    return found.st_dev, found.st_ino


def _named(args: argparse.Namespace, options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for attribute, option in options.items():
        value = getattr(args, attribute, None)
        if isinstance(value, str):
            yield option, value


def require_apart(outputs: Sequence[tuple[str, str]], inputs: Sequence[tuple[str, str]]) -> None:
    """Refuse an output file that is also another output or an input.

    Parameters
    ----------
    outputs, inputs : sequence of (str, str)
        Option and file name.

    Raises
    ------
    BadInputError
        At the first such output; `where` is ``--json`` if that is one of the two options.
    """
    seen = {_identity(path, dash=False): (option, "reads") for option, path in inputs}
    for option, path in outputs:
        # For npz files and images, `-` is an ordinary file name.
        identity = _identity(path, dash=option in ("--json", "--output"))
        if identity is None:
            continue
        if identity in seen:
            other, verb = seen[identity]
            raise BadInputError(
                f"{option} must be a file of its own, not {path!r}, which {other} {verb} too",
                kind="same-file",
                where="--json" if "--json" in (option, other) and verb == "writes" else option,
                value=path,
                rule="a file of its own",
            )
        seen[identity] = option, "writes"


def require_own_files(args: argparse.Namespace) -> None:
    """Check, before any work, that each output file can be written and is a separate file.

    Raises
    ------
    BadInputError
        If one cannot be written, or is an input or another output.
    """
    outputs = list(_named(args, _OUTPUTS))
    for option, path in outputs:
        if not (option in ("--json", "--output") and path in STANDARD_OUTPUT):
            require_writable(path, where=option)
    # A kernel may be given as `FILE.py:NAME`.
    inputs = [
        (option, path.rpartition(":")[0] if option == "KERNEL" and ":" in path else path)
        for option, path in _named(args, _INPUTS)
    ]
    for option, path in inputs:
        if not path:
            raise BadInputError(
                f"{option} must name a file, not be empty", where=option, value="", rule="a name"
            )
    require_apart(outputs, [(option, path) for option, path in inputs if os.path.exists(path)])


def require_not_named_again(report: str, words: Sequence[str]) -> None:
    """Refuse an existing report file that another word of the command line also names.

    A command line that is refused for another reason writes a report too, which must not
    overwrite an input.

    Raises
    ------
    BadInputError
        If another word names it; `where` is ``--json``, so that no report is written.
    """
    own = _identity(report, dash=True)
    if isinstance(own, str) or own is None:
        return
    times = 0
    for word in words:
        names = {word, word.partition("=")[2], word.rpartition(":")[0]}
        times += any(name and _identity(name, dash=True) == own for name in names)
    if times > 1:
        raise BadInputError(
            f"--json must be a file of its own, not {report!r}, which the line names again",
            kind="same-file",
            where="--json",
            value=report,
            rule="a file of its own",
        )
