"""TMA unit under test of the testbench ``tma_host``, and its selection by the environment."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping

from hw.arch.checks import refusal
from hw.arch.tma_sizes import TmaSizes
from hw.tma.host_port.tma_top import TmaTop
from sim.cocotb.checked_component import CheckedComponent
from sim.drivers.passed_tile import TILES

__all__ = ["TmaChoice", "asked_tma"]

_VARIABLE = "TILEWRIGHT_TMA"
#: Commands that the testbench gives before it reads a completion.
_COMMANDS = 2 * TILES


@dataclasses.dataclass(frozen=True)
class TmaChoice:
    """Parameters of :class:`hw.tma.host_port.tma_top.TmaTop`.

    Raises
    ------
    BadInputError
        If it has fewer slots of commands than the testbench uses.
    """

    sizes: TmaSizes
    ports: int = 1
    commands: int = 64
    reduces: bool = False

    def __post_init__(self) -> None:
        if self.commands < _COMMANDS:
            rule = f"be at least {_COMMANDS} in the testbench"
            raise refusal("Commands in flight", rule, self.commands)

    @classmethod
    def of(cls, values: Mapping[str, int]) -> TmaChoice:
        """The unit with the parameters of ``tma_unit`` or ``tma_top`` in `sim.components`."""
        sizes = {each.name: values[each.name] for each in dataclasses.fields(TmaSizes)}
        others = {name: values[name] for name in ("ports", "commands") if name in values}
        return cls(TmaSizes(**sizes), reduces=bool(values["reduces"]), **others)

    @property
    def environment(self) -> dict[str, str]:
        """Environment that selects it."""
        others = {"ports": self.ports, "commands": self.commands, "reduces": self.reduces}
        return {_VARIABLE: json.dumps(vars(self.sizes) | others)}

    def design(self) -> CheckedComponent:
        """The unit, with a checker of AXI4 beside its port."""
        unit = TmaTop(self.sizes, ports=self.ports, commands=self.commands, reduces=self.reduces)
        # Reads of descriptors come on top of the boxes'.
        return CheckedComponent(unit, outstanding=self.sizes.outstanding + 1)


def asked_tma() -> TmaChoice | None:
    """The selected unit; None if none is selected."""
    text = os.environ.get(_VARIABLE)
    return None if text is None else TmaChoice.of(json.loads(text))
