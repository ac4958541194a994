"""Front end of a TMA unit: its registers behind AXI4-Lite."""

import functools
from collections.abc import Callable
from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arch import limits
from hw.arch.registers.tma_registers import (
    TMA_ADDRESS_BITS,
    TMA_ID,
    TMA_MAP_VERSION,
    TMA_REGISTERS,
    tma_register,
)
from hw.arch.tma_sizes import TmaSizes
from hw.lib.axi import AxiLiteInterface, AxiLiteSignature
from hw.lib.component import Component
from hw.lib.register_port import answer_reads, take_writes
from hw.tma.barriers.barrier_layouts import (
    barrier_answer_layout,
    barrier_operation_layout,
    barrier_result_layout,
    barrier_wait_layout,
)
from hw.tma.host_port.chain_loops import chain_loop_layout
from hw.tma.host_port.chain_registers import CHAIN_KEPT, stage_chain, write_loop
from hw.tma.host_port.command_chain import chain_config_layout
from hw.tma.host_port.traffic_counters import TRAFFIC_COUNTS, traffic_layout
from hw.tma.scratchpads.local_memory import BANK_LIMITS, routed_operation_layout
from hw.tma.standalone.unit_commands import (
    GROUP_BITS,
    LOCAL_BITS,
    TmaOperation,
    completion_layout,
    unit_command_layout,
)

__all__ = ["TmaFrontEnd"]

#: Registers that are kept for a command, an operation or a wait, written later.
_KEPT = (
    "INTERRUPT_ENABLE",
    "DESCRIPTOR_LO",
    "DESCRIPTOR_HI",
    *(f"COORDINATE_{number}" for number in range(5)),
    "LOCAL",
    "SIGNAL",
    "WAIT_CYCLES",
)
#: Registers that are kept, too, but refuse a value that has more bits.
_COUNTS = ("REDUCTION", "OFFSETS", "BARRIER_ARRIVALS", "BARRIER_BYTES")


