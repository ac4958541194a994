"""Several components in one top module, so that their tests share one build of a model."""

from collections.abc import Mapping

from amaranth.hdl import Elaboratable, Module
from amaranth.lib import wiring

from hw.emit.shared import Shareable, shared

__all__ = ["Bundle"]


class Bundle(wiring.Component):
    """Top module with several components; port ``p`` of component ``name`` is port ``name_p``.

    Parameters
    ----------
    parts : dict of str to component
        The components by port prefix.
    """

    def __init__(self, parts: Mapping[str, Shareable]) -> None:
        self._parts = dict(parts)
        super().__init__(self.members())

    def members(self) -> dict[str, wiring.Member]:
        """Ports of the top module by name."""
        return {
            f"{prefix}_{name}": member
            for prefix, part in self._parts.items()
            for name, member in part.signature.members.items()
        }

    @property
    def definition_name(self) -> str:
        """Name of the top module."""
        return "bundle"

    def submodule(self, prefix: str) -> Elaboratable:
        """The submodule of a component."""
        return shared(self._parts[prefix])

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for prefix, part in self._parts.items():
            m.submodules[prefix] = self.submodule(prefix)
            for name, member in part.signature.members.items():
                inner, outer = getattr(part, name), getattr(self, f"{prefix}_{name}")
                if member.is_signature:
                    wiring.connect(m, inner, wiring.flipped(outer))
                elif member.flow == wiring.In:
                    m.d.comb += inner.eq(outer)
                else:
                    m.d.comb += outer.eq(inner)
        return m
