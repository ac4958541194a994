"""Verilog module that gives a component the port names of the field."""

import textwrap
from collections.abc import Sequence

from gen.export.bus_ports import BusGroup, BusKind, BusPort

__all__ = ["wrapper"]

_WIDTH = 96
_ROLES = {
    BusKind.AXI4: ("subordinate", "manager"),
    BusKind.AXI4_LITE: ("subordinate", "manager"),
    BusKind.AXI4_STREAM: ("receiver", "transmitter"),
}


def wrapper(name: str, inner: str, groups: Sequence[BusGroup], summary: str) -> str:
    """Text of the module `name`, which contains one instance of the module `inner`.

    Parameters
    ----------
    name, inner : str
    groups : sequence of BusGroup
        All ports.
    summary : str
        One-line description, for the first comment.
    """
    body = [f"// {line}".rstrip() for line in textwrap.wrap(f"{name}: {summary}", _WIDTH)]
    body += ["`default_nettype none", f"module {name} ("]
    ports = [(group, port) for group in groups for port in group.ports]
    shown: BusGroup | None = None
    for number, (group, port) in enumerate(ports):
        if group is not shown and (group.kind is not BusKind.PLAIN or not _same(shown, group)):
            body += [f"  // {line}" for line in _title(group)]
        if group is not shown:
            body += [f"  //   {line}" for line in _fields(group)]
        shown = group
        body.append(f"  {_declared(port)}{',' * (number < len(ports) - 1)}")
    body.append(");")
    for group in groups:
        for wire, width in group.wires.items():
            body.append(f"  wire [{width - 1}:0] {wire};")
        for target, expression in group.assigns.items():
            body.append(f"  assign {target} = {expression};")
    joined = [pair for group in groups for pair in group.connections.items()]
    body.append(f"  {inner} core (")
    body += [
        f"    .{_escaped(port)}({expression}){',' * (number < len(joined) - 1)}"
        for number, (port, expression) in enumerate(joined)
    ]
    return "\n".join([*body, "  );", "endmodule", "`default_nettype wire", ""])


def _same(shown: BusGroup | None, group: BusGroup) -> bool:
    return shown is not None and shown.kind is group.kind


def _title(group: BusGroup) -> list[str]:
    roles = _ROLES.get(group.kind)
    if roles is None:
        return [group.kind.value.capitalize()]
    text = f"{group.kind.value} {roles[group.is_manager]} {group.prefix}*"
    names = [port.name.removeprefix(group.prefix) for port in group.ports]
    if group.kind is BusKind.AXI4_STREAM and "tready" not in names:
        text += ": never waits, so it has no tready"
    return textwrap.wrap(text, _WIDTH)


def _fields(group: BusGroup) -> list[str]:
    """Fields of tdata, or of a plain port; of a long structure the definitions have them."""
    named = [field for field in group.fields if field.name]
    if len(named) > _SHOWN:
        whose = group.prefix if group.kind is BusKind.PLAIN else f"{group.prefix}tdata"
        return [f"{whose} has {len(named)} fields: see the package"]
    lines = [
        f"[{field.low + field.width - 1}:{field.low}] {field.name}{' (signed)' * field.is_signed}"
        for field in named
    ]
    return textwrap.wrap(", ".join(lines), _WIDTH) if lines else []


_SHOWN = 24


def _escaped(port: str) -> str:
    """Name of a port as Verilog takes it: that of a unit's program is a reserved word."""
    return f"\\{port} " if port == "config" else port


def _declared(port: BusPort) -> str:
    direction = "output wire" if port.is_output else "input  wire"
    width = f"[{port.width - 1}:0] " if port.width > 1 else ""
    return f"{direction} {width}{port.name}"
