"""Scratchpads that a command names, and copies between them."""

from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import stream

from hw.arch.error_codes import TmaError
from hw.tma.layouts import TmaLayouts

__all__ = ["absent_places", "give_copy", "places_of"]


def places_of(command: Any, side: int) -> Value:
    """A bit per scratchpad: destinations of a load (side 0), or the source of a store."""
    places: Value = (1 << command.source) if side else command.destinations
    return places


def absent_places(command: Any, side: int, scratchpads: int) -> Value:
    """Whether a command names no scratchpad of its side, or one that does not exist."""
    places = places_of(command, side)
    absent: Value = places[scratchpads:].any() | (places == 0)
    return absent


def give_copy(
    m: Module,
    head: stream.Interface,
    tags: stream.Interface,
    copies: stream.Interface,
    *,
    layouts: TmaLayouts,
    vectors: int,
    scratchpads: int,
) -> None:
    """Give the copy at the head: a tag, and the range to read; or a tag with its refusal.

    Parameters
    ----------
    m : Module
    head, tags, copies : streams
        Commands, tags of loads, and tickets of what copies read.
    layouts : TmaLayouts
    vectors, scratchpads : int
        Vectors of each scratchpad, and scratchpads.
    """
    command: Any = head.payload
    tag: Any = tags.payload
    copy: Any = copies.payload
    shift = layouts.beat_shift
    size = command.coordinates[0].as_unsigned()
    first, place = command.descriptor >> shift, command.local >> shift
    count = Signal(len(size), name="copied")
    code = Signal(8, name="code_of_copy")
    source = places_of(command, 1)
    own = (source & command.destinations).any()
    overlaps = own & (first < place + count) & (place < first + count)
    m.d.comb += count.eq((size + (1 << shift) - 1) >> shift)
    rules = (
        (TmaError.ROW_BYTES, size[:4].any()),
        (TmaError.BOX, size == 0),
        (TmaError.DESTINATION, Cat(command.descriptor[:shift], command.local[:shift]).any()),
        (TmaError.DESTINATION, (first + count > vectors) | (place + count > vectors)),
        (TmaError.DESTINATION, absent_places(command, 0, scratchpads)),
        (TmaError.DESTINATION, absent_places(command, 1, scratchpads)),
        (TmaError.DESTINATION, overlaps),
    )
    # The last assignment wins: the first rule.
    for error, broken in reversed(rules):
        with m.If(broken):
            m.d.comb += code.eq(error.value)
    refused = code != TmaError.NONE.value
    units = size >> layouts.unit_shift
    m.d.comb += [
        tag.code.eq(code),
        tag.copies.eq(1),
        tag.units.eq(units),
        copy.vector.eq(first),
        copy.count.eq(units),
        copy.pads.eq(source),
        tags.valid.eq(refused | copies.ready),
        copies.valid.eq(~refused & tags.ready),
        head.ready.eq(tags.ready & (refused | copies.ready)),
    ]
