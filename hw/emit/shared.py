"""Definitions emitted once and instantiated many times (hierarchy kept in the Verilog)."""

import re
from typing import Protocol, cast

import amaranth.back.rtlil as rtlil
from amaranth.hdl import (
    ClockSignal,
    Elaboratable,
    Instance,
    Module,
    ResetInserter,
    ResetSignal,
    Value,
)
from amaranth.lib import wiring
from amaranth.lib.wiring import In

__all__ = ["Library", "Shareable", "shared"]

_CLOCKS = re.compile(r"^\s*wire .*\binput \d+ +\\(clk|rst)$", re.MULTILINE)


class Shareable(Protocol):
    """Component that may be shared: its definition name states every parameter it depends on."""

    @property
    def signature(self) -> wiring.Signature:
        """Signature of the component."""

    @property
    def definition_name(self) -> str:
        """Name of the module, equal for two components exactly if they are identical."""

    def elaborate(self, platform: object) -> Module:
        """Elaborate the component's inside."""


class Library:
    """Library of the distinct module definitions of one design, filled during elaboration.

    It is passed as Amaranth's platform. Without it Amaranth elaborates every instance anew, which
    takes minutes for a large array, and the text grows with the number of instances.

    Parameters
    ----------
    source : bool
        Annotate wires and cells with the source file and line they come from.

    Members
    -------
    definitions : dict of str to str
        RTLIL text of each definition by its name, in order of completion.
    kinds : dict of str to str
        Name of the component's class, by the definition's name.
    """

    def __init__(self, *, source: bool = False) -> None:
        self.source = source
        self.definitions: dict[str, str] = {}
        self.kinds: dict[str, str] = {}
        self._clocks: dict[str, tuple[str, ...]] = {}

    def define(self, component: Shareable) -> tuple[str, ...]:
        """Elaborate a component unless its definition exists; return its clock and reset ports."""
        # Most instances are never elaborated; without this Amaranth warns that they are unused.
        component.__dict__["_MustUse__used"] = True
        name = component.definition_name
        if name not in self.definitions:
            # A structure writes its own text (hw.emit.structure).
            write = getattr(component, "rtlil", None)
            text = (
                write(self)
                if write is not None
                else rtlil.convert(component, name=name, platform=self, emit_src=self.source)
            )
            self.definitions[name] = text
            self.kinds[name] = type(component).__name__
            top = text[text.index(f"module \\{name}\n") :]
            self._clocks[name] = tuple(sorted(_CLOCKS.findall(top, 0, top.index("\nend\n"))))
        return self._clocks[name]


class _Shared(Elaboratable):
    def __init__(self, component: Shareable, reset: Value | None) -> None:
        self._component = component
        self._reset = reset

    def elaborate(self, platform: object) -> object:
        if not isinstance(platform, Library):
            if self._reset is None:
                return self._component
            return ResetInserter(self._reset)(self._component)
        reset = ResetSignal() if self._reset is None else ResetSignal() | self._reset
        ports: dict[str, object] = {}
        for name in platform.define(self._component):
            ports[f"i_{name}"] = ClockSignal() if name == "clk" else reset
        for path, member, value in self._component.signature.flatten(self._component):
            wires = Value.cast(value)
            if len(wires) == 0:  # a token's payload; Verilog has no such port
                continue
            # The stubs give a Flow here; it is the Member.
            direction = "i" if cast(wiring.Member, member).flow == In else "o"
            ports[f"{direction}_{'__'.join(map(str, path))}"] = wires
        return Instance(self._component.definition_name, **ports)


def shared(component: Shareable, *, reset: Value | None = None) -> Elaboratable:
    """Submodule of a component: in an emitted design, an instance of its one definition.

    With any other platform (Amaranth's simulator) it is the component itself. ``reset`` resets it,
    beside the reset of the clock domain.
    """
    return _Shared(component, reset)
