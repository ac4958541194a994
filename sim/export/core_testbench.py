"""Testbench of an exported core: plays the cases of vectors.json and compares every answer.

It needs cocotb, and cocotbext-axi for a core with AXI ports; `python run.py` starts it.
"""

import json
import logging
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, ReadOnly, Timer

__all__ = ["cases_have_their_answers"]

_FILE = Path(os.environ.get("CORE_VECTORS", Path(__file__).with_name("vectors.json")))
_VECTORS = json.loads(_FILE.read_text()) if _FILE.exists() else {"cases": []}
_PARTS = ("tdata", "tlast", "tuser")
_PERIOD_NS = 10
#: Cycles after a step in which no stream may give anything more.
_QUIET = 24


class Stream:
    """Signals of an AXI4-Stream port, with random pauses of the testbench's side."""

    def __init__(self, dut: Any, prefix: str, pause: float) -> None:
        self.prefix, self._dut, self._pause = prefix, dut, pause
        self.valid = getattr(dut, f"{prefix}tvalid")
        self.ready = getattr(dut, f"{prefix}tready", None)
        found = (getattr(dut, prefix + part, None) for part in _PARTS)
        self.parts = [part for part in found if part is not None]
        self._random = random.Random(f"{prefix} {cocotb.RANDOM_SEED}")

    def _pauses(self) -> bool:
        return self._random.random() < self._pause

    async def send(self, beats: Sequence[Sequence[str]]) -> None:
        """Send beats; payload signals have random values while tvalid is low."""
        for beat in beats:
            while self._pauses():
                self.idle()
                await FallingEdge(self._dut.clk)
            self.valid.value = 1
            for signal, value in zip(self.parts, beat, strict=True):
                signal.value = int(value, 16)
            taken = False
            while not taken:
                await ReadOnly()
                taken = self.ready is None or bool(int(self.ready.value))
                await FallingEdge(self._dut.clk)
        self.idle()

    def idle(self) -> None:
        """Offer nothing."""
        self.valid.value = 0
        for signal in self.parts:
            signal.value = self._random.getrandbits(len(signal))

    async def receive(self, beats: Sequence[Sequence[str]], done: list[str]) -> None:
        """Take beats, compare each, and see that an offer stays; then none comes for a time."""
        number, quiet, held = 0, 0, None
        while quiet < _QUIET:
            ready = not self._pauses()
            if self.ready is not None:
                self.ready.value = int(ready)
            await ReadOnly()
            beat = None
            if int(self.valid.value):
                beat = [int(signal.value) for signal in self.parts]
            if held is not None:
                assert beat == held, f"{self.prefix}* withdrew or changed beat {number}"
            held = None
            if beat is not None and (ready or self.ready is None):
                assert number < len(beats), f"{self.prefix}* gave {beat} after its last beat"
                expected = [int(value, 16) for value in beats[number]]
                assert beat == expected, f"{self.prefix}* beat {number}: {beat}, not {expected}"
                number += 1
                if number == len(beats):
                    done.append(self.prefix)
            elif beat is not None:
                held = beat
            quiet = quiet + 1 if len(done) == len(self._all) else 0
            await FallingEdge(self._dut.clk)
        if self.ready is not None:
            self.ready.value = 0

    #: Prefixes of the streams that the step waits for.
    _all: Sequence[str] = ()

    def waits_for(self, prefixes: Sequence[str]) -> "Stream":
        """The stream, which ends when those of the step have their beats."""
        self._all = prefixes
        return self


