"""Memory of a chip in cocotb: an access outside the items of a launch is found and ends the run."""

import dataclasses

import numpy as np
import pytest

from hw.arch.config import named
from hw.arch.errors import WrongResultError
from sim.backends.choose import open_backend
from sim.backends.interface import LaunchOrder, Setup
from sim.cocotb.launch_items import LaunchItems
from tests.left_out_item import LeftOutItem

CONFIG = named["tiny"]
ITEMS = [(20, 50), (96, 128)]


@pytest.fixture
def memory():
    return LaunchItems(bytes(range(256)), ITEMS)


@pytest.mark.parametrize(("address", "size"), [(16, 8), (48, 8), (96, 32), (0, 128)])
def test_a_beat_with_a_byte_of_an_item_may_be_read(memory, address, size):
    assert list(memory[address : address + size]) == list(range(address, address + size))
    assert memory.fault == ""


@pytest.mark.parametrize(("address", "size"), [(8, 8), (56, 8), (64, 32), (128, 8), (1 << 48, 8)])
def test_a_beat_without_one_is_found(memory, address, size):
    told = f"read of a beat at {address}, in which the launch has no byte"
    with pytest.raises(IndexError, match=told):
        memory[address : address + size]
    with pytest.raises(IndexError):
        memory[0:8]
    assert memory.fault == told


@pytest.mark.parametrize(("address", "size"), [(20, 30), (100, 1)])
def test_bytes_of_an_item_may_be_written(memory, address, size):
    memory[address : address + size] = bytes(size)
    assert memory.fault == ""
    assert bytes(memory)[address - 1 : address + size + 1] == bytes(
        [address - 1, *[0] * size, address + size]
    )


@pytest.mark.parametrize(("address", "size"), [(19, 2), (49, 2), (20, 100), (1 << 48, 1)])
def test_a_byte_written_that_is_of_none_is_found(memory, address, size):
    told = f"write of {size} bytes at {address}, which are not all the launch's"
    with pytest.raises(IndexError, match=told):
        memory[address : address + size] = bytes(size)
    assert memory.fault == told
    assert bytes(memory) == bytes(range(256))


def test_without_items_all_of_memory_may_be_used_and_no_more():
    memory = LaunchItems(bytes(64), [])
    memory[0:8] = bytes(8)
    memory[56:64] = memory[0:8]
    assert memory.fault == ""
    with pytest.raises(IndexError):
        memory[64:72]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("left_out", "said"),
    [("A", "read of a beat"), ("C", "write of .* bytes"), ("image", "read of a beat")],
)
def test_an_access_outside_the_items_ends_the_run_of_a_chip(heavy, seed, left_out, said):
    case = LeftOutItem.random(CONFIG, np.random.default_rng(seed), left_out)
    order = LaunchOrder(
        case.list_address, case.entries, max_cycles=200_000, regions=tuple(case.regions)
    )
    with open_backend("cocotb", Setup(CONFIG)) as chip:
        assert chip.launch(bytearray(case.memory), order).status == "done"
        order = dataclasses.replace(order, regions=tuple(case.others))
        with pytest.raises(WrongResultError, match=said) as caught:
            chip.launch(case.memory, order)
    case.check_met(str(caught.value))
