"""Header comment of emitted Verilog: summary, command, parameters, ports.

It does not depend on the machine, so the same command gives the same file everywhere.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
    notes |= _repeated(notes, component.signature.members)
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


def _repeated(notes: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Notes on members that an earlier member has: they refer to it."""
    first: dict[str, str] = {}
    found = {}
    for name in names:
        if name in notes and first.setdefault(notes[name], name) != name:
            found[name] = f"see {first[notes[name]]}"
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
    """Lines of a member; those of an array name its elements by the letters N, M."""
    letters = _LETTERS[: len(member.dimensions)]
    index = "".join(f"__{letter}" for letter in letters)
    extents = [f"{n} = 0..{extent - 1}" for n, extent in zip(letters, member.dimensions)]
    label, each = name + index, "".join(f", {extent}" for extent in extents)
    way = _way(member)
    note = [notes[name]] if name in notes else []
    if _is_stream(member):
        payload = member.signature.members["payload"].shape
        what = f"stream {way}, {_size(payload)}" if _bits(payload) else f"stream {way}, no payload"
        yield from _shaped(f"  {label}  {what}{each}", name, payload, note, notes)
    elif member.is_port:
        what = f"{way}, {_size(member.shape)}"
        yield from _shaped(f"  {label}  {what}{each}", name, member.shape, note, notes)
    else:
        ports = [
            ("__".join(map(str, path)), port)
            for path, port in member.signature.members.flatten()
            if port.is_port and _bits(port.shape)
        ]
        yield from _entry(f"  {label}__*  {len(ports)} ports{each}", "; ".join(note))
        yield from _grouped(ports)


_LETTERS = "NMLK"


def _grouped(ports: Sequence[tuple[str, wiring.Member]]) -> Iterator[str]:
    """Lines of the ports of a group: one per direction, and one per port that is a structure."""
    for way in ("in", "out"):
        names = [
            f"{name}[{_bits(port.shape) - 1}:0]" if _bits(port.shape) > 1 else name
            for name, port in ports
            if _way(port) == way and not isinstance(port.shape, data.StructLayout)
        ]
        if names:
            yield from _entry(f"    {way}", ", ".join(names))
    for name, port in ports:
        if isinstance(port.shape, data.StructLayout):
            left = f"    {_way(port)} {name}, {_size(port.shape)}"
            yield from _shaped(left, "", port.shape, [], {})


def _way(member: wiring.Member) -> str:
    return "in" if member.flow == wiring.In else "out"


def _bits(shape: Any) -> int:
    return Shape.cast(shape).width


def _size(shape: Any) -> str:
    return f"{_bits(shape)} bit{'s' * (_bits(shape) != 1)}{_sign(shape)}"


def _sign(shape: Any) -> str:
    element = shape.elem_shape if isinstance(shape, data.ArrayLayout) else shape
    return ", signed" if Shape.cast(element).signed else ""


def _shaped(
    left: str, name: str, shape: Any, said: Sequence[str], notes: Mapping[str, str]
) -> Iterator[str]:
    """Lines of a port of this shape, with one line per field of a structure."""
    array = []
    if isinstance(shape, data.ArrayLayout):
        step = shape.size // shape.length
        array.append(f"number i = 0..{shape.length - 1} at bit {step}*i")
    yield from _entry(left, "; ".join([*said, *array]))
    if isinstance(shape, data.StructLayout):
        indent = " " * (len(left) - len(left.lstrip()) + 2)
        for key, field in shape:
            if field.width:
                high = field.offset + field.width - 1
                place = f"{high}" if field.width == 1 else f"{high}:{field.offset}"
                label = f"{indent}[{place}] {key}{_sign(field.shape)}"
                yield from _entry(label, notes.get(f"{name}.{key}", ""))


def _entry(left: str, note: str) -> list[str]:
    text = f"{left}: {note}" if note else left
    return textwrap.wrap(text, _WIDTH, subsequent_indent=" " * 8, break_on_hyphens=False)