class Core:
    """The device under test, its streams, its memory and its registers."""

    def __init__(self, dut: Any, pause: float) -> None:
        self.dut, self._pause = dut, pause
        ports = _VECTORS["ports"]
        self.streams = {name: Stream(dut, name, pause) for name in ports["streams"]}
        self.memory = self._memory(ports.get("memory"), ports.get("memory_bytes", 0))
        self.registers = self._registers(ports.get("registers"))

    def _memory(self, prefix: str | None, size: int) -> Any:
        if prefix is None:
            return None
        from cocotbext.axi import AxiBus, AxiRam

        bus = AxiBus.from_prefix(self.dut, prefix.rstrip("_"))
        memory = AxiRam(bus, self.dut.clk, self.dut.rst, size=size)
        self._pause_channels(memory)
        return memory

    def _pause_channels(self, end: Any) -> None:
        """Random pauses on each channel of the testbench's end of an AXI port."""
        for side, channels in (
            (end.write_if, ("aw_channel", "w_channel", "b_channel")),
            (end.read_if, ("ar_channel", "r_channel")),
        ):
            side.log.setLevel(logging.WARNING)
            for number, name in enumerate(channels):
                getattr(side, name).set_pause_generator(self._paused(number))

    def _paused(self, number: int) -> Iterator[bool]:
        chance = random.Random(number)
        while True:
            yield chance.random() < self._pause

    def _registers(self, prefix: str | None) -> Any:
        if prefix is None:
            return None
        from cocotbext.axi import AxiLiteBus, AxiLiteMaster

        bus = AxiLiteBus.from_prefix(self.dut, prefix.rstrip("_"))
        manager = AxiLiteMaster(bus, self.dut.clk, self.dut.rst)
        self._pause_channels(manager)
        return manager

    async def start(self) -> None:
        """Start the clock and reset the core, with all inputs 0."""
        for name in _VECTORS["ports"]["inputs"]:
            getattr(self.dut, name).value = 0
        for stream in self.streams.values():
            if stream.prefix.startswith("s_"):
                stream.idle()
            elif stream.ready is not None:
                stream.ready.value = 0
        if not _VECTORS["ports"]["clocked"]:
            return
        Clock(self.dut.clk, _PERIOD_NS, "ns").start(start_high=False)
        if not _VECTORS["ports"]["reset"]:
            return
        self.dut.rst.value = 1
        await self.cycles(3)
        self.dut.rst.value = 0

    async def cycles(self, count: int) -> None:
        """Wait for falling edges; a core without a clock settles in a nanosecond."""
        for _ in range(count):
            if _VECTORS["ports"]["clocked"]:
                await FallingEdge(self.dut.clk)
            else:
                await Timer(1, "ns")

    async def step(self, step: Mapping[str, Any]) -> None:
        """Do one step of a case."""
        for name, value in step.get("set", {}).items():
            getattr(self.dut, name).value = int(value, 16)
        await self.cycles(step.get("cycles", 0))
        await self._exchange(step)
        if "table" in step:
            await self._table(step["table"])
        for offset, value, mask, response in step.get("registers", ()):
            await self._register(int(offset, 16), value, int(mask, 16), response)
        if "registers" in step:
            await self.cycles(1)  # The manager ends an access at a rising edge.
        for name, value in step.get("expect", {}).items():
            got = int(getattr(self.dut, name).value)
            assert got == int(value, 16), f"{name} is {got:#x}, not {value}"

    async def _exchange(self, step: Mapping[str, Any]) -> None:
        """Send and receive on all streams of the step at the same time."""
        receive = step.get("receive", {})
        if not receive and "send" not in step:
            return
        done = [name for name, beats in receive.items() if not beats]
        tasks = [
            cocotb.start_soon(self.streams[name].send(beats))
            for name, beats in step.get("send", {}).items()
        ]
        tasks += [
            cocotb.start_soon(self.streams[name].waits_for(list(receive)).receive(beats, done))
            for name, beats in receive.items()
        ]
        for task in tasks:
            await task

    async def _table(self, table: Mapping[str, Any]) -> None:
        """Set inputs and compare outputs in each cycle; a row may leave outputs open."""
        for number, (inputs, outputs) in enumerate(table["rows"]):
            for name, value in zip(table["inputs"], inputs, strict=True):
                getattr(self.dut, name).value = int(value, 16)
            await self.cycles(1)
            for name, value in zip(table["outputs"], outputs):
                got = int(getattr(self.dut, name).value)
                assert got == int(value, 16), f"row {number}: {name} is {got:#x}, not {value}"

    async def _register(self, offset: int, value: str, mask: int, response: str) -> None:
        """Write, read, or poll a register, whose response the case states."""
        kind, _, word = value.partition(" ")
        answer: Any
        if kind == "write":
            data = int(word, 16).to_bytes(4, "little")
            answer = await self.registers.write(offset, data)
            assert answer.resp.name == response, f"write of {offset:#x}: {answer.resp.name}"
            return
        while True:
            answer = await self.registers.read(offset, 4)
            assert answer.resp.name == response, f"read of {offset:#x}: {answer.resp.name}"
            got = int.from_bytes(answer.data, "little") & mask
            if kind == "read" and response == "OKAY":
                assert got == int(word, 16), f"register {offset:#x} is {got:#x}, not {word}"
            if kind == "read" or got == int(word, 16):
                return

    def fill(self, regions: Mapping[str, str]) -> None:
        """Write the memory that a case begins with."""
        for address, content in regions.items():
            self.memory.write(int(address, 16), bytes.fromhex(content))

    def compare(self, regions: Mapping[str, str]) -> None:
        """Compare the memory that a case ends with."""
        for address, content in regions.items():
            expected = bytes.fromhex(content)
            got = self.memory.read(int(address, 16), len(expected))
            wrong = [n for n, (a, b) in enumerate(zip(got, expected, strict=True)) if a != b]
            assert not wrong, f"{len(wrong)} bytes differ from {address} + {wrong[0]:#x} on"


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(
    case=[case["name"] for case in _VECTORS["cases"]], pause=_VECTORS.get("pauses", [0.0])
)
async def cases_have_their_answers(dut: Any, case: str, pause: float) -> None:
    """Every step of a case, with pauses from none to most of the time on each port."""
    cocotb.log.info("case %s, pauses %s", case, pause)
    core = Core(dut, pause)
    (chosen,) = (each for each in _VECTORS["cases"] if each["name"] == case)
    core.fill(chosen.get("memory", {}))
    await core.start()
    for step in chosen["steps"]:
        await core.step(step)
    core.compare(chosen.get("memory_after", {}))
