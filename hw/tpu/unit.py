"""Tensor unit: matrix unit, unified buffer and instruction sequencer."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arch.tensor_instructions import INSTRUCTION
from hw.emit.shared import shared
from hw.emit.vector_memory import VectorMemory
from hw.lib.component import Component
from hw.matrix.systolic_unit import SystolicUnit
from hw.matrix.unit_config import COUNTERS
from hw.tpu.buffer_reader import Reader
from hw.tpu.buffer_writer import ACTIVATES, HostWriter, ResultWriter
from hw.tpu.decoder import Decoder
from hw.tpu.sequencer import STATUS, Sequencer
from hw.tpu.tensor_config import TensorConfig

__all__ = ["TensorUnit", "host_layout"]


def host_layout(width: int) -> data.StructLayout:
    """Layout of a vector sent to the host; ``last`` ends its instruction."""
    return data.StructLayout({"data": width, "last": 1})


class TensorUnit(Component):
    """Tensor unit: weight-stationary matrix unit with a unified buffer, run by instructions.

    The buffer has one write port, with priority for results over vectors of the host, and one read
    port, with priority for the array over the host.

    Parameters
    ----------
    config : TensorConfig

    Members
    -------
    i_instruction : stream of `INSTRUCTION`
    i_weight : stream of vectors of C lanes
        R vectors per multiply, row 0 first.
    i_bias : stream of C int32 or fp32
        One vector per multiply that finishes; only in units with a bias.
    i_host : stream of vectors of R lanes
    o_host : stream of `host_layout`
    status
        Fault of the next instruction, one of :class:`Fault`, and number of instructions begun
        before it. After a fault nothing more begins until reset; commands in progress continue.
    busy
        A command is in progress, or a vector of the buffer has not left.
    counters
        As of :class:`hw.matrix.systolic_unit.SystolicUnit`.
    """

    i_instruction: stream.Interface
    i_weight: stream.Interface
    i_bias: stream.Interface
    i_host: stream.Interface
    o_host: stream.Interface
    status: data.View[data.StructLayout]
    busy: Signal
    counters: data.View[data.StructLayout]

    def __init__(self, config: TensorConfig) -> None:
        self._config = config
        self._unit = SystolicUnit(config.unit)
        self._memory = VectorMemory(
            width=config.vector_bits,
            depth=config.buffer_rows,
            granule=config.granule * config.format.bits,
        )
        weights = self._unit.signature.members
        self._passed = [name for name in ("i_weight", "i_bias") if name in weights]
        super().__init__(
            {name: weights[name] for name in self._passed}
            | {
                "i_instruction": In(stream.Signature(INSTRUCTION)),
                "i_host": In(stream.Signature(config.vector_bits)),
                "o_host": Out(stream.Signature(host_layout(config.vector_bits))),
                "status": Out(STATUS),
                "busy": Out(1),
                "counters": Out(COUNTERS),
            }
        )

    @property
    def bank(self) -> VectorMemory:
        """The unified buffer's memory, for tests."""
        return self._memory

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, unit, memory = self._config, self._unit, self._memory
        m.submodules.unit = shared(unit)
        m.submodules.memory = shared(memory)
        decoder, sequencer = Decoder(config), Sequencer(config)
        filler, results = HostWriter(config), ResultWriter(config)
        feeder, drainer = Reader(config), Reader(config)
        m.submodules.decoder = shared(decoder)
        m.submodules.sequencer = shared(sequencer)
        engines: dict[str, HostWriter | Reader | ResultWriter] = {
            "read_host": filler,
            "multiply": feeder,
            "activate": results,
            "write_host": drainer,
        }
        for name, engine in engines.items():
            m.submodules[name] = shared(engine)
            m.d.comb += [
                engine.i_start.eq(sequencer.o_start[name]),
                engine.i_order.eq(sequencer.o_order),
                sequencer.i_free[name].eq(engine.o_free),
            ]
        m.d.comb += [
            sequencer.i_read_host.eq(filler.o_span),
            sequencer.i_multiply.eq(feeder.o_span),
            sequencer.i_write_host.eq(drainer.o_span),
            sequencer.i_activates.eq(results.o_spans),
        ]
        wiring.connect(m, wiring.flipped(self.i_instruction), decoder.i_instructions)
        wiring.connect(m, decoder.o_orders, sequencer.i_orders)

        # Results and array have priority: the host must never block what it may be waiting for.
        result_writes = Signal()
        m.d.comb += [
            result_writes.eq(results.o_write.any()),
            filler.i_port.eq(~result_writes),
            memory.i_write.eq(
                Mux(filler.o_write, Const(1).replicate(len(memory.i_write)), results.o_write)
            ),
            memory.i_write_address.eq(Mux(filler.o_write, filler.o_address, results.o_address)),
            memory.i_data.eq(Mux(filler.o_write, self.i_host.payload, results.o_data)),
            feeder.i_grant.eq(feeder.o_request),
            drainer.i_grant.eq(drainer.o_request & ~feeder.o_request),
            memory.i_read.eq(feeder.o_request | drainer.o_request),
            memory.i_read_address.eq(Mux(feeder.o_request, feeder.o_address, drainer.o_address)),
            feeder.i_vector.eq(memory.o_data),
            drainer.i_vector.eq(memory.o_data),
        ]
        wiring.connect(m, wiring.flipped(self.i_host), filler.i_host)
        wiring.connect(m, feeder.o_vectors, unit.i_activation)
        wiring.connect(m, unit.o_result, results.i_result)
        m.d.comb += [
            self.o_host.valid.eq(drainer.o_vectors.valid),
            self.o_host.payload.data.eq(drainer.o_vectors.payload.data),
            self.o_host.payload.last.eq(drainer.o_vectors.payload.last),
            drainer.o_vectors.ready.eq(self.o_host.ready),
            self.status.eq(sequencer.status),
            self.busy.eq(
                filler.o_span.busy
                | feeder.o_span.busy
                | drainer.o_span.busy
                | feeder.o_holds
                | drainer.o_holds
                | Cat(results.o_spans[index].busy for index in range(ACTIVATES)).any()
            ),
            self.counters.eq(unit.counters),
        ]
        for name in self._passed:
            wiring.connect(m, wiring.flipped(getattr(self, name)), getattr(unit, name))
        for name in ("relu", "scale", "shift"):
            if name in unit.signature.members:
                m.d.comb += getattr(unit, name).eq(getattr(sequencer, name))
        return m
