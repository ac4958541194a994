"""Native model of a module with stream ports and plain signals."""

import ctypes
import dataclasses
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
from amaranth.hdl import Shape
from amaranth.lib.wiring import In, Signature

from gen.design import Design
from hw.arch.errors import BadInputError, HangError
from hw.emit.shared import Shareable
from hw.numeric.division import ceil_div
from sim.closing import Closing
from tests.native.clocked_bundle import CLOCK, RESET
from tests.native.library import build_library

__all__ = ["Ports", "StreamModel", "Transfer", "ports_of"]

#: Modules stay modules, so that each definition is compiled once: a third of the time.
#: A port of a module that is not inlined is one signal, so two of its fields may look like a loop.
_OPTIONS = ("-fno-inline", "-Wno-UNOPTFLAT")
_HARNESS = Path(__file__).with_name("streams.cpp")

Words = npt.NDArray[np.uint32]


@dataclasses.dataclass(frozen=True)
class Ports:
    """Ports of a module by role, with widths in bits (of the payload for streams)."""

    inputs: dict[str, int]
    outputs: dict[str, int]
    settings: dict[str, int]
    readings: dict[str, int]
    clocks: list[str]
    resets: list[str]


def ports_of(signature: Signature) -> Ports:
    """Ports of a component by its signature: streams by direction, and plain signals."""
    ports = Ports({}, {}, {}, {}, [], [])
    for name, member in signature.members.items():
        if name.endswith((CLOCK, RESET)):
            (ports.clocks if name.endswith(CLOCK) else ports.resets).append(name)
            continue
        if member.is_signature:
            streams = ports.inputs if member.flow == In else ports.outputs
            streams[name] = Shape.cast(member.signature.members["payload"].shape).width
        else:
            signals = ports.settings if member.flow == In else ports.readings
            signals[name] = Shape.cast(member.shape).width
    if not ports.clocks:
        ports.clocks.append("clk")
        ports.resets.append("rst")
    return ports


def _words(bits: int) -> int:
    return ceil_div(bits, 32)


def _member(stream_name: str, member: str) -> str:
    """C++ name of a stream's port; Verilator escapes two consecutive underscores."""
    return f"top.{stream_name}___05F{member}"


def _cases(lines: list[str]) -> str:
    return "\n".join(f"        case {index}: {line} break;" for index, line in enumerate(lines))


def _function(head: str, lines: list[str], tail: str = "") -> str:
    return f"inline {head} {{\n    switch (index) {{\n{_cases(lines)}\n    }}\n{tail}}}\n"


def _table(name: str, widths: Mapping[str, int]) -> str:
    values = ", ".join([*(str(_words(width)) for width in widths.values()), "0"])
    return (
        f"constexpr int {name}_count = {len(widths)};\n"
        f"constexpr int {name}_words[] = {{{values}}};\n"
    )


