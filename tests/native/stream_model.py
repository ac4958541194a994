"""Native model of a module with stream ports, AXI4 ports to memory, and plain signals."""

import ctypes
import dataclasses
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gen.design import Design
from hw.arch.errors import BadInputError, HangError
from hw.emit.shared import Shareable
from sim.closing import Closing
from tests.native.library import build_library
from tests.native.memory_pins import memory_glue
from tests.native.native_memory import NativeMemory, Violation
from tests.native.port_glue import glue, ports_of, words_of

__all__ = ["StreamModel", "Transfer"]

#: Modules stay modules, so that each definition is compiled once: a third of the time.
#: A port of a module that is not inlined is one signal, so two of its fields may look like a loop.
_OPTIONS = ("-fno-inline", "-Wno-UNOPTFLAT")
_HARNESS, _MEMORY = (Path(__file__).with_name(name) for name in ("streams.cpp", "axi_memory.cpp"))

Words = npt.NDArray[np.uint32]


class _Port(ctypes.Structure):
    _fields_ = [
        ("words", ctypes.c_void_p),
        ("count", ctypes.c_int64),
        ("done", ctypes.c_int64),
        ("first", ctypes.c_int64),
        ("last", ctypes.c_int64),
        ("stall", ctypes.c_uint32),
        ("offered", ctypes.c_uint32),
        ("index", ctypes.c_int32),
    ]


@dataclasses.dataclass(frozen=True)
class Transfer:
    """Transfers of one stream in a run.

    Members
    -------
    words : array of uint32, payloads × words
        The payloads.
    first_cycle, last_cycle : int
        Cycle of the first and last transfer, counted from reset.
    """

    words: Words
    first_cycle: int
    last_cycle: int


