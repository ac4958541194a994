"""What an emulated launch can end with, and programs whose values have no one answer."""

from __future__ import annotations

from hw.arch.error_codes import LaunchError
from hw.arch.errors import BadInputError

__all__ = ["EmulatorError", "LaunchFault"]


class EmulatorError(BadInputError):
    """Program whose values depend on time or are never made; ``where`` names the part."""

    kind = "undetermined-program"


class LaunchFault(Exception):
    """End of a launch with an error code of the chip.

    Parameters
    ----------
    code : LaunchError
    detail, unit : int
        As in the register ``ERROR``.
    """

    def __init__(self, code: LaunchError, detail: int = 0, unit: int = 0) -> None:
        super().__init__(f"{code.name}, detail {detail}, unit {unit}")
        self.code = code
        self.detail = detail
        self.unit = unit
