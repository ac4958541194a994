"""A command processor with host, memory and fabric in gates, as native models need it."""

import numpy as np
from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arch.registers.chip_registers import HOST_ADDRESS_BITS, register
from hw.command.argument_reader import argument_write_layout
from hw.command.processor import CommandProcessor
from hw.emit.shared import shared
from hw.lib.component import Component
from hw.lib.fifo import Queue
from sim.drivers.command_case import (
    LISTED_CHIP,
    REGION_BYTES,
    CommandSizes,
    random_kernels,
    store_list,
)
from tests.hw.lib.stalling_memory import WORDS_AT_ONCE, StallingMemory

__all__ = ["COMMAND_SETS", "CommandStand", "check_list"]

#: Sizes of the command processors in must-show tests.
COMMAND_SETS = {
    "a": CommandSizes(64, 32, ((4, 1), (3,)), 3),
    "b": CommandSizes(128, 40, ((2, 3, 1), (1, 4), (5, 2)), 8),
    "c": CommandSizes(256, 48, ((7, 1, 1, 2),), 1),
}
#: Events at the fabric that wait for the harness.
_EVENTS = 256
_CLEAR, _ARGUMENT, _LOAD, _START = range(4)
_LAUNCH, _INTERRUPT = 1, 4
_DONE = 2


def _event_layout(sizes):
    """An event: its kind, an argument or a repeat count, and the words of all segments."""
    words = sum(sizes.words.values())
    return data.StructLayout(
        {"kind": 2, "argument": argument_write_layout().size, "words": words * sizes.width_bits}
    )


class CommandStand(Component):
    """A command processor whose fabric is done a random time after each start.

    ``i_host`` writes registers once the memory is filled; ``o_event`` gives what the fabric sees,
    and ``o_end`` STATUS at the interrupt.
    """

    def __init__(self, sizes):
        self._sizes = sizes
        write = data.StructLayout({"address": HOST_ADDRESS_BITS, "data": 32})
        super().__init__(
            {
                "i_host": In(stream.Signature(write)),
                "i_memory": In(stream.Signature(WORDS_AT_ONCE * sizes.width_bits)),
                "o_event": Out(stream.Signature(_event_layout(sizes))),
                "o_end": Out(stream.Signature(32)),
                "o_outside": Out(1),
                "o_lost": Out(1),
                "i_seed": In(64),
                "i_pause": In(8),
            }
        )

    @property
    def parameters(self):
        """Sizes of the processor."""
        return self._sizes._asdict()

    def elaborate(self, platform):
        m = Module()
        sizes = self._sizes
        processor = CommandProcessor(**sizes._asdict(), fingerprint=LISTED_CHIP)
        m.submodules.processor = shared(processor)
        m.submodules.memory = memory = StallingMemory(
            data_bits=sizes.width_bits,
            address_bits=sizes.axi_address_bits,
            words=REGION_BYTES // (sizes.width_bits // 8),
        )
        for name, member in processor.memory.signature.members.items():
            port, slave = getattr(processor.memory, name), getattr(memory.axi, name)
            m.d.comb += slave.eq(port) if member.flow == Out else port.eq(slave)
        wiring.connect(m, memory.i_fill, wiring.flipped(self.i_memory))
        m.d.comb += [
            memory.i_seed.eq(self.i_seed),
            memory.i_pause.eq(self.i_pause),
            self.o_outside.eq(memory.o_outside),
        ]
        self._connect_host(m, processor, memory.o_filled)
        self._log(m, processor)

        busy, left, state = Signal(), Signal(6), Signal(16, init=0xACE1)
        m.d.sync += state.eq(Cat(state[1:], state[0] ^ state[2] ^ state[3] ^ state[5]))
        m.d.comb += [processor.i_done.eq(busy & (left == 0)), processor.i_drained.eq(1)]
        with m.If(processor.o_start):
            m.d.sync += [busy.eq(1), left.eq(state)]
        with m.Elif(processor.i_done):
            m.d.sync += busy.eq(0)
        with m.Else():
            m.d.sync += left.eq(left - (left != 0))
        return m

    def _connect_host(self, m, processor, filled):
        """Write what the host sends; on the interrupt, read STATUS."""
        host, given = processor.host, self.i_host
        addressed, sent = Signal(), Signal()
        writes = given.valid & filled
        m.d.comb += [
            host.awaddr.eq(given.payload.address),
            host.awvalid.eq(writes & ~addressed),
            host.wdata.eq(given.payload.data),
            host.wstrb.eq(15),
            host.wvalid.eq(writes & ~sent),
            host.bready.eq(addressed & sent),
            given.ready.eq(host.bvalid & host.bready),
        ]
        m.d.sync += [
            addressed.eq((addressed | host.awvalid & host.awready) & ~given.ready),
            sent.eq((sent | host.wvalid & host.wready) & ~given.ready),
        ]
        asked = Signal()
        m.d.comb += [
            host.araddr.eq(register("STATUS").offset),
            host.arvalid.eq(processor.o_interrupt & ~asked),
            host.rready.eq(self.o_end.ready),
            self.o_end.payload.eq(host.rdata),
            self.o_end.valid.eq(host.rvalid),
        ]
        m.d.sync += asked.eq(asked | host.arvalid & host.arready)

    def _log(self, m, processor):
        """Keep the words of the segments, and queue what the fabric does as events."""
        sizes = self._sizes
        words = {
            (row, segment, word): Signal(sizes.width_bits, name=f"word_{row}_{segment}_{word}")
            for (row, segment), count in sizes.words.items()
            for word in range(count)
        }
        for (row, segment, word), signal in words.items():
            with m.If(processor.o_begin):
                m.d.sync += signal.eq(0)
            chosen = processor.o_row[row] & processor.o_segment[segment]
            with m.If(chosen & (processor.o_word == word)):
                m.d.sync += signal.eq(processor.o_data)
        layout = _event_layout(sizes)
        m.submodules.events = events = Queue(layout, depth=_EVENTS)
        wiring.connect(m, events.o_stream, wiring.flipped(self.o_event))
        event = data.View(layout, events.i_stream.payload)
        m.d.comb += events.i_stream.valid.eq(1)
        with m.If(processor.o_clear):
            m.d.comb += event.kind.eq(_CLEAR)
        with m.Elif(processor.o_argument_valid):
            m.d.comb += event.kind.eq(_ARGUMENT)
            m.d.comb += event.argument.eq(processor.o_argument.as_value())
        with m.Elif(processor.o_load):
            m.d.comb += [event.kind.eq(_LOAD), event.words.eq(Cat(words.values()))]
        with m.Elif(processor.o_start):
            m.d.comb += [event.kind.eq(_START), event.argument.eq(processor.o_repeat)]
        with m.Else():
            m.d.comb += events.i_stream.valid.eq(0)
        with m.If(events.i_stream.valid & ~events.i_stream.ready):
            m.d.sync += self.o_lost.eq(1)


