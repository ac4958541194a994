"""Ports of an exported core under the names of AXI4, AXI4-Lite and AXI4-Stream."""

import dataclasses
import enum
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from amaranth.hdl import Shape
from amaranth.lib import data, stream, wiring

from gen.export.payload_fields import PayloadField, payload_fields
from hw.lib.axi import Axi4ReadSignature, Axi4Signature, Axi4WriteSignature, AxiLiteSignature

__all__ = ["BusGroup", "BusKind", "BusPort", "bus_groups"]

_BYTE = 8
#: Plain ports that have another name in the field, or whose name is a word of Verilog.
_RENAMED = {"o_interrupt": "irq", "config": "config_word"}
_CLOCKS = {"clk": "clock", "rst": "reset while 1, sampled at the rising edge of clk"}


class BusKind(enum.Enum):
    """Protocol of a group of ports."""

    CLOCK = "clock and reset"
    AXI4 = "AXI4"
    AXI4_LITE = "AXI4-Lite"
    AXI4_STREAM = "AXI4-Stream"
    PLAIN = "signals"


@dataclasses.dataclass(frozen=True)
class BusPort:
    """Port of the wrapper.

    Members
    -------
    name : str
    is_output : bool
    width : int
        Width in bits.
    """

    name: str
    is_output: bool
    width: int


@dataclasses.dataclass(frozen=True)
class BusGroup:
    """Ports that belong together, and their connection to the module inside.

    Members
    -------
    kind : BusKind
    prefix : str
        What the names of the ports begin with; that of a plain port is its name.
    is_manager : bool
        Whether the core begins the transfers of this bus.
    ports : tuple of BusPort
    connections : mapping of str to str
        Verilog expression at each port of the module inside.
    wires : mapping of str to int
        Width of each wire between the two.
    assigns : mapping of str to str
        Verilog expression that drives each port of the wrapper that no connection drives.
    fields : tuple of PayloadField
        Fields of a structure: of ``tdata``, or of a plain port.
    inner : str
        What the names of the ports of the module inside begin with.
    parts : mapping of str to list of pairs
        First and last bits of the payload that ``tdata``, ``tlast`` and ``tuser`` consist of.
    """

    kind: BusKind
    prefix: str
    is_manager: bool
    ports: tuple[BusPort, ...]
    connections: Mapping[str, str]
    wires: Mapping[str, int] = dataclasses.field(default_factory=dict)
    assigns: Mapping[str, str] = dataclasses.field(default_factory=dict)
    fields: tuple[PayloadField, ...] = ()
    inner: str = ""
    parts: Mapping[str, Sequence[tuple[int, int]]] = dataclasses.field(default_factory=dict)

    def split(self, payload: int) -> dict[str, int]:
        """Values of ``tdata``, ``tlast`` and ``tuser`` of a payload."""
        values = {}
        for part, runs in self.parts.items():
            value = first = 0
            for low, high in runs:
                width = high - low + 1
                value |= (payload >> low & (1 << width) - 1) << first
                first += width
            values[part] = value
        return values


def bus_groups(signature: wiring.Signature, ports: Collection[str]) -> list[BusGroup]:
    """Groups of ports of a core: clocks, AXI4-Lite, AXI4, streams, and the other signals.

    Parameters
    ----------
    signature : wiring.Signature
        Signature of the component.
    ports : collection of str
        Ports of its module, which lacks those without bits.
    """
    clocks = tuple(BusPort(name, False, 1) for name in _CLOCKS if name in ports)
    groups = [BusGroup(BusKind.CLOCK, "clk", False, clocks, {p.name: p.name for p in clocks})]
    found = list(_members(signature))
    for name, is_output, member in found:
        kind = _axi_kind(member)
        if kind is not None:
            of_kind = [
                other for other, side, each in found if side == is_output and _axi_kind(each)
            ]
            label = "" if len(of_kind) == 1 else f"{_plain(name)}_"
            prefix = f"{'m' if is_output else 's'}_axi_{label}"
            groups.append(_axi(kind, name, prefix, is_output, member.signature))
        elif _is_stream(member):
            groups.append(_stream(name, is_output, member.signature, ports))
        elif name in ports:
            groups.append(_signal(name, is_output, member.shape))
    order = list(BusKind)
    return sorted((group for group in groups if group.ports), key=lambda g: order.index(g.kind))


def _members(
    signature: wiring.Signature, prefix: str = "", flipped: bool = False
) -> Iterator[tuple[str, bool, wiring.Member]]:
    """Ports, streams and AXI ports: name in the module, whether it is an output, member."""
    for key, member in signature.members.items():
        is_output = (member.flow == wiring.Out) != flipped
        for index in _indices(tuple(member.dimensions)):
            name = prefix + "__".join([key, *map(str, index)])
            if member.is_port or _axi_kind(member) is not None or _is_stream(member):
                yield name, is_output, member
            else:
                yield from _members(member.signature, f"{name}__", flipped)


