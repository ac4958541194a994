"""Pattern memory unit (PMU): scratchpad, slots with barriers, and four stream engines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.arch.counters import activity_layout, pmu_state_layout
from hw.arch.error_codes import UnitError
from hw.arch.launch import REPEAT_BITS
from hw.arch.limits import PMU_SLOTS
from hw.arch.words.pmu_word import IndexUse, TokenSource, pmu_layout
from hw.emit.shared import shared
from hw.lib.activity import count_activity
from hw.lib.barrier import Barrier, has_passed
from hw.lib.component import Component
from hw.lib.packet_filter import PacketFilter
from hw.lib.stream import ElasticBuffer, token_signature, vector_layout, vector_signature
from hw.pmu.address_generator import StreamEngine
from hw.pmu.banks import READ_LATENCY, Banks
from hw.pmu.index_reader import IndexReader
from hw.pmu.output import OutputPort

__all__ = ["Pmu"]

_WRITERS = (0, 1)
_READERS = (2, 3)
_BUFFERS = (0, 1)

_Engines = Sequence[StreamEngine]


class Pmu(Component):
    """Pattern memory unit: scratchpad with N-slot buffers, two write and two read engines.

    One vector written and one read per cycle, sustained; a vector enters an output's FIFO
    ``READ_LATENCY`` cycles after its read. See docs/pmu.md.

    Parameters
    ----------
    width_bits : int
        Bits of a vector.
    capacity_bytes : int
        Bytes of the scratchpad.
    slots : int
        Most slots of a buffer (`PMU_SLOTS`).

    Members
    -------
    i_stream : ``In(vector_signature(width_bits)).array(2)``
        Streams of W0 and of W1 (or of indices); ``last`` ends a packet for their filters.
    o_stream : ``Out(vector_signature(width_bits)).array(2)``
        Streams of the read engines R0 and R1.
    o_token : ``Out(token_signature()).array(2)``
        One token per event that the program names for that port.
    config : ``In(pmu_layout(...))``
        The program, a packed ``PmuProgram``; constant from ``i_clear`` on.
    i_last_iteration : ``In(REPEAT_BITS)``
        Iterations of the program less 1; constant from ``i_clear`` on.
    i_clear : ``In(1)``
        Discard everything but the stored elements, and start the program.
    i_run : ``In(1)``
        Engines step in this cycle.
    o_done : ``Out(4)``
        W0, W1, R0, R1: off, or all data moved and taken.
    o_error : ``Out(8)``
        A `UnitError`, or 0: a barrier was misused, or an index was out of range; sticky.
    o_counters : ``Out(activity_layout())``
        Cycles with ``i_run`` since ``i_clear``, by the unit's activity.
    o_state : ``Out(pmu_state_layout())``
        State of each engine, for the watchdog.

    Raises
    ------
    BadInputError
        If a parameter lies outside its domain, or the capacity does not hold a block.
    """

    i_stream: Sequence[stream.Interface]
    o_stream: Sequence[stream.Interface]
    o_token: Sequence[stream.Interface]
    config: data.View[data.StructLayout]
    i_last_iteration: Signal
    i_clear: Signal
    i_run: Signal
    o_done: Signal
    o_error: Signal
    o_counters: data.View[data.StructLayout]
    o_state: data.View[data.StructLayout]

    def __init__(self, *, width_bits: int, capacity_bytes: int, slots: int) -> None:
        PMU_SLOTS.require("PMU slots", slots)
        self._width_bits = width_bits
        self._slots = slots
        self._banks = Banks(width_bits=width_bits, capacity_bytes=capacity_bytes)
        self._capacity_bytes = capacity_bytes
        super().__init__(
            {
                "i_stream": In(vector_signature(width_bits)).array(2),
                "o_stream": Out(vector_signature(width_bits)).array(2),
                "o_token": Out(token_signature()).array(2),
                "config": In(pmu_layout(capacity_bytes=capacity_bytes, slots=slots)),
                "i_last_iteration": In(REPEAT_BITS),
                "i_clear": In(1),
                "i_run": In(1),
                "o_done": Out(4),
                "o_error": Out(8),
                "o_counters": Out(activity_layout()),
                "o_state": Out(pmu_state_layout()),
            }
        )

    def _empty_parity(self, lap: Value) -> Value:
        # In a writer's first lap the slot is empty: the wait passes at once.
        return ~lap

    def _full_parity(self, lap: Value) -> Value:
        return lap

    def elaborate(self, platform: object) -> Module:
        m = Module()
        banks = self._banks
        m.submodules.banks = shared(banks)
        accesses = Signal(4)  # of the banks, by each engine
        steps = Signal(4)  # their last access
        closing = Signal(4)
        engines = []
        for index, name in enumerate(self.o_state.shape().members):
            engine = StreamEngine(position_bits=banks.position_bits, slots=self._slots)
            m.submodules[str(name)] = shared(engine)
            m.d.comb += [
                engine.config.eq(self.config.engines[index]),
                engine.i_last_iteration.eq(self.i_last_iteration),
                engine.i_start.eq(self.i_clear),
                engine.i_next.eq(steps[index]),
            ]
            engines.append(engine)
        m.d.comb += closing.eq(steps & Cat(engine.o_closes for engine in engines))

        ready, misused = self._slots_ready(m, engines, closing)
        reported = self._tokens(m, engines, closing)
        inputs = self._inputs(m)
        reader = self._indices(m, engines, inputs[1], accesses)
        takes = [reader.o_write, C(0), C(0), reader.o_read]
        rooms, drained = self._outputs(m, engines, steps, reader.o_read & reader.o_outside)
        with m.If(misused):
            m.d.comb += self.o_error.eq(UnitError.PROGRAM)
        with m.Elif(reader.o_error):
            m.d.comb += self.o_error.eq(UnitError.INDEX)
        lacking = [taken & ~reader.o_valid for taken in takes]
        ports = [*(port.valid for port in inputs), *rooms]
        requests = [Signal(name=f"request_{name}") for name in self.o_state.shape().members]
        blocked = self._adding(m, requests[0] & takes[0], closing[0], reader.o_reads_on)
        for index, (engine, name) in enumerate(zip(engines, self.o_state.shape().members)):
            state = self.o_state[name]
            finished = engine.o_done & (drained[index - 2] if index in _READERS else 1)
            served = ports[index] & ~lacking[index]
            m.d.comb += [
                requests[index].eq(
                    (self.i_run & engine.o_valid & ready[index] & reported[index] & served)
                    & ~blocked[index]
                ),
                self.o_done[index].eq(finished),
                state.enabled.eq(self.config.engines[index].enable),
                state.done.eq(self.o_done[index]),
                state.slot.eq(engine.o_slot),
                state.lap.eq(engine.o_lap),
                state.entered.eq(ready[index]),
                state.port.eq(served),
                state.reported.eq(reported[index]),
            ]
        self._grant(m, requests, accesses)
        last = Cat(~taken | reader.o_last for taken in takes)
        m.d.comb += [steps.eq(accesses & last), inputs[0].ready.eq(steps[0])]
        self._access(m, engines, inputs, accesses, reader, takes)
        held = [
            ports[index] & ~lacking[index] & ~(ready[index] & reported[index])
            if index in _WRITERS
            else engine.o_done | (ready[index] & ~(reported[index] & ports[index]))
            for index, engine in enumerate(engines)
        ]
        with m.If(self.i_clear):
            m.d.sync += self.o_counters.eq(0)
        with m.Elif(self.i_run):
            waits, idle = (Cat(held) & ~self.o_done).any(), self.o_done.all()
            count_activity(m, self.o_counters, busy=accesses.any(), idle=idle, wait_room=waits)
        return m

    def _indices(
        self, m: Module, engines: _Engines, vectors: stream.Interface, accesses: Signal
    ) -> IndexReader:
        """Add the index reader."""
        reader = IndexReader(width_bits=self._width_bits, position_bits=self._banks.position_bits)
        m.submodules.index_reader = shared(reader)
        m.d.comb += [
            reader.config.eq(self.config.index),
            reader.i_clear.eq(self.i_clear),
            reader.i_stream.valid.eq(vectors.valid),
            reader.i_stream.payload.eq(vectors.payload),
            vectors.ready.eq(accesses[1] | reader.i_stream.ready),
            reader.i_write_access.eq(accesses[0]),
            reader.i_read_access.eq(accesses[3]),
            reader.i_write_position.eq(engines[0].o_position),
            reader.i_read_position.eq(engines[3].o_position),
            reader.i_write_ends.eq(engines[0].o_ends),
            reader.i_read_ends.eq(engines[3].o_ends),
            reader.i_write_plain.eq(self.config.engines[0].limited & ~engines[0].o_beyond),
        ]
        return reader

    def _adding(self, m: Module, request: Value, closing: Value, reads_on: Value) -> list[Value]:
        """Keep other accesses away from an add of W0; returns what blocks each engine.

        R0 waits for the end of R1's vector, which is assembled where R0's would be. An add reads
        the banks a cycle after its access and writes them in the cycle after that: no read may
        begin with it, no write in the next cycle, and no read of its slot before it has written.
        """
        adds = Signal(name="adds")
        added, settles = Signal(), Signal()
        m.d.comb += adds.eq(request & (self.config.index.use == IndexUse.SCATTER_ADD))
        m.d.sync += [added.eq(adds), settles.eq(adds & closing)]
        return [added, C(0), adds | settles | reads_on, adds | settles]

    def _grant(self, m: Module, requests: Sequence[Signal], accesses: Signal) -> None:
        """Alternate each memory port between its two engines when both can step."""
        for first, second in (_WRITERS, _READERS):
            favoured = Signal(name=f"favoured_{first}")
            m.d.comb += [
                accesses[first].eq(requests[first] & ~(requests[second] & favoured)),
                accesses[second].eq(requests[second] & ~(requests[first] & ~favoured)),
            ]
            with m.If(accesses[first] | accesses[second]):
                m.d.sync += favoured.eq(accesses[first])
            with m.If(self.i_clear):
                m.d.sync += favoured.eq(0)

    def _access(
        self,
        m: Module,
        engines: _Engines,
        inputs: Sequence[stream.Interface],
        accesses: Signal,
        reader: IndexReader,
        takes: Sequence[Value],
    ) -> None:
        """Pass the accesses to the scratchpad."""
        banks = self._banks
        m.d.comb += [
            banks.i_elements.eq(reader.o_pass),
            banks.i_write_elements.eq(takes[0] & reader.o_elements),
            banks.i_read_elements.eq(accesses[3] & takes[3] & reader.o_elements),
            banks.i_write.add.eq(takes[0] & (self.config.index.use == IndexUse.SCATTER_ADD)),
            banks.i_write.data.eq(Mux(accesses[1], inputs[1].payload.data, inputs[0].payload.data)),
        ]
        for valid, request, (first, second) in (
            (banks.i_write_valid, banks.i_write.request, _WRITERS),
            (banks.i_read_valid, banks.i_read, _READERS),
        ):
            outside = takes[first] & reader.o_outside
            m.d.comb += valid.eq((accesses[first] & ~outside) | accesses[second])
            chosen = {
                index: [
                    request.position.eq(
                        Mux(takes[index], reader.o_position, engines[index].o_position)
                    ),
                    request.element.eq(self.config.engines[index].element),
                    request.access.eq(self.config.engines[index].access),
                ]
                for index in (first, second)
            }
            m.d.comb += chosen[second]
            with m.If(~accesses[second]):
                m.d.comb += chosen[first]

    def _slots_ready(
        self, m: Module, engines: _Engines, closing: Signal
    ) -> tuple[list[Value], Value]:
        """Add the slots' barriers; returns whether each engine may access its slot, and misuse."""
        errors = []
        phases: dict[str, list[list[Signal]]] = {"empty": [], "full": []}
        for kind, arriving in (("empty", _READERS), ("full", _WRITERS)):
            for buffer in _BUFFERS:
                expected = Signal(2, name=f"{kind}_{buffer}_expected")
                members = [
                    self.config.engines[index].enable
                    & (self.config.engines[index].buffer == buffer)
                    for index in arriving
                ]
                m.d.comb += expected.eq(members[0] + members[1])
                row = []
                for slot in range(self._slots):
                    barrier = Barrier(arrivals=2, tx_bytes=0)
                    m.submodules[f"{kind}_{buffer}_{slot}"] = barrier
                    arrives = [
                        closing[index]
                        & (self.config.engines[index].buffer == buffer)
                        & (engines[index].o_slot == slot)
                        for index in arriving
                    ]
                    m.d.comb += [
                        barrier.i_init.eq(self.i_clear),
                        barrier.i_expected.eq(expected),
                        barrier.i_arrive.eq(arrives[0] + arrives[1]),
                    ]
                    row.append(barrier.o_phase)
                    errors.append(barrier.o_error)
                phases[kind].append(row)
        ready: list[Value] = []
        for index, engine in enumerate(engines):
            kind = "empty" if index in _WRITERS else "full"
            parity = self._empty_parity if index in _WRITERS else self._full_parity
            zero, one = (Cat(row).bit_select(engine.o_slot, 1) for row in phases[kind])
            phase = Mux(self.config.engines[index].buffer, one, zero)
            passed = Signal(name=f"slot_ready_{index}")
            m.d.comb += passed.eq(has_passed(phase, parity(engine.o_lap)))
            ready.append(passed)
        return ready, Cat(errors).any()

    def _tokens(self, m: Module, engines: _Engines, closing: Signal) -> list[Value]:
        """Add the token outputs; returns whether each engine's next step can be reported."""
        held: list[list[Value]] = [[] for _ in engines]
        for number in range(2):
            buffer = ElasticBuffer(0)
            m.submodules[f"token_{number}"] = shared(buffer)
            source = self.config.tokens[number]
            chosen = [source == TokenSource(index + 1) for index in range(4)]
            m.d.comb += [
                buffer.i_clear.eq(self.i_clear),
                buffer.i_stream.valid.eq((Cat(chosen) & closing).any()),
            ]
            connect(m, buffer.o_stream, flipped(self.o_token[number]))
            for index in range(4):
                held[index].append(chosen[index] & ~buffer.i_stream.ready)
        return [~(engine.o_closes & Cat(held[i]).any()) for i, engine in enumerate(engines)]

    def _inputs(self, m: Module) -> list[stream.Interface]:
        """Add the input ports; returns the streams of the write engines."""
        streams = []
        for index in _WRITERS:
            config = self.config.engines[index]
            accept = PacketFilter(width_bits=self._width_bits)
            m.submodules[f"filter_{index}"] = shared(accept)
            buffer = ElasticBuffer(vector_layout(self._width_bits))
            m.submodules[f"input_{index}"] = shared(buffer)
            connect(m, flipped(self.i_stream[index]), accept.i_stream)
            connect(m, accept.o_stream, buffer.i_stream)
            m.d.comb += [
                accept.modulus.eq(config.modulus),
                accept.index.eq(config.index),
                accept.i_clear.eq(self.i_clear),
                buffer.i_clear.eq(self.i_clear),
            ]
            streams.append(buffer.o_stream)
        return streams

    def _outputs(
        self, m: Module, engines: _Engines, steps: Signal, outside: Value
    ) -> tuple[list[Value], list[Value]]:
        """Add the output FIFOs; returns, per read engine, a free entry and emptiness."""
        tag = data.StructLayout({"valid": 2, "last": 1, "final": 1, "beyond": 1, "outside": 1})
        tags: list[Any] = [Signal(tag, name=f"tag_{stage}") for stage in range(READ_LATENCY + 1)]
        second = steps[_READERS[1]]
        m.d.comb += [
            tags[0].valid.eq(Cat(steps[index] for index in _READERS)),
            tags[0].last.eq(Mux(second, engines[3].o_last, engines[2].o_last)),
            tags[0].final.eq(Mux(second, engines[3].o_final, engines[2].o_final)),
            tags[0].beyond.eq(Mux(second, engines[3].o_beyond, engines[2].o_beyond)),
            tags[0].outside.eq(outside),
        ]
        for before, behind in zip(tags, tags[1:]):
            m.d.sync += behind.eq(before)
            with m.If(self.i_clear):
                m.d.sync += behind.valid.eq(0)
        arrived = tags[-1]
        rooms: list[Value] = []
        drained: list[Value] = []
        for number, index in enumerate(_READERS):
            config = self.config.engines[index]
            outside = arrived.outside if number else C(0)  # R0 takes no index
            output = OutputPort(width_bits=self._width_bits)
            m.submodules[f"output_{number}"] = shared(output)
            connect(m, output.o_stream, flipped(self.o_stream[number]))
            m.d.comb += [
                output.i_clear.eq(self.i_clear),
                output.i_reserve.eq(steps[index]),
                output.i_valid.eq(arrived.valid[number]),
                output.i_vector.data.eq(self._banks.o_read),
                output.i_vector.last.eq(arrived.last),
                output.i_vector.final.eq(arrived.final),
                output.i_replace.eq(arrived.beyond | outside),
                output.i_element.eq(config.element),
                output.i_constant.eq(Mux(outside, 0, config.constant)),
            ]
            rooms.append(output.o_room)
            drained.append(output.o_drained)
        return rooms, drained
