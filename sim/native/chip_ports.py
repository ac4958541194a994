"""Generated C++ that binds the ports of a chip to its harness."""

from collections.abc import Sequence
from pathlib import Path

from gen.design import Design
from sim.native.parts import CutDesign, PartInstance, cut, member

__all__ = ["glue", "glue_parts", "parts_of", "sampled"]

_PARTS = Path(__file__).with_name("part.h")

_HOST_INPUTS = (
    "awaddr awprot awvalid wdata wstrb wvalid bready araddr arprot arvalid rready".split()
)
_HOST_OUTPUTS = "awready wready bresp bvalid arready rdata rresp rvalid".split()
_READ_INPUTS = "arready rdata rresp rid rlast rvalid".split()
_READ_OUTPUTS = "araddr arlen arsize arburst arid arvalid rready".split()
_WRITE_INPUTS = "awready wready bresp bid bvalid".split()
#: Ports of a unit whose counters can be sampled.
_COUNTERS = ("i_counter", "o_counter", "i_run")
_WRITE_OUTPUTS = "awaddr awlen awsize awburst awid awvalid wdata wstrb wlast wvalid bready".split()


def parts_of(design: Design) -> CutDesign:
    """Cut a chip at its tiles and AGCUs."""
    inside = design.definitions[design.top].inside if design.top in design.definitions else ()
    return cut(design, [name for name in inside if name.startswith(("tile_", "agcu_"))])


def _counts(instance: PartInstance) -> bool:
    return {port.name for port in instance.ports}.issuperset(_COUNTERS)


def sampled(design: CutDesign) -> tuple[str, ...]:
    """Instances of the parts whose counters can be sampled, in the harness's order."""
    return tuple(each.name for each in design.instances if _counts(each))


def _bind(target: str, prefix: str, names: list[str]) -> list[str]:
    return [f"    {target}.{name}.bind(top.{member(f'{prefix}__{name}')});" for name in names]


def _parts(instances: Sequence[PartInstance]) -> list[str]:
    lines = []
    for instance in instances:
        kind = f"PartOf<V{instance.module}>"
        lines.append(f'    {{ auto* part = new {kind}(context, "{instance.name}");')
        lines.append("      parts.emplace_back(part);")
        for port in instance.ports:
            ends = (f"part->model.{member(port.name)}", f"top.{port.outer}")
            if port.is_output:
                lines.append(f"      part->output({ends[0]}, {ends[1]});")
            else:
                lines.append(f"      part->input({ends[1]}, {ends[0]});")
        if _counts(instance):
            named = ", ".join(f"part->model.{member(name)}" for name in _COUNTERS)
            lines.append(f"      part->counters({named});")
        lines.append("    }")
    return lines


def glue_parts(harness: str, design: CutDesign, *, waves: bool) -> str:
    """Insert the models of a design into the harness, at its line ``#include "part.h"``.

    The rest of the design becomes class ``Rest``; ``bind_parts`` creates and wires the parts.

    Parameters
    ----------
    harness : str
        C++ source.
    design : CutDesign
    waves : bool
        Whether the models record signals.
    """
    modules = [part.top for part in design.parts]
    models = [
        *(["#define TILEWRIGHT_TRACE", "#include <verilated_vcd_c.h>"] if waves else []),
        *(f'#include "V{module}.h"' for module in modules),
        f"using Rest = V{modules[0]};",
    ]
    wires = [
        "void bind_parts(Rest& top, VerilatedContext* context,",
        "                std::vector<std::unique_ptr<Part>>& parts) {",
        *_parts(design.instances),
        "}",
    ]
    text = _PARTS.read_text().replace("//MODELS//", "\n".join(models))
    return harness.replace('#include "part.h"', text.replace("//WIRES//", "\n".join(wires)))


def glue(harness: str, design: CutDesign, agcus: int, *, waves: bool) -> str:
    """Insert the ports of a chip into the harness.

    Parameters
    ----------
    harness : str
        Text of ``chip.cpp``.
    design : CutDesign
        The cut chip.
    agcus : int
    waves : bool
        Whether the models record signals.
    """
    host = _bind("host", "host", _HOST_INPUTS + _HOST_OUTPUTS)
    ports: list[str] = []
    for index, prefix in enumerate([*(f"memory__{number}" for number in range(agcus)), "launch"]):
        reads = prefix == "launch"
        name = "launch" if reads else f"memory[{index}]"
        names = _READ_INPUTS + _READ_OUTPUTS + ([] if reads else _WRITE_INPUTS + _WRITE_OUTPUTS)
        ports.append(f'    ports[{index}].name = "{name}";')
        ports += _bind(f"ports[{index}].pins", prefix, names)
    bindings = [
        "namespace {",
        f"constexpr int port_count = {agcus + 1};",
        "void bind_host(Rest& top, HostPins& host) {",
        *host,
        "}",
        "template <typename Ports> void bind_ports(Rest& top, Ports& ports) {",
        *ports,
        "}",
        "}  // namespace",
    ]
    return glue_parts(harness.replace("//PORTS//", "\n".join(bindings)), design, waves=waves)