def _packed(layout, fields):
    return Const.cast(layout.const(fields)).value


def _expected(kernels, sizes):
    """The events of a list as words of the layout."""
    layout, width = _event_layout(sizes), sizes.width_bits
    for kernel in kernels:
        for kind, *values in kernel.events():
            fields = {"kind": ("clear", "argument", "load", "start").index(kind)}
            if kind == "argument":
                names = ("index", "value", "stride")
                fields["argument"] = _packed(argument_write_layout(), dict(zip(names, values)))
            elif kind == "load":
                places = np.cumsum([0, *sizes.words.values()]).tolist()
                fields["words"] = sum(
                    values[0].get(at, 0) << width * place for at, place in zip(sizes.words, places)
                )
            elif kind == "start":
                fields["argument"] = values[0]
            yield _packed(layout, fields)


def _rows(payloads, bits):
    bytes_each = -(-bits // 32) * 4
    raw = b"".join(payload.to_bytes(bytes_each, "little") for payload in payloads)
    return np.frombuffer(raw, "<u4").reshape(-1, bytes_each // 4)


def check_list(model, name, sizes, rng):
    """Run a random list on a native model from reset; the fabric sees what it asks for."""
    model.reset(int(rng.integers(1 << 30)))
    model.set(f"{name}_i_seed", int(rng.integers(1 << 60)))
    model.set(f"{name}_i_pause", int(rng.choice([0, 80, 200])))
    kernels = random_kernels(rng, sizes)
    memory = rng.integers(0, 256, REGION_BYTES, dtype=np.uint8)

    def write(address, raw):
        memory[address : address + len(raw)] = np.frombuffer(raw, np.uint8)

    at, _ = store_list(kernels, 0, sizes, write)
    values = {"LIST_ADDRESS_LO": at, "LIST_ADDRESS_HI": 0, "LIST_ENTRIES": len(kernels)}
    values["CONTROL"] = _LAUNCH | _INTERRUPT
    writes = [register(key).offset | value << HOST_ADDRESS_BITS for key, value in values.items()]
    expected = _rows(_expected(kernels, sizes), _event_layout(sizes).size)
    inputs = {
        f"{name}_i_host": _rows(writes, HOST_ADDRESS_BITS + 32),
        f"{name}_i_memory": memory.view("<u4").reshape(-1, WORDS_AT_ONCE * sizes.width_bits // 32),
    }
    counts = {f"{name}_o_event": len(expected), f"{name}_o_end": 1}
    stalls = {f"{name}_i_host": float(rng.choice([0.0, 0.5]))}
    crossed = model.run(inputs, counts, stalls=stalls, quiet_cycles=5_000)
    assert (crossed[f"{name}_o_event"].words == expected).all(), kernels
    assert crossed[f"{name}_o_end"].words == _DONE
    assert not model.get(f"{name}_o_outside") and not model.get(f"{name}_o_lost"), kernels
