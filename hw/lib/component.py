"""Base class of the hardware components: one whose parameters are refused was never made."""

from typing import Any, Self

from amaranth.lib import wiring

__all__ = ["Component"]


class Component(wiring.Component):
    """Component that refuses parameters without Amaranth's ``UnusedElaboratable`` warning.

    A subclass checks its parameters before ``super().__init__``; from there on an instance that
    nobody elaborates is a forgotten one, which Amaranth warns of.
    """

    #: Positional and named arguments of the call that made it, for the head of its Verilog.
    made_with: tuple[tuple[Any, ...], dict[str, Any]]

    def __new__(cls, *args: Any, **named: Any) -> Self:
        new: Any = super().__new__
        # Amaranth notes where it was made, in our caller.
        component: Self = new(cls, *args, src_loc_at=1, **named)
        component.__dict__["made_with"] = args, named
        return component

    def __del__(self) -> None:
        # An instance has its signature from `wiring.Component.__init__` on.
        if hasattr(self, "signature"):
            above: Any = super()
            above.__del__()
