"""Selection of a back end by name, and the check for its tools."""

from gen.tools import require_package
from hw.arch.errors import BadInputError
from sim.backends.emitted import is_emitted
from sim.backends.interface import Backend, Setup
from sim.native.build import require_build_tools

__all__ = ["open_backend", "require_tools"]

#: Python packages that each back end needs in addition to the build tools.
_PACKAGES = {"rtl": (), "cocotb": ("cocotb", "cocotbext-axi")}


def require_tools(name: str, setup: Setup) -> None:
    """Refuse a back end whose tools are missing, before any work.

    A cached model needs no tools. Whether there is one can be known only if its Verilog is at hand;
    otherwise the tools are required.

    Raises
    ------
    MissingToolError
        If a tool is missing; the message says how to install it.
    """
    for package in _PACKAGES.get(name, ()):
        require_package(package, where=f"--backend {name}")
    if name in _PACKAGES and not is_emitted(setup):
        require_build_tools()


def open_backend(name: str, setup: Setup) -> Backend:
    """Open a back end, ready for launches.

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
    require_tools(name, setup)
    # Imported here because each needs packages that the others do not.
    if name == "rtl":
        from sim.backends.rtl import NativeRtl

        return NativeRtl(setup)
    if name == "cocotb":
        from sim.cocotb.backend import CocotbRtl

        return CocotbRtl(setup)
    if name == "emulator":
        from sim.backends.emulator import Emulator

        return Emulator(setup)
    raise BadInputError(f"Back end must be rtl, cocotb or emulator, not {name!r}")
