"""Number formats of tiles and tensors, and the rule for mixing them."""

from __future__ import annotations

from typing import Any, Final, cast

import numpy as np

from hw.numeric.formats import Format, bf16, fp32, int8, int32

__all__ = [
    "FORMATS",
    "Format",
    "bf16",
    "common",
    "convertible",
    "e4m3",
    "e5m2",
    "format_of",
    "fp16",
    "fp32",
    "int8",
    "int32",
    "narrow",
    "pred",
    "widens",
]

#: What a comparison gives; it stays on the chip.
pred = Format("pred", np.dtype(np.bool_))

#: Formats with a name but no service: any use of one is refused.
fp16: Final = "fp16"
e4m3: Final = "e4m3"
e5m2: Final = "e5m2"

#: Every served format, by its name.
FORMATS: dict[str, Format] = {each.name: each for each in (bf16, int8, fp32, int32, pred)}

_UNSERVED = {
    fp16: np.dtype(np.float16),
    e4m3: np.dtype("float8_e4m3fn"),
    e5m2: np.dtype("float8_e5m2"),
}

_WIDER = {int8: (int32, bf16, fp32), bf16: (fp32,)}


def narrow(format_: Format) -> bool:
    """Tell whether ``@`` takes operands of this format."""
    return format_ in (bf16, int8)


def widens(source: Format, target: Format) -> bool:
    """Tell whether every value of ``source`` is a value of ``target``."""
    return source == target or target in _WIDER.get(source, ())


def convertible(source: Format, target: Format) -> bool:
    """Tell whether a store or ``.to`` takes ``source`` to ``target``.

    It does where nothing is lost, and within a kind: fp32 to bf16 rounds to nearest even, int32
    to int8 saturates.
    """
    same_kind = source.is_float == target.is_float and pred not in (source, target)
    return same_kind or widens(source, target)


def common(*formats: Format) -> Format | None:
    """Give the format element math is done in: int32 or fp32, whichever holds all exactly.

    Returns
    -------
    Format or None
        None if neither holds all of them, as for int32 beside fp32.
    """
    for candidate in (int32, fp32):
        if all(widens(each, candidate) for each in formats):
            return candidate
    return None


def format_of(dtype: object) -> Format:
    """Give the format of a numpy type, a format or a format's name.

    Raises
    ------
    TypeError
        If it names no format, or one that is not served yet.
    """
    served = ", ".join(name for name in FORMATS if name != pred.name)
    if isinstance(dtype, Format):
        return dtype
    if isinstance(dtype, str) and dtype in FORMATS and dtype != pred.name:
        return FORMATS[dtype]
    if isinstance(dtype, str) and dtype in _UNSERVED:
        raise TypeError(f"Format must be one of {served}, not {dtype}, which is not served yet")
    if dtype is not None:
        try:
            wanted = np.dtype(cast(Any, dtype))
        except TypeError:
            wanted = pred.dtype
        for each in FORMATS.values():
            if each.dtype == wanted and each != pred:
                return each
        for name, each_dtype in _UNSERVED.items():
            if each_dtype == wanted:
                return format_of(name)
    raise TypeError(f"Format must be one of {served}, not {dtype!r}")
