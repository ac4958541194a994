"""C++ that names the ports of a chip for its harness."""

from gen.verilog import Design

__all__ = ["blocks_of", "glue"]

_HOST_INPUTS = (
    "awaddr awprot awvalid wdata wstrb wvalid bready araddr arprot arvalid rready".split()
)
_HOST_OUTPUTS = "awready wready bresp bvalid arready rdata rresp rvalid".split()
_READ_INPUTS = "arready rdata rresp rid rlast rvalid".split()
_READ_OUTPUTS = "araddr arlen arsize arburst arid arvalid rready".split()
_WRITE_INPUTS = "awready wready bresp bid bvalid".split()
_WRITE_OUTPUTS = "awaddr awlen awsize awburst awid awvalid wdata wstrb wlast wvalid bready".split()


def blocks_of(design: Design) -> list[str]:
    """Modules worth building once each: the tiles, if there are many."""
    return []


def _bind(target: str, prefix: str, names: list[str]) -> list[str]:
    """Lines that bind pins; Verilator writes two underscores in a row as a code."""
    prefix = prefix.replace("__", "___05F")
    return [f"    {target}.{name}.bind(top.{prefix}___05F{name});" for name in names]


def glue(harness: str, agcus: int, *, waves: bool) -> str:
    """The harness with the ports of a chip of so many AGCUs put in.

    Parameters
    ----------
    harness : str
        Text of ``chip.cpp``.
    agcus : int
    waves : bool
        Whether the model records signals.
    """
    ports: list[str] = []
    host = _bind("host", "host", _HOST_INPUTS + _HOST_OUTPUTS)
    for index, prefix in enumerate([*(f"memory__{number}" for number in range(agcus)), "launch"]):
        reads = prefix == "launch"
        name = "launch" if reads else f"memory[{index}]"
        names = _READ_INPUTS + _READ_OUTPUTS + ([] if reads else _WRITE_INPUTS + _WRITE_OUTPUTS)
        ports.append(f'    ports[{index}].name = "{name}";')
        ports += _bind(f"ports[{index}].pins", prefix, names)
    declarations = f"namespace {{ constexpr int port_count = {agcus + 1}; }}"
    bindings = "\n".join(
        [
            "namespace {",
            "void bind_host(Vtop& top, HostPins& host) {",
            *host,
            "}",
            "template <typename Ports> void bind_ports(Vtop& top, Ports& ports) {",
            *ports,
            "}",
            "}",
        ]
    )
    trace = "#define TILEWRIGHT_TRACE\n#include <verilated_vcd_c.h>" if waves else ""
    return harness.replace("//PORTS//", f"{declarations}\n{bindings}").replace("//TRACE//", trace)
