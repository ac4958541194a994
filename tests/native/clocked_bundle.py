"""Several components in one model, each with a clock of its own, so that idle ones cost nothing."""

from amaranth.hdl import ClockDomain, ClockSignal, DomainRenamer, Elaboratable, Module, ResetSignal
from amaranth.lib.wiring import In, Member

from sim.native.bundle import Bundle

__all__ = ["CLOCK", "RESET", "ClockedBundle"]

#: Ends of the names of clocks and resets.
CLOCK, RESET = "_clk", "_rst"


class ClockedBundle(Bundle):
    """Bundle whose component ``name`` has clock and reset ``name_clk`` and ``name_rst``.

    A simulated cycle then costs what the components under test cost, however many others share
    the build.
    """

    def members(self) -> dict[str, Member]:
        """Ports of the top module by name."""
        wires = {f"{prefix}{end}": In(1) for prefix in self._parts for end in (CLOCK, RESET)}
        return super().members() | wires

    def submodule(self, prefix: str) -> Elaboratable:
        """The submodule of a component, in the clock domain of its name."""
        renamed: Elaboratable = DomainRenamer(prefix)(super().submodule(prefix))
        return renamed

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        for prefix in self._parts:
            m.domains += ClockDomain(prefix)
            m.d.comb += ClockSignal(prefix).eq(getattr(self, prefix + CLOCK))
            m.d.comb += ResetSignal(prefix).eq(getattr(self, prefix + RESET))
        return m
