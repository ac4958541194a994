"""Commands of a TMA engine: one box each."""

from amaranth.hdl import signed
from amaranth.lib import data

from hw.arch.boxes.im2col_box import OFFSETS_BITS
from hw.arch.descriptor import MAX_RANK, TmaFeature
from hw.arch.launch import REPEAT_BITS
from hw.tma.reduction.reduction_fields import reduction_request

__all__ = ["BOX_UNITS_BITS", "command_layout", "tagged_command_layout"]

#: Width of a count of a box's units (:attr:`hw.tma.layouts.TmaLayouts.unit_shift`); its greatest
#: value means this many or more.
BOX_UNITS_BITS = 18


def command_layout(descriptors: int, features: tuple[TmaFeature, ...] = ()) -> data.StructLayout:
    """Layout of a command: index of a descriptor, coordinates of the box's first element.

    ``iteration`` times the stride stored with the descriptor is added to the address of the box.
    The coordinate of dimension ``index``, if it is not 0, must lie inside the tensor.
    With `TmaFeature.PARALLEL_BOXES`, a box of more than ``most_units`` is refused, and one with
    a swizzle if its place is not ``aligned`` to the pattern. With `TmaFeature.CONTINUED_BOXES`, a
    box that ``continues`` goes on with that of the next command; one of ``four`` rows has one.
    With `TmaFeature.IM2COL`, ``offsets`` are those of `hw.arch.boxes.im2col_box.packed_offsets`.
    With `TmaFeature.REDUCE`, a store has the ``reduction`` of its elements.
    """
    place = {}
    if TmaFeature.PARALLEL_BOXES in features:
        place = {"most_units": BOX_UNITS_BITS, "aligned": 1}
    parts = {}
    if TmaFeature.CONTINUED_BOXES in features:
        parts = {"continues": 1, "four": 1}
    offsets = {"offsets": OFFSETS_BITS} if TmaFeature.IM2COL in features else {}
    reduction = {"reduction": reduction_request} if TmaFeature.REDUCE in features else {}
    return data.StructLayout(
        {
            "descriptor": range(descriptors),
            "coordinates": data.ArrayLayout(signed(32), MAX_RANK),
            "iteration": REPEAT_BITS,
            "index": range(MAX_RANK),
            **place,
            **parts,
            **offsets,
            **reduction,
        }
    )


def tagged_command_layout(
    descriptors: int, streams: int, features: tuple[TmaFeature, ...] = ()
) -> data.StructLayout:
    """Layout of a command with the number of its stream."""
    command = command_layout(descriptors, features)
    return data.StructLayout({"command": command, "stream": range(streams)})
