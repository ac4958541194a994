"""Launch of a chip for the back end `cocotb`, with memory and parameters from a folder."""

import json
import os
from pathlib import Path
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import Event, FallingEdge
from cocotbext.axi import AxiBus, AxiLiteBus, AxiLiteMaster, AxiRam, AxiRamRead, AxiReadBus

from hw.arch.registers.chip_registers import register
from sim.cocotb.bench_support import start
from sim.cocotb.launch_items import LaunchItems
from sim.cocotb.stalled_channels import stall_channels

__all__ = ["FOLDER_VARIABLE", "launch"]

#: Environment variable with the folder of ``orders.json``, ``memory`` and ``answer.json``.
FOLDER_VARIABLE = "TILEWRIGHT_LAUNCH"

_LAUNCH = 0b101
_DONE, _ERROR = 0b010, 0b100


class _Watch:
    """Monitor of cycles and bytes from the handshake of the launch write to the interrupt.

    It ends the test at an access to memory outside the items of the launch.
    """

    def __init__(self, dut: Any, ports: int, max_cycles: int, memory: LaunchItems) -> None:
        self._dut = dut
        self._memory = memory
        self._limit = max_cycles
        memories = [f"memory__{index}" for index in range(ports)]
        self._reads = [_handshake(dut, name, "r") for name in (*memories, "launch")]
        self._writes = [
            (*_handshake(dut, name, "w"), getattr(dut, f"{name}__wstrb")) for name in memories
        ]
        self._beat_bytes = len(dut.launch__rdata) // 8
        self.cycle = self.cycles = 0
        self.launched: int | None = None
        self.armed = False
        self.ended = Event()
        self.bytes_read = 0
        self.bytes_written = 0

    async def run(self) -> None:
        """Sample the settled values before each rising edge."""
        dut = self._dut
        launch = _handshake(dut, "host", "aw"), _handshake(dut, "host", "w")
        crossed = [False, False]
        while True:
            await FallingEdge(dut.clk)
            self.cycle += 1
            assert not self._memory.fault, self._memory.fault
            if self.armed:
                for side, (valid, ready) in enumerate(launch):
                    crossed[side] = crossed[side] or bool(valid.value and ready.value)
                if all(crossed):
                    self.launched, self.armed = self.cycle, False
            for valid, ready in self._reads:
                if valid.value and ready.value:
                    self.bytes_read += self._beat_bytes
            for valid, ready, strobe in self._writes:
                if valid.value and ready.value:
                    self.bytes_written += int(strobe.value).bit_count()
            if self.launched is None or self.ended.is_set():
                continue
            if dut.o_interrupt.value:
                # It is high in the cycle after the last busy one.
                self.cycles = self.cycle - 1 - self.launched
                self.ended.set()
            elif self.cycle - self.launched >= self._limit:
                self.cycles = self.cycle - self.launched
                self.ended.set()


def _handshake(dut: Any, port: str, channel: str) -> tuple[Any, Any]:
    return getattr(dut, f"{port}__{channel}valid"), getattr(dut, f"{port}__{channel}ready")


class _Chip:
    """AXI memory and register access of the chip.

    Members
    -------
    memory : LaunchItems
        The whole memory.
    """

    def __init__(self, dut: Any, orders: dict[str, Any], memory: bytes) -> None:
        rng = np.random.default_rng(orders["seed"])
        self.memory = LaunchItems(memory, orders["regions"])
        clock = dut.clk, dut.rst
        names = [f"memory__{index}_" for index in range(orders["ports"])]
        rams = [AxiRam(AxiBus.from_prefix(dut, name), *clock, mem=self.memory) for name in names]
        launches = AxiRamRead(AxiReadBus.from_prefix(dut, "launch_"), *clock, mem=self.memory)
        self._registers = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "host_"), dut.clk, dut.rst)
        channels = [launches.ar_channel, launches.r_channel]
        for ram in rams:
            read, write = ram.read_if, ram.write_if
            channels += [read.ar_channel, read.r_channel]
            channels += [write.aw_channel, write.w_channel, write.b_channel]
        if orders["stall"]:
            stall_channels(channels, rng, orders["stall"])

    async def write(self, name: str, value: int) -> None:
        """Write a register."""
        await self._registers.write_dword(register(name).offset, value)

    async def read(self, name: str) -> int:
        """Read a register."""
        return int(await self._registers.read_dword(register(name).offset))

    async def counters(self) -> list[int]:
        """Read the counter words of all units."""
        geometry: Any = register("GEOMETRY").layout.from_bits(await self.read("GEOMETRY"))
        words = []
        for index in range(int(geometry["counters"])):
            await self.write("COUNTER_SELECT", index)
            low = await self.read("COUNTER_LO")
            words.append(low | await self.read("COUNTER_HI") << 32)
        return words


@cocotb.test()
async def launch(dut: Any) -> None:
    """Run the launch list; write memory and result to the folder."""
    folder = Path(os.environ[FOLDER_VARIABLE])
    orders = json.loads((folder / "orders.json").read_text())
    chip = _Chip(dut, orders, (folder / "memory").read_bytes())
    watch = _Watch(dut, orders["ports"], orders["max_cycles"], chip.memory)
    await start(dut)
    cocotb.start_soon(watch.run())
    await chip.write("LIST_ADDRESS_LO", orders["list_address"] & 0xFFFFFFFF)
    await chip.write("LIST_ADDRESS_HI", orders["list_address"] >> 32)
    await chip.write("LIST_ENTRIES", orders["entries"])
    watch.armed = True
    await chip.write("CONTROL", _LAUNCH)
    await watch.ended.wait()
    status = await chip.read("STATUS")
    ended = "done" if status & _DONE else "error" if status & _ERROR else "hang"
    error = await chip.read("ERROR")
    counters = await chip.counters()
    steps: list[int] = []
    if ended == "hang":
        later = await chip.counters()
        steps = [after - before for before, after in zip(counters, later, strict=True)]
    answer = {
        "status": ended,
        "cycles": watch.cycles,
        "launch_cycles": await chip.read("LAUNCH_CYCLES"),
        "entry_begin": await chip.read("ENTRY_BEGIN_LO") | await chip.read("ENTRY_BEGIN_HI") << 32,
        "error_code": error & 0xFF,
        "error_detail": error >> 8 & 0xFF,
        "error_unit": error >> 16 & 0xFF,
        "error_entry": await chip.read("ERROR_ENTRY"),
        "bytes_read": watch.bytes_read,
        "bytes_written": watch.bytes_written,
        "counters": counters,
        "counter_steps": steps,
        "first_mac": await chip.read("FIRST_MAC"),
        "simulated_cycles": watch.cycle,
        "reason": f"{orders['max_cycles']} cycles have passed" if ended == "hang" else "",
    }
    (folder / "memory").write_bytes(bytes(chip.memory))
    (folder / "answer.json").write_text(json.dumps(answer))
