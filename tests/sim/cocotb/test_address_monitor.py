"""The address monitor of testbenches: what leaves a tensor is found, what does not is let pass."""

import numpy as np
import pytest

from sim.cocotb.address_monitor import AddressMonitor
from sim.drivers.box_tensor import REGION_BYTES, BoxTensor


@pytest.fixture
def monitor():
    one = AddressMonitor(256, 8)
    one.readable[20:50] = one.writable[20:50] = True
    return one


def test_bursts_that_touch_the_tensor_with_every_beat_pass(monitor):
    monitor.read(16, 5)
    monitor.open(16, 2)
    monitor.write(0xF0)
    monitor.write(0xFF)
    # Data may come before their address.
    monitor.write(0x03)
    monitor.open(48, 1)


@pytest.mark.parametrize(("address", "beats"), [(8, 1), (8, 2), (16, 6), (56, 1)])
def test_a_read_beat_without_a_byte_of_the_tensor_is_found(monitor, address, beats):
    with pytest.raises(AssertionError, match="leaves the tensor"):
        monitor.read(address, beats)


@pytest.mark.parametrize(("address", "strobe"), [(16, 0x08), (16, 0xF8), (48, 0x04), (64, 0x01)])
def test_a_byte_written_outside_the_tensor_is_found(monitor, address, strobe):
    monitor.open(address, 1)
    with pytest.raises(AssertionError, match="leaves the tensor"):
        monitor.write(strobe)


def test_what_lies_outside_the_memory_is_found(monitor):
    with pytest.raises(AssertionError, match="outside the memory"):
        monitor.read(248, 2)
    monitor.write(1)
    with pytest.raises(AssertionError, match="outside the memory"):
        monitor.open(256, 1)


def test_the_bytes_of_a_random_tensor_are_those_of_its_boxes(seed):
    rng = np.random.default_rng(seed)
    for _ in range(20):
        tensor = BoxTensor(rng, REGION_BYTES, 8)
        region = np.ones(3 * REGION_BYTES, np.bool_)
        tensor.owns(region)
        # Regions beside it are not changed.
        assert region[:REGION_BYTES].all() and region[2 * REGION_BYTES :].all()
        inside = np.flatnonzero(region[REGION_BYTES : 2 * REGION_BYTES]) + REGION_BYTES
        assert len(inside) == np.prod(tensor.dims) * tensor.size
        assert inside[0] == tensor.base
        address, exists = tensor.where(tensor.corner(rng))
        assert np.isin(address[exists], inside).all()
