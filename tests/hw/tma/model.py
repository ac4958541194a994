"""What a box is, in numpy, and random ones: independent of the hardware's way to them."""

import dataclasses

import numpy as np

from hw.arch.descriptor import (
    NAN_FORMATS,
    STORED_WORDS,
    Descriptor,
    ElementFormat,
    OobFill,
    Swizzle,
    TmaFeature,
)
from hw.numeric.division import ceil_div

FORMATS = (ElementFormat.INT8, ElementFormat.BF16, ElementFormat.FP32)


def tensor_bytes(descriptor):
    """Bytes from the tensor's first to behind its last."""
    reach = sum((n - 1) * s for n, s in zip(descriptor.dims[1:], descriptor.strides))
    return reach + descriptor.dims[0] * descriptor.format.bytes


def box_elements(descriptor, coordinates):
    """Flat position in the box, and byte offset in the tensor, of each element in the tensor."""
    # The element stride of dimension 0 is ignored.
    steps = (1, *descriptor.element_strides[1:])
    pitch = (descriptor.format.bytes, *descriptor.strides)
    inside, offsets = np.ones(1, np.bool_), np.zeros(1, np.int64)
    shorter = coordinates[0] + np.arange(descriptor.box[0])
    shorter = shorter < descriptor.dims[0] - descriptor.shortfall
    for number, (extent, step, at, count, distance) in enumerate(
        zip(descriptor.box, steps, coordinates, descriptor.dims, pitch)
    ):
        index = at + np.arange(0, extent, step)
        offsets = (index[:, None] * distance + offsets).reshape(-1)
        inside = ((index >= 0) & (index < count))[:, None] & inside
        if number == 1:
            inside[index == count - 1] &= shorter
        inside = inside.reshape(-1)
    flat = np.flatnonzero(inside)
    return flat, offsets[flat]


def element_offsets(descriptor, coordinates):
    """Pairs of what `box_elements` gives."""
    flat, offsets = box_elements(descriptor, coordinates)
    return zip(flat.tolist(), offsets.tolist())


def _bytes_of(places, size):
    """Places of the bytes of elements, elements × bytes."""
    return places[:, None] + np.arange(size)


def box_load(memory, descriptor, coordinates):
    """Bytes of the box that a load delivers; ``memory`` begins at address 0."""
    size = descriptor.format.bytes
    box = np.empty((descriptor.box_bytes // size, size), np.uint8)
    nan = descriptor.oob_fill is OobFill.NAN
    box[:] = [0xFF] * (size - 1) + [0x7F] if nan else [0] * size
    flat, offsets = box_elements(descriptor, coordinates)
    box[flat] = memory[_bytes_of(descriptor.base + offsets, size)]
    return box.reshape(-1)


def box_store(memory, descriptor, coordinates, box):
    """Put the box into the memory; elements outside the tensor are dropped."""
    size = descriptor.format.bytes
    box = box.reshape(-1, size)
    flat, offsets = box_elements(descriptor, coordinates)
    memory[_bytes_of(descriptor.base + offsets, size)] = box[flat]


def random_case(rng, *, width_bits, region, max_vectors=24, features=()):
    """A descriptor of a tensor within region = (start, end), and coordinates near it."""
    beat = width_bits // 8
    size = rng.choice(FORMATS)
    rank = rng.randint(1, 5)
    unit = min(beat, 16) if TmaFeature.PACKED_ROWS in features else beat
    units = rng.randint(1, 6 * beat // unit)
    spans = [each for each in Swizzle if each.bytes >= unit and each is not Swizzle.NONE]
    swizzle = Swizzle.NONE
    if TmaFeature.SWIZZLE in features and spans and rng.random() < 0.5:
        swizzle = rng.choice(spans)
        units = rng.randint(1, swizzle.bytes // unit)
    units = min(units, 256 * size.bytes // unit)
    box = [units * unit // size.bytes]
    vectors = ceil_div(units * unit, beat)
    rows = 1
    for _ in range(rank - 1):
        extent = rng.randint(1, max(1, min(6, max_vectors // (vectors * rows))))
        box.append(extent)
        rows *= extent
    dims = [rng.randint(1, 2 * box[0] + 3)]
    strides = []
    reach = ceil_div(dims[0] * size.bytes, 16) * 16
    for extent in box[1:]:
        strides.append(reach + 16 * rng.choice([0, 0, 1, 3]))
        dims.append(rng.randint(1, extent + 3))
        reach = strides[-1] * dims[-1]
    steps = [1] * rank
    if TmaFeature.ELEMENT_STRIDES in features:
        steps = [rng.choice([1, rng.randint(1, 8)]) for _ in range(rank)]
        box[1:] = [rng.randint((n - 1) * step + 1, n * step) for n, step in zip(box[1:], steps[1:])]
    fills = TmaFeature.NAN_FILL in features and size in NAN_FORMATS and rng.random() < 0.5
    shortfall = 0
    if TmaFeature.SHORTFALL in features and rank > 1:
        shortfall = rng.choice([0, rng.randint(0, min(dims[0], 256) - 1)])
    start, end = region
    descriptor = Descriptor(
        base=start,
        format=size,
        dims=dims,
        strides=strides,
        box=box,
        element_strides=steps,
        swizzle=swizzle,
        oob_fill=OobFill.NAN if fills else OobFill.ZERO,
        shortfall=shortfall,
    )
    slack = end - start - tensor_bytes(descriptor)
    if slack < 0:
        return random_case(
            rng, width_bits=width_bits, region=region, max_vectors=max_vectors, features=features
        )
    # Tensors at either end of the region, or across a 4 KiB boundary, are the telling ones.
    base = start + rng.choice([0, slack, rng.randint(0, slack)]) // 16 * 16
    descriptor = dataclasses.replace(descriptor, base=base)
    coordinates = [
        rng.choice([0, n - 1, rng.randint(-b - 1, n + 1), rng.randint(0, n - 1)])
        for n, b in zip(dims, box)
    ]
    if rng.random() < 0.05:
        spot = rng.randrange(rank)
        coordinates[spot] = rng.choice([-(1 << 31), (1 << 31) - 1, -300, 40_000])
    return descriptor, coordinates


def packed_command(descriptor_index, coordinates, iteration=0):
    """Fields of a command's payload."""
    padded = list(coordinates) + [0] * (5 - len(coordinates))
    return {"descriptor": descriptor_index, "coordinates": padded, "iteration": iteration}


def as_vectors(box, width_bits):
    """The (data, last) of the vectors in which a box travels; beyond its end they are zero."""
    beat = width_bits // 8
    count = ceil_div(len(box), beat)
    words = [
        int.from_bytes(box[i * beat : (i + 1) * beat].tobytes(), "little") for i in range(count)
    ]
    return [(word, number == count - 1) for number, word in enumerate(words)]


def random_bytes(seed, size):
    """Memory content in which no byte is zero."""
    return np.random.default_rng(seed).integers(1, 256, size, dtype=np.uint8)


async def write_descriptor(ctx, port, index, packed):
    """Write a descriptor into a file, from a testbench."""
    words = [int.from_bytes(packed[8 * at : 8 * at + 8], "little") for at in range(STORED_WORDS)]
    ctx.set(port.payload, {"index": index, "words": words})
    ctx.set(port.valid, 1)
    await ctx.tick()
    ctx.set(port.valid, 0)
