"""Fields of a descriptor that a TMA unit can replace in memory, as PTX's tensormap.replace."""

from amaranth.lib import enum

from hw.arch.descriptor import descriptor_layout

__all__ = ["DescriptorField"]


class DescriptorField(enum.Enum, shape=4):
    """Field of a descriptor, or array of fields; `PTX` names in the comments."""

    #: ``.global_address``
    BASE = 0
    #: ``.rank``; here the rank itself.
    RANK = 1
    #: ``.box_dim``
    BOX = 2
    #: ``.global_dim``
    DIMS = 3
    #: ``.global_stride``
    STRIDES = 4
    #: ``.element_stride``
    ELEMENT_STRIDES = 5
    #: ``.elemtype``
    FORMAT = 6
    #: ``.interleave_layout``
    INTERLEAVE = 7
    #: ``.swizzle_mode``
    SWIZZLE = 8
    #: ``.fill_mode``
    OOB_FILL = 9

    @property
    def _members(self) -> tuple[int, int, int]:
        """Offset of the first, number of them, and bits of each."""
        field = descriptor_layout[self.name.lower()]
        count = getattr(field.shape, "length", 1)
        return field.offset, count, field.width // count

    @property
    def offset(self) -> int:
        """Byte at which the field, or the first of the array, begins."""
        return self._members[0] // 8

    @property
    def count(self) -> int:
        """Fields of the array; 1 for a field alone."""
        return self._members[1]

    @property
    def bytes(self) -> int:
        """Bytes of one field."""
        return self._members[2] // 8