class StreamModel(Closing):
    """Verilator model of a design with stream drivers and monitors.

    Payloads are arrays of ``uint32`` words, payloads × words, least significant word first. Of a
    `ClockedBundle` only the components run whose streams a run names; their ports begin with the
    component's name.

    Registers and memories without a reset start with random values from the seed; plain inputs
    are 0 until set.

    Parameters
    ----------
    design : Design
        The emitted Verilog.
    component : Shareable
        The component it was emitted from, or one with the same ports.
    seed : int
        Seed of the random initial values and of the stalls.
    """

    def __init__(
        self,
        design: Design,
        component: Shareable,
        *,
        seed: int = 0,
        use_cache: bool = True,
    ) -> None:
        self._ports = ports_of(component.signature)
        self._prefixes = [name.removesuffix("clk") for name in self._ports.clocks]
        self._memories: dict[str, NativeMemory] = {}
        pins = glue(self._ports) + memory_glue(self._ports.memories)
        harness = _HARNESS.read_text().replace("//PORTS//", pins)
        harness = harness.replace("//MEMORY//", _MEMORY.read_text())
        path, self.cache_hit = build_library(
            design.text, design.top, harness, options=_OPTIONS, use_cache=use_cache
        )
        self._library = ctypes.CDLL(str(path))
        self._library.model_new.restype = ctypes.c_void_p
        self._library.model_new.argtypes = [ctypes.c_uint64]
        for name in ("model_cycle", "model_run"):
            getattr(self._library, name).restype = ctypes.c_int64
        self._library.model_attach.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
        self._library.model_run.argtypes = [
            ctypes.c_void_p,
            ctypes.POINTER(_Port),
            ctypes.c_int,
            ctypes.POINTER(_Port),
            ctypes.c_int,
            ctypes.POINTER(ctypes.c_int32),
            ctypes.c_int,
            ctypes.POINTER(ctypes.c_int32),
            ctypes.c_int,
            ctypes.c_int64,
            ctypes.c_int64,
            ctypes.c_uint64,
        ]
        self._seed = seed
        self._handle = ctypes.c_void_p(self._library.model_new(seed))

    def close(self) -> None:
        """Free the model."""
        if self._handle:
            self._library.model_delete(self._handle)
            self._handle = ctypes.c_void_p()
            self._memories.clear()

    def reset(self, seed: int | None = None) -> None:
        """Restart from reset, with random values from ``seed`` in all state without a reset."""
        self.close()
        self._seed = self._seed if seed is None else seed
        self._handle = ctypes.c_void_p(self._library.model_new(self._seed))

    def attach(self, port: str, memory: NativeMemory) -> None:
        """Serve an AXI4 port by a memory, until the next reset."""
        number = list(self._ports.memories).index(port)
        self._memories[port] = memory
        self._library.model_attach(self._handle, number, ctypes.addressof(memory.state))

    @property
    def cycle(self) -> int:
        """Cycles since reset."""
        return int(self._library.model_cycle(self._handle))

    def set(self, name: str, value: int) -> None:
        """Set a plain input."""
        names = list(self._ports.settings)
        count = words_of(self._ports.settings[name])
        words = (ctypes.c_uint32 * (count + 1))(
            *((value >> 32 * index) & 0xFFFFFFFF for index in range(count))
        )
        self._library.model_set(self._handle, names.index(name), words)

    def get(self, name: str) -> int:
        """Read a plain output."""
        names = list(self._ports.readings)
        count = words_of(self._ports.readings[name])
        words = (ctypes.c_uint32 * (count + 1))()
        self._library.model_get(self._handle, names.index(name), words)
        return sum(words[index] << 32 * index for index in range(count))

    def _running(self, streams: Collection[str]) -> tuple[str, ...]:
        """Prefixes of the components whose streams these are; of all if there are none."""
        unknown = set(streams) - self._ports.inputs.keys() - self._ports.outputs.keys()
        if unknown:
            raise BadInputError(f"Model has no stream {min(unknown)}")
        longest = sorted(self._prefixes, key=len, reverse=True)
        found = {next(each for each in longest if name.startswith(each)) for name in streams}
        return tuple(each for each in self._prefixes if each in found or not found)

    def run(
        self,
        inputs: Mapping[str, Words],
        expect: Mapping[str, int],
        *,
        stalls: Mapping[str, float] | None = None,
        limit_cycles: int = 1 << 40,
        quiet_cycles: int = 10_000,
    ) -> dict[str, Transfer]:
        """Send payloads to the inputs, and take a given number of payloads from the outputs.

        Parameters
        ----------
        inputs : dict of str to array
            Payloads by stream; other input streams stay idle.
        expect : dict of str to int
            Number of payloads to take, by stream; other output streams are never ready.
        stalls : dict of str to float
            Stall probability per cycle of the harness side, by stream.
        limit_cycles, quiet_cycles : int
            Cycles, and cycles without a transfer, after which the run counts as a hang.

        Raises
        ------
        HangError
            If the streams do not finish; the message states the transfers of each.
        Violation
            If an output withdraws or changes an offered payload, an assertion of the design fails
            or a memory is accessed where it may not be.
        """
        prefixes = self._running([*inputs, *expect])
        clocks = (ctypes.c_int32 * len(prefixes))(*map(self._prefixes.index, prefixes))
        sent = {
            name: np.ascontiguousarray(
                inputs.get(name, np.zeros((0, words_of(bits)), np.uint32)), np.uint32
            )
            for name, bits in self._ports.inputs.items()
            if name.startswith(prefixes)
        }
        taken = {
            name: np.zeros((expect.get(name, 0), words_of(bits)), np.uint32)
            for name, bits in self._ports.outputs.items()
            if name.startswith(prefixes)
        }
        for name, words in sent.items():
            width = words_of(self._ports.inputs[name])
            if words.ndim != 2 or words.shape[1] != width:
                raise BadInputError(f"Payloads of {name} must be n × {width}, not {words.shape}")
        chances = dict(stalls or {})

        def table(arrays: Mapping[str, Words], order: Iterable[str]) -> "ctypes.Array[_Port]":
            ports = (_Port * (len(arrays) + 1))()
            numbers = {name: number for number, name in enumerate(order)}
            for port, (name, words) in zip(ports, arrays.items(), strict=False):
                port.words, port.count, port.index = words.ctypes.data, len(words), numbers[name]
                port.stall = int(chances.get(name, 0.0) * (2**32 - 1))
            return ports

        sources = table(sent, self._ports.inputs)
        sinks = table(taken, self._ports.outputs)
        attached = [name for name in self._memories if name.startswith(prefixes)]
        numbers = map(list(self._ports.memories).index, attached)
        code = self._library.model_run(
            self._handle,
            *(sources, len(sent), sinks, len(taken)),
            *(clocks, len(clocks)),
            *((ctypes.c_int32 * len(attached))(*numbers), len(attached)),
            *(limit_cycles, quiet_cycles, self._seed),
        )
        everything = [
            *zip(sent.items(), sources, strict=False),
            *zip(taken.items(), sinks, strict=False),
        ]
        if code <= -100:
            raise Violation(
                f"Stream {list(taken)[-100 - code]} withdrew or changed a payload it had offered"
            )
        if code == -3:
            raise Violation(f"Assertion of the design failed in cycle {self.cycle}")
        if code == -4:
            raise Violation("; ".join(filter(None, (m.violation for m in self._memories.values()))))
        if code:
            state = ", ".join(
                f"{name} {port.done} of {port.count}" for (name, _), port in everything
            )
            why = f"{quiet_cycles} cycles without a handshake" if code == -2 else "too many cycles"
            raise HangError(f"Simulation stopped after {self.cycle} cycles, {why}: {state}")
        return {
            name: Transfer(words, int(port.first), int(port.last))
            for (name, words), port in everything
        }
