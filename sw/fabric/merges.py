"""How many streams a unit takes merged."""

__all__ = ["MERGED", "MOST_COLLECTED"]

#: Most streams merged at a unit's input: turns of the rotation there.
MERGED = 4
#: Most PCUs whose results one PMU takes, at its two inputs.
MOST_COLLECTED = 2 * MERGED
