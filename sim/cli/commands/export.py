"""``tilewright export``: a chip or a component as a core for other designs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from sim.cli.options import Subparsers, add_config, add_json, integer
from sim.cli.requested_component import requested_component
from sim.cli.stand_alone import add_settings
from sim.cli.unit_options import add_systolic, component_name
from sim.components import ARRAYS, COMPONENTS
from sim.progress import shown_progress

__all__ = ["add", "execute"]


def add(subparsers: Subparsers) -> None:
    """Register the options of ``export``."""
    parser = subparsers.add_parser(
        "export",
        help="export a chip or a component as a core: Verilog, headers, testbench, scripts",
        description="Export a chip or a component as a core for other designs: Verilog with AXI "
        "names, SystemVerilog package, C header, cocotb testbench, FuseSoC description, scripts.",
    )
    add_config(parser, default=None)
    parser.add_argument(
        "--component",
        type=component_name,
        choices=(*COMPONENTS, *ARRAYS),
        metavar="NAME",
        help="export only this component of `tilewright list`",
    )
    parser.add_argument(
        "-o",
        "--output",
        dest="folder",
        required=True,
        metavar="FOLDER",
        help="folder to write: new, empty, or of an earlier export that nobody has changed",
    )
    parser.add_argument(
        "--seed",
        type=integer(0, (1 << 31) - 1),
        default=1,
        metavar="N",
        help="seed of the testbench's stimuli (default 1)",
    )
    add_settings(parser)
    add_systolic(parser)
    add_json(parser)


def _name(args: argparse.Namespace) -> str:
    """Name of the core without its prefix, as an identifier."""
    name = args.component or args.preset or "chip"
    return str(name).replace("-", "_").replace(".", "_")


def execute(args: argparse.Namespace) -> dict[str, Any]:
    """Export the chip of ``--config``, or a component, into ``--output``."""
    from gen.header import About
    from gen.verilog import emit
    from sim.export.core_export import core_files
    from sim.export.core_folder import require_folder, write_folder
    from sim.export.core_request import CoreRequest

    folder = Path(args.folder)
    require_folder(folder)
    asked = requested_component(args)
    command = f"tilewright export {asked.command} -o FOLDER"
    request = CoreRequest(
        _name(args),
        asked.component,
        asked.summary,
        command,
        asked.chip,
        asked.values or {},
        asked.unit,
        asked.tensor,
    )
    about = About(asked.summary, command, asked.parameters, asked.notes)
    with shown_progress() as progress:
        with progress.step("emitting Verilog"):
            design = emit(asked.component, about=about)
        with progress.step("computing vectors"):
            files, compared = core_files(request, design, args.seed)
    facts = {"core": request.core, "command": command, "seed": args.seed}
    write_folder(folder, files, facts)
    tested = f"testbench of {len(compared)} cases" if compared else "testbench of the idle core"
    print(f"{folder}: core {request.core}, {len(files)} files, {tested}; python {folder}/run.py")
    return facts | {"folder": str(folder), "files": sorted(files), "cases": compared}
