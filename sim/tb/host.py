"""Host port: random register reads and writes against a model of the register map."""

import dataclasses
import logging
from typing import Any

import numpy as np
from cocotb.triggers import FallingEdge
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp

from hw.arch.counters import COUNTER_BITS
from hw.arch.launch import trace_layout
from hw.arch.limits import COUNTER_WORDS
from hw.arch.registers.chip_registers import ID, MAP_VERSION, REGISTERS, register
from hw.command.host_port import HostPort
from hw.command.launch_timer import times_layout
from hw.numeric.division import ceil_div
from sim.cocotb.bench_support import bench, random_generator, start

__all__ = ["design", "registers_read_and_act_as_the_map_says"]

_CHIP_FINGERPRINT, _ROWS, _WIDTH, _UNITS = 0x1234_5678, 2, 64, 3
_WORD = (1 << 32) - 1
_ACCESSES = 3000
_OFFSETS = {each.offset: each for each in REGISTERS}
_ENDS = ("i_done", "i_failed")
#: Inputs and their bits.
_INPUTS = {
    "i_busy": 1,
    "i_error": 24,
    "i_error_entry": 16,
    "i_times": times_layout.size,
    "i_counters": COUNTER_BITS * _UNITS,
    "i_trace": trace_layout.size,
    "i_trace_dropped": 32,
}


def design() -> HostPort:
    """The host port under test."""
    return HostPort(fingerprint=_CHIP_FINGERPRINT, rows=_ROWS, width_bits=_WIDTH, units=_UNITS)


