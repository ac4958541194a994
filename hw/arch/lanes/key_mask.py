"""Mask of a scores unit: which keys each query of a group sees."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

from hw.arch.checks import Domain, require_bool
from hw.arch.words.word_layout import WordLayout

__all__ = ["KEYS", "KEY_BITS", "KeyMask", "key_mask_layout"]

#: Width of the counters of keys, in two's complement.
KEY_BITS = 20
#: Fields of a mask with what the counters begin with, and what each group adds.
_COUNTERS = ("key", "key_step", "distance", "distance_step")
#: Query groups after which a mask begins anew; 0: never.
_GROUPS = Domain(0, (1 << 16) - 1)
#: A number of keys; 0: the rule is off.
KEYS = Domain(0, (1 << KEY_BITS - 3) - 1)
#: A signed number of keys or queries.
_SIGNED = Domain(-(1 << KEY_BITS - 3), (1 << KEY_BITS - 3) - 1)


@functools.cache
def key_mask_layout() -> WordLayout:
    """Layout of a mask.

    ``key`` and ``distance`` are what the counters begin with in group 0, ``key_step`` and
    ``distance_step`` what each group adds, all modulo 2^20. The distance of a key is its number
    less that of the last key that query 0 of the group sees under a causal mask.
    """
    return WordLayout(
        {
            "length": KEYS.high.bit_length(),
            "causal": 1,
            "window": KEYS.high.bit_length(),
            **dict.fromkeys(_COUNTERS, KEY_BITS),
            "groups": _GROUPS.high.bit_length(),
        }
    )


@dataclasses.dataclass(frozen=True)
class KeyMask:
    """Mask of a scores unit: which keys each query of a group sees.

    A query group is the queries in the unit's columns, with all blocks of keys that they meet. Row
    r of group g's keys, counted over its blocks, is key ``first_key + key_step * g + r``. Column c
    is query ``query_step * g + c``. The query sees a key that is at least 0 and fulfils every rule
    that is on. The defaults hide no key.

    Parameters
    ----------
    length : int
        Keys there are: key < length. 0: the rule is off.
    causal : bool
        Whether key <= query + offset.
    window : int
        Keys that a query sees: key > query + offset - window. 0: the rule is off.
    offset, query_step, first_key, key_step : int
    groups : int
        Query groups after which group 0 follows, as with the next head; 0: never.

    Raises
    ------
    BadInputError
        If a number is outside its domain.
    """

    length: int = 0
    causal: bool = False
    window: int = 0
    offset: int = 0
    query_step: int = 0
    first_key: int = 0
    key_step: int = 0
    groups: int = 0

    def __post_init__(self) -> None:
        require_bool("Causal of a key mask", self.causal)
        for noun, domain, value in (
            ("Length of a key mask", KEYS, self.length),
            ("Window of a key mask", KEYS, self.window),
            ("Offset of a key mask", _SIGNED, self.offset),
            ("Query step of a key mask", _SIGNED, self.query_step),
            ("First key of a key mask", _SIGNED, self.first_key),
            ("Key step of a key mask", _SIGNED, self.key_step),
            ("Groups of a key mask", _GROUPS, self.groups),
        ):
            domain.require(noun, value)

    def fields(self) -> dict[str, int]:
        """Values of the fields of `key_mask_layout`."""
        wrapped = {
            "key": self.first_key,
            "key_step": self.key_step,
            "distance": self.first_key - self.offset,
            "distance_step": self.key_step - self.query_step,
        }
        return {
            "length": self.length,
            "causal": int(self.causal),
            "window": self.window,
            **{name: value & (1 << KEY_BITS) - 1 for name, value in wrapped.items()},
            "groups": self.groups,
        }

    @classmethod
    def of_fields(cls, fields: Any) -> KeyMask:
        """Mask of the fields of `key_mask_layout`; the inverse of `fields`.

        Raises
        ------
        BadInputError
            If no mask has such fields.
        """
        key, key_step, distance, distance_step = (_signed(int(fields[each])) for each in _COUNTERS)
        return cls(
            length=int(fields["length"]),
            causal=bool(fields["causal"]),
            window=int(fields["window"]),
            offset=_signed(key - distance),
            query_step=_signed(key_step - distance_step),
            first_key=key,
            key_step=key_step,
            groups=int(fields["groups"]),
        )


def _signed(value: int) -> int:
    """Value modulo 2^20 as two's complement."""
    half = 1 << KEY_BITS - 1
    return (value + half) % (2 * half) - half
