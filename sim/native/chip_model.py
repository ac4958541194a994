"""Native model of a whole chip with host, memory at every AXI4 port, and launches."""

import ctypes
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from gen.design import Design
from hw.arch.config import ChipConfig
from hw.arch.errors import TilewrightError
from hw.arch.registers.chip_registers import REGISTERS, register
from hw.arch.registers.register_fields import Register
from sim.closing import Closing
from sim.launch_trace import read_trace
from sim.native.archive import build_parts
from sim.native.chip_library import load
from sim.native.chip_ports import glue, parts_of, sampled
from sim.native.chip_run import ChipRun
from sim.native.conditions import (
    CHANNELS,
    ErrorAt,
    MemoryConditions,
    PortState,
    PortTraffic,
    Settings,
    settings_of,
)
from sim.native.counter_reads import read_counters, some_unit_works
from sim.native.samples import read_samples
from sim.progress import Progress

__all__ = ["ChipModel", "ChipRun", "ErrorAt", "MemoryConditions", "PortTraffic", "RtlFaultError"]

_HARNESS = Path(__file__).with_name("chip.cpp")
#: Cycles without a beat on any port, beyond ten latencies, that count as a hang.
_QUIET_CYCLES = 20_000
#: Cycles over which the counters of a hanging chip are compared.
_PROBE_CYCLES = 64
_SLICE_CYCLES, _SLICE_SECONDS = 50_000, 0.5


class RtlFaultError(TilewrightError):
    """A violated AXI4 rule or a failed assertion of the design, named by the message."""

    kind = "rtl-fault"


def _register(name: str) -> Register | None:
    return next((each for each in REGISTERS if each.name == name), None)


