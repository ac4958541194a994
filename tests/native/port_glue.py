"""Ports of a module by role, and the C++ that binds them to the harness of a native model."""

import dataclasses
from collections.abc import Mapping

from amaranth.hdl import Shape
from amaranth.lib.wiring import In, Signature

from hw.lib.axi import Axi4Signature
from hw.numeric.division import ceil_div
from tests.native.clocked_bundle import CLOCK, RESET

__all__ = ["Ports", "glue", "ports_of", "words_of"]


@dataclasses.dataclass(frozen=True)
class Ports:
    """Ports of a module by role, with widths in bits: payload of a stream, data of a memory."""

    inputs: dict[str, int]
    outputs: dict[str, int]
    settings: dict[str, int]
    readings: dict[str, int]
    memories: dict[str, int]
    clocks: list[str]
    resets: list[str]


def ports_of(signature: Signature) -> Ports:
    """Ports of a component by its signature: streams by direction, memories, plain signals."""
    ports = Ports({}, {}, {}, {}, {}, [], [])
    for name, member in signature.members.items():
        if name.endswith((CLOCK, RESET)):
            (ports.clocks if name.endswith(CLOCK) else ports.resets).append(name)
            continue
        if member.is_signature and isinstance(member.signature, Axi4Signature):
            ports.memories[name] = member.signature.data_bits
        elif member.is_signature:
            streams = ports.inputs if member.flow == In else ports.outputs
            streams[name] = Shape.cast(member.signature.members["payload"].shape).width
        else:
            signals = ports.settings if member.flow == In else ports.readings
            signals[name] = Shape.cast(member.shape).width
    if not ports.clocks:
        ports.clocks.append("clk")
        ports.resets.append("rst")
    return ports


def words_of(bits: int) -> int:
    """Words of 32 bits that a value of some bits takes."""
    return ceil_div(bits, 32)


def _member(stream_name: str, member: str) -> str:
    """C++ name of a stream's port; Verilator escapes two consecutive underscores."""
    return f"top.{stream_name}___05F{member}"


def _cases(lines: list[str]) -> str:
    return "\n".join(f"        case {index}: {line} break;" for index, line in enumerate(lines))


def _function(head: str, lines: list[str], tail: str = "") -> str:
    return f"inline {head} {{\n    switch (index) {{\n{_cases(lines)}\n    }}\n{tail}}}\n"


def _table(name: str, widths: Mapping[str, int]) -> str:
    values = ", ".join([*(str(words_of(width)) for width in widths.values()), "0"])
    return (
        f"constexpr int {name}_count = {len(widths)};\n"
        f"constexpr int {name}_words[] = {{{values}}};\n"
    )


def glue(ports: Ports) -> str:
    """Generated C++ that binds the ports to the harness."""
    widest = max(
        [1, *(words_of(width) for width in [*ports.inputs.values(), *ports.outputs.values()])]
    )
    ready = [f"return {_member(name, 'ready')};" for name in ports.inputs]
    take = [
        f"get({_member(name, 'payload')}, words); return {_member(name, 'valid')};"
        for name in ports.outputs
    ]
    return "".join(
        [
            f"constexpr int clock_count = {len(ports.clocks)};\n",
            _function(
                "void set_clock(Vtop& top, int index, bool level)",
                [f"top.{name} = level;" for name in ports.clocks],
            ),
            "inline void set_resets(Vtop& top, bool level) {\n",
            *(f"    top.{name} = level;\n" for name in ports.resets),
            "}\n",
            _table("input", ports.inputs),
            _table("output", ports.outputs),
            f"constexpr int max_words = {widest + 1};\n",
            _function(
                "void offer(Vtop& top, int index, bool valid, const uint32_t* words)",
                [
                    f"{_member(name, 'valid')} = valid; put({_member(name, 'payload')}, words);"
                    for name in ports.inputs
                ],
            ),
            _function("bool input_ready(Vtop& top, int index)", ready, "    return false;\n"),
            _function(
                "void accept(Vtop& top, int index, bool ready)",
                [f"{_member(name, 'ready')} = ready;" for name in ports.outputs],
            ),
            _function(
                "bool output_take(Vtop& top, int index, uint32_t* words)",
                take,
                "    return false;\n",
            ),
            "inline void idle(Vtop& top) {\n",
            *(f"    {_member(name, 'valid')} = 0;\n" for name in ports.inputs),
            *(f"    {_member(name, 'ready')} = 0;\n" for name in ports.outputs),
            "}\n",
            "inline void clear_inputs(Vtop& top) {\n    const uint32_t zero[64] = {};\n",
            "    idle(top);\n",
            *(f"    put({_member(name, 'payload')}, zero);\n" for name in ports.inputs),
            *(f"    put(top.{name}, zero);\n" for name in ports.settings),
            "}\n",
            _function(
                "void set_signal(Vtop& top, int index, const uint32_t* words)",
                [f"put(top.{name}, words);" for name in ports.settings],
            ),
            _function(
                "void get_signal(Vtop& top, int index, uint32_t* words)",
                [f"get(top.{name}, words);" for name in ports.readings],
            ),
        ]
    )
