"""The comment at the head of emitted Verilog: what it is, its parameters, its ports.

Nothing in it depends on the machine, so the same command gives the same file everywhere.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from amaranth.hdl import Shape
from amaranth.lib import data, stream, wiring

from hw import __version__
from hw.shared import Shareable

__all__ = ["header"]

_WIDTH = 96
_CLOCKS = {"clk": "in, 1 bit: clock", "rst": "in, 1 bit: reset while 1, at the clock's edge"}
_STREAM = (
    "A stream NAME has the ports NAME__valid, NAME__ready and NAME__payload. A payload passes in a "
    "cycle in which valid and ready are both 1; once offered it stays."
)


def header(
    component: Shareable,
    *,
    text: str,
    summary: str,
    command: str,
    parameters: Mapping[str, object],
    notes: Mapping[str, str],
) -> str:
    """Comment lines for the head of the Verilog of a component.

    Parameters
    ----------
    component : Shareable
        What the ports are of.
    text : str
        Its Verilog, which has a clock and a reset only if something in it needs them.
    summary : str
        What it is.
    command : str
        Command line that makes the file again.
    parameters : mapping of str to object
    notes : mapping of str to str
        What a port is for, by its name, or by that of its stream and field with a dot between.
    """
    top = component.definition_name
    ports = _ports(text, top)
    lines = [f"{top}: {summary}", f"Made by tilewright {__version__}. To make it again:"]
    lines += [f"  {command}", "", "Parameters"]
    width = max(map(len, parameters), default=0)
    lines += [f"  {name.ljust(width)}  {value}" for name, value in parameters.items()]
    lines += ["", "Ports"]
    lines += [f"  {name}  {note}" for name, note in _CLOCKS.items() if name in ports]
    members = component.signature.members.items()
    if any(_is_stream(member) for _, member in members):
        lines += textwrap.wrap(_STREAM, _WIDTH, initial_indent="  ", subsequent_indent="  ")
    for name, member in members:
        lines += _port(name, member, notes)
    return "".join(f"// {line}".rstrip() + "\n" for line in lines) + "\n"


def _ports(text: str, top: str) -> list[str]:
    """Names of the ports of a module."""
    (listed,) = re.findall(rf"^module {re.escape(top)}\(([^)]*)\);$", text, re.MULTILINE)
    return re.findall(r"[^\s,]+", listed)


def _is_stream(member: wiring.Member) -> bool:
    return member.is_signature and isinstance(member.signature, stream.Signature)


def _port(name: str, member: wiring.Member, notes: Mapping[str, str]) -> Iterator[str]:
    way = "in" if member.flow == wiring.In else "out"
    if _is_stream(member):
        payload = member.signature.members["payload"].shape
        yield from _shaped(name, f"stream {way}", payload, notes)
    elif member.is_port:
        yield from _shaped(name, way, member.shape, notes)
    else:
        index = "N__" * len(member.dimensions)
        count = sum(1 for _ in member.signature.members.flatten())
        each = "".join(f", N = 0..{extent - 1}" for extent in member.dimensions)
        yield from _entry(f"  {name}__{index}*  {count} ports{each}", notes.get(name, ""))


def _shaped(name: str, way: str, shape: Any, notes: Mapping[str, str]) -> Iterator[str]:
    """Lines of a port of this shape, with one for each field of a structure."""
    bits = Shape.cast(shape).width
    said = [notes[name]] if name in notes else []
    if isinstance(shape, data.ArrayLayout):
        step = shape.size // shape.length
        said.append(f"number i = 0..{shape.length - 1} at bit {step}*i")
    yield from _entry(f"  {name}  {way}, {bits} bit{'s' * (bits != 1)}", "; ".join(said))
    if isinstance(shape, data.StructLayout):
        for key, field in shape:
            high = field.offset + field.width - 1
            place = f"{high}" if field.width == 1 else f"{high}:{field.offset}"
            yield from _entry(f"    [{place}] {key}", notes.get(f"{name}.{key}", ""))


def _entry(left: str, note: str) -> list[str]:
    text = f"{left}: {note}" if note else left
    return textwrap.wrap(text, _WIDTH, subsequent_indent=" " * 8, break_on_hyphens=False)
