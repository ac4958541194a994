"""Units of a chip's design, each as a design of its own."""

import collections
import dataclasses
import re

from gen.verilog import Design

__all__ = ["KINDS", "REST", "Component", "components"]

#: Kinds of unit, each with a pattern for the names of its definitions.
KINDS = {
    "pcu": re.compile(r"pcu_w\d"),
    "pmu": re.compile(r"pmu_w\d"),
    "switch": re.compile(r"switch_p[1-9]"),
    "token_switch": re.compile(r"switch_p0_"),
    "chain": re.compile(r"chain_segment_"),
    "agcu": re.compile(r"agcu_w\d"),
    "command": re.compile(r"command_processor_"),
}
#: Kind of the logic outside all units: tiles and chip without their units.
REST = "rest"

_NOTES = {
    "pcu": "systolic mode only",
    REST: "logic of tiles and chip round their units",
}
_MODULE = re.compile(r"^module (\S+?) ?\(.*?^endmodule$", re.MULTILINE | re.DOTALL)
_INSTANCE = re.compile(r"^ +(\S+) +\S+ +\($", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Component:
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


class _Hierarchy:
    """Module hierarchy of a Verilog text."""

    def __init__(self, text: str) -> None:
        self.texts = {m[1].removeprefix("\\"): m[0] for m in _MODULE.finditer(text)}
        self._below = {
            name: collections.Counter(
                child
                for child in (found.removeprefix("\\") for found in _INSTANCE.findall(body))
                if child in self.texts
            )
            for name, body in self.texts.items()
        }

    def instances(self, top: str, without: frozenset[str] = frozenset()) -> dict[str, int]:
        """Instances of each module from `top` down, except `without` and what they contain."""
        counts: collections.Counter[str] = collections.Counter()

        def visit(name: str, times: int) -> None:
            counts[name] += times
            for child, count in self._below[name].items():
                if child not in without:
                    visit(child, times * count)

        visit(top, 1)
        return dict(sorted(counts.items()))


def components(chip: Design) -> list[Component]:
    """Every unit of a chip's design, one entry per definition, and the rest.

    Raises
    ------
    ValueError
        If the units and the rest do not add up to the design's instances.
    """
    hierarchy = _Hierarchy(chip.text)
    found = []
    for kind, pattern in KINDS.items():
        for name in sorted(filter(pattern.match, chip.instances)):
            if "." in name:
                continue
            inside = hierarchy.instances(name)
            text = "\n".join(hierarchy.texts[module] for module in inside)
            found.append(Component(kind, chip.instances[name], Design(name, text, inside)))
    units = tuple(component.design.top for component in found)
    rest = hierarchy.instances(chip.top, frozenset(units))
    text = "\n".join(hierarchy.texts[module] for module in (*rest, *units))
    found.append(Component(REST, 1, Design(chip.top, text, rest), units))
    sums: collections.Counter[str] = collections.Counter()
    for component in found:
        for name, count in component.design.instances.items():
            sums[name] += component.count * count
    wrong = [name for name in chip.instances if sums[name] != chip.instances[name]]
    if wrong or sums.keys() != chip.instances.keys():
        raise ValueError(f"Units of the chip must hold all its modules, not miscount {wrong!r}")
    return found
