"""An AGCU with a memory in gates, as native models need it."""

import numpy as np
from amaranth.hdl import Const, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.agcu.unit import Agcu
from hw.arch.agcu import AGCU_STREAMS
from hw.arch.launch import MAX_ARGUMENTS, REPEAT_BITS
from hw.command.argument_reader import argument_write_layout
from hw.emit.shared import shared
from hw.lib.component import Component
from hw.lib.stream import vector_signature
from sim.drivers.agcu_case import MEMORY_BYTES, AgcuSizes
from tests.hw.lib.stalling_memory import WORDS_AT_ONCE, StallingMemory

__all__ = ["AGCU_SETS", "AgcuStand", "check_case"]

#: Sizes of the AGCUs in must-show tests.
AGCU_SETS = {
    "a": AgcuSizes(64, 32, 32, 4, 2),
    "b": AgcuSizes(128, 40, 64, 8, 3),
    "c": AgcuSizes(256, 48, 128, 16, 4),
}
#: Cycles in which nothing moves before the memory is looked at.
_QUIET = 40


class AgcuStand(Component):
    """An AGCU that starts when its memory is filled and all its arguments are there.

    The memory leaves by ``o_memory`` when the unit has been done and idle for a while. A token is
    a payload of one bit, 0.
    """

    def __init__(self, sizes):
        self._sizes = sizes = AgcuSizes(*sizes)
        self._agcu = Agcu(**sizes._asdict())
        link, token = vector_signature(sizes.width_bits), stream.Signature(1)
        row = stream.Signature(WORDS_AT_ONCE * sizes.width_bits)
        reports = range(min(sizes.token_tracks, AGCU_STREAMS))
        super().__init__(
            {f"i_store_{number}": In(link) for number in range(AGCU_STREAMS)}
            | {f"o_load_{number}": Out(link) for number in range(AGCU_STREAMS)}
            | {f"i_token_{number}": In(token) for number in range(sizes.token_tracks)}
            | {f"o_token_{number}": Out(token) for number in reports}
            | {
                "i_memory": In(row),
                "o_memory": Out(row),
                "i_argument": In(stream.Signature(argument_write_layout())),
                "config": In(len(self._agcu.config.as_value())),
                "i_last_iteration": In(REPEAT_BITS),
                "i_seed": In(64),
                "i_pause": In(8),
                "o_error": Out(8),
                "o_outside": Out(1),
            }
        )

    @property
    def parameters(self):
        """Sizes of the AGCU."""
        return self._sizes._asdict()

    def elaborate(self, platform):
        m = Module()
        agcu, sizes = self._agcu, self._sizes
        m.submodules.agcu = shared(agcu)
        m.submodules.memory = memory = StallingMemory(
            data_bits=sizes.width_bits,
            address_bits=sizes.axi_address_bits,
            words=MEMORY_BYTES // (sizes.width_bits // 8),
        )
        wiring.connect(m, agcu.axi, memory.axi)
        wiring.connect(m, memory.i_fill, wiring.flipped(self.i_memory))
        wiring.connect(m, memory.o_dump, wiring.flipped(self.o_memory))
        arguments, started = Signal(range(MAX_ARGUMENTS + 1)), Signal()
        quiet = Signal(range(_QUIET + 1))
        starts = memory.o_filled & (arguments == MAX_ARGUMENTS) & ~started
        m.d.sync += started.eq(started | starts)
        m.d.comb += [
            agcu.config.as_value().eq(self.config),
            agcu.i_last_iteration.eq(self.i_last_iteration),
            agcu.i_run.eq(started),
            agcu.i_start.eq(starts),
            self.i_argument.ready.eq(arguments != MAX_ARGUMENTS),
            agcu.i_argument.eq(self.i_argument.payload),
            agcu.i_argument_valid.eq(self.i_argument.valid & self.i_argument.ready),
            self.o_error.eq(agcu.o_error),
            self.o_outside.eq(memory.o_outside),
            memory.i_seed.eq(self.i_seed),
            memory.i_pause.eq(self.i_pause),
            memory.i_dump.eq(quiet == _QUIET),
        ]
        m.d.sync += arguments.eq(arguments + agcu.i_argument_valid)
        with m.If(~(started & agcu.o_done & agcu.o_idle)):
            m.d.sync += quiet.eq(0)
        with m.Elif(quiet != _QUIET):
            m.d.sync += quiet.eq(quiet + 1)
        for number in range(AGCU_STREAMS):
            store, load = getattr(self, f"i_store_{number}"), getattr(self, f"o_load_{number}")
            wiring.connect(m, agcu.o_load[number], wiring.flipped(load))
            m.d.comb += [
                agcu.i_store[number].payload.eq(store.payload),
                agcu.i_store[number].valid.eq(store.valid & started),
                store.ready.eq(agcu.i_store[number].ready & started),
            ]
        for number, port in enumerate(agcu.i_token):
            given = getattr(self, f"i_token_{number}")
            m.d.comb += [
                port.valid.eq(given.valid & started),
                given.ready.eq(port.ready & started),
            ]
        for number, port in enumerate(agcu.o_token):
            report = getattr(self, f"o_token_{number}")
            m.d.comb += [report.valid.eq(port.valid), port.ready.eq(report.ready)]
        return m


