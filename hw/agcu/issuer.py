"""Command issuer of an AGCU: loop nests over boxes, throttled by credits of the destination."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from hw.arch.agcu import INDEX_BITS
from hw.arch.boxes.issuer_program import (
    ISSUER_LOOPS,
    ISSUER_PROGRAMS,
    MAX_TOKENS,
    MAX_WAITS,
    issuer_layout,
)
from hw.arch.descriptor import MAX_RANK
from hw.arch.launch import REPEAT_BITS
from hw.arch.limits import MAX_CREDITS
from hw.arch.loops import COUNT_BITS, STEP_BITS
from hw.emit.shared import shared
from hw.lib.component import Component
from hw.lib.loop_nest import CounterChain
from hw.tma.commands import command_layout

__all__ = ["CommandIssuer"]


class CommandIssuer(Component):
    """Command issuer: one TMA command per box, in the order of its loop nests, without the host.

    The programs of a list run one after the other, and the whole list in every iteration. The
    coordinates of a command take one cycle per loop, so commands are at least 7 cycles apart, also
    the first one of a program and the last one of the program before it.
    A command is issued only when all tokens it waits for are present, and takes them in that cycle.
    No other issuer may take tokens from the same port: an offered command would be withdrawn.

    Parameters
    ----------
    descriptors : int
        Descriptors of the TMA engine.
    token_ports : int
        Token ports of the AGCU.

    Members
    -------
    config : ``In(issuer_layout(...))``
        The list; constant from ``i_start`` on.
    i_last_iteration : ``In(REPEAT_BITS)``
        Iterations of the list less 1; constant from ``i_start`` on.
    i_start
        Start the list; one cycle.
    i_tokens : ``In(ArrayLayout(range(MAX_CREDITS + 1), token_ports))``
        Tokens waiting at each port.
    o_take : ``Out(ArrayLayout(range(MAX_TOKENS + 1), token_ports))``
        Tokens taken from each port in this cycle.
    i_index_valid, i_index
        Next index of the index stream, for programs that have an indexed dimension.
    o_index_take, o_index_drop
        The index is taken; the rest of its vector is dropped, after the last one of a program.
    o_command : stream of ``command_layout(descriptors)``
    o_waits
        The next command is ready except for its tokens or its index.
    o_done
        Every command has been issued, or the issuer is off.
    """

    config: data.View[data.ArrayLayout]
    i_last_iteration: Signal
    i_start: Signal
    i_tokens: data.View[data.ArrayLayout]
    o_take: data.View[data.ArrayLayout]
    i_index_valid: Signal
    i_index: Signal
    o_index_take: Signal
    o_index_drop: Signal
    o_command: stream.Interface
    o_waits: Signal
    o_done: Signal

    def __init__(self, *, descriptors: int, token_ports: int) -> None:
        self._descriptors = descriptors
        self._token_ports = token_ports
        layout = issuer_layout(descriptors=descriptors, token_ports=token_ports)
        super().__init__(
            {
                "config": In(layout),
                "i_last_iteration": In(REPEAT_BITS),
                "i_start": In(1),
                "i_tokens": In(data.ArrayLayout(range(MAX_CREDITS + 1), token_ports)),
                "o_take": Out(data.ArrayLayout(range(MAX_TOKENS + 1), token_ports)),
                "i_index_valid": In(1),
                "i_index": In(INDEX_BITS),
                "o_index_take": Out(1),
                "o_index_drop": Out(1),
                "o_command": Out(stream.Signature(command_layout(descriptors))),
                "o_waits": Out(1),
                "o_done": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        chain = CounterChain(loops=ISSUER_LOOPS, count_bits=COUNT_BITS, offset_bits=STEP_BITS)
        m.submodules.chain = shared(chain)
        program: Any = Signal(self.config.shape().elem_shape)
        begins, ends = self._choose(m, chain, program)

        # One loop per cycle: index × step, accumulated per dimension.
        point = Signal(data.ArrayLayout(signed(32), MAX_RANK))
        loop = Signal(range(ISSUER_LOOPS + 1))
        ready = Signal()
        moved = Signal(signed(32))
        step = Signal(signed(STEP_BITS))
        m.d.comb += [
            step.eq(program.chain.loops[loop].stride),
            moved.eq(chain.o_indices[loop] * step),
        ]
        with m.If(self.i_start | (chain.i_next & chain.o_valid)):
            m.d.sync += [loop.eq(0), ready.eq(0), point.eq(0)]
        with m.Elif(begins):
            # At the first step of a nest all indices are 0, so one loop needs no cycle.
            m.d.sync += loop.eq(1)
        with m.Elif(~chain.o_valid):
            m.d.sync += loop.eq(0)  # the first iterations are empty
        with m.Elif(~ready):
            m.d.sync += loop.eq(loop + 1)
            with m.Switch(program.dimensions[loop]):
                for dimension in range(MAX_RANK):
                    with m.Case(dimension):
                        m.d.sync += point[dimension].eq(point[dimension] + moved)
            with m.If(loop == ISSUER_LOOPS - 1):
                m.d.sync += ready.eq(1)

        granted = []
        for index in range(MAX_WAITS):
            wait = program.waits[index]
            granted.append(self.i_tokens[wait.port] >= wait.tokens)
        command = self.o_command
        granted.append((program.index == 0) | self.i_index_valid)
        indexed = Signal()  # the program has taken an index
        m.d.comb += [
            self.o_index_take.eq(chain.i_next & (program.index != 0)),
            command.payload.index.eq(program.index),
            # Token counts only grow until this issuer takes them, so an offer is not withdrawn.
            command.valid.eq(ready & Cat(*granted).all()),
            self.o_waits.eq(ready & ~Cat(*granted).all()),
            command.payload.descriptor.eq(program.descriptor),
            chain.i_next.eq(command.valid & command.ready),
        ]
        for dimension in range(MAX_RANK):
            with m.If((program.index == dimension) & (program.index != 0)):
                m.d.comb += command.payload.coordinates[dimension].eq(self.i_index)
            with m.Else():
                m.d.comb += command.payload.coordinates[dimension].eq(point[dimension])
        with m.If(self.o_index_take):
            m.d.sync += indexed.eq(1)
        with m.Elif(self.o_index_drop):
            m.d.sync += indexed.eq(0)
        m.d.comb += self.o_index_drop.eq(ends & indexed)
        with m.If(chain.i_next):
            for index in range(MAX_WAITS):
                wait = program.waits[index]
                with m.Switch(wait.port):
                    for port in range(self._token_ports):
                        with m.Case(port):
                            with m.If(wait.tokens != 0):
                                m.d.comb += self.o_take[port].eq(wait.tokens)
        return m

    def _choose(self, m: Module, chain: CounterChain, program: Any) -> tuple[Signal, Signal]:
        """Run a chain on one program of the list after the other.

        Returns
        -------
        begins, ends : Signal
            Another program begins; one has ended.
        """
        position = Signal(range(ISSUER_PROGRAMS))
        chosen = Signal.like(position)
        running = Signal()
        ends, ended, follows = Signal(), Signal(), Signal()
        begins = Signal()
        iteration = self.o_command.payload.iteration
        count = Signal(REPEAT_BITS)
        with m.Switch(position):
            for number in range(ISSUER_PROGRAMS - 1):
                with m.Case(number):
                    m.d.comb += follows.eq(self.config[number + 1].enable)
        with m.Switch(chosen):
            for number in range(ISSUER_PROGRAMS):
                with m.Case(number):
                    m.d.comb += program.eq(self.config[number])
        m.d.comb += [
            ends.eq(running & chain.o_done),
            ended.eq(ends & ~follows & (count == self.i_last_iteration)),
            begins.eq(ends & ~ended),
            chosen.eq(Mux(ends, Mux(follows, position + 1, 0), position)),
            chain.config.eq(program.chain),
            chain.i_start.eq((self.i_start & self.config[0].enable) | begins),
            iteration.eq(count),
            self.o_done.eq(~self.i_start & (~running | ended)),
        ]
        with m.If(ends):
            m.d.sync += position.eq(chosen)
            with m.If(ended):
                m.d.sync += running.eq(0)
            with m.Elif(~follows):
                m.d.sync += count.eq(count + 1)
        with m.If(self.i_start):
            m.d.sync += [running.eq(self.config[0].enable), position.eq(0), count.eq(0)]
        return begins, ends
