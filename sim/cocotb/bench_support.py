"""Shared parts of the cocotb testbenches: clock, reset, stream drivers, random numbers."""

import zlib
from collections.abc import Callable, Iterable
from typing import Any

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, ReadOnly

from hw.numeric.division import ceil_div

__all__ = ["PERIOD_NS", "Sink", "Source", "bench", "clocks", "random_generator", "start"]

#: Clock period of every testbench.
PERIOD_NS = 10


def bench(*, limit_cycles: int) -> Callable[..., Any]:
    """Decorator of a test with a timeout in cycles."""
    return cocotb.test(timeout_time=limit_cycles * PERIOD_NS, timeout_unit="ns")


def random_generator(name: str = "") -> np.random.Generator:
    """Random generator for the running test's seed, one sequence per name."""
    return np.random.default_rng([cocotb.RANDOM_SEED & (2**64 - 1), zlib.crc32(name.encode())])


async def start(dut: Any, **settings: int) -> None:
    """Start the clock, set the plain inputs and apply reset; returns at a falling edge.

    Testbench processes drive at falling edges and sample, by ``ReadOnly``, the values settled
    before the next rising edge, so results do not depend on a simulator's order of events.
    """
    Clock(dut.clk, PERIOD_NS, "ns").start(start_high=False)
    dut.rst.value = 1
    for name, value in settings.items():
        getattr(dut, name).value = value
    await clocks(dut, 3)
    dut.rst.value = 0


async def clocks(dut: Any, cycles: int) -> None:
    """Wait for falling edges."""
    for _ in range(cycles):
        await FallingEdge(dut.clk)


class _Stream:
    """Signals of one stream of the device, with random stalls on the testbench side.

    Parameters
    ----------
    dut
        The device under test.
    name : str
        Name of the stream's port.
    stall : float
        Probability per cycle that the testbench side stalls.
    """

    def __init__(self, dut: Any, name: str, *, stall: float = 0.0) -> None:
        self.name = name
        self._clock = dut.clk
        self._valid = getattr(dut, f"{name}__valid")
        self._ready = getattr(dut, f"{name}__ready")
        # A stream without a payload has no such port.
        self._payload = getattr(dut, f"{name}__payload", None)
        self._random = random_generator(name)
        self._stall = stall

    def _pauses(self) -> bool:
        return bool(self._random.random() < self._stall)


class Source(_Stream):
    """Stream driver of an input; payloads are random while `valid` is low.

    Members
    -------
    sent : int
        Payloads transferred.
    """

    def __init__(self, dut: Any, name: str, *, stall: float = 0.0) -> None:
        super().__init__(dut, name, stall=stall)
        self.sent = 0
        self._idle()

    def _idle(self) -> None:
        self._valid.value = 0
        if self._payload is not None:
            bits = len(self._payload)
            garbage = int.from_bytes(self._random.bytes(ceil_div(bits, 8)), "little")
            self._payload.value = garbage % (1 << bits)

    async def send(self, payloads: Iterable[int]) -> None:
        """Send all these payloads in order; starts and ends at a falling edge."""
        for payload in payloads:
            while self._pauses():
                self._idle()
                await FallingEdge(self._clock)
            self._valid.value = 1
            if self._payload is not None:
                self._payload.value = payload
            taken = False
            while not taken:
                await ReadOnly()
                taken = bool(self._ready.value)
                await FallingEdge(self._clock)
            self.sent += 1
        self._idle()


class Sink(_Stream):
    """Stream monitor of an output, which checks that no offered payload is withdrawn or changed.

    Members
    -------
    taken : list of int
        Payloads transferred.
    """

    def __init__(self, dut: Any, name: str, *, stall: float = 0.0) -> None:
        super().__init__(dut, name, stall=stall)
        self.taken: list[int] = []
        self._held: int | None = None
        self._ready.value = 0

    async def _cycle(self, ready: bool) -> None:
        self._ready.value = int(ready)
        await ReadOnly()
        valid = bool(self._valid.value)
        offered = None
        if valid:
            offered = 0 if self._payload is None else int(self._payload.value)
        if self._held is not None:
            assert valid, f"{self.name} withdrew what it had offered"
            assert offered == self._held, f"{self.name} changed what it had offered"
        if offered is not None and ready:
            self.taken.append(offered)
        self._held = None if ready else offered
        await FallingEdge(self._clock)

    async def take(self, count: int) -> list[int]:
        """Take `count` payloads; starts and ends at a falling edge."""
        first = len(self.taken)
        while len(self.taken) < first + count:
            await self._cycle(not self._pauses())
        self._ready.value = 0
        return self.taken[first:]

    async def refuse(self, cycles: int) -> None:
        """Keep `ready` low for a number of cycles."""
        for _ in range(cycles):
            await self._cycle(False)

    async def expect_silence(self, cycles: int) -> None:
        """Keep `ready` high for a number of cycles, in which no payload may arrive."""
        before = len(self.taken)
        for _ in range(cycles):
            await self._cycle(True)
        self._ready.value = 0
        extra = len(self.taken) - before
        assert not extra, f"{self.name} gave {extra} payloads more than it should"
