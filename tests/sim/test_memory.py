"""Memory of a launch: what lies where, what surrounds it, and that nothing else may change."""

import numpy as np
import pytest

from hw.arch.config import named
from hw.arch.errors import BadInputError
from hw.arch.launch import ENTRY_BYTES, HEADER_BYTES, LaunchEntry, alignment_bytes
from hw.arch.launch import Argument as LaunchArgument
from hw.numeric.formats import bf16, fp32, int8
from sim.launch_memory import GUARD_BYTES, ImageRuns, LaunchMemory
from sim.operands import random_inputs
from sw.array_spec import ArraySpec
from sw.parts.part import Argument, PartLaunch

ARRAYS = (
    ArraySpec("A", (5, 7), bf16),
    ArraySpec("B", (7, 33), int8),
    ArraySpec("C", (2, 3, 11), fp32, output=True),
)
IMAGE = bytes(range(256)) * 3


@pytest.fixture
def memory(seed):
    return LaunchMemory.of_image(named["small"], IMAGE, ARRAYS, seed=seed, launches=2)


@pytest.fixture
def inputs(seed):
    return random_inputs(ARRAYS[:2], seed)


def test_everything_is_aligned_and_a_guard_apart(memory):
    assert list(memory.places) == ["launch list", "arguments", "image", "A", "B", "C"]
    end = 0
    for address, size in memory.places.values():
        assert address % 4096 == 0 and address >= end + GUARD_BYTES
        end = address + size
    assert memory.size >= end + GUARD_BYTES
    assert memory.places["C"][1] == 6 * 48 and memory.places["A"][1] == 5 * 16


def test_the_list_names_the_image_and_the_arguments_the_arrays(memory, inputs):
    raw = memory.bytes_before(inputs)
    places, pitch = memory.places, alignment_bytes(256)
    assert memory.entries == 2
    for number in range(2):
        at = memory.list_address + number * pitch
        entry = LaunchEntry.unpack(bytes(raw[at : at + ENTRY_BYTES]))
        assert (entry.image_address, entry.image_bytes) == places["image"]
        assert entry.argument_address == places["arguments"][0] and entry.argument_count == 3
    for number, name in enumerate("ABC"):
        at = places["arguments"][0] + 16 * number
        assert int.from_bytes(raw[at : at + 8], "little") == places[name][0]
    first, size = places["image"]
    assert (
        raw[first : first + size] == IMAGE[HEADER_BYTES:] and entry.header == IMAGE[:HEADER_BYTES]
    )


def test_inputs_read_back_and_the_rest_is_garbage_of_the_seed(memory, inputs, seed):
    raw = memory.bytes_before(inputs)
    for name, array in inputs.items():
        assert memory.read(raw, name).tobytes() == array.tobytes()
    assert memory.read(raw, "C").shape == (2, 3, 11)
    assert raw == memory.bytes_before(inputs)
    other = LaunchMemory.of_image(named["small"], IMAGE, ARRAYS, seed=seed + 1, launches=2)
    again = other.bytes_before(inputs)
    differs = np.frombuffer(raw, np.uint8) != np.frombuffer(again, np.uint8)
    for name in ("launch list", "arguments", "image"):
        address, size = memory.places[name]
        assert not differs[address : address + size].any()
    # Padding of a row of A: 14 bytes of elements in 16.
    padding = differs[memory.places["A"][0] :][:80].reshape(5, 16)[:, 14:]
    assert padding.any() and 0.9 < differs[:GUARD_BYTES].mean() <= 1


@pytest.mark.parametrize("name", ["launch list", "arguments", "image", "A", "B", "C"])
def test_a_byte_changed_beside_the_elements_of_an_output_is_found(memory, inputs, name, seed):
    before = memory.bytes_before(inputs)
    assert memory.changed_outside(before, before) is None
    first, size = memory.places[name]
    around = [first - GUARD_BYTES, first - 1, first + size, first + size + GUARD_BYTES - 1]
    inside = [] if name == "C" else [first, first + size - 1]
    padding = [first + 44, first + size - 1] if name == "C" else []
    for address in (*around, *inside, *padding):
        after = bytearray(before)
        after[address] ^= 1 << seed % 8
        assert memory.changed_outside(before, after) == address
        assert memory.where(address)


