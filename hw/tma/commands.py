"""Commands of a TMA engine: one box each."""

from amaranth.hdl import signed
from amaranth.lib import data

from hw.arch.descriptor import MAX_RANK
from hw.arch.launch import REPEAT_BITS

__all__ = ["command_layout", "tagged_command_layout"]


def command_layout(descriptors: int) -> data.StructLayout:
    """Layout of a command: index of a descriptor, coordinates of the box's first element.

    ``iteration`` times the stride stored with the descriptor is added to the address of the box.
    The coordinate of dimension ``index``, if it is not 0, must lie inside the tensor.
    """
    return data.StructLayout(
        {
            "descriptor": range(descriptors),
            "coordinates": data.ArrayLayout(signed(32), MAX_RANK),
            "iteration": REPEAT_BITS,
            "index": range(MAX_RANK),
        }
    )


def tagged_command_layout(descriptors: int, streams: int) -> data.StructLayout:
    """Layout of a command with the number of its stream."""
    return data.StructLayout({"command": command_layout(descriptors), "stream": range(streams)})