class ChipModel(Closing):
    """Verilator model of a chip, with models of host and memory.

    Registers and memories without a reset start with random values from the seed; payloads are
    random while not valid.

    Parameters
    ----------
    design : Design
        The chip's Verilog.
    config : ChipConfig
        The configuration it was emitted from.
    seed : int
        Seed of the garbage.
    use_cache : bool
        Take a finished build of the same content.
    waves : Path, optional
        VCD file in which all signals are recorded.
    progress : Progress, optional
        Display of the part being built.

    Members
    -------
    cache_hit : bool
    build_seconds : float

    Raises
    ------
    MissingToolError
        If a tool of the build is not installed.
    RuntimeError
        If the build fails.
    OSError
        If the VCD file cannot be written.
    """

    def __init__(
        self,
        design: Design,
        config: ChipConfig,
        *,
        seed: int = 1,
        use_cache: bool = True,
        waves: Path | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._config = config
        self._handle = ctypes.c_void_p()
        self._needs_reset = False
        begin = time.monotonic()
        parts = parts_of(design)
        self._sampled = sampled(parts)
        path, self.cache_hit = build_parts(
            parts.parts,
            glue(_HARNESS.read_text(), parts, config.agcu.count, waves=waves is not None),
            waves=waves is not None,
            use_cache=use_cache,
            progress=progress,
        )
        self.build_seconds = time.monotonic() - begin
        self._library = load(path)
        self._handle = ctypes.c_void_p(self._library.chip_new(seed))
        if waves is not None and not self._library.chip_trace(self._handle, bytes(waves)):
            raise OSError(f"Waves must go to a file that can be written, not {waves}")

    def close(self) -> None:
        """Free the model, and complete the VCD file."""
        if self._handle:
            self._library.chip_delete(self._handle)
            self._handle = ctypes.c_void_p()

    def write(self, name: str, value: int) -> int:
        """Write a register of the chip; returns the cycle in which address and data were accepted.

        Raises
        ------
        RtlFaultError
            If the chip refuses it or does not answer.
        """
        when = ctypes.c_int64()
        response = self._library.chip_write(
            self._handle, register(name).offset, value, ctypes.byref(when)
        )
        self._check(f"write of {name}", response)
        return when.value

    def read(self, name: str) -> int:
        """Read a register of the chip.

        Raises
        ------
        RtlFaultError
            If the chip refuses it or does not answer.
        """
        value = ctypes.c_uint32()
        response = self._library.chip_read(self._handle, register(name).offset, ctypes.byref(value))
        self._check(f"read of {name}", response)
        return value.value

    def _check(self, what: str, response: int) -> None:
        self._check_fault()
        if response:
            self._needs_reset = True
            answer = f"response {response}" if response > 0 else "nothing"
            raise RtlFaultError(f"Host port must answer the {what} with OKAY, not {answer}")

    def _check_fault(self) -> None:
        fault = self._library.chip_fault(self._handle).decode()
        if fault:
            self._needs_reset = True
            raise RtlFaultError(f"Simulation stopped: {fault}")

    def reset(self) -> None:
        """Reset the chip; memory drops its outstanding responses."""
        self._library.chip_reset(self._handle)
        self._needs_reset = False

    def run(
        self,
        memory: bytearray,
        *,
        list_address: int,
        entries: int = 1,
        conditions: MemoryConditions | None = None,
        max_cycles: int = 1 << 40,
        sample_every: int = 0,
        regions: Sequence[tuple[int, int]] = (),
        progress: Callable[[int], None] | None = None,
    ) -> ChipRun:
        """Run a launch list to its end.

        Parameters
        ----------
        memory : bytearray
            The whole memory, from address 0, updated in place.
        list_address, entries : int
            The launch list.
        conditions : MemoryConditions, optional
        max_cycles : int
            Cycles from the launch write after which the run ends as a hang.
        sample_every : int
            Cycles from one sample of the counters to the next; 0 for none.
        regions : sequence of (int, int)
            First byte, and the one after the last, of what the chip may read and write; a beat in
            none of them is a fault. By default all of memory.
        progress : function, optional
            Function called with the cycle every 50,000 cycles or half a second.

        Raises
        ------
        RtlFaultError
            If the chip breaks a rule of AXI4 or leaves the regions, or an assertion of the
            design fails.
        """
        begin = time.monotonic()
        if self._needs_reset:
            self.reset()
        given = conditions or MemoryConditions()
        first = int(self._library.chip_cycle(self._handle))
        view = (ctypes.c_uint8 * len(memory)).from_buffer(memory)
        settings = settings_of(view, given, regions)
        try:
            self._library.chip_begin(self._handle, ctypes.byref(settings))
            self._library.chip_sample(self._handle, sample_every)
            self.write("LIST_ADDRESS_LO", list_address & 0xFFFFFFFF)
            self.write("LIST_ADDRESS_HI", list_address >> 32)
            self.write("LIST_ENTRIES", entries)
            launch = self.write("CONTROL", 0b101)
            reason, probed = self._wait(launch, max_cycles, given, progress)
            end = int(self._library.chip_cycle(self._handle))
            return self._finish(begin, first, launch, end, reason, probed=probed)
        finally:
            self._library.chip_sample(self._handle, 0)
            # The library must not keep the address of memory that may be freed.
            self._library.chip_begin(self._handle, ctypes.byref(Settings()))

    def _wait(
        self,
        launch: int,
        max_cycles: int,
        conditions: MemoryConditions,
        progress: Callable[[int], None] | None,
    ) -> tuple[str, bool]:
        """Wait for the interrupt.

        Returns
        -------
        reason : str
            The reason of a hang, or an empty string.
        probed : bool
            Whether counters have been read, during which the interrupt may have come.
        """
        probed = False
        quiet = _QUIET_CYCLES + 10 * (conditions.latency + conditions.jitter)
        while True:
            cycle = int(self._library.chip_cycle(self._handle))
            if cycle >= launch + max_cycles:
                return f"{max_cycles} cycles have passed", probed
            code = self._library.chip_run(
                self._handle,
                min(cycle + _SLICE_CYCLES, launch + max_cycles),
                quiet,
                _SLICE_SECONDS,
            )
            self._check_fault()
            if code == 1:
                return "", probed
            if code == -2:
                if not some_unit_works(self, self._config):
                    return f"no beat on any AXI4 port for {quiet} cycles", probed
                # A unit may compute for long on what it has.
                quiet += _QUIET_CYCLES
                probed = True
            if progress is not None:
                progress(int(self._library.chip_cycle(self._handle)) - launch)

    def _finish(
        self, begin: float, first: int, launch: int, end: int, reason: str, *, probed: bool
    ) -> ChipRun:
        states = []
        for index in range(self._config.agcu.count + 1):
            state = PortState()
            self._library.chip_port(self._handle, index, ctypes.byref(state))
            states.append(state)
        status = self.read("STATUS")
        ended: Literal["done", "error", "hang"]
        ended = "hang" if reason else "done" if status & 0b010 else "error"
        if ended == "done":
            self._check_owed(states)
        error = self.read("ERROR")
        error_entry = self.read("ERROR_ENTRY")
        registers_cycles = self.read("CYCLES_LO") | self.read("CYCLES_HI") << 32
        launch_cycles = self.read("LAUNCH_CYCLES")
        entry_begin = self.read("ENTRY_BEGIN_LO") | self.read("ENTRY_BEGIN_HI") << 32
        counters = read_counters(self)
        steps: list[int] = []
        if ended == "hang":
            steps = self._steps()
            self._needs_reset = True
        else:
            self.write("STATUS", 0b110)
        cycle = int(self._library.chip_cycle(self._handle))
        beat_bytes = self._config.width_bits // 8
        first_mac = self.read("FIRST_MAC") if _register("FIRST_MAC") else None
        return ChipRun(
            status=ended,
            # The interrupt is high in the cycle after the last busy one, if it was waited for.
            cycles=registers_cycles if probed and not reason else end - launch - (not reason),
            error_code=error & 0xFF,
            error_detail=error >> 8 & 0xFF,
            error_unit=error >> 16 & 0xFF,
            error_entry=error_entry,
            errors_met=int(self._library.chip_errors_met(self._handle)),
            bytes_read=beat_bytes * sum(state.beats[1] for state in states),
            bytes_written=sum(state.written_bytes for state in states),
            counters=counters,
            counter_steps=steps,
            first_mac=first_mac,
            registers_cycles=registers_cycles,
            launch_cycles=launch_cycles,
            entry_begin=entry_begin,
            trace=read_trace(self.read),
            simulated_cycles=cycle - first,
            seconds=time.monotonic() - begin,
            hang_reason=reason,
            ports=tuple(
                PortTraffic(
                    name,
                    dict(zip(CHANNELS, state.beats, strict=True)),
                    state.reads_owed,
                    state.writes_owed,
                )
                for name, state in zip(self._port_names(), states, strict=True)
            ),
            samples=read_samples(
                self._library, self._handle, self._config, self._sampled, self._port_names()
            ),
            launched=launch,
        )

    def _check_owed(self, states: list[PortState]) -> None:
        for name, state in zip(self._port_names(), states, strict=True):
            if state.reads_owed or state.writes_owed:
                self._needs_reset = True
                raise RtlFaultError(
                    f"{name} must be answered at the end of a launch, not owed "
                    f"{state.reads_owed} reads and {state.writes_owed} writes"
                )

    def _steps(self) -> list[int]:
        """Increment of each counter between two equally spaced reads, per `_PROBE_CYCLES`."""
        before = read_counters(self)
        spent = -int(self._library.chip_cycle(self._handle))
        after = read_counters(self)
        spent += int(self._library.chip_cycle(self._handle))
        return [round((b - a) * _PROBE_CYCLES / spent) for a, b in zip(before, after, strict=True)]

    def _port_names(self) -> list[str]:
        return [*(f"memory[{index}]" for index in range(self._config.agcu.count)), "launch"]
