"""Base class of the hardware components: one whose parameters are refused was never made."""

from typing import Any

from amaranth.lib import wiring

__all__ = ["Component"]


class Component(wiring.Component):
    """Component that refuses parameters without Amaranth's ``UnusedElaboratable`` warning.

    A subclass checks its parameters before ``super().__init__``; from there on an instance that
    nobody elaborates is a forgotten one, which Amaranth warns of.
    """

    def __del__(self) -> None:
        # An instance has its signature from `wiring.Component.__init__` on.
        if hasattr(self, "signature"):
            above: Any = super()
            above.__del__()
