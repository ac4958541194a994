"""Tensor maps: what is refused, and descriptors that hardware, unpacking and numpy take."""

import inspect
import random
import re
from pathlib import Path

import numpy as np
import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator

import tilewright as tw
from hw.arch.descriptor import MAX_BOX, Descriptor, TmaFeature, descriptor_layout
from hw.arch.error_codes import TmaError
from hw.arch.tma_sizes import TmaSizes
from hw.numeric.formats import int4
from hw.tma.descriptor_rules import descriptor_rules
from hw.tma.layouts import TmaLayouts
from sim.tb._refusals import with_field
from tests.hw.tma.model import box_load, random_bytes

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tensor_map.md"
GOOD = {
    "tensor_data_type": "BFLOAT16",
    "global_address": 0x1000,
    "global_dim": (100, 50, 7),
    "global_strides": (208, 10400),
    "box_dim": (64, 8, 2),
}
IMAGES = {
    "tensor_data_type": "BFLOAT16",
    "global_address": 0x1000,
    "global_dim": (64, 30, 20, 4),
    "global_strides": (128, 3840, 76800),
    "pixel_box_lower_corner": (-1, -1),
    "pixel_box_upper_corner": (-1, -1),
    "channels_per_pixel": 64,
    "pixels_per_column": 128,
}
#: Change of a good call, field refused, its value, its rule, code of the refusal.
REFUSED = [
    ({"tensor_data_type": 9}, "tensor_data_type", 9, "be one of UINT8, ", "format"),
    ({"tensor_data_type": int4}, "tensor_data_type", "int4", "be one of int8, ", "format"),
    ({"interleave": "64B"}, "interleave", "64B", "be one of NONE, 16B, 32B", "interleave"),
    ({"interleave": "16B"}, "interleave", "16B", "be NONE", "interleave"),
    (
        {"interleave": "32B", "global_strides": (224, 11200), "swizzle": "32B"},
        *("interleave", "32B", "be NONE", "interleave"),
    ),
    (
        {"interleave": "32B", "global_strides": (224, 11200), "swizzle": "64B"},
        *("swizzle", "64B", "be 32B where interleave is 32B", "swizzle"),
    ),
    ({"interleave": "32B"}, "global_strides[0]", 208, "be a multiple of 32", "stride"),
    (
        {"interleave": "32B", "global_address": 0x1010},
        *("global_address", 0x1010, "be a multiple of 32", "base"),
    ),
    (
        {"interleave": "16B", "global_dim": (100, 50)},
        *("global_dim", (100, 50), "have from 3 to 5 entries", "rank"),
    ),
    ({"global_dim": ()}, "global_dim", (), "have from 1 to 5 entries", "rank"),
    ({"global_dim": (1,) * 6}, "global_dim", (1,) * 6, "have from 1 to 5 entries", "rank"),
    ({"global_dim": 100}, "global_dim", 100, "be a list of integers", "dimension"),
    ({"global_dim": (100, 0, 7)}, "global_dim[1]", 0, "be an integer from 1 ", "dimension"),
    (
        {"global_dim": (1 << 32, 50, 7)},
        *("global_dim[0]", 1 << 32, "be an integer from 1 to 4294967295", "dimension"),
    ),
    ({"global_address": 0x1008}, "global_address", 0x1008, "be a multiple of 16", "base"),
    ({"global_address": 1 << 48}, "global_address", 1 << 48, "be an integer from 0 to", "base"),
    (
        {"global_address": (1 << 48) - 72_784},
        *("global_address", (1 << 48) - 72_784, "be such that the tensor ends within 48", "base"),
    ),
    ({"global_address": -16}, "global_address", -16, "be an integer from 0 to", "base"),
    ({"global_address": 1.0}, "global_address", 1.0, "be an integer from 0 to", "base"),
    ({"global_strides": (208, 72)}, "global_strides[1]", 72, "be a multiple of 16", "stride"),
    (
        {"global_strides": (1 << 40, 16)},
        *("global_strides[0]", 1 << 40, "be an integer from 0 to 1099511627775", "stride"),
    ),
    ({"global_strides": (208,)}, "global_strides", (208,), "have 2 integers", "stride"),
    ({"box_dim": (64, 0, 2)}, "box_dim[1]", 0, "be an integer from 1 to 256", "box"),
    ({"box_dim": (64, 257, 2)}, "box_dim[1]", 257, "be an integer from 1 to 256", "box"),
    ({"box_dim": (64, True, 2)}, "box_dim[1]", True, "be an integer from 1 to 256", "box"),
    ({"box_dim": "box"}, "box_dim", "box", "have 3 integers", "box"),
    ({"box_dim": (4, 8, 2)}, "box_dim[0]", 8, "be a multiple of 16 bytes", "row-bytes"),
    (
        {"element_strides": (1, 9, 1)},
        *("element_strides[1]", 9, "be an integer from 1 to 8", "element-stride"),
    ),
    ({"element_strides": ()}, "element_strides", (), "have 3 integers", "element-stride"),
    (
        {"swizzle": "128B_ATOM_32B"},
        *("swizzle", "128B_ATOM_32B", "be one of NONE, 32B, 64B, 128B", "swizzle"),
    ),
    ({"swizzle": "64B"}, "box_dim[0]", 128, "be at most 64 bytes with swizzle 64B", "swizzle"),
    (
        {"l2_promotion": "L2_512B"},
        *("l2_promotion", "L2_512B", "be one of NONE, L2_64B, L2_128B, L2_256B", None),
    ),
    ({"oob_fill": 1}, "oob_fill", 1, "be one of NONE, NAN_REQUEST_ZERO_FMA", "oob-fill"),
    (
        {"oob_fill": "NAN_REQUEST_ZERO_FMA", "tensor_data_type": "UINT16"},
        "oob_fill",
        "NAN_REQUEST_ZERO_FMA",
        "be NONE where tensor_data_type is none of FLOAT16, FLOAT32, BFLOAT16",
        "oob-fill",
    ),
]
#: As above, of im2col.
REFUSED_IMAGES = [
    (
        {"pixel_box_upper_corner": (-1, -21)},
        *("pixel_box_upper_corner[1]", -21, "be more than -21, so that the bounding box is", None),
    ),
    (
        {"channels_per_pixel": 12},
        "channels_per_pixel",
        24,
        "be a multiple of 16 bytes",
        "row-bytes",
    ),
    (
        {"global_dim": (64, 30), "global_strides": (128,)},
        *("global_dim", (64, 30), "have from 3 to 5 entries", "rank"),
    ),
    ({"channels_per_pixel": 257}, "channels_per_pixel", 257, "be an integer from 1 to 256", None),
    ({"pixels_per_column": 1025}, "pixels_per_column", 1025, "be an integer from 1 to 1024", None),
    (
        {"pixel_box_lower_corner": (-1, -129)},
        *("pixel_box_lower_corner[1]", -129, "be an integer from -128 to 127", None),
    ),
    (
        {"pixel_box_upper_corner": (0,)},
        *("pixel_box_upper_corner", (0,), "have 2 integers", None),
    ),
    ({"swizzle": "64B"}, "channels_per_pixel", 128, "be at most 64 bytes with", "swizzle"),
    ({"oob_fill": 1}, "oob_fill", 1, "be one of NONE, NAN_REQUEST_ZERO_FMA", "oob-fill"),
]
#: Every data type of CUDA that is not built.
NOT_BUILT = (
    *("UINT64", "INT64", "FLOAT64", "FLOAT32_FTZ", "TFLOAT32", "TFLOAT32_FTZ"),
    *("16U4_ALIGN8B", "16U4_ALIGN16B", "16U6_ALIGN16B"),
)