@dataclasses.dataclass
class _Rules:
    """Model of the registers and their side effects."""

    inputs: dict[str, int]
    enable: int = 0
    done: int = 0
    error: int = 0
    cause: int = 0
    cause_entry: int = 0
    launches: int = 0
    held: dict[str, int] = dataclasses.field(default_factory=dict)
    written: dict[str, int] = dataclasses.field(default_factory=dict)

    def _halves(self, name: str, value: int) -> tuple[int, int]:
        """Return the low half of a counter; keep the high half for the next read."""
        self.held[name] = value >> 32
        return value & _WORD, 1

    def _counter(self) -> int | None:
        select = self.written.get("COUNTER_SELECT", 0)
        if select >= _UNITS * COUNTER_WORDS:
            return None
        shift = COUNTER_BITS * (select // COUNTER_WORDS)
        return self.inputs["i_counters"] >> shift & (1 << COUNTER_BITS) - 1

    def _time(self, name: str) -> int:
        field = times_layout[name]
        return self.inputs["i_times"] >> field.offset & (1 << field.width) - 1

    def read(self, name: str) -> tuple[int, int]:
        """Expected data of a read, and whether the response is OKAY."""
        inputs = self.inputs
        plain = {
            "ID": ID,
            "VERSION": MAP_VERSION,
            "FINGERPRINT": _CHIP_FINGERPRINT,
            "GEOMETRY": _ROWS | _WIDTH // 8 << 8 | _UNITS * COUNTER_WORDS << 16,
            "CONTROL": self.enable << 2,
            "STATUS": inputs["i_busy"] | self.done << 1 | self.error << 2,
            "ERROR": self.cause,
            "ERROR_ENTRY": self.cause_entry,
            "LAUNCHES": self.launches,
            "FIRST_MAC": self._time("first_mac"),
            "LAUNCH_CYCLES": self._time("launch_cycles"),
            "TRACE_DROPPED": inputs["i_trace_dropped"],
        }
        if name in plain:
            return plain[name], 1
        if name in ("CYCLES_LO", "ENTRY_BEGIN_LO"):
            return self._halves(name[:-3], self._time(name[:-3].lower()))
        if name == "TRACE_LO":
            return self._halves("TRACE", inputs["i_trace"])
        if name.startswith("COUNTER_") and name != "COUNTER_SELECT":
            counter = self._counter()
            if counter is None:
                return 0, 0
            if name == "COUNTER_LO":
                return self._halves("COUNTER", counter)
            return self.held["COUNTER"], 1
        if name.endswith("_HI") and name != "LIST_ADDRESS_HI":
            return self.held[name[:-3]], 1
        return self.written.get(name, 0), 1

    def write(self, name: str, word: int) -> int:
        """Apply the write of a whole word; returns whether the response is OKAY."""
        if not register(name).writable:
            return 0
        if name == "CONTROL":
            launch, abort, enable = word & 1, word >> 1 & 1, word >> 2 & 1
            if launch and not abort and (self.inputs["i_busy"] or self.error):
                return 0
            self.enable = enable
            if launch and not abort:
                self.done = 0
        elif name == "STATUS":
            self.done &= ~(word >> 1) & 1
            if word >> 2 & 1:
                self.error = self.cause = self.cause_entry = 0
        else:
            bits = register(name).fields[0].bits
            self.written[name] = word & (1 << bits) - 1
        return 1

    def end(self, name: str) -> None:
        """Apply the end of a launch."""
        if name == "i_done":
            self.done, self.launches = 1, self.launches + 1
        else:
            self.error, self.cause = 1, self.inputs["i_error"]
            self.cause_entry = self.inputs["i_error_entry"]


def _offset(rng: np.random.Generator) -> int:
    """Random offset, mostly of a register, sometimes between or beyond registers."""
    if rng.random() < 0.1:
        return int(rng.integers(0, 1 << 10)) * 4
    return int(rng.choice(list(_OFFSETS)))


def _word(rng: np.random.Generator, name: str) -> int:
    """Random data; selected counters mostly exist."""
    if name == "COUNTER_SELECT" and rng.random() < 0.8:
        return int(rng.integers(0, _UNITS * COUNTER_WORDS))
    return int(rng.integers(0, 1 << 32))


@bench(limit_cycles=20 * _ACCESSES)
async def registers_read_and_act_as_the_map_says(dut: Any) -> None:
    """Reads and writes at any address while launches end; SLVERR has no side effects."""
    rng = random_generator()
    host = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "axi_"), dut.clk, dut.rst)
    for side in (host.write_if, host.read_if):
        side.log.setLevel(logging.WARNING)
    rules = _Rules(dict.fromkeys(_INPUTS, 0))
    await start(dut, **dict.fromkeys([*_INPUTS, *_ENDS], 0))
    refused = 0
    # A high half that no read has latched yet is unknown.
    for name in ("CYCLES_LO", "ENTRY_BEGIN_LO", "COUNTER_LO", "TRACE_LO"):
        await host.read(register(name).offset, 4)
        rules.read(name)
    for _ in range(_ACCESSES):
        await FallingEdge(dut.clk)
        if rng.random() < 0.2:
            for name, bits in _INPUTS.items():
                rules.inputs[name] = int.from_bytes(rng.bytes(ceil_div(bits, 8)), "little") % (
                    1 << bits
                )
                getattr(dut, name).value = rules.inputs[name]
        if rng.random() < 0.1:
            end = _ENDS[rng.integers(2)]
            getattr(dut, end).value = 1
            await FallingEdge(dut.clk)
            getattr(dut, end).value = 0
            rules.end(end)
        offset = _offset(rng)
        found = _OFFSETS.get(offset)
        if rng.random() < 0.5:
            word, good = rules.read(found.name) if found else (0, 0)
            answer = await host.read(offset, 4)
            got = int.from_bytes(answer.data, "little")
            assert got == word, f"{offset:#x}: {got:#x} for {word:#x}; {rules}"
        else:
            word = _word(rng, found.name if found else "")
            size = 4 if rng.random() < 0.9 else int(rng.integers(1, 4))
            whole = found is not None and size == 4
            good = rules.write(found.name, word) if found is not None and whole else 0
            answer = await host.write(offset, word.to_bytes(4, "little")[:size])
        assert answer.resp == (AxiResp.OKAY if good else AxiResp.SLVERR), (hex(offset), rules)
        refused += not good
        select = rules.written.get("COUNTER_SELECT", 0)
        assert int(dut.o_counter.value) == select % COUNTER_WORDS
        assert int(dut.o_interrupt.value) == (rules.enable & (rules.done | rules.error))
        address = rules.written.get("LIST_ADDRESS_HI", 0) << 32
        assert int(dut.o_list_address.value) == address | rules.written.get("LIST_ADDRESS_LO", 0)
    assert _ACCESSES // 10 < refused < _ACCESSES // 2
