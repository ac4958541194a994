"""Units of a chip's design, each as a design of its own."""

import collections
import dataclasses

from gen.design import Definition, Design
from hw.agcu.unit import Agcu
from hw.command.processor import CommandProcessor
from hw.lib.config_segment import ConfigSegment
from hw.mesh.switch import Switch
from hw.pcu.unit import Pcu
from hw.pmu.unit import Pmu

__all__ = ["KINDS", "REST", "UnitDesign", "unit_designs"]

#: Kinds of unit, each with the class of its component.
KINDS: dict[str, type] = {
    "pcu": Pcu,
    "pmu": Pmu,
    "switch": Switch,
    "token_switch": Switch,
    "config_segment": ConfigSegment,
    "agcu": Agcu,
    "command": CommandProcessor,
}
#: Kind of the logic outside all units: tiles and chip without their units.
REST = "rest"

_NOTES = {
    REST: "logic of tiles and chip that connects the units",
}


@dataclasses.dataclass(frozen=True)
class UnitDesign:
    """Unit of a chip, as a design of its own.

    Members
    -------
    kind : str
        One of `KINDS`, or `REST`.
    count : int
        Number of such units on the chip.
    design : Design
        The unit alone, with its instances in one unit. `REST` has the ports of its units too.
    black_boxes : tuple of str
        Definitions in the text of `design` that are other units.
    """

    kind: str
    count: int
    design: Design
    black_boxes: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        """Caveat of the figures, or an empty string."""
        return _NOTES.get(self.kind, "")


def _kind(definition: Definition) -> str | None:
    """Kind of the unit that a definition is; none if it is no unit."""
    if definition.kind == Switch.__name__ and not any(
        "payload" in port for port in definition.ports
    ):
        return "token_switch"
    kinds = (kind for kind, of in KINDS.items() if of.__name__ == definition.kind)
    return next(kinds, None)


def unit_designs(chip: Design) -> list[UnitDesign]:
    """Every unit of a chip's design, one entry per definition, and the rest.

    Raises
    ------
    ValueError
        If the units and the rest do not add up to the design's instances.
    """
    found = [
        UnitDesign(kind, chip.instances[name], chip.part(name))
        for kind in KINDS
        for name, definition in sorted(chip.definitions.items())
        if _kind(definition) == kind
    ]
    units = tuple(unit.design.top for unit in found)
    found.append(UnitDesign(REST, 1, chip.part(chip.top, units), units))
    sums: collections.Counter[str] = collections.Counter()
    for unit in found:
        for name, count in unit.design.instances.items():
            if name not in unit.black_boxes:
                sums[name] += unit.count * count
    wrong = [name for name in chip.instances if sums[name] != chip.instances[name]]
    if wrong or sums.keys() != chip.instances.keys():
        raise ValueError(f"Units of the chip must hold all its modules, not miscount {wrong!r}")
    return found
