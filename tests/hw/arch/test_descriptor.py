import dataclasses
import random
import struct

import pytest

from hw.arch.agcu import AgcuProgram
from hw.arch.descriptor import (
    DESCRIPTOR_BYTES,
    NAN_FORMATS,
    Descriptor,
    ElementFormat,
    Mode,
    OobFill,
    Swizzle,
    TmaFeature,
    descriptor_layout,
)
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
    form = rng.choice(list(ElementFormat))
    swizzle = rng.choice(list(Swizzle))
    widest = 256 if swizzle is Swizzle.NONE else swizzle.bytes // form.bytes
    return Descriptor(
        base=rng.getrandbits(60) << 4,
        format=form,
        dims=[rng.randint(256, (1 << 32) - 1) for _ in range(rank)],
        strides=[rng.getrandbits(36) << 4 for _ in range(rank - 1)],
        box=[rng.randint(1, min(256, widest))] + [rng.randint(1, 256) for _ in range(rank - 1)],
        element_strides=[rng.randint(1, 8) for _ in range(rank)],
        swizzle=swizzle,
        oob_fill=rng.choice(list(OobFill)) if form in NAN_FORMATS else OobFill.ZERO,
        shortfall=rng.choice([0, rng.randint(0, 255)]) if rank > 1 else 0,
    )


def test_layout_is_128_bytes_with_every_field_naturally_aligned():
    assert descriptor_layout.size == DESCRIPTOR_BYTES * 8
    sizes = {"base": 64, "dims": 32, "box": 16, "strides": 64, "im2col_lower": 16}
    for name, bits in sizes.items():
        assert descriptor_layout[name].offset % bits == 0


def test_bytes_are_those_of_the_contract():
    packed = MATRIX.pack()
    assert packed == struct.pack(
        "<Q8B5I5H6B4x4Q6h2H24x",
        *(0x1_2345_6780, 1, 2, 0, 0, 0, 0, 0, 0),
        *(100, 200, 0, 0, 0),
        *(64, 32, 0, 0, 0),
        *(1, 1, 0, 0, 0, 0),
        *(208, 0, 0, 0),
        *(0, 0, 0, 0, 0, 0, 0, 0),
    )


def test_unpack_is_the_inverse_of_pack(seed):
    rng = random.Random(seed)
    for _ in range(200):
        descriptor = random_descriptor(rng)
        assert Descriptor.unpack(descriptor.pack()) == descriptor


def test_rows_of_a_box_with_element_strides_are_rounded_up():
    strided = dataclasses.replace(MATRIX, element_strides=(5, 3))
    assert (strided.rows, strided.row_bytes, strided.box_bytes) == (11, 128, 11 * 128)


@pytest.mark.parametrize(
    ("change", "feature"),
    [
        ({"element_strides": (1, 2)}, TmaFeature.ELEMENT_STRIDES),
        ({"swizzle": Swizzle.B128}, TmaFeature.SWIZZLE),
    ],
)
def test_an_agcu_refuses_what_its_engine_is_made_without(change, feature):
    descriptor = dataclasses.replace(MATRIX, **change)
    assert descriptor.features == {feature}
    with pytest.raises(BadInputError, match=f"made without, not {feature.name}"):
        AgcuProgram(descriptors=((descriptor, 0),))


@pytest.mark.parametrize(
    ("change", "feature"),
    [
        ({"oob_fill": OobFill.NAN}, TmaFeature.NAN_FILL),
        ({"shortfall": 99}, TmaFeature.SHORTFALL),
    ],
)
def test_an_agcu_takes_a_fill_with_nan_and_shorter_rows(change, feature):
    special = dataclasses.replace(MATRIX, **change)
    assert special.features == {feature}
    program = AgcuProgram(descriptors=((special, 0),))
    assert AgcuProgram.unpack(program.pack(2), 2).descriptors == program.descriptors


def test_the_fill_of_each_format_is_every_bit_but_the_sign():
    for code in ElementFormat:
        plain = dataclasses.replace(MATRIX, format=code, box=(64, 32))
        assert plain.fill_element == bytes(code.bytes)
        if code in NAN_FORMATS:
            filled = dataclasses.replace(plain, oob_fill=OobFill.NAN)
            assert filled.fill_element == b"\xff" * (code.bytes - 1) + b"\x7f"


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
        (
            {"element_strides": (1, 9)},
            BadInputError,
            "Element stride 1 must be .* from 1 to 8, not 9",
        ),
        ({"interleave": 1}, BadInputError, "Interleave must be 0, the only one supported, not 1"),
        ({"swizzle": 3}, BadInputError, "Swizzle must be a member of Swizzle, not 3"),
        (
            {"swizzle": Swizzle.B64},
            BadInputError,
            "Row of a box with swizzle B64 must be at most 64 bytes, not 128",
        ),
        ({"oob_fill": 1}, BadInputError, "Fill outside the tensor must be a member of OobFill"),
        (
            {"oob_fill": OobFill.NAN, "format": ElementFormat.INT16},
            BadInputError,
            "Fill with NaN must be for one of BF16, FP16, FP32, not INT16",
        ),
        ({"shortfall": 100}, BadInputError, "Shortfall must be .* from 0 to 99, not 100"),
        (
            {"dims": (1000, 2), "shortfall": 256},
            BadInputError,
            "Shortfall must be .* from 0 to 255, not 256",
        ),
        (
            {"dims": (9,), "strides": (), "box": (8,), "element_strides": (), "shortfall": 1},
            BadInputError,
            "Shortfall must be an integer from 0 to 0, not 1",
        ),
        ({"reduce": 1}, BadInputError, "Reduction must be 0, the only one supported, not 1"),
        ({"mode": Mode.IM2COL}, BadInputError, "Mode must be Mode.TILE without im2col, not"),
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
        (11, 9, BadInputError, "Swizzle must be a code of Swizzle, not 9"),
        (12, 2, BadInputError, "Oob fill must be a code of OobFill, not 2"),
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
