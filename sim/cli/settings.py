"""``--set``: sizes, kernel options and schedule choices by key."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from hw.arch.config import ChipConfig
from hw.arch.errors import BadInputError, did_you_mean
from hw.numeric.formats import Format
from hw.numeric.formats import named as formats
from sim.rules import OPTIONS, Integer, bad_value, option_rule
from sim.run.job import Problem
from sw.language import Kernel, Schedule
from sw.language.schedule import schedule_names

__all__ = ["DEFAULT_EXTENT", "default_sizes", "problem_of_settings"]

Value = int | bool | str | float

#: Size of a dimension that neither the kernel, ``--set`` nor an array gives.
DEFAULT_EXTENT = 256

_FIELDS = tuple(each.name for each in fields(Schedule))
#: Choices of a schedule that hardware does not support yet.
_LATER = ("sum_par", "place")
_OWN = ("out", "place_seed")
_DECIMAL = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[-+]?[0-9]+)?", re.IGNORECASE)


def default_sizes(kernel: Kernel) -> dict[str, int]:
    """Size of each dimension of a kernel by default."""
    return {name: kernel.sizes.get(name, DEFAULT_EXTENT) for name in kernel.signature.dims}


def problem_of_settings(
    kernel: Kernel,
    config: ChipConfig,
    dtype: Format,
    pairs: Iterable[tuple[str, Value]],
    *,
    extents: Mapping[str, int] | None = None,
    schedule: Schedule | None = None,
) -> Problem:
    """Build the problem that ``--set`` describes.

    Keys are the kernel's dimensions and options, ``out`` (format of the result), ``place_seed``,
    and choices of a schedule: ``row_par.c=4`` for one name; ``row_par=4`` for the only product,
    and ``slots=1`` for all buffers.

    Parameters
    ----------
    kernel : Kernel
    config : ChipConfig
    dtype : Format
        Format of the inputs that declare none.
    pairs : iterable of (str, value)
        Keys with their values.
    extents : mapping of str to int
        Sizes determined by arrays, which keys must not contradict. Others are `default_sizes`.
    schedule : Schedule
        Base schedule, which keys override.

    Raises
    ------
    BadInputError
        If a key is unknown, is repeated, or has an invalid value.
    """
    chosen = _once(pairs)
    dims, options, choices = _sorted(kernel, chosen)
    for name, size in (extents or {}).items():
        if dims.setdefault(name, size) != size:
            raise bad_value(
                name, dims[name], f"{size}, the size of the arrays given", where="--set"
            )
    dims = default_sizes(kernel) | dims
    plain = Problem(
        kernel=kernel,
        config=config,
        dims={name: dims[name] for name in kernel.signature.dims},
        dtype=dtype,
        out=_format(chosen["out"]) if "out" in chosen else None,
        options=options,
        schedule=schedule or Schedule(),
        place_seed=OPTIONS["place_seed"].check(
            "place_seed", chosen.get("place_seed", 1), where="--set"
        ),
    )
    if not choices:
        return plain
    wanted = _schedule(choices, schedule_names(plain.program))
    return Problem(
        **{each.name: getattr(plain, each.name) for each in fields(plain)}
        | {"schedule": plain.schedule | wanted}
    )


def _once(pairs: Iterable[tuple[str, Value]]) -> dict[str, Value]:
    chosen: dict[str, Value] = {}
    for key, value in pairs:
        if key in chosen:
            raise BadInputError(
                f"key {key!r} must come once, not as {chosen[key]!r} and {value!r}",
                where="--set",
                value=value,
                rule="each key once",
            )
        chosen[key] = value
    return chosen


def _sorted(
    kernel: Kernel, chosen: Mapping[str, Value]
) -> tuple[dict[str, int], dict[str, Value], dict[str, Value]]:
    """Sort the keys into sizes, options and schedule choices."""
    dims: dict[str, int] = {}
    options: dict[str, Value] = {}
    choices: dict[str, Value] = {}
    offered = (field for field in _FIELDS if field not in _LATER)
    known = (*kernel.signature.dims, *kernel.options, *_OWN, *offered)
    for key, value in chosen.items():
        if key in kernel.signature.dims:
            dims[key] = _whole(key, value, 1)
        elif key in kernel.options:
            options[key] = _option(key, value, kernel.options[key])
        elif key.partition(".")[0] in _FIELDS:
            choices[key] = value
        elif key not in _OWN:
            raise _unknown(key, known)
    return dims, options, choices


def _unknown(key: str, known: Iterable[str]) -> BadInputError:
    rule = f"one of {', '.join(known)}"
    return BadInputError(
        f"unknown key {key!r}{did_you_mean(key, known) or f'; it must be {rule}'}",
        kind="unknown-setting",
        where="--set",
        value=key,
        rule=rule,
    )


def _whole(key: str, value: Value, low: int) -> int:
    number: int = Integer(low).check(key, value, where="--set")
    return number


def _option(key: str, value: Value, default: Any) -> Any:
    """Kernel option, converted to the type of its default."""
    if isinstance(default, float) and isinstance(value, str) and _DECIMAL.fullmatch(value):
        value = float(value)
    elif isinstance(default, str) and not isinstance(value, str):
        value = str(value)
    return option_rule(default).check(key, value, where="--set")


def _format(name: Value) -> Format:
    if name not in formats:
        rule = f"one of {', '.join(formats)}"
        raise BadInputError(
            f"unknown format {name!r}{did_you_mean(str(name), formats) or f'; it must be {rule}'}",
            where="out",
            value=name,
            rule=rule,
        )
    return formats[str(name)]


def _schedule(choices: Mapping[str, Value], names: Mapping[str, tuple[str, ...]]) -> Schedule:
    """Schedule from keys, given the names that each of its fields may use."""
    known = [f"{field}.{name}" for field in _FIELDS for name in names[field]]
    found: dict[str, dict[str, Value]] = {field: {} for field in _FIELDS}
    # A key with a name overrides a key for all.
    for key in sorted(choices, key=lambda each: "." in each):
        value = choices[key]
        field, dot, name = key.partition(".")
        if not dot:
            found[field] |= dict.fromkeys(_all_names(key, value, names[field]), value)
        elif name in names[field]:
            found[field][name] = value
        else:
            raise _unknown(key, known)
        if field == "place":
            if not isinstance(value, str):
                raise bad_value(key, value, "units as text", where="--set")
        else:
            _whole(key, value, 1)
    given: Any = {field: each for field, each in found.items() if each}
    return Schedule.of_options(**given)


def _all_names(field: str, value: Value, names: tuple[str, ...]) -> tuple[str, ...]:
    """Names meant by a key without a name: every buffer, or the only product or loop."""
    if field == "slots" or len(names) == 1:
        return names
    each = ", ".join(f"{field}.{name}" for name in names)
    raise BadInputError(
        f"{field} must name what it is for, {each or 'and there is nothing'}, not be alone",
        where="--set",
        value=f"{field}={value}",
        rule=f"one of {each}" if each else f"a program with something for {field}",
    )
