import dataclasses
import random
import struct

import pytest

from hw.arch.descriptor import DESCRIPTOR_BYTES, Descriptor, ElementFormat, Mode, descriptor_layout
from hw.arch.errors import BadInputError
from hw.numeric.formats import fp32, int32
from hw.numeric.product_formats import RESULT_FORMATS

MATRIX = Descriptor(
    base=0x1_2345_6780,
    format=ElementFormat.BF16,
    dims=(100, 200),
    strides=(208,),
    box=(64, 32),
)


def random_descriptor(rng):
    rank = rng.randint(1, 5)
    return Descriptor(
        base=rng.getrandbits(60) << 4,
        format=rng.choice(list(ElementFormat)),
        dims=[rng.randint(1, (1 << 32) - 1) for _ in range(rank)],
        strides=[rng.getrandbits(36) << 4 for _ in range(rank - 1)],
        box=[rng.randint(1, 256) for _ in range(rank)],
    )


def test_layout_is_128_bytes_with_every_field_naturally_aligned():
    assert descriptor_layout.size == DESCRIPTOR_BYTES * 8
    sizes = {"base": 64, "dims": 32, "box": 16, "strides": 64, "im2col_lower": 16}
    for name, bits in sizes.items():
        assert descriptor_layout[name].offset % bits == 0


def test_bytes_are_those_of_the_contract():
    packed = MATRIX.pack()
    assert packed == struct.pack(
        "<Q8B5I5H5B5x4Q6h2H24x",
        *(0x1_2345_6780, 1, 2, 0, 0, 0, 0, 0, 0),
        *(100, 200, 0, 0, 0),
        *(64, 32, 0, 0, 0),
        *(1, 1, 0, 0, 0),
        *(208, 0, 0, 0),
        *(0, 0, 0, 0, 0, 0, 0, 0),
    )


def test_unpack_is_the_inverse_of_pack(seed):
    rng = random.Random(seed)
    for _ in range(200):
        descriptor = random_descriptor(rng)
        assert Descriptor.unpack(descriptor.pack()) == descriptor


def test_derived_sizes():
    assert (MATRIX.rank, MATRIX.rows, MATRIX.row_bytes, MATRIX.box_bytes) == (2, 32, 128, 4096)
    assert [member.bytes for member in (ElementFormat.INT8, ElementFormat.BF16)] == [1, 2]
    assert ElementFormat.FP32.bytes == 4


@pytest.mark.parametrize("fmt", [*RESULT_FORMATS, fp32, int32], ids=str)
def test_every_format_of_a_chip_has_a_code_of_its_bytes(fmt):
    code = ElementFormat.of(fmt)
    assert code.bytes == fmt.bits // 8
    assert code.name.removeprefix("FP8_") == fmt.name.upper()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"base": 8}, BadInputError, "base must be a multiple of 16, not 0x8"),
        ({"base": -16}, BadInputError, "base must be an integer from 0"),
        ({"format": 3}, BadInputError, "format must be an ElementFormat, not 3"),
        ({"dims": ()}, BadInputError, "rank must be an integer from 1 to 5, not 0"),
        ({"dims": (1,) * 6}, BadInputError, "rank must be an integer from 1 to 5, not 6"),
        ({"dims": (100, 0)}, BadInputError, "Dimension 1 must be an integer from 1 .* not 0"),
        (
            {"dims": (1 << 32, 1)},
            BadInputError,
            "Dimension 0 must be .* to 4294967295, not 4294967296",
        ),
        ({"box": (64, 257)}, BadInputError, "Box dimension 1 must be .* from 1 to 256, not 257"),
        ({"box": (64,)}, BadInputError, "box must have 2 entries for rank 2, not 1"),
        ({"strides": (8,)}, BadInputError, "Stride 1 must be a multiple of 16, not 8"),
        ({"strides": (1 << 40,)}, BadInputError, "Stride 1 must be an integer from 0"),
        ({"strides": ()}, BadInputError, "strides must have 1 entries for rank 2, not 0"),
        ({"element_strides": (1, 2)}, BadInputError, "Element stride 1 must be 1, .* not 2"),
        (
            {"element_strides": (1, 9)},
            BadInputError,
            "Element stride 1 must be .* from 1 to 8, not 9",
        ),
        ({"interleave": 1}, BadInputError, "Interleave must be 0, the only one supported, not 1"),
        ({"swizzle": 3}, BadInputError, "Swizzle must be 0, the only one supported, not 3"),
        ({"oob_fill": 1}, BadInputError, "Fill outside the tensor must be 0, .* not 1"),
        ({"reduce": 1}, BadInputError, "Reduction must be 0, the only one supported, not 1"),
        ({"mode": Mode.IM2COL}, BadInputError, "Mode must be Mode.TILE, the only one supported"),
    ],
)
def test_values_outside_their_domain_or_not_served_are_refused(change, error, message):
    with pytest.raises(error, match=message):
        dataclasses.replace(MATRIX, **change)


@pytest.mark.parametrize(
    ("byte", "value", "error", "message"),
    [
        (8, 0xFF, BadInputError, "format must be a code of ElementFormat, not 255"),
        (9, 0, BadInputError, "rank must be an integer from 1 to 5, not 0"),
        (13, 200, BadInputError, "Mode must be a code of Mode, not 200"),
        (11, 2, BadInputError, "Swizzle must be 0"),
        (90, 1, BadInputError, "im2col fields must be 0"),
    ],
)
def test_unpack_refuses_what_is_not_a_descriptor(byte, value, error, message):
    packed = bytearray(MATRIX.pack())
    packed[byte] = value
    with pytest.raises(error, match=message):
        Descriptor.unpack(bytes(packed))


def test_unpack_refuses_a_wrong_size():
    with pytest.raises(BadInputError, match="must be 128 bytes, not 64"):
        Descriptor.unpack(bytes(64))
