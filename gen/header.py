"""Header comment of emitted Verilog: summary, command, parameters, ports.

It does not depend on the machine, so the same command gives the same file everywhere.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from amaranth.hdl import Shape
from amaranth.lib import data, stream, wiring

from hw import __version__
from hw.emit.shared import Shareable

__all__ = ["About", "header"]

_WIDTH = 96
_CLOCKS = {"clk": "in, 1 bit: clock", "rst": "in, 1 bit: reset while 1, at the clock's edge"}
_STREAM = (
    "A stream NAME has the ports NAME__valid, NAME__ready and NAME__payload. A payload passes in a "
    "cycle in which valid and ready are both 1; once offered it stays."
)


@dataclasses.dataclass(frozen=True)
class About:
    """Contents of a header that the caller knows better than the component.

    Members
    -------
    summary : str
        One-line description.
    command : str
        Command line that makes the file again.
    parameters : mapping of str to object
    notes : mapping of str to str, optional
        Descriptions of ports that depend on parameters, by name, or by stream and field names
        with a dot between. Others are from the ``Members`` of the component's class.
    """

    summary: str
    command: str
    parameters: Mapping[str, object]
    notes: Mapping[str, str] | None = None


def header(component: Shareable, *, ports: Collection[str], about: About | None = None) -> str:
    """Comment lines for the header of a component's Verilog.

    Parameters
    ----------
    component : Shareable
        Component whose ports are listed.
    ports : collection of str
        Ports of its module, which has a clock and a reset only if something in it needs them.
    about : About, optional
        By default taken from the component's class and constructor call.
    """
    about = about or _about(component)
    top = component.definition_name
    lines = [f"{top}: {about.summary}", f"Made by tilewright {__version__}. To make it again:"]
    lines.append(f"  {about.command}")
    lines += ["", "Parameters"] if about.parameters else []
    width = max(map(len, about.parameters), default=0)
    lines += [f"  {name.ljust(width)}  {value}" for name, value in about.parameters.items()]
    lines += ["", "Ports"]
    lines += [f"  {name}  {note}" for name, note in _CLOCKS.items() if name in ports]
    members = component.signature.members.items()
    if any(_is_stream(member) for _, member in members):
        lines += textwrap.wrap(_STREAM, _WIDTH, initial_indent="  ", subsequent_indent="  ")
    notes = _notes(component) | dict(about.notes or {})
    for name, member in members:
        lines += _port(name, member, notes)
    return "".join(f"// {line}".rstrip() + "\n" for line in lines) + "\n"


def _about(component: Shareable) -> About:
    """Contents of a header from the component itself."""
    kind = type(component)
    doc = inspect.getdoc(kind) or kind.__name__
    arguments: dict[str, object] = getattr(component, "parameters", {})
    call = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    return About(
        summary=_ascii(doc.partition("\n")[0].rstrip(".")),
        command=_ascii(f"{kind.__module__}.{kind.__qualname__}({call}), by gen.verilog.emit"),
        parameters={name: _ascii(str(value)) for name, value in arguments.items()},
    )


_MEMBERS = re.compile(r"^Members\n-+\n(.*?)(?=^\S[^\n]*\n---|\Z)", re.MULTILINE | re.DOTALL)
_MEMBER = re.compile(r"^(\S[^\n]*)\n((?:[ ]+[^\n]*\n?|\n)+)", re.MULTILINE)


def _notes(component: Shareable) -> dict[str, str]:
    """First sentence on each member of a component, from ``Members`` of its class and bases."""
    found: dict[str, str] = {}
    for kind in reversed(type(component).__mro__):
        for section in _MEMBERS.findall(inspect.cleandoc(kind.__doc__ or "")):
            for names, text in _MEMBER.findall(section):
                note = " ".join(text.split()).partition(". ")[0].rstrip(".")
                for name in names.partition(" : ")[0].split(", "):
                    found[name] = _ascii(note)
    return found


_ROLE = re.compile(r":\w+:(?=`)")
_PLAIN = {"×": "x", "–": "-", "²": "^2", "≤": "<=", "≥": ">=", "−": "-", "…": "..."}


def _ascii(text: str) -> str:
    """The text without markup, in ASCII."""
    text = _ROLE.sub("", text).replace("`", "")
    plain = "".join(_PLAIN.get(letter, letter) for letter in text)
    return plain.encode("ascii", "replace").decode()


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
    """Lines of a port of this shape, with one line per field of a structure."""
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
