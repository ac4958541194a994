"""The kinds of unit a configuration is made of, and how many of each."""

import dataclasses

from hw.command.processor import CommandProcessor
from hw.config import ChipConfig
from hw.mesh.switch import Switch
from hw.pcu.unit import Pcu
from hw.pmu.unit import Pmu
from hw.shared import Shareable
from hw.stream import vector_layout
from hw.tma.engine import TmaEngine

__all__ = ["MISSING", "Component", "components"]

#: Parts of a chip that no component stands for yet.
MISSING = ("agcu", "configuration_chain", "chip")

# The larger of a PCU's and a PMU's, so that one definition serves every place of the mesh.
_UNIT_OUTPUTS = 2
_UNIT_INPUTS = 3
_TOKEN_OUTPUTS = 2
_COUNTERS_A_UNIT = 4


@dataclasses.dataclass(frozen=True)
class Component:
    """One kind of unit, with the parameters a configuration gives it.

    Members
    -------
    kind : str
        What it is.
    count : int
        How many a chip has; at least 1.
    unit : Shareable
        The component itself.
    note : str
        What a reader of its figures must know, or nothing.
    """

    kind: str
    count: int
    unit: Shareable
    note: str = ""


def components(config: ChipConfig) -> list[Component]:
    """Every kind of unit of a chip that can be built; the rest is `MISSING`.

    Raises
    ------
    TypeError, ValueError
        If a unit cannot have the parameters of the configuration.
    """
    switches = config.rows * config.columns
    agcu = config.agcu
    pmu = Pmu(
        width_bits=config.width_bits,
        capacity_bytes=config.pmu.capacity_bytes,
        slots=config.pmu.slots,
    )
    kinds = [
        Component("pcu", config.pcu_count, Pcu(config), "systolic mode only"),
        Component("pmu", config.pmu_count, pmu),
        Component(
            "switch",
            switches,
            Switch(
                payload_shape=vector_layout(config.width_bits),
                tracks=config.tracks,
                unit_outputs=_UNIT_OUTPUTS,
                unit_inputs=_UNIT_INPUTS,
            ),
            f"{_UNIT_OUTPUTS} unit outputs and {_UNIT_INPUTS} unit inputs at every place",
        ),
        Component(
            "token_switch",
            switches,
            Switch(
                payload_shape=0,
                tracks=config.token_tracks,
                unit_outputs=_TOKEN_OUTPUTS,
                unit_inputs=0,
            ),
            f"{_TOKEN_OUTPUTS} unit outputs at every place",
        ),
        Component(
            "tma",
            agcu.count,
            TmaEngine(
                width_bits=config.width_bits,
                address_bits=agcu.axi_address_bits,
                landing_beats=agcu.landing_beats,
                outstanding=agcu.outstanding,
            ),
            "stands for the AGCU: its command issuers and token ports are not in it",
        ),
        Component(
            "command",
            1,
            CommandProcessor(
                width_bits=config.width_bits,
                rows=config.rows,
                axi_address_bits=agcu.axi_address_bits,
                fingerprint=0,
                counters=_COUNTERS_A_UNIT * switches,
            ),
            f"{_COUNTERS_A_UNIT} counters a PCU and PMU, fingerprint 0",
        ),
    ]
    return [component for component in kinds if component.count]
