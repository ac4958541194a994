"""AXI4 memory of a testbench: read data of several IDs in any order and interleaved, and errors.

cocotbext's `AxiRam` answers reads one after the other and has no error responses.
"""

import dataclasses
from collections import deque
from typing import Any

import cocotb
import numpy as np
import numpy.typing as npt
from cocotb.triggers import FallingEdge, ReadOnly

from hw.lib.axi import RESP_OKAY
from sim.cocotb.bench_support import random_generator

__all__ = ["ReorderingMemory"]


@dataclasses.dataclass
class _Burst:
    """A burst whose address has been accepted; ``due`` is the cycle of its first answer."""

    id: int
    address: int
    beats: int
    due: int
    #: Beats moved so far, and the worst response of their addresses.
    moved: int = 0
    response: int = RESP_OKAY


class ReorderingMemory:
    """AXI4 subordinate with full-width INCR bursts at the port ``axi``, from address 0.

    The beats of one ID come in order. Each R beat, and each B, is of an ID drawn at random.

    Parameters
    ----------
    dut
        The device under test, with clock ``clk``.
    size : int
        Bytes of the memory.
    stall : float
        Probability per cycle that a channel pauses.
    latency, jitter : int
        Cycles from an address to its first data, or from the last data to a response; at most
        so many more, at random.
    interleaves : bool
        Whether data of bursts may alternate beat by beat; otherwise a burst ends before another
        one begins.

    Members
    -------
    errors : list of (first, end, response)
        Byte ranges whose beats are answered with a response other than OKAY, and are not written.
    out_of_order : int
        Reads whose first beat came before one of an older read.
    """

    def __init__(
        self,
        dut: Any,
        size: int,
        *,
        stall: float = 0.0,
        latency: int = 4,
        jitter: int = 40,
        interleaves: bool = True,
    ) -> None:
        self._dut = dut
        self._rng = random_generator("reordering memory")
        self._content = np.zeros(size, np.uint8)
        self._stall = stall
        self._latency = latency
        self._jitter = jitter
        self._interleaves = interleaves
        self._beat_bytes = len(dut.axi__rdata) // 8
        self._cycle = 0
        self._reads: list[_Burst] = []
        self._writes: deque[_Burst] = deque()
        self._answers: list[_Burst] = []
        self._reading: _Burst | None = None  # the burst whose beat is on R
        self._answering: _Burst | None = None  # the burst whose response is on B
        self.errors: list[tuple[int, int, int]] = []
        self.out_of_order = 0
        for name in ("arready", "awready", "wready", "rvalid", "bvalid"):
            self._wire(name).value = 0

    def _wire(self, name: str) -> Any:
        return getattr(self._dut, f"axi__{name}")

    def read(self, address: int, count: int) -> bytes:
        """Bytes of the memory."""
        return self._content[address : address + count].tobytes()

    def write(self, address: int, content: bytes) -> None:
        """Change bytes of the memory."""
        self._content[address : address + len(content)] = np.frombuffer(content, np.uint8)

    def start(self) -> None:
        """Serve the port from the next falling edge on."""
        cocotb.start_soon(self._serve())

    async def _serve(self) -> None:
        while True:
            await FallingEdge(self._dut.clk)
            for name in ("arready", "awready"):
                self._wire(name).value = int(self._moves())
            # Data are taken behind their address only.
            self._wire("wready").value = int(bool(self._writes) and self._moves())
            self._drive_data()
            self._drive_response()
            await ReadOnly()
            self._sample()
            self._cycle += 1

    def _moves(self) -> bool:
        return bool(self._rng.random() >= self._stall)

    def _oldest(self, bursts: list[_Burst]) -> list[_Burst]:
        """Of each ID the oldest burst, if it is due."""
        first: dict[int, _Burst] = {}
        for burst in bursts:
            first.setdefault(burst.id, burst)
        return [burst for burst in first.values() if burst.due <= self._cycle]

    def _response(self, address: int) -> int:
        """Response to the beat at an address."""
        end = address + self._beat_bytes
        found = [code for first, last, code in self.errors if first < end and address < last]
        return max(found, default=RESP_OKAY)

    def _drive_data(self) -> None:
        if self._reading is None:
            ready = self._oldest(self._reads)
            begun = [burst for burst in ready if burst.moved]
            if begun and not self._interleaves:
                ready = begun
            if ready and self._moves():
                self._reading = burst = ready[self._rng.integers(len(ready))]
                self.out_of_order += not burst.moved and burst is not self._reads[0]
                address = burst.address + burst.moved * self._beat_bytes
                beat = self._content[address : address + self._beat_bytes]
                self._wire("rid").value = burst.id
                self._wire("rdata").value = int.from_bytes(beat.tobytes(), "little")
                self._wire("rresp").value = self._response(address)
                self._wire("rlast").value = int(burst.moved == burst.beats - 1)
        self._wire("rvalid").value = int(self._reading is not None)

    def _drive_response(self) -> None:
        if self._answering is None:
            ready = self._oldest(self._answers)
            if ready and self._moves():
                self._answering = burst = ready[self._rng.integers(len(ready))]
                self._wire("bid").value = burst.id
                self._wire("bresp").value = burst.response
        self._wire("bvalid").value = int(self._answering is not None)

    def _sample(self) -> None:
        """Take what crosses each channel at the coming rising edge."""
        if self._crosses("ar"):
            self._reads.append(self._burst("ar"))
        if self._crosses("r"):
            assert self._reading is not None
            self._reading.moved += 1
            if self._reading.moved == self._reading.beats:
                self._reads.remove(self._reading)
            self._reading = None
        if self._crosses("w"):
            self._take_beat()
        if self._crosses("aw"):
            self._writes.append(self._burst("aw"))
        if self._crosses("b"):
            assert self._answering is not None
            self._answers.remove(self._answering)
            self._answering = None

    def _crosses(self, channel: str) -> bool:
        valid, ready = self._wire(f"{channel}valid"), self._wire(f"{channel}ready")
        return bool(int(valid.value) and int(ready.value))

    def _later(self) -> int:
        return self._cycle + self._latency + int(self._rng.integers(self._jitter + 1))

    def _burst(self, channel: str) -> _Burst:
        id, address, length = (
            int(self._wire(channel + name).value) for name in ("id", "addr", "len")
        )
        return _Burst(id, address, length + 1, self._later())

    def _take_beat(self) -> None:
        burst = self._writes[0]
        address = burst.address + burst.moved * self._beat_bytes
        response = self._response(address)
        burst.response = max(burst.response, response)
        if response == RESP_OKAY:
            self._put(address)
        burst.moved += 1
        ends = burst.moved == burst.beats
        assert bool(int(self._wire("wlast").value)) == ends
        if ends:
            self._writes.popleft()
            burst.due = self._later()
            self._answers.append(burst)

    def _put(self, address: int) -> None:
        """Write the bytes of the beat on W that have their strobes."""
        size = self._beat_bytes
        beat: npt.NDArray[np.uint8] = np.frombuffer(
            int(self._wire("wdata").value).to_bytes(size, "little"), np.uint8
        )
        strobes = int(self._wire("wstrb").value)
        kept = np.array([strobes >> number & 1 for number in range(size)], bool)
        self._content[address : address + size][kept] = beat[kept]
