"""Programs for cocotb: Verilator models of a design's parts behind cocotb's main program."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import cocotb_tools.config
from cocotb import __version__ as cocotb_version

from gen.verilog import Design
from sim.native.archive import Product, build_parts
from sim.native.chip_ports import glue_parts, parts_of
from sim.progress import Progress

__all__ = ["build_model"]

_TOP = Path(__file__).with_name("cocotb_model.cpp")
_INCLUDE = '#include "Vtop.h"'


def build_model(
    design: Design,
    ports: Sequence[str],
    *,
    waves: bool = False,
    use_cache: bool = True,
    progress: Progress | None = None,
) -> tuple[Path, bool]:
    """Build the program that cocotb runs a design in.

    A chip is cut as for :class:`sim.native.chip.ChipModel`, and the archives of its tiles are the
    same; any other design is one part.

    Parameters
    ----------
    design : Design
    ports : sequence of str
        Ports of its top, which the testbench drives and reads.
    waves : bool
        Whether it records signals.
    use_cache : bool
        Take finished builds of the same content.
    progress : Progress, optional
        Shows which part is built.

    Returns
    -------
    folder, hit : Path, bool
        Where the program is, under the name of the top, and whether it came from the cache.

    Raises
    ------
    MissingToolError
        If Verilator, g++, make or perl is missing.
    RuntimeError
        If the build fails; the message ends with the tool's last lines.
    """
    program = cocotb_tools.config.share_dir / "lib" / "verilator" / "verilator.cpp"
    main = program.read_text().replace(_INCLUDE, "")
    libraries = cocotb_tools.config.libs_dir
    parts = parts_of(design)
    public = [f'public_flat_rw -module "{design.top}" -var "{name}"' for name in ports]
    product = Product(
        name=design.top,
        link=(f"-Wl,-rpath,{libraries}", f"-L{libraries}", "-lcocotbvpi_verilator"),
        runtime=("verilated_vpi",),
        options=("--vpi", "--timescale", "1ns/1ps"),
        control="\n".join(["`verilator_config", *public, ""]),
    )
    head = f"// cocotb {cocotb_version}\n#define VM_TRACE {int(waves)}\n"
    harness = glue_parts(head + _TOP.read_text() + main, parts, waves=waves)
    path, hit = build_parts(
        parts.parts,
        harness,
        product=product,
        waves=waves,
        use_cache=use_cache,
        progress=progress,
    )
    return path.parent, hit
