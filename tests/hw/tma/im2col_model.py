"""What an im2col load and store move, in numpy: pad, slide, gather; not the hardware's way."""

import dataclasses
import itertools

import numpy as np

from hw.arch.boxes.im2col_box import OFFSET_BITS, Im2colBox
from hw.arch.descriptor import (
    NAN_FORMATS,
    Descriptor,
    Mode,
    OobFill,
    Swizzle,
)
from hw.numeric.division import ceil_div
from tests.hw.tma.model import FORMATS, tensor_bytes

__all__ = [
    "im2col_elements",
    "im2col_load",
    "im2col_store",
    "pixels_of",
    "random_im2col_case",
    "random_im2col_place",
]


def pixels_of(descriptor, coordinates):
    """Coordinates (w, h, d, n without those that are not there) of each pixel, without offsets."""
    spatial = descriptor.rank - 2
    box, n = descriptor.im2col, coordinates[descriptor.rank - 1]
    ends = [size + upper for size, upper in zip(descriptor.dims[1:-1], box.upper)]
    steps = descriptor.element_strides[1:-1]

    def lines(dimension, begins):
        """Pixels of a line, plane or image from the start, or from the lower corner."""
        start = coordinates[1 + dimension] if begins else box.lower[dimension]
        later = range(start + steps[dimension], ends[dimension], steps[dimension])
        sweep = itertools.chain([start], later)
        for place, index in enumerate(sweep):
            if dimension == 0:
                yield (index,)
            else:
                for inner in lines(dimension - 1, begins and place == 0):
                    yield (*inner, index)

    images = ((*pixel, n + i) for i in itertools.count() for pixel in lines(spatial - 1, i == 0))
    return list(itertools.islice(images, box.pixels))


def im2col_elements(descriptor, coordinates, offsets):
    """(flat position in the box, byte offset in the tensor) of each element in the tensor."""
    size, channels = descriptor.format.bytes, descriptor.im2col.channels
    for number, pixel in enumerate(pixels_of(descriptor, coordinates)):
        where = [p + o for p, o in zip(pixel, (*offsets, 0))]
        if all(0 <= w < n for w, n in zip(where, descriptor.dims[1:])):
            place = sum(w * s for w, s in zip(where, descriptor.strides))
            for channel in range(channels):
                c = coordinates[0] + channel
                if 0 <= c < descriptor.dims[0]:
                    yield number * channels + channel, place + c * size


def im2col_load(memory, descriptor, coordinates, offsets):
    """Bytes of the box that a load delivers; ``memory`` begins at address 0."""
    size = descriptor.format.bytes
    box = np.zeros((descriptor.box_bytes // size, size), np.uint8)
    if descriptor.oob_fill is OobFill.NAN:
        box[:] = [0xFF] * (size - 1) + [0x7F]
    for flat, offset in im2col_elements(descriptor, coordinates, offsets):
        box[flat] = memory[descriptor.base + offset : descriptor.base + offset + size]
    return box.reshape(-1)


def im2col_store(memory, descriptor, coordinates, offsets, box):
    """Put the box into the memory; elements outside the tensor are dropped."""
    size = descriptor.format.bytes
    box = box.reshape(-1, size)
    for flat, offset in im2col_elements(descriptor, coordinates, offsets):
        memory[descriptor.base + offset : descriptor.base + offset + size] = box[flat]


def random_im2col_case(rng, *, width_bits, region, rank=None, max_vectors=64):
    """An im2col descriptor within region = (start, end), coordinates and offsets near it."""
    rank = rank or rng.randint(3, 5)
    element = rng.choice(FORMATS)
    unit = 16 // element.bytes if width_bits > 64 else 8 // element.bytes
    swizzle = rng.choice([*Swizzle, Swizzle.NONE])
    most = swizzle.bytes if swizzle is not Swizzle.NONE else 6 * width_bits // 8
    channels = unit * rng.randint(1, max(1, min(most // element.bytes, 256) // unit))
    vectors = ceil_div(channels * element.bytes * 8, width_bits)
    dims = [rng.randint(1, 2 * channels)]
    dims += [rng.randint(1, 9 if rank < 5 else 5) for _ in range(rank - 2)] + [rng.randint(1, 3)]
    strides, reach = [], ceil_div(dims[0] * element.bytes, 16) * 16
    for size in dims[1:]:
        strides.append(reach + 16 * rng.choice([0, 0, 1, 3]))
        reach = strides[-1] * size
    steps = [rng.choice([1, 1, 2, rng.randint(1, 8)]) for _ in range(rank)]
    lower = [rng.randint(-3, 3) for _ in range(rank - 2)]
    upper = [rng.randint(max(-4, low - n + 1), 3) for low, n in zip(lower, dims[1:])]
    fills = element in NAN_FORMATS and rng.random() < 0.5
    descriptor = Descriptor(
        base=region[0],
        format=element,
        dims=dims,
        strides=strides,
        box=(),
        element_strides=steps,
        swizzle=swizzle,
        oob_fill=OobFill.NAN if fills else OobFill.ZERO,
        mode=Mode.IM2COL,
        im2col=Im2colBox(lower, upper, channels, rng.randint(1, max(1, max_vectors // vectors))),
    )
    slack = region[1] - region[0] - tensor_bytes(descriptor)
    if slack < 0:
        return random_im2col_case(
            rng, width_bits=width_bits, region=region, rank=rank, max_vectors=max_vectors
        )
    base = region[0] + rng.choice([0, slack, rng.randint(0, slack)]) // 16 * 16
    descriptor = dataclasses.replace(descriptor, base=base)
    return descriptor, *random_im2col_place(rng, descriptor)


def random_im2col_place(rng, descriptor):
    """Coordinates and offsets of a command: most often within the bounding box."""
    box, rank = descriptor.im2col, descriptor.rank
    coordinates = [rng.choice([0, 0, rng.randint(-box.channels, descriptor.dims[0])])]
    for size, low, high in zip(descriptor.dims[1:], box.lower, box.upper):
        inside = rng.randint(low, size + high - 1)
        coordinates.append(rng.choice([low, inside, inside, rng.randint(low - 9, size + high + 9)]))
    coordinates.append(rng.randint(-1, descriptor.dims[-1]))
    most = (1 << OFFSET_BITS[rank]) - 1
    offsets = [rng.choice([0, 1, 2, rng.randint(0, 5), most]) for _ in range(rank - 2)]
    if rng.random() < 0.4:
        # Offsets of any bits, which lead from far below into the tensor.
        for spot in range(rank - 2):
            offsets[spot] = rng.randint(0, most)
            coordinates[1 + spot] = rng.randrange(descriptor.dims[1 + spot]) - offsets[spot]
        coordinates[0], coordinates[-1] = 0, rng.randrange(descriptor.dims[-1])
    if rng.random() < 0.05:
        far = rng.choice([-(1 << 31), (1 << 31) - 1, -300, 40_000])
        coordinates[rng.randrange(rank)] = far
    return coordinates, offsets
