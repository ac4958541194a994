"""From the name of a back end to the back end."""

from hw.errors import BadInputError
from sim.backends.face import Backend, Setup

__all__ = ["open_backend"]


def open_backend(name: str, setup: Setup) -> Backend:
    """The back end of that name, ready to be launched.

    Parameters
    ----------
    name : str
        ``rtl``, ``cocotb`` or ``emulator``.
    setup : Setup

    Raises
    ------
    MissingToolError
        If a tool that it needs is missing.
    """
    # Each brings packages that the others do without.
    if name == "rtl":
        from sim.backends.rtl import NativeRtl

        return NativeRtl(setup)
    if name == "cocotb":
        from sim.backends.cocotb import CocotbRtl

        return CocotbRtl(setup)
    if name == "emulator":
        from sim.backends.emulator import Emulator

        return Emulator(setup)
    raise BadInputError(f"Back end must be rtl, cocotb or emulator, not {name!r}")
