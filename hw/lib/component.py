"""Base class of hardware components, with parameter checks before construction."""

from typing import Any, Self

from amaranth.lib import wiring

__all__ = ["Component"]


class Component(wiring.Component):
    """Base class of components, without a false ``UnusedElaboratable`` warning on bad parameters.

    A subclass checks its parameters before ``super().__init__``. An instance that exists after it
    but is never elaborated is a mistake, and Amaranth warns about it.
    """

    #: Positional and named arguments of the constructor call, for the header of its Verilog.
    made_with: tuple[tuple[Any, ...], dict[str, Any]]

    def __new__(cls, *args: Any, **named: Any) -> Self:
        new: Any = super().__new__
        # Source location of the constructor call is in the caller of this method.
        component: Self = new(cls, *args, src_loc_at=1, **named)
        component.__dict__["made_with"] = args, named
        return component

    def __del__(self) -> None:
        # An instance has its signature from `wiring.Component.__init__` on.
        if hasattr(self, "signature"):
            above: Any = super()
            above.__del__()
