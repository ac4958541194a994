"""The C++ that binds the AXI4 ports of a module to the memories of a native model."""

from collections.abc import Mapping

__all__ = ["memory_glue"]

_INPUTS = (
    "arready",
    "awready",
    "wready",
    "rvalid",
    "rid",
    "rresp",
    "rlast",
    "bvalid",
    "bid",
    "bresp",
)
_OUTPUTS = (
    *("arvalid", "araddr", "arid", "arlen", "arsize", "arburst", "rready"),
    *("awvalid", "awaddr", "awid", "awlen", "awsize", "awburst", "wvalid", "bready"),
)
_WIDE = {"araddr", "awaddr", "arlen", "awlen"}


def _pin(port: str, name: str) -> str:
    """C++ name of a pin; Verilator escapes two consecutive underscores."""
    return f"top.{port}___05F{name}"


def _function(head: str, cases: list[list[str]]) -> str:
    lines = "\n".join(
        f"    case {index}: {' '.join(statements)} break;" for index, statements in enumerate(cases)
    )
    return f"inline void {head} {{\n    switch (index) {{\n{lines}\n    }}\n}}\n"


def memory_glue(ports: Mapping[str, int]) -> str:
    """Generated C++ that drives and samples AXI4 ports, of data widths in bits by name."""
    fields = "".join(f"    uint32_t {name};\n" for name in _INPUTS)
    values = "".join(
        f"    {'uint64_t' if name in _WIDE else 'uint32_t'} {name};\n" for name in _OUTPUTS
    )
    drives = [
        [
            *(f"{_pin(port, name)} = in.{name};" for name in _INPUTS),
            f"put({_pin(port, 'rdata')}, data);",
        ]
        for port in ports
    ]
    samples = [[f"out.{name} = {_pin(port, name)};" for name in _OUTPUTS] for port in ports]
    stores = [
        [
            f"get({_pin(port, name)}, {into});"
            for name, into in (("wdata", "data"), ("wstrb", "strobes"))
        ]
        for port in ports
    ]
    sizes = ", ".join([*(str(bits // 8) for bits in ports.values()), "0"])
    return "".join(
        [
            f"constexpr int memory_bytes[] = {{{sizes}}};\n",
            f"struct MemoryInputs {{\n{fields}}};\n",
            f"struct MemoryOutputs {{\n{values}}};\n",
            _function(
                "drive_memory(Vtop& top, int index, const MemoryInputs& in, const uint32_t* data)",
                drives,
            ),
            _function("sample_memory(Vtop& top, int index, MemoryOutputs& out)", samples),
            _function(
                "sample_memory_data(Vtop& top, int index, uint32_t* data, uint32_t* strobes)",
                stores,
            ),
        ]
    )
