"""Command chain: a loop nest that gives commands of one kind to a TMA unit, without the host."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arch.error_codes import BarrierError, TmaError
from hw.arch.limits import BARRIER_ARRIVALS, BARRIER_TX_BYTES, BARRIERS
from hw.arch.registers.tma_registers import tma_register
from hw.emit.shared import shared
from hw.lib.component import Component
from hw.tma.barriers.barrier_layouts import (
    BarrierOperation,
    barrier_answer_layout,
    barrier_operation_layout,
    barrier_result_layout,
    barrier_wait_layout,
)
from hw.tma.host_port.chain_loops import ChainLoops, chain_loop_layout
from hw.tma.standalone.unit_commands import (
    LOCAL_BITS,
    TmaOperation,
    completion_layout,
    unit_command_layout,
)

__all__ = ["CommandChain", "chain_config_layout"]

_MOST = {"arrivals": BARRIER_ARRIVALS.high, "tx_bytes": BARRIER_TX_BYTES.high}
_SLOT_BITS = tma_register("CHAIN_RING").layout["slots"].width
_LOADS = (TmaOperation.LOAD, TmaOperation.GATHER4)
_STORES = (TmaOperation.STORE, TmaOperation.SCATTER4, TmaOperation.REDUCE)
#: Steps in flight; the unit holds fewer commands.
_FLIGHT_BITS = 16

#: What the chain's other registers have.
chain_config_layout = data.StructLayout(
    {
        "operation": TmaOperation,
        "slots": _SLOT_BITS,
        "empty": range(BARRIERS.high),
        "pitch": LOCAL_BITS,
        "bytes": range(BARRIER_TX_BYTES.high + 1),
    }
)


class _State(enum.Enum):
    IDLE = 0
    CHECK = 1
    WAIT = 2
    RESULT = 3
    EXPECT = 4
    ISSUE = 5
    FINISH = 6
    END = 7
    DRAIN = 8


class CommandChain(Component):
    """Command chain: takes the operation CHAIN, and passes all other commands on.

    Each step is a command for the next box of the loop nest and the next slot of a ring in the
    scratchpad. A load waits for the slot's empty barrier, expects its bytes at the full barrier and
    leaves; a store waits for the full barrier, and arrives at the empty one when it has completed.
    Without barriers a step takes a cycle while the unit takes commands. Other commands go first.

    Parameters
    ----------
    address_bits : int
        Width of a byte address of memory.
    barriers : int
        Barriers of the bank.
    scratchpads : int
        Those of the unit. A ring with barriers is in the first one.

    Members
    -------
    i_commands, o_commands : streams of :func:`hw.tma.standalone.unit_commands.unit_command_layout`
    i_completions, o_completions : streams of
            :data:`hw.tma.standalone.unit_commands.completion_layout`
        Completions of commands passed on, and one of a chain: its first error, or 0. The consumer
        is always ready.
    o_operations, i_answer, o_waits, i_results
        A port and a waiter of the bank of barriers.
    i_loop : :data:`chain_loop_layout` with ``valid``
        One loop changes.
    config : :data:`chain_config_layout`
        Constant while the chain is busy, as the loops are.
    i_submitted
        CHAIN has been given to what precedes `i_commands`.
    i_reset
        Nothing is left of the unit's commands: an abort has ended them.
    o_busy
        A chain is submitted or under way.
    o_steps
        Steps of the last chain that have completed.
    """

    i_commands: stream.Interface
    o_commands: stream.Interface
    i_completions: stream.Interface
    o_completions: stream.Interface
    o_operations: stream.Interface
    i_answer: Any
    o_waits: stream.Interface
    i_results: stream.Interface
    i_loop: Any
    config: Any
    i_submitted: Signal
    i_reset: Signal
    o_busy: Signal
    o_steps: Signal

    def __init__(self, *, address_bits: int, barriers: int, scratchpads: int = 1) -> None:
        self._barriers = barriers
        self._scratchpads = scratchpads
        layout = unit_command_layout(address_bits, scratchpads)
        commands = stream.Signature(layout)
        completions = stream.Signature(completion_layout)
        answers = barrier_answer_layout(**_MOST)
        super().__init__(
            {
                "i_commands": In(commands),
                "o_commands": Out(commands),
                "i_completions": In(completions),
                "o_completions": Out(completions),
                "o_operations": Out(stream.Signature(barrier_operation_layout(**_MOST))),
                "i_answer": In(wiring.Signature({"valid": Out(1), "payload": Out(answers)})),
                "o_waits": Out(stream.Signature(barrier_wait_layout)),
                "i_results": In(stream.Signature(barrier_result_layout)),
                "i_loop": In(
                    wiring.Signature({"valid": Out(1), "payload": Out(chain_loop_layout)})
                ),
                "config": In(chain_config_layout),
                "i_submitted": In(1),
                "i_reset": In(1),
                "o_busy": Out(1),
                "o_steps": Out(32),
            }
        )
        self._state = Signal(_State)
        self._template: Any = Signal(layout)
        self._slot = Signal(_SLOT_BITS)
        self._lap = Signal()  # parity of the turns of the ring
        self._place = Signal(LOCAL_BITS + _SLOT_BITS)
        self._code = Signal(8)
        self._flying = Signal(_FLIGHT_BITS)
        # Arrivals that completed stores owe, and the slot of the first of them.
        self._owed = Signal(_FLIGHT_BITS)
        self._freed = Signal(_SLOT_BITS)
        # Operations at the bank without an answer: the bank takes one a cycle later.
        self._asked = Signal()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        state, template = self._state, self._template
        queued = Signal()
        loads, stores, signals, issued = Signal(), Signal(), Signal(), Signal()
        kind = self.config.operation
        m.d.comb += [
            loads.eq(kind.as_value().matches(*(each.value for each in _LOADS))),
            stores.eq(kind.as_value().matches(*(each.value for each in _STORES))),
            signals.eq(template.signals & (loads | stores)),
            self.o_busy.eq(queued | (state != _State.IDLE)),
        ]
        loops = ChainLoops()
        m.submodules.loops = shared(loops)
        m.d.comb += [
            loops.i_loop.valid.eq(self.i_loop.valid),
            loops.i_loop.payload.eq(self.i_loop.payload),
            loops.i_base.eq(template.coordinates),
            loops.i_begin.eq(state == _State.CHECK),
            loops.i_next.eq(issued),
        ]
        with m.If(self.i_submitted):
            m.d.sync += queued.eq(1)
        taken = self._pass_commands(m, loads & signals, loops.o_point)
        m.d.comb += issued.eq(taken & (state == _State.ISSUE))
        ended = self._pass_completions(m, stores & signals, issued)
        self._synchronise(m, loads, signals)
        self._turn(m, issued)

        begins, failed = Signal(), Signal()
        m.d.comb += [
            begins.eq((state == _State.IDLE) & self.i_commands.valid & self._is_chain()),
            failed.eq(self._code != 0),
        ]
        with m.Switch(state):
            with m.Case(_State.IDLE):
                with m.If(begins):
                    m.d.sync += [
                        state.eq(_State.CHECK),
                        template.eq(self.i_commands.payload),
                        queued.eq(0),
                        self._code.eq(0),
                        self.o_steps.eq(0),
                    ]
            with m.Case(_State.CHECK):
                known = loads | stores | (kind == TmaOperation.PREFETCH_BOX)
                self._check(m, known, signals, loops.o_broken)
            with m.Case(_State.ISSUE):
                with m.If(issued):
                    following = Mux(signals, _State.WAIT.value, _State.ISSUE.value)
                    m.d.sync += state.eq(Mux(loops.o_last | failed, _State.FINISH.value, following))
            with m.Case(_State.FINISH):
                with m.If((self._flying == 0) & (self._owed == 0) & ~self._asked):
                    m.d.sync += state.eq(_State.END)
            with m.Case(_State.END):
                with m.If(ended):
                    m.d.sync += state.eq(_State.IDLE)
        # After a failure, no step is begun; one whose bytes are expected leaves.
        with m.If(failed & (state == _State.WAIT)):
            m.d.sync += state.eq(_State.FINISH)
        with m.If(self.i_reset):
            begun = (state == _State.WAIT) & self.o_waits.valid & self.o_waits.ready
            under_way = (state == _State.RESULT) | (state == _State.DRAIN)
            waits = begun | (under_way & ~self.i_results.valid)
            m.d.sync += [
                state.eq(Mux(waits, _State.DRAIN.value, _State.IDLE.value)),
                queued.eq(0),
                self._flying.eq(0),
                self._owed.eq(0),
            ]
        return m

    def _is_chain(self) -> Value:
        chain: Value = self.i_commands.payload.operation == TmaOperation.CHAIN
        return chain

    def _pass_commands(self, m: Module, loading: Value, point: Any) -> Signal:
        """Give the commands of others, and in between those of the chain; whether one is taken."""
        given, target = self.i_commands, self.o_commands
        command: Any = target.payload
        mine, offered = Signal(), Signal()  # offered: it must stay until it is taken
        other = Signal()
        taken = Signal()
        m.d.comb += [
            other.eq(given.valid & ~self._is_chain()),
            mine.eq((self._state == _State.ISSUE) & (offered | ~other)),
            target.valid.eq(mine | other),
            taken.eq(mine & target.ready),
            given.ready.eq(
                Mux(other, target.ready & ~mine, self._state == _State.IDLE) & given.valid
            ),
        ]
        m.d.sync += offered.eq(mine & ~target.ready)
        with m.If(mine):
            place = self._place
            m.d.comb += [
                command.eq(self._template),
                command.operation.eq(self.config.operation),
                command.coordinates.eq(point),
                # A place that is too long ends on ones, so that the unit refuses it.
                command.local.eq(place[:LOCAL_BITS] | place[LOCAL_BITS:].any()),
                command.barrier.eq(self._template.barrier + self._slot),
                command.signals.eq(loading),
                command.id.eq(-1),
            ]
        with m.Else():
            # The host's identifiers are numbers of slots, which are lower.
            m.d.comb += command.eq(given.payload)
        return taken

    def _pass_completions(self, m: Module, owes: Value, issued: Signal) -> Signal:
        """Take the completions of steps, pass the others; whether the chain's own has left."""
        given, target = self.i_completions, self.o_completions
        end, out = given.payload, target.payload
        mine, own = Signal(), Signal()
        m.d.comb += [
            mine.eq(given.valid & end.id.all()),
            own.eq((self._state == _State.END) & ~(given.valid & ~mine)),
            given.ready.eq(1),
            target.valid.eq(own | (given.valid & ~mine)),
            out.eq(end),
        ]
        with m.If(own):
            m.d.comb += [out.id.eq(self._template.id), out.code.eq(self._code)]
        with m.If(mine):
            m.d.sync += self.o_steps.eq(self.o_steps + 1)
            with m.If(self._code == 0):
                m.d.sync += self._code.eq(end.code)
        arrives = (
            self.o_operations.valid
            & self.o_operations.ready
            & (self.o_operations.payload.operation == BarrierOperation.ARRIVE)
        )
        m.d.sync += [
            self._flying.eq(self._flying + issued - mine),
            self._owed.eq(self._owed + (mine & owes) - arrives),
        ]
        with m.If(arrives):
            m.d.sync += self._freed.eq(Mux(self._freed == self.config.slots, 0, self._freed + 1))
        return own

    def _synchronise(self, m: Module, loads: Signal, signals: Signal) -> None:
        """Wait for the slot, and expect the bytes of a load or arrive for a store."""
        state, config = self._state, self.config
        wait, operation = self.o_waits.payload, self.o_operations.payload
        result, answer = self.i_results.payload, self.i_answer.payload
        full, empty = self._template.barrier, config.empty
        expects = state == _State.EXPECT
        m.d.comb += [
            self.o_waits.valid.eq((state == _State.WAIT) & (self._code == 0)),
            wait.barrier.eq(Mux(loads, empty, full) + self._slot),
            # At its beginning a ring is empty: the phase before the first counts as complete.
            wait.parity.eq(self._lap ^ loads),
            wait.cycles.eq(-1),
            self.i_results.ready.eq(1),
            self.o_operations.valid.eq(expects | (self._owed != 0)),
            operation.operation.eq(
                Mux(
                    expects,
                    BarrierOperation.ARRIVE_EXPECT.value,
                    BarrierOperation.ARRIVE.value,
                )
            ),
            operation.barrier.eq(Mux(expects, full + self._slot, empty + self._freed)),
            operation.arrivals.eq(1),
            operation.bytes.eq(config.bytes),
        ]
        m.d.sync += self._asked.eq(self.o_operations.valid & self.o_operations.ready)
        with m.If(self.i_answer.valid & (answer.error != BarrierError.NONE) & (self._code == 0)):
            m.d.sync += self._code.eq(answer.error)
        with m.If((state == _State.WAIT) & (self._code == 0) & self.o_waits.ready):
            m.d.sync += state.eq(_State.RESULT)
        with m.If((state == _State.RESULT) & self.i_results.valid):
            m.d.sync += state.eq(Mux(loads, _State.EXPECT.value, _State.ISSUE.value))
            # A wait that has timed out begins anew.
            with m.If(result.timed_out):
                m.d.sync += state.eq(_State.WAIT)
            with m.If((result.error != BarrierError.NONE) | result.flag):
                code = Mux(result.flag, TmaError.FLAG.value, result.error.as_value())
                m.d.sync += [state.eq(_State.FINISH), self._code.eq(code)]
        with m.If(expects & self.o_operations.ready):
            m.d.sync += state.eq(_State.ISSUE)
        with m.If((state == _State.DRAIN) & self.i_results.valid):
            m.d.sync += state.eq(_State.IDLE)

    def _check(self, m: Module, known: Value, signals: Signal, broken: Signal) -> None:
        """Refuse a chain that breaks a rule, before its first step."""
        astray = [broken]
        for first in (self._template.barrier, self.config.empty):
            astray.append(signals & (first + self.config.slots >= self._barriers))
        code = Mux(
            ~known, TmaError.OPERATION.value, Mux(Cat(astray).any(), TmaError.CHAIN.value, 0)
        )
        following = Mux(signals, _State.WAIT.value, _State.ISSUE.value)
        m.d.sync += [
            self._code.eq(code),
            self._state.eq(Mux(code != 0, _State.END.value, following)),
            self._place.eq(self._template.local),
            self._slot.eq(0),
            self._freed.eq(0),
            self._lap.eq(0),
        ]

    def _turn(self, m: Module, issued: Signal) -> None:
        """To the next slot of the ring."""
        with m.If(issued):
            turns = self._slot == self.config.slots
            m.d.sync += [
                self._slot.eq(Mux(turns, 0, self._slot + 1)),
                self._lap.eq(self._lap ^ turns),
                self._place.eq(Mux(turns, self._template.local, self._place + self.config.pitch)),
            ]
