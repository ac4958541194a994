"""Formats: sizes, bits, and what they refuse."""

import dataclasses

import ml_dtypes
import numpy as np
import pytest

from hw.arch.errors import BadInputError
from hw.numeric.formats import (
    bf16,
    e2m1,
    e4m3,
    e5m2,
    fp16,
    fp32,
    int4,
    int8,
    int32,
    mxe2m1,
    mxe4m3,
    mxe5m2,
    named,
)

TABLE = [
    # format, bits, is_float, exponent, fraction, significand, bias, accumulator
    (bf16, 16, True, 8, 7, 8, 127, fp32),
    (fp32, 32, True, 8, 23, 24, 127, fp32),
    (fp16, 16, True, 5, 10, 11, 15, fp32),
    (e4m3, 8, True, 4, 3, 4, 7, fp32),
    (e5m2, 8, True, 5, 2, 3, 15, fp32),
    (e2m1, 4, True, 2, 1, 2, 1, fp32),
    (int8, 8, False, 0, 0, 8, 0, int32),
    (int4, 4, False, 0, 0, 4, 0, int32),
    (int32, 32, False, 0, 0, 32, 0, int32),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row[0].name)
def test_sizes(row):
    format_, *expected = row
    assert [
        format_.bits,
        format_.is_float,
        format_.exponent_bits,
        format_.fraction_bits,
        format_.significand_bits,
        format_.bias,
        format_.accumulator,
    ] == expected
    assert named[format_.name] is format_


@pytest.mark.parametrize("format_", [bf16, fp16, e4m3, e5m2, e2m1, fp32], ids=lambda f: f.name)
def test_fields_agree_with_the_numpy_types(format_):
    library = ml_dtypes.finfo(format_.dtype)
    assert library.bits == format_.bits
    assert library.nmant == format_.fraction_bits
    assert library.nexp == format_.exponent_bits
    assert library.minexp == 1 - format_.bias
    assert library.max == format_.from_bits(format_.largest)
    if format_.has_infinity:
        assert np.isinf(format_.from_bits(format_.infinity).astype(np.float32))
    if format_.has_nan:
        assert np.isnan(format_.from_bits(format_.canonical_nan).astype(np.float32))


def test_a_format_without_infinity_says_so():
    with pytest.raises(BadInputError, match="^Format of an infinity must have one, not be e4m3$"):
        _ = e4m3.infinity
    with pytest.raises(BadInputError, match="^Format of a NaN must have one, not be e2m1$"):
        _ = e2m1.canonical_nan
    assert (e4m3.largest, e4m3.canonical_nan, int8.largest) == (0x7E, 0x7F, 127)
    assert (e2m1.largest, int4.largest) == (7, 7)


def test_a_lane_of_16_bits_tells_the_products():
    lanes = {bf16: 1, fp16: 1, e4m3: 2, e5m2: 2, int8: 2, e2m1: 4, int4: 4, fp32: 1, int32: 1}
    assert {format_: format_.products_per_cycle for format_ in lanes} == lanes
    for scaled, element in ((mxe4m3, e4m3), (mxe5m2, e5m2), (mxe2m1, e2m1)):
        assert (scaled.lane_bits, element.lane_bits) == (24, 16)
        assert dataclasses.replace(scaled, name=element.name, has_scale=False) == element
        assert named[scaled.name] is scaled and scaled != element


def test_operands_of_4_bits_lie_two_a_byte_in_lanes():
    values = np.array([[1, -1, 7, -8], [0, 2, -3, 4]], int4.dtype)
    assert int4.packed(values).tolist() == [[0xF1, 0x87], [0x20, 0x4D]]
    assert e2m1.packed(np.array([0.5, -6], e2m1.dtype)).tolist() == [0xF1]
    assert bf16.packed(np.array([1.0], bf16.dtype)).tolist() == [0x80, 0x3F]
    # Whatever the other half of the byte holds.
    assert int4.bits_of(np.array([0xFD], np.uint8).view(int4.dtype)).tolist() == [0xD]
    with pytest.raises(ValueError, match="^Last axis of int4 must be a multiple of 2, not 3$"):
        int4.packed(values[:, :3])


@pytest.mark.parametrize(
    "format_", [bf16, fp16, e4m3, e5m2, e2m1, int8, int4], ids=lambda f: f.name
)
def test_bits_round_trip_exhaustively(format_):
    bits = np.arange(1 << format_.bits, dtype=f"u{format_.dtype.itemsize}")
    np.testing.assert_array_equal(format_.bits_of(format_.from_bits(bits)), bits)


def test_bits_are_those_of_the_values():
    assert bf16.bits_of(np.array([1.0, -2.0], bf16.dtype)).tolist() == [0x3F80, 0xC000]
    assert fp32.bits_of(np.float32(1.0)) == 0x3F800000
    assert int8.bits_of(np.array([-128, -1], np.int8)).tolist() == [0x80, 0xFF]
    assert int32.from_bits([0xFFFFFFFE]).tolist() == [-2]
    assert bf16.from_bits([]).size == 0


def test_canonical_nan_is_a_positive_quiet_nan_without_payload():
    assert (bf16.canonical_nan, fp32.canonical_nan) == (0x7FC0, 0x7FC00000)
    assert np.isnan(fp32.from_bits(fp32.canonical_nan))
    with pytest.raises(BadInputError, match="^Format of a NaN must be a float, not int8$"):
        _ = int8.canonical_nan


def test_formats_are_values():
    assert dataclasses.replace(bf16) == bf16
    assert len({bf16, fp32, int8, int32}) == 4
    with pytest.raises(dataclasses.FrozenInstanceError):
        bf16.name = "other"  # deliberately refused
    with pytest.raises(TypeError):
        named["bf16"] = fp32


def test_refusals():
    with pytest.raises(BadInputError, match="^Array of bf16 must be of bfloat16, not float32$"):
        bf16.bits_of(np.zeros(1, np.float32))
    with pytest.raises(
        ValueError, match="^Bits of bf16 must be in range 0 to 65535, not -1 to 65536$"
    ):
        bf16.from_bits([-1, 65536])