def _indices(dimensions: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    if not dimensions:
        yield ()
        return
    for first in range(dimensions[0]):
        for rest in _indices(dimensions[1:]):
            yield (first, *rest)


def _axi_kind(member: wiring.Member) -> BusKind | None:
    if not member.is_signature:
        return None
    if isinstance(member.signature, AxiLiteSignature):
        return BusKind.AXI4_LITE
    kinds = (Axi4Signature, Axi4ReadSignature, Axi4WriteSignature)
    return BusKind.AXI4 if isinstance(member.signature, kinds) else None


def _is_stream(member: wiring.Member) -> bool:
    """Whether it is a stream, or a payload with ``valid`` that is never refused."""
    if not member.is_signature:
        return False
    names = set(member.signature.members)
    return isinstance(member.signature, stream.Signature) or (
        "valid" in names and len(names) == 2 and member.flow == wiring.Out
    )


def _plain(name: str) -> str:
    """Name without the mark of its direction, its parts joined as usual."""
    return name.removeprefix("i_").removeprefix("o_").replace("__", "_")


def _channel(signal: str) -> int:
    """Place of an AXI signal's channel in the order of the specification."""
    channels = ("aw", "w", "b", "ar", "r")
    longest = max((name for name in channels if signal.startswith(name)), key=len)
    return channels.index(longest)


def _axi(kind: BusKind, name: str, prefix: str, is_output: bool, signature: Any) -> BusGroup:
    ports, connections = [], {}
    members = sorted(signature.members.items(), key=lambda item: _channel(item[0]))
    for key, member in members:
        ports.append(
            BusPort(prefix + key, member.flow == wiring.Out, Shape.cast(member.shape).width)
        )
        connections[f"{name}__{key}"] = prefix + key
    return BusGroup(kind, prefix, is_output, tuple(ports), connections, inner=name)


def _stream(name: str, is_output: bool, signature: Any, ports: Collection[str]) -> BusGroup:
    prefix = f"{'m' if is_output else 's'}_axis_{_plain(name)}_"
    (payload,) = set(signature.members) - {"valid", "ready"}
    shape = signature.members[payload].shape
    signals = [BusPort(f"{prefix}tvalid", is_output, 1)]
    connections = {f"{name}__valid": f"{prefix}tvalid"}
    if f"{name}__ready" in ports:
        signals.append(BusPort(f"{prefix}tready", not is_output, 1))
        connections[f"{name}__ready"] = f"{prefix}tready"
    if f"{name}__{payload}" not in ports:
        kind = BusKind.AXI4_STREAM
        return BusGroup(kind, prefix, is_output, tuple(signals), connections, inner=name)
    parts = _parts(shape)
    wire = f"{prefix}payload"
    widths = {part: sum(high - low + 1 for low, high in runs) for part, runs in parts.items()}
    padding = -widths["tdata"] % _BYTE
    for part, width in widths.items():
        pad = padding if part == "tdata" else 0
        signals.append(BusPort(prefix + part, is_output, width + pad))
    connections[f"{name}__{payload}"] = wire
    assigns = _unpacked(prefix, wire, parts, padding) if is_output else _packed(prefix, wire, parts)
    fields = tuple(payload_fields(_data_shape(shape)))
    return BusGroup(
        BusKind.AXI4_STREAM,
        prefix,
        is_output,
        tuple(signals),
        connections,
        {wire: Shape.cast(shape).width},
        assigns,
        fields,
        name,
        parts,
    )


_Runs = list[tuple[int, int]]


def _data_shape(shape: Any) -> Any:
    """Shape of ``tdata``: of the field "data" beside a field "last", or of all."""
    names = dict(shape) if isinstance(shape, data.StructLayout) else {}
    return names["data"].shape if {"data", "last"} <= names.keys() else shape


def _parts(shape: Any) -> dict[str, _Runs]:
    """Bits of the payload, from low to high, in ``tdata``, ``tlast`` and ``tuser``."""
    if not isinstance(shape, data.StructLayout) or not {"data", "last"} <= dict(shape).keys():
        return {"tdata": [(0, Shape.cast(shape).width - 1)]}
    parts: dict[str, _Runs] = {"tdata": [], "tlast": [], "tuser": []}
    for key, field in shape:
        part = {"data": "tdata", "last": "tlast"}.get(str(key), "tuser")
        parts[part].append((field.offset, field.offset + field.width - 1))
    return {part: runs for part, runs in parts.items() if runs}


def _range(low: int, high: int) -> str:
    return f"[{high}:{low}]"


def _unpacked(prefix: str, wire: str, parts: Mapping[str, _Runs], padding: int) -> dict[str, str]:
    assigns = {}
    for part, runs in parts.items():
        pieces = [wire + _range(*run) for run in reversed(runs)]
        if part == "tdata" and padding:
            pieces.insert(0, f"{padding}'d0")
        assigns[prefix + part] = pieces[0] if len(pieces) == 1 else f"{{{', '.join(pieces)}}}"
    return assigns


def _packed(prefix: str, wire: str, parts: Mapping[str, _Runs]) -> dict[str, str]:
    placed: list[tuple[int, str]] = []
    for part, runs in parts.items():
        first = 0
        for low, high in runs:
            # A port of one bit has no index.
            single = part != "tdata" and sum(h - n + 1 for n, h in runs) == 1
            bits = "" if single else _range(first, first + high - low)
            placed.append((low, prefix + part + bits))
            first += high - low + 1
    pieces = [piece for _, piece in sorted(placed, reverse=True)]
    return {wire: pieces[0] if len(pieces) == 1 else f"{{{', '.join(pieces)}}}"}


def _signal(name: str, is_output: bool, shape: Any) -> BusGroup:
    label = _RENAMED.get(name, name.replace("__", "_"))
    port = BusPort(label, is_output, Shape.cast(shape).width)
    fields = tuple(payload_fields(shape)) if isinstance(shape, data.Layout) else ()
    return BusGroup(
        BusKind.PLAIN, label, is_output, (port,), {name: label}, fields=fields, inner=name
    )
