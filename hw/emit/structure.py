"""Structural modules: instances, wires and registers stated in whole buses, written as RTLIL.

Amaranth elaborates bit by bit, which takes minutes for an array of 256 × 256 cells. A structure is
stated once and becomes an Amaranth module for the simulator and RTLIL text for an emitted design.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from hw.emit.shared import Library, Shareable, shared
from hw.lib.component import Component

__all__ = ["Bits", "Structural", "Structure"]


@dataclass(frozen=True)
class Bits:
    """Bit vector of a structure, least significant first: slices of wires and constant zeros.

    Parameters
    ----------
    pieces : tuple of (name or None, low, high)
        Bits ``low`` to ``high`` - 1 of a wire; zeros without a name.
    """

    pieces: tuple[tuple[str | None, int, int], ...]

    @staticmethod
    def zeros(width: int) -> Bits:
        """Constant zeros."""
        return Bits(((None, 0, width),))

    def __len__(self) -> int:
        return sum(high - low for _, low, high in self.pieces)

    def __add__(self, other: Bits) -> Bits:
        return Bits(self.pieces + other.pieces)

    def __getitem__(self, key: slice) -> Bits:
        start, stop, _ = key.indices(len(self))
        pieces = []
        at = 0
        for name, low, high in self.pieces:
            first, last = max(start - at, 0), min(stop - at, high - low)
            if first < last:
                pieces.append((name, low + first, low + last))
            at += high - low
        return Bits(tuple(pieces))


def _ports(component: Shareable) -> dict[str, tuple[bool, Value]]:
    """Ports of a component by name: whether it is an input, and its value."""
    # The stubs give a Flow here; it is the Member.
    return {
        "__".join(map(str, path)): (cast(wiring.Member, member).flow == In, Value.cast(value))
        for path, member, value in component.signature.flatten(component)
    }


class Structure:
    """Netlist of instances, wires and registers between the ports of a component.

    Parameters
    ----------
    component : Shareable
        Component whose ports they connect.
    """

    def __init__(self, component: Shareable) -> None:
        self._ports = _ports(component)
        self._wires: dict[str, int] = {}
        self._registers: dict[str, Bits] = {}
        self._outputs: dict[str, Bits] = {}
        self._instances: dict[str, tuple[Shareable, Mapping[str, Bits]]] = {}
        # Source file and line of each wire, register and instance.
        self._sources: dict[tuple[str, str], str] = {}

    def port(self, name: str) -> Bits:
        """Input port of the component."""
        return Bits(((name, 0, len(self._ports[name][1])),))

    def wire(self, name: str, width: int) -> Bits:
        """Wire driven by instances."""
        self._sources["wire", name] = _caller()
        self._wires[name] = width
        return Bits(((name, 0, width),))

    def register(self, name: str, value: Bits) -> Bits:
        """Register of the bits, without reset."""
        self._sources["wire", name] = _caller()
        self._registers[name] = value
        return Bits(((name, 0, len(value)),))

    def output(self, name: str, value: Bits) -> None:
        """Drive an output of the component."""
        self._outputs[name] = value

    def instance(self, name: str, component: Shareable, **ports: Bits) -> None:
        """Add an instance; its outputs drive the wires that they are connected to.

        Raises
        ------
        ValueError
            An input is not connected, or a port has another width.
        """
        for port, (is_input, value) in _ports(component).items():
            if port not in ports and is_input and len(value):
                raise ValueError(f"Input {port} of {name} must be connected")
            if port in ports and len(ports[port]) != len(value):
                raise ValueError(
                    f"Port {port} of {name} must have {len(value)} bits, not {len(ports[port])}"
                )
        self._sources["cell", name] = _caller()
        self._instances[name] = component, ports

    def module(self) -> Module:
        """Amaranth module of the structure, for simulation."""
        m = Module()
        values: dict[str, Value] = {name: value for name, (_, value) in self._ports.items()}
        for name, width in self._wires.items():
            values[name] = Signal(width, name=name)
        for name, bits in self._registers.items():
            values[name] = Signal(len(bits), name=name, reset_less=True)

        def value_of(bits: Bits) -> Value:
            return Cat(
                Const(0, high - low) if name is None else values[name][low:high]
                for name, low, high in bits.pieces
            )

        for name, bits in self._registers.items():
            m.d.sync += values[name].eq(value_of(bits))
        for name, bits in self._outputs.items():
            m.d.comb += values[name].eq(value_of(bits))
        for name, (component, joined) in self._instances.items():
            m.submodules[name] = shared(component)
            for port, (is_input, value) in _ports(component).items():
                if port in joined and is_input:
                    m.d.comb += value.eq(value_of(joined[port]))
                elif port in joined:
                    m.d.comb += value_of(joined[port]).eq(value)
        return m

    def rtlil(self, name: str, library: Library) -> str:
        """RTLIL text of the structure; its instances' definitions go to the library."""

        def marked(kind: str, name: str) -> list[str]:
            return [f'  attribute \\src "{self._sources[kind, name]}"'] if library.source else []

        lines: list[str] = []
        clocks: set[str] = set()
        for instance, (component, joined) in self._instances.items():
            lines += marked("cell", instance)
            lines.append(f"  cell \\{component.definition_name} \\{instance}")
            used = library.define(component)
            clocks.update(used)
            lines += [f"    connect \\{clock} \\{clock}" for clock in used]
            lines += [
                f"    connect \\{port} {_sigspec(bits)}"
                for port, bits in joined.items()
                if len(bits)
            ]
            lines.append("  end")
        for register, bits in self._registers.items():
            clocks.add("clk")
            lines += [
                *marked("wire", register),
                f"  cell $dff $register${register}",
                f"    parameter \\WIDTH {len(bits)}",
                "    parameter \\CLK_POLARITY 1'1",
                "    connect \\CLK \\clk",
                f"    connect \\D {_sigspec(bits)}",
                f"    connect \\Q \\{register}",
                "  end",
            ]
        lines += [f"  connect \\{port} {_sigspec(bits)}" for port, bits in self._outputs.items()]
        wires = [
            *(
                (f"width {len(value)} {'input' if is_input else 'output'}", port)
                for port, (is_input, value) in self._ports.items()
                if len(value)
            ),
            *(("width 1 input", clock) for clock in sorted(clocks)),
        ]
        head = [f"  wire {kind} {index} \\{port}" for index, (kind, port) in enumerate(wires)]
        widths = self._wires | {wire: len(bits) for wire, bits in self._registers.items()}
        for wire, width in widths.items():
            head += [*marked("wire", wire), f"  wire width {width} \\{wire}"]
        return "\n".join([f"module \\{name}", *head, *lines, "end", ""])


def _caller() -> str:
    """Source file and line of the caller's caller."""
    frame = sys._getframe(2)
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _sigspec(bits: Bits) -> str:
    pieces = [
        f"{high - low}'{'0' * (high - low)}" if name is None else f"\\{name} [{high - 1}:{low}]"
        for name, low, high in reversed(bits.pieces)
    ]
    return pieces[0] if len(pieces) == 1 else "{ " + " ".join(pieces) + " }"


class Structural(Component):
    """Base class of components that are purely structural."""

    def structure(self) -> Structure:
        """Netlist of the component."""
        raise NotImplementedError

    def elaborate(self, platform: object) -> Module:
        return self.structure().module()

    def rtlil(self, library: Library) -> str:
        """RTLIL of its definition in an emitted design."""
        return self.structure().rtlil(self.definition_name, library)
