"""The refusal of a program that a fabric cannot hold."""

from __future__ import annotations

from hw.arch.errors import BadInputError

__all__ = ["FitError"]


class FitError(BadInputError):
    """A program that needs more, or something else, than the fabric has."""

    kind = "does-not-fit"