def _glue(ports: Ports) -> str:
    """Generated C++ that binds the ports to the harness."""
    widest = max(
        [1, *(_words(width) for width in [*ports.inputs.values(), *ports.outputs.values()])]
    )
    ready = [f"return {_member(name, 'ready')};" for name in ports.inputs]
    take = [
        f"get({_member(name, 'payload')}, words); return {_member(name, 'valid')};"
        for name in ports.outputs
    ]
    return "".join(
        [
            f"constexpr int clock_count = {len(ports.clocks)};\n",
            _function(
                "void set_clock(Vtop& top, int index, bool level)",
                [f"top.{name} = level;" for name in ports.clocks],
            ),
            "inline void set_resets(Vtop& top, bool level) {\n",
            *(f"    top.{name} = level;\n" for name in ports.resets),
            "}\n",
            _table("input", ports.inputs),
            _table("output", ports.outputs),
            f"constexpr int max_words = {widest + 1};\n",
            _function(
                "void offer(Vtop& top, int index, bool valid, const uint32_t* words)",
                [
                    f"{_member(name, 'valid')} = valid; put({_member(name, 'payload')}, words);"
                    for name in ports.inputs
                ],
            ),
            _function("bool input_ready(Vtop& top, int index)", ready, "    return false;\n"),
            _function(
                "void accept(Vtop& top, int index, bool ready)",
                [f"{_member(name, 'ready')} = ready;" for name in ports.outputs],
            ),
            _function(
                "bool output_take(Vtop& top, int index, uint32_t* words)",
                take,
                "    return false;\n",
            ),
            "inline void idle(Vtop& top) {\n",
            *(f"    {_member(name, 'valid')} = 0;\n" for name in ports.inputs),
            *(f"    {_member(name, 'ready')} = 0;\n" for name in ports.outputs),
            "}\n",
            "inline void clear_inputs(Vtop& top) {\n    const uint32_t zero[64] = {};\n",
            "    idle(top);\n",
            *(f"    put({_member(name, 'payload')}, zero);\n" for name in ports.inputs),
            *(f"    put(top.{name}, zero);\n" for name in ports.settings),
            "}\n",
            _function(
                "void set_signal(Vtop& top, int index, const uint32_t* words)",
                [f"put(top.{name}, words);" for name in ports.settings],
            ),
            _function(
                "void get_signal(Vtop& top, int index, uint32_t* words)",
                [f"get(top.{name}, words);" for name in ports.readings],
            ),
        ]
    )


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
        harness = _HARNESS.read_text().replace("//PORTS//", _glue(self._ports))
        path, self.cache_hit = build_library(
            design.text, design.top, harness, options=_OPTIONS, use_cache=use_cache
        )
        self._library = ctypes.CDLL(str(path))
        self._library.model_new.restype = ctypes.c_void_p
        self._library.model_new.argtypes = [ctypes.c_uint64]
        for name in ("model_cycle", "model_run"):
            getattr(self._library, name).restype = ctypes.c_int64
        self._library.model_run.argtypes = [
            ctypes.c_void_p,
            ctypes.POINTER(_Port),
            ctypes.c_int,
            ctypes.POINTER(_Port),
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

    def reset(self, seed: int | None = None) -> None:
        """Restart from reset, with random values from ``seed`` in all state without a reset."""
        self.close()
        self._seed = self._seed if seed is None else seed
        self._handle = ctypes.c_void_p(self._library.model_new(self._seed))

    @property
    def cycle(self) -> int:
        """Cycles since reset."""
        return int(self._library.model_cycle(self._handle))

    def set(self, name: str, value: int) -> None:
        """Set a plain input."""
        names = list(self._ports.settings)
        count = _words(self._ports.settings[name])
        words = (ctypes.c_uint32 * (count + 1))(
            *((value >> 32 * index) & 0xFFFFFFFF for index in range(count))
        )
        self._library.model_set(self._handle, names.index(name), words)

    def get(self, name: str) -> int:
        """Read a plain output."""
        names = list(self._ports.readings)
        count = _words(self._ports.readings[name])
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
        RuntimeError
            If an output withdraws or changes an offered payload.
        """
        prefixes = self._running([*inputs, *expect])
        clocks = (ctypes.c_int32 * len(prefixes))(*map(self._prefixes.index, prefixes))
        sent = {
            name: np.ascontiguousarray(
                inputs.get(name, np.zeros((0, _words(bits)), np.uint32)), np.uint32
            )
            for name, bits in self._ports.inputs.items()
            if name.startswith(prefixes)
        }
        taken = {
            name: np.zeros((expect.get(name, 0), _words(bits)), np.uint32)
            for name, bits in self._ports.outputs.items()
            if name.startswith(prefixes)
        }
        for name, words in sent.items():
            width = _words(self._ports.inputs[name])
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
        code = self._library.model_run(
            self._handle,
            *(sources, len(sent), sinks, len(taken)),
            *(clocks, len(clocks)),
            *(limit_cycles, quiet_cycles, self._seed),
        )
        everything = [
            *zip(sent.items(), sources, strict=False),
            *zip(taken.items(), sinks, strict=False),
        ]
        if code <= -100:
            raise RuntimeError(
                f"Stream {list(taken)[-100 - code]} withdrew or changed a payload it had offered"
            )
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
