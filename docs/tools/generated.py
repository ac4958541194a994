"""Every generated block: its page, what makes it, and whether that takes long."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType

from docs.tools import (
    area_tables,
    chip_tables,
    contract_tables,
    fpga_tables,
    softmax_tables,
    tma_tables,
)
from docs.tools.markdown import table
from hw.arch.counters import counter_table
from hw.arch.registers.chip_registers import REGISTERS
from hw.arch.registers.register_fields import register_table
from hw.arch.registers.tensor_registers import TENSOR_REGISTERS
from hw.arch.registers.tma_registers import TMA_REGISTERS
from hw.lib.axi_rules import rule_rows
from hw.numeric.formats import format_table
from sim.profile.schema import field_rows
from sw.ir.element_operations import element_table

__all__ = ["GENERATED", "Generated"]


@dataclasses.dataclass(frozen=True)
class Generated:
    """Block of a page that is made from the code.

    Parameters
    ----------
    page : str
        File of the page, from the top of the project.
    make : callable
        Gives the block's content.
    slow : bool
        Whether that synthesizes, emits or simulates a chip.
    """

    page: str
    make: Callable[[], str]
    slow: bool = True


def _axi_rules() -> str:
    return table(("rule", "side", "section", "statement"), rule_rows())


def _profile_fields() -> str:
    return table(("field", "form", "meaning"), field_rows())


#: Blocks by name.
GENERATED: Mapping[str, Generated] = MappingProxyType(
    {
        "configurations": Generated("README.md", chip_tables.parameters, slow=False),
        "registers": Generated(
            "docs/command.md", functools.partial(register_table, REGISTERS), slow=False
        ),
        "tma-registers": Generated(
            "docs/tma_unit.md", functools.partial(register_table, TMA_REGISTERS), slow=False
        ),
        "tensor-registers": Generated(
            "docs/tensor_unit.md", functools.partial(register_table, TENSOR_REGISTERS), slow=False
        ),
        "reductions": Generated("docs/tma_reductions.md", tma_tables.reductions, slow=False),
        "counters": Generated("docs/chip.md", counter_table, slow=False),
        "element-operations": Generated("docs/ir.md", element_table, slow=False),
        "number-formats": Generated("docs/numerics.md", format_table, slow=False),
        "axi-rules": Generated("docs/axi.md", _axi_rules, slow=False),
        "contract-modules": Generated("docs/contract.md", contract_tables.modules, slow=False),
        "contract-units": Generated("docs/contract.md", contract_tables.units, slow=False),
        "contract-limits": Generated("docs/contract.md", contract_tables.limits, slow=False),
        "contract-codes": Generated("docs/contract.md", contract_tables.codes, slow=False),
        "profile-fields": Generated("docs/profile.md", _profile_fields, slow=False),
        "texts": Generated("docs/chip.md", chip_tables.texts),
        "products": Generated("docs/compiler.md", chip_tables.products),
        "pipelines": Generated("docs/stages.md", chip_tables.pipelines),
        "softmax-products": Generated("docs/stages.md", softmax_tables.softmax_products),
        "epilogues": Generated("docs/stages.md", chip_tables.epilogues),
        "links": Generated("docs/place_and_route.md", chip_tables.links),
        "steps": Generated("docs/liveness.md", chip_tables.steps),
        "area-tiny": Generated("docs/area.md", functools.partial(area_tables.chip, "tiny")),
        "area-small": Generated("docs/area.md", functools.partial(area_tables.chip, "small")),
        "area-large": Generated("docs/area.md", functools.partial(area_tables.chip, "large")),
        "area-sums": Generated("docs/area.md", area_tables.sums),
        "area-pcus": Generated("docs/area.md", area_tables.pcus),
        "area-ecp5": Generated("docs/area.md", fpga_tables.fpga_units),
        "area-units": Generated("docs/systolic.md", area_tables.shares),
        "area-switches": Generated("docs/switch.md", area_tables.switches),
        "area-cells": Generated("docs/numerics.md", area_tables.cells),
        "area-functions": Generated("docs/numerics.md", area_tables.functions),
        "area-function-unit": Generated("docs/numerics.md", area_tables.function_unit),
        "area-tma": Generated("docs/tma_unit.md", area_tables.tma),
        "area-operations": Generated("docs/numerics.md", area_tables.operations),
    }
)
