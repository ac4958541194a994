"""Launches and boxes: the chip's error codes, and every byte of a box."""

import numpy as np
import pytest

from hw.arch.config import named
from hw.arch.descriptor import Descriptor, ElementFormat
from hw.arch.error_codes import LaunchError
from hw.arch.image import checksum
from hw.arch.launch import ENTRY_BYTES, alignment_bytes
from hw.numeric.formats import bf16, fp32
from sim.emulator import emulate
from sim.emulator.boxes import BoxStream
from sim.oracle import product
from sw.chip_program import ImageError
from tests.sim.launches import SPOILED, put
from tests.sw.chips import TINY
from tests.units_matmul import UnitsMatmul

SMALL = named["small"]


def test_boxes_of_any_rank_are_gathered_and_scattered(seed):
    """Against an index a byte."""
    rng = np.random.default_rng(seed)
    for _ in range(30):
        rank = int(rng.integers(1, 4))
        dims = [int(x) for x in rng.integers(1, 9, rank)]
        box = [8, *(int(x) for x in rng.integers(1, 4, rank - 1))]
        strides, pitch = [], 16 * (1 + int(rng.integers(0, 2)))
        for extent in dims[1:]:
            strides.append(pitch)
            pitch *= extent
        shortfall = int(rng.integers(0, dims[0])) if rank > 1 else 0
        descriptor = Descriptor(
            base=0,
            format=ElementFormat.INT8,
            dims=dims,
            strides=strides,
            box=box,
            shortfall=shortfall,
        )
        points = np.zeros((3, 5), np.int64)
        points[:, :rank] = rng.integers(-6, 9, (3, rank))
        stream = BoxStream(descriptor, 64, points, 8, 40, 0)
        memory = np.frombuffer(rng.bytes(4096), np.uint8).copy()
        expected = []
        touched = {}
        beats = 0
        for point in points:
            for row in np.ndindex(*box[:0:-1]):
                place = [None, *row[::-1]]
                inside = all(0 <= point[d] + place[d] < dims[d] for d in range(1, rank))
                address = 64 + sum((point[d] + place[d]) * strides[d - 1] for d in range(1, rank))
                shorter = rank > 1 and point[1] + place[1] == dims[1] - 1
                rows, end = set(), dims[0] - shortfall * shorter
                for x in range(box[0]):
                    there = inside and 0 <= point[0] + x < end
                    expected.append(memory[address + point[0] + x] if there else 0)
                    if there:
                        touched[int(address + point[0] + x)] = len(expected) - 1
                        rows.add((address + point[0] + x) // 8)
                beats += len(rows)
        assert stream.load(memory).ravel().tolist() == expected
        assert stream.beats() == beats
        if touched:
            assert stream.reach() == (min(touched), max(touched) + 1)
        vectors = np.frombuffer(rng.bytes(len(expected)), np.uint8).reshape(-1, 8)
        after = memory.copy()
        stream.store(after, vectors)
        for address, index in touched.items():
            memory[address] = vectors.ravel()[index]
        assert after.tobytes() == memory.tobytes()


def _launched(spoil, entries=1):
    """A product launched after a change of its memory."""
    job = UnitsMatmul(TINY, 5, 3, 4, bf16, fp32, 8, 8, 2)
    rng = np.random.default_rng(0)
    layout = job.launch_memory(0)
    a, b = job.operands(rng)
    memory = layout.bytes_before({"A": a, "B": b})
    before = bytes(memory)
    address = spoil(memory, {name: place for name, (place, _) in layout.places.items()})
    run = emulate(
        TINY,
        memory,
        list_address=layout.list_address if address is None else address,
        entries=entries,
    )
    assert layout.read(memory, "C").tobytes() == layout.read(before, "C").tobytes()
    return run


@pytest.mark.parametrize(("spoil", "code", "detail"), SPOILED)
def test_bad_launches_end_with_the_codes_of_the_chip(spoil, code, detail):
    run = _launched(spoil)
    assert (run.status, run.error_code, run.error_detail) == ("error", code, int(detail))
    assert run.launches == 0


def test_an_empty_list_is_an_error():
    assert _launched(lambda m, p: None, entries=0).error_code is LaunchError.NO_ENTRIES


def test_a_later_entry_that_is_wrong_is_named_after_those_before_it_ran():
    job = UnitsMatmul(TINY, 5, 3, 4, bf16, fp32, 8, 8, 2)
    rng = np.random.default_rng(0)
    a, b = job.operands(rng)
    layout = job.launch_memory(0)
    memory = layout.bytes_before({"A": a, "B": b})
    # Behind the list's one entry: zeros.
    address, size = layout.places["launch list"]
    memory[address + ENTRY_BYTES : address + 2 * size] = bytes(2 * size - ENTRY_BYTES)
    run = emulate(TINY, memory, list_address=address, entries=2)
    assert (run.error_code, run.error_entry, run.launches) == (LaunchError.IMAGE_BYTES, 1, 1)
    assert layout.read(memory, "C").tobytes() == product(a, b, np.float32).tobytes()
    assert run.launch_bytes_read == 2 * alignment_bytes(64) + 48 + layout.places["image"][1]


def test_words_that_no_program_makes_are_refused():
    def spoil(memory, places):
        """A bit of a descriptor that must be 0, in the last run; the checksum is right."""
        size = int.from_bytes(
            memory[places["launch list"] + 16 : places["launch list"] + 20], "little"
        )
        end = places["image"] + size
        memory[end - 1] |= 0x80
        put(memory, places["launch list"] + 40, checksum(bytes(memory[places["image"] : end])))

    with pytest.raises(ImageError):
        _launched(spoil)
