"""Error of a netlist that does not fit a chip's fabric."""

from __future__ import annotations

from hw.arch.errors import BadInputError

__all__ = ["FitError"]


class FitError(BadInputError):
    """A netlist that needs resources which the fabric does not have."""

    kind = "does-not-fit"
