"""Partition of a design into modules with separate simulation models and the rest.

The harness carries values between the ports of the models (``chip.cpp``). A module is compiled
once for all its instances, and again only if its own text changes.
"""

import dataclasses
import re
from collections.abc import Collection

from gen.design import Definition, Design
from hw.arch.errors import BadInputError

__all__ = ["CutDesign", "PartInstance", "PartPort", "cut", "member"]

_INSTANCE = re.compile(r"^  (\\\S+|\w+) +(\\\S+|\w+) +\(\n(.*?)^  \);\n", re.MULTILINE | re.DOTALL)
_CONNECTION = re.compile(r"^    \.(\\\S+|\w+) ?\((.*?)\),?$", re.MULTILINE)
_AUTOMATIC = re.compile(r"(\\\$auto\$[^\s$]*\$)(\d+)")
_ASSIGNMENTS = re.compile(r"(?:^  assign .*;\n)+", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class PartPort:
    """A port of a part's instance, paired with the corresponding port of the rest."""

    name: str
    outer: str
    is_output: bool


@dataclasses.dataclass(frozen=True)
class PartInstance:
    """An instance of a part."""

    name: str
    module: str
    ports: tuple[PartPort, ...]


@dataclasses.dataclass(frozen=True)
class CutDesign:
    """Parts of a design, the rest first, and the instances of the other parts."""

    parts: tuple[Design, ...]
    instances: tuple[PartInstance, ...]


def _canonical(text: str) -> str:
    """Normalise the text of a module, so that it does not depend on the rest of the design.

    Yosys numbers some names over all modules, and the order of assignments depends on them.
    """
    numbers: dict[str, int] = {}
    text = _AUTOMATIC.sub(
        lambda match: f"{match[1]}{numbers.setdefault(match[2], len(numbers))}", text
    )
    return _ASSIGNMENTS.sub(lambda match: "".join(sorted(match[0].splitlines(True))), text)


def member(port: str) -> str:
    """C++ name of a port; Verilator escapes two consecutive underscores."""
    return port.replace("__", "___05F")


def cut(design: Design, modules: Collection[str]) -> CutDesign:
    """Cut the instances of some modules out of a design's top.

    They share the clock of the top; every other port becomes a port of the rest.

    Parameters
    ----------
    design : Design
        Verilog as :func:`gen.verilog.emit` writes it.
    modules : collection of str
        Modules instantiated in the top.

    Raises
    ------
    BadInputError
        If the design has no such top.
    """
    if design.top not in design.definitions:
        raise BadInputError(f"Verilog must have the module {design.top!r}")
    texts = {name: _canonical(text) for name, text in design.texts.items()}
    instances: list[PartInstance] = []
    added: list[str] = []
    lines: list[str] = []

    def replace(match: re.Match[str]) -> str:
        module, name, connections = match.groups()
        if module not in modules:
            return match[0]
        number = len(instances)
        wires: list[PartPort] = []
        for port, expression in _CONNECTION.findall(connections):
            inner = port.lstrip("\\")
            if inner == "clk" or not expression:
                continue
            is_output, width = design.definitions[module].ports[inner]
            outer = f"cut_{number}_{len(wires)}"
            wires.append(PartPort(inner, outer, is_output))
            added.append(outer)
            lines.append(f"  {'input' if is_output else 'output'} [{width - 1}:0] {outer};")
            ends = (expression, outer) if is_output else (outer, expression)
            lines.append(f"  assign {ends[0]} = {ends[1]};")
        instances.append(PartInstance(name.lstrip("\\"), module, tuple(wires)))
        return ""

    body = _INSTANCE.sub(replace, texts[design.top])
    if instances:
        head, _, rest = body.partition(");\n")
        inner_text, _, _ = rest.rpartition("endmodule")
        body = f"{head}, {', '.join(added)});\n{inner_text}" + "\n".join([*lines, "endmodule\n"])
    used = {instance.module for instance in instances}
    top = design.definitions[design.top]
    outside = {name: count for name, count in top.inside.items() if name not in used}
    rest_design = Design(
        design.top,
        "\n".join((texts | {design.top: body}).values()),
        design.definitions | {design.top: Definition(top.ports, outside)},
    )
    whole = Design(design.top, "\n".join(texts.values()), design.definitions)
    return CutDesign(
        (rest_design.part(design.top), *(whole.part(name) for name in sorted(used))),
        tuple(instances),
    )
