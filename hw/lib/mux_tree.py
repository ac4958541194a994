"""Selection by a tree of two-input multiplexers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from amaranth.hdl import Const, Mux, Value

__all__ = ["chosen", "chosen_narrowly", "numbered"]


def chosen(code: Value, values: Mapping[int, Value]) -> Value:
    """Value by its code; any of them for another code.

    Combinational. A switch takes two gates per case and bit, the tree one multiplexer, and none
    where codes that differ in one bit have the same value.
    """
    return _tree(code, len(code), values)


def numbered(number: Value, values: Sequence[Value]) -> Value:
    """Value by its number, as :func:`chosen`."""
    return chosen(number, dict(enumerate(values)))


def chosen_narrowly(code: Value, values: Mapping[int, Value]) -> Value:
    """Value by its code, as :func:`chosen`, with one multiplexer less than distinct values.

    Their number is found first. That pays for wide values which many codes share.
    """
    distinct = list({id(value): value for value in values.values()}.values())
    if len(distinct) == 1:
        return distinct[0]
    numbers = [Const(number, (len(distinct) - 1).bit_length()) for number in range(len(distinct))]
    places = {id(value): number for value, number in zip(distinct, numbers, strict=True)}
    number = chosen(code, {key: places[id(value)] for key, value in values.items()})
    return numbered(number, distinct)


def _tree(code: Value, bits: int, values: Mapping[int, Value]) -> Value:
    first = next(iter(values.values()))
    if all(value is first for value in values.values()):
        return first
    bit = bits - 1
    zero = {number: value for number, value in values.items() if not number >> bit & 1}
    one = {number: value for number, value in values.items() if number >> bit & 1}
    if not zero or not one:
        return _tree(code, bit, zero or one)
    return Mux(code[bit], _tree(code, bit, one), _tree(code, bit, zero))
