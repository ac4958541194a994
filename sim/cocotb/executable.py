"""Executables for cocotb: Verilator models of a design's parts, linked with cocotb's main."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import cocotb_tools.config
from cocotb import __version__ as cocotb_version

from gen.design import Design
from sim.native.archive import Product, build_parts
from sim.native.chip_ports import glue_parts, parts_of
from sim.progress import Progress

__all__ = ["build_model"]

_TOP = Path(__file__).with_name("executable.cpp")
_INCLUDE = '#include "Vtop.h"'


def build_model(
    design: Design,
    ports: Sequence[str],
    *,
    waves: bool = False,
    use_cache: bool = True,
    progress: Progress | None = None,
) -> tuple[Path, bool]:
    """Build the executable in which cocotb simulates a design.

    A chip is cut into parts as for :class:`sim.native.chip_model.ChipModel` and shares the archives
    of its tiles; any other design is one part.

    Parameters
    ----------
    design : Design
    ports : sequence of str
        Top-level ports that the testbench accesses.
    waves : bool
        Whether it records waveforms.
    use_cache : bool
        Whether cached builds of the same content may be used.
    progress : Progress, optional
        Display of the part being built.

    Returns
    -------
    folder, hit : Path, bool
        Folder of the executable, which has the name of the top, and whether it was a cache hit.

    Raises
    ------
    MissingToolError, RuntimeError
        As :func:`sim.native.archive.build_parts` does.
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