class TmaFrontEnd(Component):
    """Front end: the registers of `hw.arch.registers.tma_registers`. See docs/tma_unit.md.

    Parameters
    ----------
    sizes : TmaSizes
        Parameters of the unit, which the host reads.

    Members
    -------
    host : AXI4-Lite subordinate port
    o_interrupt
        High while an interrupt that is enabled has its cause.
    o_commands : stream of :func:`hw.tma.standalone.unit_commands.unit_command_layout`
        Valid only in a cycle in which it is ready.
    i_completions : stream of :data:`hw.tma.standalone.unit_commands.completion_layout`
    i_idle, i_aborting, i_done, i_failed
        As the outputs of :class:`hw.tma.host_port.command_slots.CommandSlots`.
    o_abort, o_clear
        The host writes CONTROL.
    o_submitted, o_loop, o_chain, i_chain_busy, i_chain_steps
        As the opposite members of :class:`hw.tma.host_port.command_chain.CommandChain`.
    o_operations, i_answer, o_waits, i_results
        A port and a waiter of the bank of barriers.
    o_wait_pad
        With several scratchpads: that of the wait under way.
    i_groups_read, i_groups_stored, i_counts
        What the host reads.
    """

    host: AxiLiteInterface
    o_interrupt: Signal
    o_commands: stream.Interface
    i_completions: stream.Interface
    i_idle: Signal
    i_aborting: Signal
    i_done: Signal
    i_failed: Signal
    o_abort: Signal
    o_clear: Signal
    o_submitted: Signal
    o_loop: Any
    o_chain: Any
    i_chain_busy: Signal
    i_chain_steps: Signal
    o_operations: stream.Interface
    i_answer: Any
    o_waits: stream.Interface
    o_wait_pad: Signal
    i_results: stream.Interface
    i_groups_read: Signal
    i_groups_stored: Signal
    i_counts: Any

    def __init__(self, sizes: TmaSizes) -> None:
        self._sizes = sizes
        self._geometry: dict[int | str, Any] = {
            "width_bytes": sizes.width_bits // 8,
            "descriptors": sizes.descriptors,
            "barriers": sizes.barriers,
        }
        self._kept: dict[str, Signal] = {
            name: Signal(tma_register(name).layout.size, name=name)
            for name in _KEPT + _COUNTS + CHAIN_KEPT
        }
        self._mask = Signal(limits.SCRATCHPADS.high, init=1)
        self._source = Signal(range(limits.SCRATCHPADS.high))
        self._causes: Any = Signal(tma_register("INTERRUPT_STATUS").layout)
        answers = barrier_answer_layout(**BANK_LIMITS)
        # The last answer and the last result, each with whether there is one.
        self._answer: Any = Signal(data.StructLayout({"valid": 1, "payload": answers}))
        self._result: Any = Signal(
            data.StructLayout({"valid": 1, "payload": barrier_result_layout})
        )
        self._waiting = Signal()
        several = sizes.scratchpads > 1
        commands = unit_command_layout(sizes.address_bits, sizes.scratchpads)
        operations = (
            routed_operation_layout() if several else barrier_operation_layout(**BANK_LIMITS)
        )
        super().__init__(
            {
                "host": In(AxiLiteSignature(address_bits=TMA_ADDRESS_BITS)),
                "o_interrupt": Out(1),
                "o_commands": Out(stream.Signature(commands)),
                "i_completions": In(stream.Signature(completion_layout)),
                "i_idle": In(1),
                "i_aborting": In(1),
                "i_done": In(1),
                "i_failed": In(1),
                "o_abort": Out(1),
                "o_clear": Out(1),
                "o_submitted": Out(1),
                "o_loop": Out(
                    wiring.Signature({"valid": Out(1), "payload": Out(chain_loop_layout)})
                ),
                "o_chain": Out(chain_config_layout),
                "i_chain_busy": In(1),
                "i_chain_steps": In(32),
                "o_operations": Out(stream.Signature(operations)),
                "i_answer": In(wiring.Signature({"valid": Out(1), "payload": Out(answers)})),
                "o_waits": Out(stream.Signature(barrier_wait_layout)),
                **({"o_wait_pad": Out(range(limits.SCRATCHPADS.high))} if several else {}),
                "i_results": In(stream.Signature(barrier_result_layout)),
                "i_groups_read": In(GROUP_BITS),
                "i_groups_stored": In(GROUP_BITS),
                "i_counts": In(traffic_layout),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        causes = self._causes
        m.d.comb += [
            self.o_interrupt.eq((self._kept["INTERRUPT_ENABLE"] & causes.as_value()).any()),
            self.i_results.ready.eq(1),
        ]
        self._stage_command(m)
        self._answer_reads(m)
        self._take_writes(m)
        # What happens is assigned after writes and wins over a clear in the same cycle.
        with m.If(self.i_done):
            m.d.sync += causes.done.eq(1)
        with m.If(self.i_failed):
            m.d.sync += causes.error.eq(1)
        with m.If(self.i_answer.valid):
            m.d.sync += [
                self._answer.valid.eq(1),
                self._answer.payload.eq(self.i_answer.payload),
            ]
        with m.If(self.o_waits.valid & self.o_waits.ready):
            m.d.sync += self.o_waits.valid.eq(0)
        with m.If(self.i_results.valid):
            m.d.sync += [
                causes.wait.eq(1),
                self._waiting.eq(0),
                self._result.valid.eq(1),
                self._result.payload.eq(self.i_results.payload),
            ]
        return m

    def _stage_command(self, m: Module) -> None:
        """The command, but for its operation and identifier, as the registers have it."""
        kept = self._kept
        command: Any = self.o_commands.payload
        signal: Any = data.View(tma_register("SIGNAL").layout, kept["SIGNAL"])
        pointer = Cat(kept["DESCRIPTOR_LO"], kept["DESCRIPTOR_HI"])
        local = kept["LOCAL"]
        # An address that is too long ends on ones, so that the unit refuses it as misaligned.
        m.d.comb += [
            *stage_chain(self.o_chain, kept),
            command.descriptor.eq(pointer | pointer[self._sizes.address_bits :].any()),
            command.local.eq(local | local[LOCAL_BITS:].any()),
            command.offsets.eq(kept["OFFSETS"]),
            command.reduction.eq(kept["REDUCTION"]),
            command.barrier.eq(signal.barrier),
            command.signals.eq(signal.signals),
            *(
                command.coordinates[number].eq(kept[f"COORDINATE_{number}"].as_signed())
                for number in range(5)
            ),
        ]
        if self._sizes.scratchpads > 1:
            m.d.comb += [
                command.destinations.eq(self._mask),
                command.source.eq(self._source),
            ]

    def _values(self, m: Module) -> dict[str, Any]:
        """Value of each register that a read does not change."""
        status: Any = Signal(tma_register("STATUS").layout)
        answer: Any = Signal(tma_register("BARRIER_ANSWER").layout)
        result: Any = Signal(tma_register("WAIT_RESULT").layout)
        completion: Any = Signal(tma_register("COMPLETION").layout)
        places: Any = Signal(tma_register("DESTINATIONS").layout)
        known, found = self._answer.payload, self._result.payload
        end: Any = self.i_completions.payload
        m.d.comb += [
            places.mask.eq(self._mask),
            places.source.eq(self._source),
            places.scratchpads.eq(self._sizes.scratchpads),
            status.idle.eq(self.i_idle),
            status.full.eq(~self.o_commands.ready),
            status.aborting.eq(self.i_aborting),
            status.completions.eq(self.i_completions.valid),
            answer.valid.eq(self._answer.valid),
            answer.phase.eq(known.phase),
            answer.flag.eq(known.flag),
            answer.error.eq(known.error),
            result.valid.eq(self._result.valid),
            result.passed.eq(found.passed),
            result.flag.eq(found.flag),
            result.timed_out.eq(found.timed_out),
            result.error.eq(found.error),
        ]
        with m.If(self.i_completions.valid):
            m.d.comb += [
                completion.id.eq(end.id),
                completion.code.eq(end.code),
                completion.valid.eq(1),
            ]
        return {
            **{name: kept & tma_register(name).mask for name, kept in self._kept.items()},
            "ID": Const(TMA_ID, 32),
            "VERSION": Const(TMA_MAP_VERSION, 32),
            "GEOMETRY": tma_register("GEOMETRY").layout.const(self._geometry),
            "SCRATCHPAD": Const(self._sizes.scratchpad_bytes, 32),
            "CONTROL": Const(0, 32),
            "STATUS": status,
            "INTERRUPT_STATUS": self._causes,
            "SUBMIT": Const(0, 32),
            "DESTINATIONS": places,
            "COMPLETION": completion,
            "GROUPS": Cat(self.i_groups_read, self.i_groups_stored),
            "BARRIER_OPERATION": Const(0, 32),
            "BARRIER_ANSWER": answer,
            "BARRIER_PENDING": known.pending,
            "BARRIER_TX": known.tx,
            "WAIT": Const(0, 32),
            "CHAIN_LOOP": Const(0, 32),
            "CHAIN_STATUS": self.i_chain_busy,
            "CHAIN_STEPS": self.i_chain_steps,
            "WAIT_RESULT": result,
        }

    def _answer_reads(self, m: Module) -> None:
        values = self._values(m)
        effects: dict[str, Callable[[], None]] = {}

        def hold(high: Signal, value: Value) -> None:
            m.d.sync += high.eq(value)

        def take() -> None:
            m.d.comb += self.i_completions.ready.eq(1)

        for name in TRAFFIC_COUNTS:
            count = self.i_counts[name]
            high = Signal(len(count) - 32, name=f"{name}_HI")
            values |= {f"{name}_LO": count[:32], f"{name}_HI": high}
            effects[f"{name}_LO"] = functools.partial(hold, high, count[32:])
        effects["COMPLETION"] = take
        answer_reads(m, self.host, TMA_REGISTERS, values, effects=effects)

    def _take_writes(self, m: Module) -> None:
        command: Any = self.o_commands.payload
        operation: Any = self.o_operations.payload
        wait: Any = self.o_waits.payload
        kept = self._kept

        def control(word: Any, refused: Signal) -> None:
            m.d.comb += [self.o_abort.eq(word.abort), self.o_clear.eq(word.clear)]

        def clear(word: Any, refused: Signal) -> None:
            causes = self._causes.as_value()
            m.d.sync += self._causes.eq(causes & ~word.as_value())

        def submit(word: Any, refused: Signal) -> None:
            chain = word.operation == TmaOperation.CHAIN.value
            m.d.comb += [
                refused.eq(~self.o_commands.ready | (chain & self.i_chain_busy)),
                self.o_commands.valid.eq(~refused),
                self.o_submitted.eq(~refused & chain),
                command.operation.eq(word.operation),
                command.id.eq(word.id),
            ]

        def keep(name: str, word: Any, refused: Signal) -> None:
            written = self.host.wdata
            excess = written[len(word.as_value()) :].any()
            with m.If(excess | (self.i_chain_busy if name in CHAIN_KEPT else Const(0))):
                m.d.comb += refused.eq(1)
            with m.Else():
                m.d.sync += kept[name].eq(written)

        scratchpads = self._sizes.scratchpads

        def place(word: Any, refused: Signal) -> None:
            if scratchpads == 1:
                m.d.comb += refused.eq(1)
            else:
                m.d.sync += [
                    self._mask.eq(word.mask),
                    self._source.eq(word.source),
                ]

        def operate(word: Any, refused: Signal) -> None:
            with m.If(word.scratchpad >= scratchpads):
                m.d.comb += refused.eq(1)
            with m.Else():
                m.d.sync += [
                    self._answer.valid.eq(0),
                    self.o_operations.valid.eq(1),
                    operation.operation.eq(word.operation),
                    operation.barrier.eq(word.barrier),
                    operation.failed.eq(word.failed),
                    operation.arrivals.eq(kept["BARRIER_ARRIVALS"]),
                    operation.bytes.eq(kept["BARRIER_BYTES"]),
                ]
                if scratchpads > 1:
                    m.d.sync += operation.scratchpad.eq(word.scratchpad)

        def begin(word: Any, refused: Signal) -> None:
            with m.If(self._waiting | (word.scratchpad >= scratchpads)):
                m.d.comb += refused.eq(1)
            with m.Else():
                m.d.sync += [
                    self._waiting.eq(1),
                    self._result.valid.eq(0),
                    self.o_waits.valid.eq(1),
                    wait.barrier.eq(word.barrier),
                    wait.parity.eq(word.parity),
                    wait.cycles.eq(kept["WAIT_CYCLES"]),
                ]
                if scratchpads > 1:
                    m.d.sync += self.o_wait_pad.eq(word.scratchpad)

        with m.If(self.o_operations.valid & self.o_operations.ready):
            m.d.sync += self.o_operations.valid.eq(0)
        take_writes(
            m,
            self.host,
            TMA_REGISTERS,
            {name: kept[name] for name in _KEPT},
            effects={
                "CONTROL": control,
                "INTERRUPT_STATUS": clear,
                "SUBMIT": submit,
                **{name: functools.partial(keep, name) for name in _COUNTS + CHAIN_KEPT},
                "DESTINATIONS": place,
                "CHAIN_LOOP": functools.partial(
                    write_loop, m, self.o_loop, self.i_chain_busy, kept["CHAIN_STEP"]
                ),
                "BARRIER_OPERATION": operate,
                "WAIT": begin,
            },
            # An operation is answered within a few cycles; the next write waits for its answer, so
            # that it does not become that of the next operation.
            hold=self.o_operations.valid | self.i_answer.valid,
        )
