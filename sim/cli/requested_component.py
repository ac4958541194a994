"""The chip or component that a command's options describe, with the contents of its header."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sim.cli.options import DEFAULT_CONFIG
from sim.cli.stand_alone import require_no_settings, stand_alone
from sim.cli.unit_options import (
    asks_for_systolic,
    systolic_command,
    systolic_component,
    systolic_config,
    tensor_config,
)
from sim.components import COMPONENTS
from sim.rules import load_config, validating

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hw.arch.config import ChipConfig
    from hw.emit.shared import Shareable
    from hw.matrix.unit_config import UnitConfig
    from hw.tpu.tensor_config import TensorConfig

__all__ = ["RequestedComponent", "requested_component"]


class RequestedComponent(NamedTuple):
    """The requested component, and the contents of a header of its Verilog.

    Members
    -------
    component : Shareable
    name : str
        Default name of the file.
    summary, command : str
    parameters, notes : dict
        As :class:`gen.header.About` takes them.
    chip : ChipConfig, optional
        Configuration of the chip that gives the defaults.
    values : dict
        Parameters of a component of :mod:`sim.components`.
    unit : UnitConfig, optional
        Parameters of a stand-alone matrix unit.
    tensor : TensorConfig, optional
        Parameters of a tensor unit.
    """

    component: Shareable
    name: str
    summary: str
    command: str
    parameters: dict[str, object]
    notes: dict[str, str] | None
    chip: ChipConfig | None = None
    values: dict[str, int] | None = None
    unit: UnitConfig | None = None
    tensor: TensorConfig | None = None


def requested_component(args: argparse.Namespace) -> RequestedComponent:
    """The chip or the component that the options describe.

    Raises
    ------
    BadInputError
        If there is no such component, or an option does not belong to it.
    """
    if not asks_for_systolic(args):
        return _of_chip(args)
    require_no_settings(args)
    return _of_unit(args)


def _of_unit(args: argparse.Namespace) -> RequestedComponent:
    """Request of a stand-alone matrix unit, an array or a tensor unit."""
    from hw.tpu.tensor_top import TensorTop
    from sim.cli.port_notes import array_notes, tensor_notes, unit_notes

    config, count = systolic_config(args)
    component = systolic_component(args, config)
    array = config.array
    parameters: dict[str, object] = vars(array) | {
        "dataflow": array.dataflow.value,
        "formats": ", ".join(fmt.name for fmt in array.formats),
        "hard_blocks": ", ".join(array.hard_blocks) or "none",
    }
    size = f"{array.rows} x {array.columns} cells"
    if args.component == "array":
        kind, notes = "systolic array", array_notes(array, skewed=not args.raw_edges)
        parameters["skewed"] = not args.raw_edges
        tensor = None
    else:
        kind, notes = "systolic matrix unit", unit_notes(config)
        tensor = tensor_config(args, config)
        if tensor is not None:
            config = tensor.unit
            kind, notes = "tensor unit", tensor_notes(config)
            parameters["buffer_rows"] = tensor.buffer_rows
            if isinstance(component, TensorTop):
                parameters["instructions"] = component.instructions
        sums = dict.fromkeys(fmt.accumulator.name for fmt in array.formats)
        parameters |= vars(config) | {
            "result_rows": config.queue_rows,
            "out": " or ".join(sums) if config.out is None else config.out.name,
        }
        del parameters["array"]
    parameters = {name.replace("_", " "): value for name, value in parameters.items()}
    if args.preset is not None:
        kind = f"{kind} of {args.preset}, {count} per core"
    name = component.definition_name
    if args.component is None:
        name = args.preset
    return RequestedComponent(
        component,
        name,
        f"{kind}, {size}",
        systolic_command(args),
        parameters,
        notes,
        unit=config,
        tensor=tensor,
    )


def _of_chip(args: argparse.Namespace) -> RequestedComponent:
    """Request of a chip, or of a component of the table."""
    from hw.arch.config import named
    from hw.chip import Chip
    from sim.cli.port_notes import matrix_notes

    given = args.config or DEFAULT_CONFIG
    config = load_config(given)
    # By content, because neither name nor location of a file is the same everywhere.
    known = next((name for name in named if named[name] == config), None)
    command = f"--config {known or 'FILE.toml'}"
    parameters = dict(_flat(config.parameters()))
    with validating("--config"):
        if args.component is None:
            require_no_settings(args)
            name = given if given in named else Path(given).stem
            chip = _chip(config)
            return RequestedComponent(
                Chip(config), name, chip, command, parameters, None, chip=config
            )
    unit, values = stand_alone(args, config)
    entry = COMPONENTS[args.component]
    command = f"{f'{command} ' * entry.of_chip}--component {entry.name}"
    command += "".join(f" --set {name}={value}" for name, value in values.items())
    notes = None
    if entry.name == "matrix_unit":
        notes = matrix_notes(config.grid_rows, config.grid_columns, config.pcu.operands)
    if values or not entry.of_chip:
        parameters = dict(values)
    return RequestedComponent(
        unit,
        unit.definition_name,
        entry.summary,
        command,
        parameters,
        notes,
        chip=config,
        values=values,
    )


def _chip(config: ChipConfig) -> str:
    return f"chip, {config.rows} x {config.columns} tiles"


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Parameters of all tables, named as in a configuration file."""
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
