"""Reducing stores in numpy."""

import numpy as np

from hw.arch.boxes.reductions import ReductionOperation
from hw.arch.descriptor import ElementFormat
from hw.numeric.elementwise import add
from hw.numeric.formats import named
from hw.numeric.reference import cast
from tests.hw.tma.model import box_elements

__all__ = ["NUMBERS", "box_reduce", "elements_reduce", "reduced"]

#: numpy's type of each integer format.
NUMBERS = {
    ElementFormat.INT8: np.dtype("i1"),
    ElementFormat.UINT8: np.dtype("u1"),
    ElementFormat.INT16: np.dtype("<i2"),
    ElementFormat.INT32: np.dtype("<i4"),
}
_FUNCTIONS = {
    ReductionOperation.ADD: np.add,
    ReductionOperation.MIN: np.minimum,
    ReductionOperation.MAX: np.maximum,
    ReductionOperation.AND: np.bitwise_and,
    ReductionOperation.OR: np.bitwise_or,
    ReductionOperation.XOR: np.bitwise_xor,
}


def reduced(operation, format, memory, stored):
    """Bytes of the elements of one array of bytes, each combined with that of the other."""
    if format not in NUMBERS:
        assert operation is ReductionOperation.ADD
        number = named[format.name.lower()]
        wide = [each.view(number.dtype).astype(np.float32) for each in (memory, stored)]
        return number.bits_of(cast(add(*wide), number, saturate=False)).view(np.uint8)
    kind = NUMBERS[format]
    return _FUNCTIONS[operation](memory.view(kind), stored.view(kind)).view(np.uint8)


def box_reduce(memory, descriptor, coordinates, box, operation):
    """Combine the box with the memory; elements outside the tensor are dropped."""
    flat, offsets = box_elements(descriptor, coordinates)
    elements_reduce(memory, descriptor, flat, offsets, box, operation)


def elements_reduce(memory, descriptor, flat, offsets, box, operation):
    """Combine elements of the box, by their numbers, with those at offsets in the tensor."""
    size = descriptor.format.bytes
    places = (descriptor.base + offsets)[:, None] + np.arange(size)
    old = np.ascontiguousarray(memory[places]).reshape(-1)
    new = np.ascontiguousarray(box.reshape(-1, size)[flat]).reshape(-1)
    memory[places] = reduced(operation, descriptor.format, old, new).reshape(-1, size)
