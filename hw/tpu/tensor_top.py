"""Tensor unit with registers for a host."""

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Const, Module, Signal, Value, ValueLike
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arch.registers.tensor_registers import (
    INSTRUCTION_WORDS,
    TENSOR_ADDRESS_BITS,
    TENSOR_ID,
    TENSOR_MAP_VERSION,
    TENSOR_REGISTERS,
    tensor_register,
)
from hw.arch.tensor_instructions import INSTRUCTION, Fault
from hw.array.unit_parameters import INSTRUCTIONS
from hw.emit.shared import shared
from hw.lib.axi import AxiLiteInterface, AxiLiteSignature
from hw.lib.component import Component
from hw.lib.fifo import Queue
from hw.lib.register_port import answer_reads, take_writes
from hw.tpu.tensor_config import TensorConfig
from hw.tpu.unit import TensorUnit

__all__ = ["TensorTop"]

_KEPT = ("INTERRUPT_ENABLE", *(f"INSTRUCTION_{word}" for word in range(INSTRUCTION_WORDS)))


class TensorTop(Component):
    """Tensor unit whose instructions come from AXI4-Lite registers; vectors have streams.

    Parameters
    ----------
    config : TensorConfig
    instructions : int
        Submitted instructions that may wait (`limits.INSTRUCTION_QUEUE`).

    Members
    -------
    host : AXI4-Lite subordinate port
        The registers of `hw.arch.registers.tensor_registers`.
    o_interrupt
        High while an interrupt that is enabled has its cause.
    i_weight, i_bias, i_host, o_host
        Streams, as of :class:`hw.tpu.unit.TensorUnit`. A reset by CONTROL withdraws what
        ``o_host`` offers.

    Raises
    ------
    BadInputError
        If a parameter lies outside its domain.
    """

    host: AxiLiteInterface
    o_interrupt: Signal
    i_weight: stream.Interface
    i_bias: stream.Interface
    i_host: stream.Interface
    o_host: stream.Interface

    def __init__(self, config: TensorConfig, *, instructions: int = INSTRUCTIONS.default) -> None:
        INSTRUCTIONS.require(instructions)
        self._config = config
        self._instructions = instructions
        self._unit = TensorUnit(config)
        self._streams = {
            name: member
            for name, member in self._unit.signature.members.items()
            if name in ("i_weight", "i_bias", "i_host", "o_host")
        }
        super().__init__(
            {
                "host": In(AxiLiteSignature(address_bits=TENSOR_ADDRESS_BITS)),
                "o_interrupt": Out(1),
                **self._streams,
            }
        )

    @property
    def instructions(self) -> int:
        """Submitted instructions that may wait."""
        return self._instructions

    def elaborate(self, platform: object) -> Module:
        m = Module()
        unit, reset = self._unit, Signal()
        queue = Queue(INSTRUCTION, depth=self._instructions)
        m.submodules.unit = shared(unit, reset=reset)
        m.submodules.queue = shared(queue, reset=reset)
        wiring.connect(m, queue.o_stream, unit.i_instruction)
        for name, member in self._streams.items():
            outer, inner = wiring.flipped(getattr(self, name)), getattr(unit, name)
            wiring.connect(m, *((outer, inner) if member.flow == In else (inner, outer)))

        kept = {name: Signal(tensor_register(name).layout.size, name=name) for name in _KEPT}
        causes: Any = Signal(tensor_register("INTERRUPT_STATUS").layout)
        submitted = Signal(32)
        # `idle` and `faulty` of the cycle before: an interrupt is caused by their rise.
        idle, was_idle, faulty, was_faulty = Signal(), Signal(init=1), Signal(), Signal()
        m.d.comb += [
            faulty.eq(unit.status.fault != Fault.NONE),
            idle.eq((unit.status.begun == submitted) & ~unit.busy & ~faulty),
            self.o_interrupt.eq((kept["INTERRUPT_ENABLE"] & causes.as_value()).any()),
            *(
                queue.i_stream.payload.as_value()
                .word_select(word, 32)
                .eq(kept[f"INSTRUCTION_{word}"])
                for word in range(INSTRUCTION_WORDS)
            ),
        ]
        m.d.sync += [was_idle.eq(idle | reset), was_faulty.eq(faulty & ~reset), reset.eq(0)]
        self._answer_reads(
            m,
            {**kept, "INTERRUPT_STATUS": causes, "SUBMITTED": submitted},
            idle=idle,
            full=~queue.i_stream.ready,
        )

        def control(word: Any, refused: Signal) -> None:
            with m.If(word.reset):
                m.d.sync += [reset.eq(1), submitted.eq(0)]

        def clear(word: Any, refused: Signal) -> None:
            m.d.sync += causes.eq(causes.as_value() & ~word.as_value())

        def submit(word: Any, refused: Signal) -> None:
            with m.If(word.submit):
                m.d.comb += [
                    refused.eq(~queue.i_stream.ready | faulty),
                    queue.i_stream.valid.eq(~refused),
                ]
                m.d.sync += submitted.eq(submitted + queue.i_stream.valid)

        take_writes(
            m,
            self.host,
            TENSOR_REGISTERS,
            kept,
            effects={"CONTROL": control, "INTERRUPT_STATUS": clear, "SUBMIT": submit},
            hold=reset,
        )
        # Assigned after the writes: an event wins over a clear in the same cycle.
        with m.If(idle & ~was_idle):
            m.d.sync += causes.done.eq(1)
        with m.If(faulty & ~was_faulty):
            m.d.sync += causes.fault.eq(1)
        return m

    def _answer_reads(
        self,
        m: Module,
        values: Mapping[str, ValueLike],
        *,
        idle: Value,
        full: Value,
    ) -> None:
        unit, sizes = self._unit, self._config.sizes
        geometry: dict[int | str, Any] = {"rows": sizes.rows, "columns": sizes.columns}
        status: Any = Signal(tensor_register("STATUS").layout)
        m.d.comb += [
            status.fault.eq(unit.status.fault),
            status.idle.eq(idle),
            status.full.eq(full),
        ]
        answer_reads(
            m,
            self.host,
            TENSOR_REGISTERS,
            {
                **values,
                "ID": Const(TENSOR_ID, 32),
                "VERSION": Const(TENSOR_MAP_VERSION, 32),
                "GEOMETRY": tensor_register("GEOMETRY").layout.const(geometry),
                "BUFFER": Const(sizes.buffer_rows, 32),
                "ACCUMULATORS": Const(sizes.accumulator_rows, 32),
                "CONTROL": Const(0, 32),
                "STATUS": status,
                "SUBMIT": Const(0, 32),
                "BEGUN": unit.status.begun,
                "ACTIVE": unit.counters.active,
                "WEIGHT_STALL": unit.counters.weight_stall,
                "WEIGHT_SHIFT": unit.counters.weight_shift,
                "NON_MATRIX": unit.counters.non_matrix,
            },
            effects={},
        )
