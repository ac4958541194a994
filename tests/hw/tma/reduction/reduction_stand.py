"""TMA units at one interlock as native models need them, and runs of all of them at once."""

import dataclasses

from amaranth.hdl import Module, Mux
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from hw.arch.tma_sizes import TmaSizes
from hw.emit.shared import shared
from hw.lib.component import Component
from hw.tma.reduction.reduction_interlock import ReductionInterlock
from tests.hw.tma.standalone.native_unit import NativeUnit
from tests.hw.tma.standalone.unit_stand import UnitStand
from tests.native.native_memory import NativeMemory

__all__ = ["REDUCTION_SIZES", "ReductionStand", "UnitGroup"]

REDUCTION_SIZES = TmaSizes(
    width_bits=64,
    landing_beats=16,
    outstanding=8,
    descriptors=8,
    barriers=2,
    scratchpad_bytes=4096,
)
#: Cycles without a handshake after which a run counts as a hang.
_PATIENCE = 20_000


class ReductionStand(Component):
    """Units with names ``unit0``, ``unit1`` … at one interlock; ports as of `UnitStand`.

    With ``broken`` every page is granted at once, whoever holds it.
    """

    def __init__(self, units: int, sizes: TmaSizes = REDUCTION_SIZES) -> None:
        self._units = units
        self._sizes = sizes
        self._stand = UnitStand(sizes, reduces=True)
        members = self._stand.signature.members
        super().__init__(
            {
                "broken": In(1),
                **{
                    f"unit{number}_{name}": member
                    for number in range(units)
                    for name, member in members.items()
                    if name != "interlock"
                },
            }
        )

    def elaborate(self, platform):
        m = Module()
        interlock = ReductionInterlock(
            ports=max(2, self._units), address_bits=self._sizes.address_bits
        )
        m.submodules.interlock = shared(interlock)
        for number in range(self._units):
            stand = self._stand if number == 0 else UnitStand(self._sizes, reduces=True)
            m.submodules[f"unit{number}"] = shared(stand)
            for name, member in stand.signature.members.items():
                if name == "interlock":
                    continue
                inner, outer = getattr(stand, name), getattr(self, f"unit{number}_{name}")
                if member.is_signature:
                    wiring.connect(m, wiring.flipped(outer), inner)
                else:
                    m.d.comb += outer.eq(inner)
            port, held = stand.interlock, interlock.i_ports[number]
            m.d.comb += [
                held.asks.eq(port.asks),
                held.page.eq(port.page),
                port.granted.eq(Mux(self.broken, port.asks, held.granted)),
            ]
        return m


@dataclasses.dataclass(frozen=True)
class UnitGroup:
    """Units of a `ReductionStand` in a native model, all with the same bytes as their memory."""

    model: object
    units: list

    @classmethod
    def of(cls, model, count, data, *, seed, timing, broken=False):
        """The first ``count`` units after reset."""
        model.reset(seed)
        model.set("broken", broken)
        memories = [
            NativeMemory(data, seed=seed + number, timing=timing) for number in range(count)
        ]
        units = [
            NativeUnit(model, f"unit{number}", REDUCTION_SIZES, memory)
            for number, memory in enumerate(memories)
        ]
        return cls(model, units)

    def run(self, commands, *, stalls=None):
        """Give each unit its commands, and wait for all completions; the code of each, by unit."""
        names = [f"unit{number}" for number in range(len(self.units))]
        sent = {
            f"{name}_i_commands": unit.words(given)
            for name, unit, given in zip(names, self.units, commands, strict=True)
        }
        taken = {
            f"{name}_o_completions": len(given) for name, given in zip(names, commands, strict=True)
        }
        crossed = self.model.run(sent, taken, stalls=stalls, quiet_cycles=_PATIENCE)
        for unit in self.units:
            unit.check()
        return [(crossed[name].words[:, 0] >> 16).tolist() for name in taken]
