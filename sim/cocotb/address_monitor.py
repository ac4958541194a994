"""Monitor of a testbench: no beat of an AXI4 port leaves the tensors that a test has described."""

from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["AddressMonitor"]


class AddressMonitor:
    """Bytes of memory that may be read and written, and the check of each burst and beat.

    Every beat read must have a byte that may be read; every byte written (by its strobe) must be
    one that may be written.

    Parameters
    ----------
    memory_bytes, beat_bytes : int

    Members
    -------
    readable, writable : array of bool
        By address; all False at first.
    """

    def __init__(self, memory_bytes: int, beat_bytes: int) -> None:
        self.readable: npt.NDArray[np.bool_] = np.zeros(memory_bytes, np.bool_)
        self.writable: npt.NDArray[np.bool_] = np.zeros(memory_bytes, np.bool_)
        self._beat_bytes = beat_bytes
        self._addresses: deque[int] = deque()  # of the write beats whose data have not come
        self._early: deque[int] = deque()  # strobes that came before their address

    def sample(self, dut: Any) -> None:
        """Check what is transferred in this cycle at the port ``axi`` of the device under test."""
        port = {
            name: getattr(dut, f"axi__{name}").value
            for name in ("arvalid", "arready", "awvalid", "awready", "wvalid", "wready")
        }
        if int(port["arvalid"]) & int(port["arready"]):
            self.read(int(dut.axi__araddr.value), int(dut.axi__arlen.value) + 1)
        if int(port["awvalid"]) & int(port["awready"]):
            self.open(int(dut.axi__awaddr.value), int(dut.axi__awlen.value) + 1)
        if int(port["wvalid"]) & int(port["wready"]):
            self.write(int(dut.axi__wstrb.value))

    def read(self, address: int, beats: int) -> None:
        """Check a read burst of so many beats.

        Raises
        ------
        AssertionError
            If a beat has no byte that may be read.
        """
        end = address + beats * self._beat_bytes
        assert end <= len(self.readable), f"read of {address:#x} is outside the memory"
        allowed = self.readable[address:end].reshape(beats, -1).any(axis=1)
        assert allowed.all(), f"read of {beats} beats at {address:#x} leaves the tensor"

    def open(self, address: int, beats: int) -> None:
        """Take the address of a write burst; its data are checked when they come."""
        self._addresses.extend(range(address, address + beats * self._beat_bytes, self._beat_bytes))
        self._check()

    def write(self, strobe: int) -> None:
        """Check the next beat written.

        Raises
        ------
        AssertionError
            If it has a byte that may not be written.
        """
        self._early.append(strobe)
        self._check()

    def _check(self) -> None:
        while self._addresses and self._early:
            address, strobe = self._addresses.popleft(), self._early.popleft()
            end = address + self._beat_bytes
            written = np.array([bool(strobe >> bit & 1) for bit in range(self._beat_bytes)])
            assert not written.any() or end <= len(self.writable), (
                f"write of {address:#x} is outside the memory"
            )
            assert not (written & ~self.writable[address:end]).any(), (
                f"write of a byte at {address:#x} leaves the tensor"
            )
