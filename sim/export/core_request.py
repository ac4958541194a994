"""A component to export, with the parameters that its cases need."""

import dataclasses
from collections.abc import Mapping

from hw.arch.config import ChipConfig
from hw.emit.shared import Shareable
from hw.matrix.unit_config import UnitConfig
from hw.tpu.tensor_config import TensorConfig

__all__ = ["CoreRequest"]


@dataclasses.dataclass(frozen=True)
class CoreRequest:
    """Component to export.

    Members
    -------
    name : str
        Name of the component, or ``chip``.
    component : Shareable
    summary, command : str
        One-line description, and the command line that makes it again.
    chip : ChipConfig, optional
        Configuration of the chip that gives the defaults.
    values : mapping of str to int
        Parameters of a component of :mod:`sim.components`.
    unit : UnitConfig, optional
        Parameters of a stand-alone matrix unit.
    tensor : TensorConfig, optional
        Parameters of a tensor unit.
    """

    name: str
    component: Shareable
    summary: str
    command: str
    chip: ChipConfig | None = None
    values: Mapping[str, int] = dataclasses.field(default_factory=dict)
    unit: UnitConfig | None = None
    tensor: TensorConfig | None = None

    @property
    def core(self) -> str:
        """Name of the core, of its files and of its top module."""
        return f"tilewright_{self.name}"