def _refuses(call, arguments, field, value, rule, kind):
    with pytest.raises(tw.BadInputError, match=re.escape(f" must {rule}")) as caught:
        call(**arguments)
    error = caught.value
    assert str(error).startswith(field) and str(error).endswith(f"not {value!r}")
    assert (error.where, error.value, error.kind) == (field, value, kind)
    assert error.rule.startswith(rule)


@pytest.mark.parametrize(("change", "field", "value", "rule", "code"), REFUSED)
def test_a_wrong_argument_is_refused(change, field, value, rule, code):
    kind = f"tma-{code}" if code else "bad-input"
    _refuses(tw.TensorMap.encode, GOOD | change, field, value, rule, kind)


@pytest.mark.parametrize(("change", "field", "value", "rule", "code"), REFUSED_IMAGES)
def test_im2col_is_checked_and_refused(change, field, value, rule, code):
    kind = f"tma-{code or 'im2col'}"
    _refuses(tw.TensorMap.encode_im2col, IMAGES | change, field, value, rule, kind)


@pytest.mark.parametrize(
    ("rank", "low", "high"), [(3, -32768, 32767), (4, -128, 127), (5, -16, 15)]
)
def test_corners_of_im2col_have_the_bits_of_their_rank(rank, low, high):
    call = IMAGES | {
        "global_dim": (64,) * rank,
        "global_strides": (128,) * (rank - 1),
        "pixel_box_lower_corner": (low,) * (rank - 2),
        "pixel_box_upper_corner": (high,) * (rank - 2),
    }
    encoded = tw.TensorMap.encode_im2col(**call | {"global_dim": (1 << 17,) * rank})
    assert Descriptor.unpack(bytes(encoded)) == encoded.descriptor
    assert encoded.descriptor.im2col.lower == (low,) * (rank - 2)
    for name, value in (("pixel_box_lower_corner", low - 1), ("pixel_box_upper_corner", high + 1)):
        with pytest.raises(tw.BadInputError, match=f"from {low} to {high}, not {value}") as caught:
            tw.TensorMap.encode_im2col(**call | {name: (value,) * (rank - 2)})
        assert caught.value.where == f"{name}[0]"


