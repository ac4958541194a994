"""Constants of an exported core: registers, descriptors, fields, codes; from the contract."""

import dataclasses
import enum
import re
from collections.abc import Iterator, Sequence
from typing import Any

from amaranth.hdl import Shape
from amaranth.lib import data, wiring

from gen.export.bus_ports import BusGroup, BusKind
from gen.export.payload_fields import PayloadField, payload_enums, payload_fields
from hw.arch.descriptor import ElementFormat, Mode, OobFill, Swizzle, descriptor_layout
from hw.arch.error_codes import BarrierError, LaunchError, ReadPhase, TmaError, UnitError
from hw.arch.registers.chip_registers import REGISTERS
from hw.arch.registers.register_fields import Register
from hw.arch.registers.tensor_registers import TENSOR_REGISTERS
from hw.arch.registers.tma_registers import TMA_REGISTERS
from hw.arch.tensor_instructions import Fault, Opcode
from hw.emit.shared import Shareable
from hw.tma.barriers.barrier_layouts import BarrierOperation
from hw.tma.standalone.unit_commands import TmaOperation

__all__ = ["Constant", "Definitions", "definitions"]

_DESCRIBED = (ElementFormat, Swizzle, OobFill, Mode)
#: Registers of the component classes with a register port, and the codes that they show.
_MAPS: dict[str, tuple[Sequence[Register], tuple[type[enum.Enum], ...]]] = {
    "TmaTop": (TMA_REGISTERS, (TmaOperation, BarrierOperation, TmaError, BarrierError)),
    "TensorTop": (TENSOR_REGISTERS, (Opcode, Fault)),
    "CommandProcessor": (REGISTERS, (LaunchError, ReadPhase, UnitError)),
    "Chip": (REGISTERS, (LaunchError, ReadPhase, UnitError, TmaError)),
}
#: Component classes that read descriptors in the layout of memory.
_READ_DESCRIPTORS = ("TmaTop", "TmaUnit", "TmaEngine", "Agcu", "Chip")


@dataclasses.dataclass(frozen=True)
class Constant:
    """Named number, with its meaning."""

    name: str
    value: int
    text: str = ""


@dataclasses.dataclass(frozen=True)
class Definitions:
    """Constants of a core.

    Members
    -------
    registers : tuple of Register
    descriptor : tuple of PayloadField
        Fields of a tensor descriptor in memory; empty if the core reads none.
    enums : tuple of enumerations
    groups : tuple of BusGroup
        Groups of ports.
    """

    registers: tuple[Register, ...]
    descriptor: tuple[PayloadField, ...]
    enums: tuple[type[enum.Enum], ...]
    groups: tuple[BusGroup, ...]

    def sections(self) -> Iterator[tuple[str, list[Constant]]]:
        """Titles, each with its constants."""
        yield "Ports", list(_port_constants(self.groups))
        for each in self.registers:
            accesses = ", ".join(f"{field.name}: {field.access.value}" for field in each.fields)
            yield f"Register {each.name} ({accesses})", list(_register_constants(each))
        if self.descriptor:
            yield "Tensor descriptor in memory", list(_descriptor_constants(self.descriptor))
        for kind in self.enums:
            yield kind.__name__, list(_enum_constants(kind))


def definitions(component: Shareable, groups: Sequence[BusGroup]) -> Definitions:
    """Constants of a component, whose ports are in groups.

    Parameters
    ----------
    component : Shareable
    groups : sequence of BusGroup
    """
    name = type(component).__name__
    registers, codes = _MAPS.get(name, ((), ()))
    described = name in _READ_DESCRIPTORS
    fields = tuple(_descriptor_fields()) if described else ()
    found = dict.fromkeys(
        (
            *codes,
            *(_DESCRIBED if described else ()),
            *((TmaError,) if described else ()),
            *_enums(component.signature),
        )
    )
    return Definitions(tuple(registers), fields, tuple(found), tuple(groups))


def upper(name: str) -> str:
    """Name of a class or field as a constant's: BarrierError is BARRIER_ERROR."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).upper()


def _enums(signature: wiring.Signature) -> Iterator[type[enum.Enum]]:
    for member in signature.members.values():
        if member.is_port:
            yield from payload_enums(member.shape)
        else:
            yield from _enums(member.signature)


def _port_constants(groups: Sequence[BusGroup]) -> Iterator[Constant]:
    for group in groups:
        name = upper(group.prefix.rstrip("_"))
        if group.kind in (BusKind.AXI4, BusKind.AXI4_LITE):
            for port in group.ports:
                signal = port.name.removeprefix(group.prefix)
                if signal in ("araddr", "awaddr", "rdata", "wdata", "rid", "bid"):
                    yield Constant(f"{name}_{upper(signal)}_BITS", port.width)
        elif group.kind is BusKind.AXI4_STREAM:
            for port in group.ports:
                if port.name.endswith("_tdata"):
                    yield Constant(f"{upper(port.name)}_BITS", port.width)
            yield from _field_constants(f"{name}_TDATA", group.fields)
        elif group.kind is BusKind.PLAIN:
            (port,) = group.ports
            yield Constant(f"{name}_BITS", port.width)
            yield from _field_constants(name, group.fields)


def _field_constants(prefix: str, fields: Sequence[PayloadField]) -> Iterator[Constant]:
    for field in fields:
        if field.name:
            label = f"{prefix}_{upper(field.name)}"
            note = "signed" if field.is_signed else ""
            yield Constant(f"{label}_LSB", field.low, note)
            yield Constant(f"{label}_WIDTH", field.width)


def _register_constants(register: Register) -> Iterator[Constant]:
    name = f"REG_{register.name}"
    yield Constant(f"{name}_OFFSET", register.offset)
    for field in register.fields:
        label = f"{name}_{upper(field.name)}"
        text = field.text.replace("`", "")
        yield Constant(f"{label}_LSB", field.low, f"{field.access.value}: {text}")
        yield Constant(f"{label}_WIDTH", field.bits)


def _descriptor_fields() -> Iterator[PayloadField]:
    """Fields of the descriptor, each with whole elements: an array has one entry."""
    for key, field in descriptor_layout:
        shape: Any = field.shape
        element = shape.elem_shape if isinstance(shape, data.ArrayLayout) else shape
        (first, *_) = payload_fields(element)
        yield PayloadField(str(key), field.offset, Shape.cast(shape).width, first.is_signed)


def _descriptor_constants(fields: Sequence[PayloadField]) -> Iterator[Constant]:
    yield Constant("DESCRIPTOR_BYTES", sum(field.width for field in fields) // 8)
    for field in fields:
        yield Constant(f"DESCRIPTOR_{upper(field.name)}_OFFSET", field.low // 8, "in bytes")
        yield Constant(f"DESCRIPTOR_{upper(field.name)}_BYTES", field.width // 8)


def _enum_constants(kind: type[enum.Enum]) -> Iterator[Constant]:
    for member in kind:
        yield Constant(f"{upper(kind.__name__)}_{member.name}", int(member.value))
