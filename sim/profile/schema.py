"""Fields of a profile in JSON: the one declaration that writes, checks and documents them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from typing import Any

from hw.arch.errors import BadInputError, shown

__all__ = ["FORMAT", "VERSION", "Field", "PROFILE", "check_profile", "field_rows", "parse_profile"]

#: Value of the field ``format``, and the version of the fields that follow.
FORMAT, VERSION = "tilewright-profile", 2

_NAMES: Mapping[str, type | tuple[type, ...]] = {
    "text": str,
    "integer": int,
    "number": (int, float),
    "flag": bool,
    "object": dict,
    "list": list,
}


@dataclasses.dataclass(frozen=True)
class Field:
    """A field of a profile, or of a part of one.

    Parameters
    ----------
    kind : str
        ``text``, ``integer``, ``number``, ``flag``, ``object`` or ``list``; with a question mark if
        it may be null.
    about : str
        Its meaning.
    fields : mapping of str to Field
        Of an object, or of each element of a list of objects: its fields.
    items : Field or None
        Of a list, or of an object with names that are not declared: the form of each element.
    """

    kind: str
    about: str
    fields: Mapping[str, Field] = dataclasses.field(default_factory=dict)
    items: Field | None = None


def _integers(about: str) -> Field:
    return Field("list", about, items=Field("integer", ""))


def _texts(about: str) -> Field:
    return Field("list", about, items=Field("text", ""))


_CAUSE = {
    "cause": Field("text", "`busy`, `launch`, `off`, `done`, `memory`, `port`, `unit`, `slots`"),
    "by": Field("text", "unit or memory port that holds it up; empty if there is none"),
    "cycles": Field("integer", "cycles of the unit with this cause"),
}
_STATES = {
    name: _integers("cycles per interval between two edges")
    for name in ("busy", "wait_input", "wait_room", "idle")
}
_UNIT = {
    "name": Field("text", "name in a report, such as `pcu_0_1`"),
    "kind": Field("text", "`pcu`, `pmu` or `agcu`"),
    "at": _integers("row and column, or the number of the AGCU"),
    "used": Field("flag", "whether a program of the kernel is for it"),
    "labels": _texts("what it does, in the program's names: buffers, streams, products"),
    "lines": _texts("lines of the kernel that it works for: number of the source, and of the line"),
    "causes": Field("list", "each cycle of the run once; the sum is `cycles`", _CAUSE),
    "counts": Field("object", "`macs`, `commands`, `boxes`, `bytes`, where counted"),
    "states": Field("object", "what it did over time", _STATES),
}
_BLOCK = {
    "unit": Field("text", "unit"),
    "part": Field("text", "engine, stream or array of the unit"),
    "name": Field("text", "buffer or stream of the program"),
    "number": Field("integer", "turn of the slot, or number of the box; -1 if it has none"),
    "begin": Field("integer", "first cycle"),
    "end": Field("integer", "cycle behind the last"),
    "ready": Field("integer", "cycle from which it waited for room; `begin` if it did not"),
}
_TOKEN = {
    "source": Field("integer", "number in `blocks` of the turn, or stored box, that it reports"),
    "sink": Field("integer", "number in `blocks` of the box that waits for it"),
}
_ROUTE = {
    "part": Field("integer", "number of the kernel's part, from 0"),
    "name": Field("text", "net"),
    "tokens": Field("flag", "whether it carries tokens"),
    "sources": _texts("units that send"),
    "sinks": _texts("units that take"),
    "hops": _texts("switch outputs on its way: row, column, output"),
}
_TENSOR = {
    "name": Field("text", "argument of the kernel"),
    "shape": _integers("extents"),
    "format": Field("text", "format of its elements"),
    "output": Field("flag", "whether the kernel writes it"),
    "bytes": Field("integer", "bytes of its elements: what has to cross the memory ports once"),
    "moved": Field("integer", "bytes of all boxes loaded or stored, with what lies outside of it"),
}
_TRANSFER = {
    "tensor": Field("text", "argument of the kernel, or array between two of its parts"),
    "output": Field("flag", "whether it is stored"),
    "bytes": Field("integer", "bytes of all boxes, with what lies outside of it"),
    "lines": _texts("lines that load or store it: number of the source, and of the line"),
}
_SOURCE = {
    "file": Field("text", "name of the file"),
    "first": Field("integer", "number of the first line"),
    "text": Field("text", "lines of the function, with their ends"),
}
_FINDING = {
    "cause": Field("text", "as of a unit's causes"),
    "by": Field("text", "unit or memory port"),
    "cycles": Field("number", "mean cycles of the units that matter"),
    "share": Field("number", "of the run's cycles"),
    "text": Field("text", "what was found"),
    "advice": Field("text", "what would improve it"),
}

#: Every field of a profile by name.
PROFILE: dict[str, Field] = {
    "format": Field("text", f"`{FORMAT}`"),
    "version": Field("integer", f"{VERSION}"),
    "kernel": Field("text", "name of the kernel"),
    "config": Field("text", "configuration of the chip"),
    "backend": Field("text", "back end of the run"),
    "predicted": Field("flag", "whether the cycles are those of the machine model, not of RTL"),
    "status": Field("text", "`done`, `hang` or `error`"),
    "message": Field("text", "of a launch that did not end well: why, and who waits for whom"),
    "cycles": Field("integer", "cycles of the run"),
    "launch_cycles": Field("integer", "of these, cycles in which no kernel ran"),
    "report": Field("object", "the fields of the run's report"),
    "mesh": Field(
        "object",
        "the chip",
        {
            "rows": Field("integer", "rows of tiles"),
            "columns": Field("integer", "columns of tiles"),
            "agcus": _texts("row and side of each AGCU"),
        },
    ),
    "entries": Field(
        "list",
        "kernels of the launch list",
        {
            "part": Field("integer", "number of the kernel's part, from 0"),
            "begin": Field("integer", "first cycle"),
            "end": Field("integer", "cycle behind the last"),
        },
    ),
    "edges": _integers("cycles that bound the intervals of `states`"),
    "units": Field("list", "every unit of the chip", _UNIT),
    "blocks": Field("list", "work of a unit without a pause in it", _BLOCK),
    "tokens": Field("list", "last tokens that boxes wait for, if predicted", _TOKEN),
    "routes": Field("list", "nets on the mesh", _ROUTE),
    "tensors": Field("list", "arguments of the kernel", _TENSOR),
    "transfers": Field("list", "loads of each array, and stores of it", _TRANSFER),
    "sources": Field("list", "functions that the kernel consists of", _SOURCE),
    "findings": Field(
        "list", "what held the run up: large waits, the busiest unit, small waits", _FINDING
    ),
    "roofline": Field(
        "object",
        "bounds of the run",
        {
            "macs": Field("integer", "multiply-accumulates without padding"),
            "bytes": Field("integer", "bytes read or written, whichever are more"),
            "peak_macs": Field("number", "multiply-accumulates per cycle at most"),
            "peak_bytes": Field("number", "bytes per cycle at most, each way"),
        },
    ),
    "passes": Field(
        "list",
        "text of the program after each pass",
        {"name": Field("text", "pass"), "text": Field("text", "program")},
    ),
}


def _wrong(path: str, rule: str, value: object) -> BadInputError:
    return BadInputError(
        f"Field {path} of a profile must be {rule}, not {shown(value)}",
        kind="bad-profile",
        where=path,
        value=shown(value),
        rule=rule,
    )


def _check(path: str, field: Field, value: Any) -> None:
    kind = field.kind.rstrip("?")
    if value is None and field.kind.endswith("?"):
        return
    is_flag = isinstance(value, bool)
    found: Any = value
    if not isinstance(value, _NAMES[kind]) or is_flag != (kind == "flag"):
        raise _wrong(path, f"{'an' if kind[0] in 'aeio' else 'a'} {kind}", value)
    if kind == "list":
        for number, each in enumerate(found):
            if field.fields:
                _check(f"{path}[{number}]", Field("object", "", field.fields), each)
            elif field.items is not None:
                _check(f"{path}[{number}]", field.items, each)
    elif kind == "object" and field.fields:
        _check_fields(f"{path}.", field.fields, found)


def _check_fields(prefix: str, fields: Mapping[str, Field], value: Mapping[str, Any]) -> None:
    for name, field in fields.items():
        if name not in value:
            raise BadInputError(
                f"Profile must have the field {prefix}{name}",
                kind="bad-profile",
                where=f"{prefix}{name}",
                rule="every field of docs/profile.md",
            )
        _check(f"{prefix}{name}", field, value[name])
    for name in value:
        if name not in fields:
            raise _wrong(f"{prefix}{name}", "one of docs/profile.md", value[name])


def check_profile(profile: Any) -> dict[str, Any]:
    """Return a profile that has every field, in its form, and causes that sum to its cycles.

    Raises
    ------
    BadInputError
        If it is none; the message names the first field that is missing, foreign or wrong.
    """
    if not isinstance(profile, dict):
        raise _wrong("(whole)", "an object", profile)
    if profile.get("format") != FORMAT:
        raise _wrong("format", repr(FORMAT), profile.get("format"))
    if profile.get("version") != VERSION:
        raise _wrong("version", str(VERSION), profile.get("version"))
    _check_fields("", PROFILE, profile)
    intervals = max(len(profile["edges"]) - 1, 0)
    for number, unit in enumerate(profile["units"]):
        total = sum(cause["cycles"] for cause in unit["causes"])
        if total != profile["cycles"]:
            raise _wrong(f"units[{number}].causes", f"of {profile['cycles']} cycles", total)
        for state, counts in unit["states"].items():
            if len(counts) not in (0, intervals):
                path = f"units[{number}].states.{state}"
                raise _wrong(path, f"a list of {intervals} counts", len(counts))
    blocks = len(profile["blocks"])
    for number, token in enumerate(profile["tokens"]):
        for end, block in token.items():
            if not 0 <= block < blocks:
                raise _wrong(
                    f"tokens[{number}].{end}", f"the number of one of {blocks} blocks", block
                )
    return profile


def parse_profile(text: str) -> dict[str, Any]:
    """Read a profile from JSON.

    Raises
    ------
    BadInputError
        If the text is no JSON, as it is if the end is missing, or no profile.
    """
    try:
        found = json.loads(text)
    except ValueError as error:
        raise BadInputError(
            f"Profile must be JSON: {error}", kind="bad-profile", where="profile", rule="JSON"
        ) from error
    return check_profile(found)


def field_rows(fields: Mapping[str, Field] = PROFILE, prefix: str = "") -> Iterator[list[str]]:
    """Name, form and meaning of every field, those of objects after them."""
    for name, field in fields.items():
        inner = f"{field.items.kind}s" if field.items else ""
        kind = f"list of {inner or 'objects'}" if field.kind == "list" else field.kind
        yield [f"{prefix}{name}", kind, field.about]
        dot = "[]." if field.kind == "list" else "."
        yield from field_rows(field.fields, f"{prefix}{name}{dot}")