@pytest.mark.parametrize("data_type", NOT_BUILT)
def test_other_data_types_of_cuda_are_refused(data_type):
    arguments = GOOD | {"tensor_data_type": data_type}
    rule = "be one of UINT8, UINT16, UINT32, INT32, FLOAT16, FLOAT32, BFLOAT16"
    _refuses(tw.TensorMap.encode, arguments, "tensor_data_type", data_type, rule, "tma-format")


def test_a_unit_that_there_is_not_is_refused():
    with pytest.raises(
        tw.BadInputError, match="address_bits must be an integer from 32 to 64, not 16"
    ):
        tw.TensorMap.encode(**GOOD, address_bits=16)


def random_arguments(rng, address_bits):
    """Arguments near the limits of every field, some of them beyond."""
    rank = rng.randint(1, 5)
    types = {"UINT8": 1, "UINT16": 2, "UINT32": 4, "INT32": 4, "FLOAT16": 2, "FLOAT32": 4}
    types |= {"BFLOAT16": 2, tw.bf16: 2, tw.int8: 1, tw.e4m3: 1, tw.e5m2: 1, tw.fp32: 4}
    data_type, size = rng.choice(list(types.items()))
    swizzle = rng.choice(["NONE", "32B", "64B", "128B"])
    row = rng.choice([16, 32, 48, 64, 128, 256, 1024, rng.randint(1, 300)])
    return {
        "tensor_data_type": data_type,
        "global_address": rng.choice([0, 16, (1 << address_bits) - 16, rng.getrandbits(45) << 4]),
        "global_dim": [
            rng.choice([1, (1 << 32) - 1, rng.getrandbits(33) + 1]) for _ in range(rank)
        ],
        "global_strides": [
            rng.choice([0, 16, (1 << 40) - 16, rng.getrandbits(36) << 4]) for _ in range(rank - 1)
        ],
        "box_dim": [row // size or 1, *(rng.choice([1, 256, 257]) for _ in range(rank - 1))],
        "element_strides": rng.choice([None, [rng.randint(1, 8) for _ in range(rank)]]),
        "swizzle": swizzle,
        "oob_fill": rng.choice(["NONE", "NONE", "NAN_REQUEST_ZERO_FMA"]),
        "l2_promotion": rng.choice(["NONE", "L2_128B"]),
        "address_bits": address_bits,
    }


def first_refusals(packed, width_bits, address_bits):
    """Code with which the rules of the hardware refuse each descriptor, or none."""
    m = Module()
    fields = Signal(descriptor_layout)
    row_bytes = Signal(range(MAX_BOX * 8 + 1))
    layouts = TmaLayouts(width_bits, address_bits, 1, tuple(TmaFeature))
    rules = descriptor_rules(fields, row_bytes, layouts)
    broken = [Signal(name=code.name) for code, _ in rules]
    m.d.comb += row_bytes.eq(fields.box[0] << fields.format[:2])
    m.d.comb += [bit.eq(value) for bit, (_, value) in zip(broken, rules)]
    found = []

    async def read(ctx):
        for each in packed:
            ctx.set(fields.as_value(), int.from_bytes(each, "little"))
            codes = [code for bit, (code, _) in zip(broken, rules) if ctx.get(bit)]
            found.append(codes[0] if codes else TmaError.NONE)

    simulator = Simulator(m)
    simulator.add_testbench(read)
    simulator.run()
    return found


@pytest.mark.parametrize(
    ("width_bits", "address_bits"), [(64, 32), (128, 64), (256, 48), (512, 48), (1024, 40)]
)
def test_what_is_encoded_keeps_the_rules_of_the_hardware(width_bits, address_bits, seed):
    rng = random.Random(seed)
    kept = []
    while len(kept) < 100:
        arguments = random_arguments(rng, address_bits)
        try:
            tensor_map = tw.TensorMap.encode(**arguments)
        except tw.BadInputError:
            continue
        kept.append(bytes(tensor_map))
        unpacked = Descriptor.unpack(kept[-1])
        assert unpacked == tensor_map.descriptor
        assert unpacked.base == arguments["global_address"]
        assert list(unpacked.dims) == arguments["global_dim"]
        assert list(unpacked.strides) == arguments["global_strides"]
        assert list(unpacked.box) == arguments["box_dim"]
        rank = len(unpacked.dims)
        assert list(unpacked.element_strides) == (arguments["element_strides"] or [1] * rank)
        assert unpacked.swizzle.name.lstrip("B") == arguments["swizzle"].rstrip("B")
        assert (unpacked.oob_fill.name == "NAN") == (arguments["oob_fill"] != "NONE")
    assert set(first_refusals(kept, width_bits, address_bits)) == {TmaError.NONE}


#: Change of a good call, and the same mistake in its bytes: field, index and value.
MISTAKES = [
    ({"tensor_data_type": "FLOAT64"}, "format", 0, 3),
    ({"global_dim": (1,) * 6}, "rank", 0, 6),
    ({"global_dim": (100, 0, 7)}, "dims", 1, 0),
    ({"global_address": 0x1008}, "base", 0, 0x1008),
    ({"global_address": 1 << 48}, "base", 0, 1 << 48),
    ({"global_strides": (208, 72)}, "strides", 1, 72),
    ({"global_strides": (1 << 40, 16)}, "strides", 0, 1 << 40),
    ({"box_dim": (64, 0, 2)}, "box", 1, 0),
    ({"box_dim": (64, 257, 2)}, "box", 1, 257),
    ({"box_dim": (4, 8, 2)}, "box", 0, 4),
    ({"element_strides": (1, 9, 1)}, "element_strides", 1, 9),
    ({"interleave": "16B"}, "interleave", 0, 1),
    ({"swizzle": "64B"}, "swizzle", 0, 2),
    ({"swizzle": "128B_ATOM_32B"}, "swizzle", 0, 4),
    ({"oob_fill": "ONE"}, "oob_fill", 0, 2),
]


def test_the_code_of_a_refusal_is_that_of_the_hardware():
    good = bytes(tw.TensorMap.encode(**GOOD))
    kinds = []
    for change, *_ in MISTAKES:
        with pytest.raises(tw.BadInputError) as caught:
            tw.TensorMap.encode(**GOOD | change)
        kinds.append(caught.value.kind)
    packed = [with_field(good, *mistake) for _, *mistake in MISTAKES]
    codes = first_refusals(packed, 256, 48)
    assert kinds == [f"tma-{code.name.lower().replace('_', '-')}" for code in codes]


def sliced_box(tensor, fill, at, box, steps):
    """Box of a tensor by slices, outermost dimension first; ``fill`` where there is no tensor."""
    whole = np.full(box, fill, tensor.dtype)
    spans = [(max(c, 0), max(min(c + b, n), 0)) for c, b, n in zip(at, box, tensor.shape)]
    inside = tuple(slice(low - c, max(high - c, low - c)) for (low, high), c in zip(spans, at))
    whole[inside] = tensor[tuple(slice(low, max(high, low)) for low, high in spans)]
    return whole[tuple(slice(None, None, step) for step in steps)]


@pytest.mark.parametrize(
    ("data_type", "dtype", "fill"),
    [
        ("UINT8", np.uint8, 0),
        ("UINT16", np.uint16, 0),
        ("INT32", np.int32, 0),
        ("BFLOAT16", np.uint16, 0x7FFF),
        ("FLOAT32", np.uint32, 0x7FFFFFFF),
    ],
)
def test_a_loaded_box_is_a_slice_of_the_tensor(data_type, dtype, fill, seed):
    rng = random.Random(seed)
    base, size = 0x100, np.dtype(dtype).itemsize
    touched = 0
    for _ in range(40):
        dims = [rng.randint(1, 40), rng.randint(1, 6), rng.randint(1, 5)]
        rows = -(-dims[0] * size // 16) * 16 + 16 * rng.randint(0, 2)
        strides = [rows, rows * dims[1] + 16 * rng.randint(0, 2)]
        box = [rng.choice([16, 32, 48]) // size, rng.randint(1, 5), rng.randint(1, 4)]
        steps = [1, rng.randint(1, 3), rng.randint(1, 2)]
        at = [rng.randint(-b, n) for b, n in zip(box, dims)]
        tensor_map = tw.TensorMap.encode(
            tensor_data_type=data_type,
            global_address=base,
            global_dim=dims,
            global_strides=strides,
            box_dim=box,
            element_strides=steps,
            swizzle=rng.choice(["NONE", "64B"]),
            oob_fill="NAN_REQUEST_ZERO_FMA" if fill else "NONE",
        )
        memory = random_bytes(rng.getrandbits(30), base + strides[1] * dims[2])
        pitch = (*strides[::-1], size)
        tensor = np.ndarray(dims[::-1], dtype, memory, base, pitch)
        wanted = sliced_box(tensor, fill, at[::-1], box[::-1], steps[::-1])
        descriptor = Descriptor.unpack(bytes(tensor_map))
        loaded = box_load(memory, descriptor, at)
        assert np.array_equal(loaded.view(dtype), wanted.reshape(-1))
        touched += bool((wanted != fill).any() and (wanted == fill).any())
    assert touched > 5


def test_the_defaults_are_those_of_the_unit():
    for call in (tw.TensorMap.encode, tw.TensorMap.encode_im2col):
        assert inspect.signature(call).parameters["address_bits"].default == TmaSizes.address_bits


def test_the_page_names_every_field_and_code():
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    fields = {name for row in rows for name in re.findall(r"`(\w+)", row.split(" | ")[0])}
    cuda = (
        "tensorMap tensorDataType tensorRank globalAddress globalDim globalStrides boxDim "
        "elementStrides interleave swizzle l2Promotion oobFill pixelBoxLowerCorner "
        "pixelBoxUpperCorner channelsPerPixel pixelsPerColumn pixelBoxLowerCornerWidth "
        "pixelBoxUpperCornerWidth mode"
    )
    assert fields == set(cuda.split())
    codes = {code for row in rows for code in re.findall(r"`(\w+)`", row.split(" | ")[-1])}
    raised = {code for *_, code in [*REFUSED, *REFUSED_IMAGES] if code}
    named = {code.upper().replace("-", "_") for code in raised}
    assert codes == named | {"IM2COL", "IM2COL_WIDE", "POINTER"}
    assert {name for name in NOT_BUILT if f"`{name}`" in PAGE.read_text()} == set(NOT_BUILT)
