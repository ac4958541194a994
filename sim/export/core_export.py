"""Files of an exported core, from a component and its emitted Verilog."""

import json
from collections.abc import Sequence
from pathlib import Path

from gen.design import Design
from gen.export.bus_ports import BusGroup, bus_groups
from gen.export.definitions import definitions
from gen.export.headers import c_header, verilog_package
from gen.export.scripts import constraints, core_file, ecp5_script, file_list
from gen.export.wrapper import wrapper
from gen.lint import waivers
from hw import __version__
from sim.export.core_cases import core_vectors
from sim.export.core_request import CoreRequest

__all__ = ["core_files", "core_groups"]

_TESTBENCH = Path(__file__).with_name("core_testbench.py")
_RUN = Path(__file__).with_name("run_testbench.py")


def core_groups(request: CoreRequest, design: Design) -> list[BusGroup]:
    """Ports of the core, under the names of the field.

    Parameters
    ----------
    request : CoreRequest
    design : Design
        Emitted Verilog of the component.
    """
    ports = design.definitions[design.top].ports
    return bus_groups(request.component.signature, ports)


def core_files(request: CoreRequest, design: Design, seed: int) -> tuple[dict[str, str], list[str]]:
    """Contents of the files by name, and the names of the cases that compare results.

    Parameters
    ----------
    request : CoreRequest
    design : Design
        Emitted Verilog of the component.
    seed : int
        Seed of the random stimuli.
    """
    name, groups = request.core, core_groups(request, design)
    found = definitions(request.component, groups)
    vectors, compared = core_vectors(request, groups, seed)
    files = {
        f"{name}.v": wrapper(name, design.top, groups, request.summary),
        f"{name}_modules.v": design.file,
        f"{name}_pkg.sv": verilog_package(name, found),
        f"{name}.h": c_header(name, found),
        f"{name}.f": file_list(name),
        f"{name}.vlt": _waivers(name),
        f"{name}.core": core_file(name, request.summary, __version__),
        **{f"{name}.{ending}": text for ending, text in constraints(groups).items()},
        "ecp5.sh": ecp5_script(name),
        f"test_{name}.py": _TESTBENCH.read_text(),
        "run.py": _RUN.read_text(),
        "vectors.json": json.dumps(vectors) + "\n",
        "README.md": _readme(request, compared),
    }
    return files, compared


def _waivers(name: str) -> str:
    """Waivers for the files of the core; a package may have parameters that nobody reads."""
    text = waivers(f"*{name}*")
    unused = [f'lint_off -rule UNUSEDPARAM -file "*{name}_pkg.sv"', ""]
    return "\n".join([text.rstrip(), "// Whoever uses the package reads them.", *unused])


def _readme(request: CoreRequest, compared: Sequence[str]) -> str:
    name = request.core
    cases = ", ".join(f"`{case}`" for case in compared)
    tested = (
        f"cases {cases}: stimuli, and answers of numpy or a model"
        if compared
        else "only the case `idle`: after reset, without input, no stream gives anything"
    )
    return f"""\
# {name}

{request.summary}. Exported by tilewright {__version__}: `{request.command}`.

| file | contents |
|---|---|
| `{name}.v` | the module `{name}`: ports in the names of AXI4, AXI4-Lite and AXI4-Stream |
| `{name}_modules.v` | the modules in it |
| `{name}_pkg.sv`, `{name}.h` | constants for SystemVerilog and C |
| `{name}.f`, `{name}.vlt` | list of sources; waivers for `verilator -Wall` |
| `{name}.core` | FuseSoC: targets `lint`, `sim`, `sim_icarus` |
| `{name}.xdc`, `{name}.sdc` | out-of-context constraints |
| `ecp5.sh` | synthesis, place and route for an ECP5 |
| `test_{name}.py`, `vectors.json`, `run.py` | testbench for cocotb; {tested} |

`rst` is synchronous, and resets while 1. Run the testbench by `python run.py`, which needs the
packages `cocotb>=2.1`, `verilator` (or a simulator in PATH) and, for AXI ports, `cocotbext-axi`.
"""