def test_elements_of_an_output_may_change_all_of_them(memory, inputs):
    before = memory.bytes_before(inputs)
    after = bytearray(before)
    first, size = memory.places["C"]
    for row in range(first, first + size, 48):
        for byte in range(row, row + 44):
            after[byte] ^= 0xFF
    assert memory.changed_outside(before, after) is None
    assert (memory.read(after, "C").view(np.uint32) != memory.read(before, "C").view("u4")).all()


def test_an_address_is_told_in_words(memory):
    first, size = memory.places["C"]
    assert memory.where(first + 48 + 45) == "padding 45 of row 1 of C"
    assert memory.where(first + 3) == "byte 3 of row 0 of C"
    assert memory.where(first - 2) == "2 bytes before C"
    assert memory.where(first + size + 5) == "5 bytes behind the end of C"
    assert memory.where(memory.places["image"][0] + 9) == "byte 9 of the image"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"A": np.zeros((5, 7), np.int8)}, r"Array A must be bf16 of \(5, 7\), not int8"),
        ({"B": np.zeros((7, 32), np.int8)}, r"Array B must be int8 of \(7, 33\), not int8 of"),
        ({"B": None}, "Array B must be given"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(memory, inputs, change, message):
    given = {name: array for name, array in (inputs | change).items() if array is not None}
    with pytest.raises(BadInputError, match=message):
        memory.bytes_before(given)


def test_a_list_of_several_images_has_entries_tables_and_guards_of_their_own(seed, inputs):
    """Two images: the first runs twice, and writes what the second reads."""
    work = ArraySpec("W", (4, 9), fp32, output=True)
    first = ImageRuns(
        IMAGE,
        (
            PartLaunch((Argument("A"), Argument("W", 64))),
            PartLaunch((Argument("A", 16, 32), Argument("W", 0, 48)), repeat=2),
        ),
    )
    second = ImageRuns(IMAGE[::-1], (PartLaunch((Argument("W"), Argument("B"), Argument("C"))),))
    memory = LaunchMemory(
        named["small"],
        [first, second],
        ARRAYS,
        intermediates=[work],
        seed=seed,
        launches=2,
        origin=1 << 20,
    )
    assert list(memory.places) == [
        *("launch list", "arguments", "image", "image 2", "A", "B", "C", "W")
    ]
    assert memory.entries == 6 and memory.changing == ("C", "W")
    raw = memory.bytes_before(inputs)
    pitch, found = alignment_bytes(256), []
    for number in range(6):
        at = memory.list_address - (1 << 20) + number * pitch
        found.append(LaunchEntry.unpack(bytes(raw[at : at + ENTRY_BYTES])))
    assert found[:3] == found[3:] == list(memory.list_entries)
    assert [entry.repeat for entry in found[:3]] == [1, 2, 1]
    places = {name: address for name, (address, _) in memory.places.items()}
    images = [entry.image_address - (1 << 20) for entry in found[:3]]
    assert images == [places["image"], places["image"], places["image 2"]]
    wanted = [
        [(places["A"], 0), (places["W"] + 64, 0)],
        [(places["A"] + 16, 32), (places["W"], 48)],
        [(places["W"], 0), (places["B"], 0), (places["C"], 0)],
    ]
    for entry, arguments in zip(found, wanted, strict=False):
        assert entry.argument_count == len(arguments) and entry.argument_address % pitch == 0
        table = entry.argument_address - (1 << 20)
        for number, (address, stride) in enumerate(arguments):
            packed = LaunchArgument(address + (1 << 20), stride).pack()
            assert raw[table + 16 * number : table + 16 * number + 16] == packed
    after = bytearray(raw)
    address, size = memory.places["W"]
    after[address : address + 36] = bytes(36)
    assert memory.changed_outside(raw, after) is None
    # Padding of a row, and the guard behind: nobody may write them.
    for place in (address + 36, address + size):
        spoiled = bytearray(after)
        spoiled[place] ^= 1
        assert memory.changed_outside(raw, spoiled) == place


def test_a_list_with_too_many_entries_is_refused():
    runs = ImageRuns(IMAGE, (PartLaunch(()),) * 1000)
    with pytest.raises(BadInputError, match="must have fewer than 65536 entries, not 66000"):
        LaunchMemory(named["small"], [runs], ARRAYS, seed=1, launches=66)