def _rows(payloads, bits):
    """Payloads as the rows of 32-bit words that a native model takes."""
    bytes_each = -(-bits // 32) * 4
    raw = b"".join(payload.to_bytes(bytes_each, "little") for payload in payloads)
    return np.frombuffer(raw, "<u4").reshape(len(payloads), bytes_each // 4)


def check_case(model, name, sizes, case, rng):
    """Run a case on a native model from reset, under random stalls; all that leaves is numpy's."""
    model.reset(int(rng.integers(1 << 30)))
    model.set(f"{name}_config", case.program.pack(sizes.token_tracks))
    model.set(f"{name}_i_last_iteration", case.iterations - 1)
    model.set(f"{name}_i_seed", int(rng.integers(1 << 60)))
    model.set(f"{name}_i_pause", int(rng.choice([0, 80, 200])))
    row_bytes, link_bits = WORDS_AT_ONCE * sizes.width_bits // 8, sizes.width_bits + 2
    layout = argument_write_layout()
    arguments = [
        Const.cast(
            layout.const({"index": number, "value": each.value, "stride": each.stride})
        ).value
        for number, each in enumerate(case.arguments)
    ]
    inputs = {
        f"{name}_i_store_{number}": _rows(vectors, link_bits)
        for number, vectors in enumerate(case.inputs)
    }
    inputs |= {
        f"{name}_i_token_{number}": np.zeros((count, 1), np.uint32)
        for number, count in enumerate(case.given)
    }
    stalled = dict.fromkeys(inputs)
    inputs[f"{name}_i_argument"] = _rows(arguments, layout.size)
    inputs[f"{name}_i_memory"] = case.memory.view("<u4").reshape(-1, row_bytes // 4)
    counts = {
        f"{name}_o_load_{number}": len(vectors) for number, vectors in enumerate(case.outputs)
    }
    counts |= {f"{name}_o_token_{number}": count for number, count in enumerate(case.reported)}
    stalled |= dict.fromkeys(counts)
    counts[f"{name}_o_memory"] = MEMORY_BYTES // row_bytes
    stalls = dict(zip(stalled, rng.choice([0.0, 0.3, 0.7], len(stalled)), strict=True))
    crossed = model.run(inputs, counts, stalls=stalls, quiet_cycles=2_000)
    for number, vectors in enumerate(case.outputs):
        got = crossed[f"{name}_o_load_{number}"].words
        assert (got == _rows(vectors, link_bits)).all(), case.program
    assert model.get(f"{name}_o_error") == case.error, case.program
    assert not model.get(f"{name}_o_outside"), case.program
    memory = crossed[f"{name}_o_memory"].words.view(np.uint8).ravel()
    wrong = np.flatnonzero(memory != case.expected)
    assert not len(wrong), (case.program, wrong[:1])
