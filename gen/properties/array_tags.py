"""Tag abstraction of arrays for proofs: cells compare tags, wires and registers are unchanged.

A proof asks which operands and sums meet, not what they add up to. So each multiply-add is replaced
by a comparison of tags, with the registers of the datapath (a test compares both). Lanes and sums
carry tags in their low bits; the other bits are zero and are optimized away.
"""

from __future__ import annotations

from collections.abc import Callable
from unittest import mock

from amaranth.hdl import Cat, Const, Fragment, Module, Signal, Value
from amaranth.lib import data, wiring

from hw.array import cell, output_stationary
from hw.array.cell_config import CellConfig

__all__ = ["Compare", "lane", "multiply_add", "tagged", "view"]

#: Tag of a sum from the tags of two operands one cycle ago, and that of the sum before.
Compare = Callable[[Value, Value, Value], Value]


def view(layout: data.StructLayout, value: Value) -> data.View[data.StructLayout]:
    """Tag in the low bits of a lane or a sum."""
    return data.View(layout, value[: layout.size])


def lane(layout: data.StructLayout, width: int, **tags: Value | int) -> Value:
    """Lane or sum with these tags."""
    fields = [(Const(0, field.width) + tags[str(name)])[: field.width] for name, field in layout]
    return Cat(*fields, Const(0, width))[:width]


def multiply_add(
    m: Module, config: CellConfig, a: Value, b: Value, old: Value, compare: Compare
) -> Value:
    """Replacement of :func:`hw.array.mac.multiply_add`: the same registers, with tags."""
    former = [Signal(len(operand), name=f"former_{name}") for name, operand in (("a", a), ("b", b))]
    m.d.sync += [was.eq(operand) for was, operand in zip(former, (a, b), strict=True)]
    total = compare(former[0], former[1], old)
    for stage in range(1, config.latency):
        later = Signal(len(total), name=f"tag_{stage}")
        m.d.sync += later.eq(total)
        total = later
    return total


def tagged(component: wiring.Component, compare: Compare) -> Fragment:
    """Inside of an array, or of a component that contains one, whose cells compare tags."""

    def stands_in(
        m: Module, config: CellConfig, a: Value, b: Value, old: Value, *, mode: Value | None
    ) -> Value:
        return multiply_add(m, config, a, b, old, compare)

    with (
        mock.patch.object(cell, "multiply_add", stands_in),
        mock.patch.object(output_stationary, "multiply_add", stands_in),
    ):
        inside: Fragment = Fragment.get(component, None)
    return inside
