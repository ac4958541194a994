"""Commands of a stand-alone TMA unit and the completions that end them."""

from amaranth.hdl import signed
from amaranth.lib import data, enum

from hw.arch.boxes.im2col_box import OFFSETS_BITS
from hw.arch.descriptor import MAX_RANK
from hw.arch.limits import BARRIERS, SCRATCHPAD_BYTES, SCRATCHPADS
from hw.arch.registers.tma_registers import COMMAND_ID_BITS, REDUCTION_BITS

__all__ = [
    "GROUP_BITS",
    "LOCAL_BITS",
    "TmaOperation",
    "completion_layout",
    "unit_command_layout",
]

#: Width of the counts of groups.
GROUP_BITS = 16
#: Width of a byte address in the scratchpad, whatever its size.
LOCAL_BITS = SCRATCHPAD_BYTES.high.bit_length()


class TmaOperation(enum.Enum, shape=4):
    """Operation of a command of a stand-alone TMA unit."""

    #: Move a box from memory to the scratchpad.
    LOAD = 0
    #: Move a box from the scratchpad to memory.
    STORE = 1
    #: Read a descriptor into the cache.
    PREFETCH = 2
    #: Drop a descriptor from the cache, so that its next use reads memory again.
    INVALIDATE = 3
    #: Close the group of the stores since the last one.
    COMMIT = 4
    #: Move a range of bytes of memory to the scratchpad.
    LOAD_LINEAR = 5
    #: Move a range of bytes of the scratchpad to memory.
    STORE_LINEAR = 6
    #: Move four rows of memory, each of its own index, to the scratchpad.
    GATHER4 = 7
    #: Move four rows of the scratchpad to memory, each to its own index.
    SCATTER4 = 8
    #: Combine a box of the scratchpad with memory, element by element.
    REDUCE = 9
    #: Read a box of memory, and drop its data: it is in the caches behind the port then.
    PREFETCH_BOX = 10
    #: Change a field of a descriptor in memory, and drop the descriptor from the cache.
    REPLACE = 11
    #: Move a range of bytes of one scratchpad to others; refused if there is only one.
    COPY = 12
    #: Give commands by a loop nest; only of the unit behind registers.
    CHAIN = 13


def unit_command_layout(address_bits: int, scratchpads: int = 1) -> data.StructLayout:
    """Layout of a command.

    ``descriptor`` is the byte address of a descriptor in memory. The box begins at
    ``coordinates`` of the tensor and at byte ``local`` of the scratchpad. With ``signals``, a load
    completes its bytes at ``barrier``. ``id`` comes back in the completion. A linear copy has the
    address of its bytes in ``descriptor``, and their number in coordinate 0. The indices of four
    rows are coordinates 1 to 4. A replacement has in coordinate 0 its
    :class:`hw.arch.boxes.descriptor_fields.DescriptorField`, in 1 the index within an array, and in
    2 and 3 the halves of the value.
    An im2col descriptor takes the ``offsets``, too. REDUCE has a ``reduction``, the code of a
    :class:`hw.arch.boxes.reductions.ReductionOperation`.
    With several scratchpads, a load goes to those
    whose bits are set in ``destinations``, and a store comes from ``source``. A copy comes from
    ``source``, too, from the byte address in ``descriptor`` on.
    """
    # Of equal width whatever their number, so that the unit checks them.
    places = {"destinations": SCRATCHPADS.high, "source": range(SCRATCHPADS.high)}
    return data.StructLayout(
        {
            "operation": TmaOperation,
            "descriptor": address_bits,
            "coordinates": data.ArrayLayout(signed(32), MAX_RANK),
            "local": LOCAL_BITS,
            "barrier": range(BARRIERS.high),
            "signals": 1,
            "id": COMMAND_ID_BITS,
            "offsets": OFFSETS_BITS,
            "reduction": REDUCTION_BITS,
            **(places if scratchpads > 1 else {}),
        }
    )


#: End of a command: its identifier, and a :class:`hw.arch.error_codes.TmaError`.
completion_layout = data.StructLayout({"id": COMMAND_ID_BITS, "code": 8})
