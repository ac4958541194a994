"""Dispatcher of a TMA unit: in-order issue of commands whose descriptors are cached."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arch.descriptor import DESCRIPTOR_BYTES, TmaFeature
from hw.arch.error_codes import TmaError
from hw.arch.registers.tma_registers import COMMAND_ID_BITS
from hw.emit.shared import shared
from hw.lib.component import Component
from hw.lib.stream import ElasticBuffer
from hw.tma.commands import command_layout
from hw.tma.descriptor_file import descriptor_write_layout
from hw.tma.layouts import TmaLayouts
from hw.tma.scratchpads.named_scratchpads import absent_places, give_copy, places_of
from hw.tma.standalone.field_writer import replacement_layout
from hw.tma.standalone.linear_copy import MAX_LINEAR_BYTES, LinearSplitter
from hw.tma.standalone.tickets import tag_layout, ticket_layout
from hw.tma.standalone.unit_commands import (
    TmaOperation,
    completion_layout,
    unit_command_layout,
)

__all__ = ["Dispatcher"]

#: Operations with a descriptor of each side: of its box, of four rows, and of a box not kept.
_BOXES = (
    (TmaOperation.LOAD, TmaOperation.GATHER4, TmaOperation.PREFETCH_BOX),
    (TmaOperation.STORE, TmaOperation.SCATTER4),
)
_LINEAR = (TmaOperation.LOAD_LINEAR, TmaOperation.STORE_LINEAR)
_ALIGNED = 128  # bytes of the pattern of a swizzle


class Dispatcher(Component):
    """Dispatcher: commands in order; one per cycle while the cache holds their descriptors.

    Four rows take four cycles, a linear copy two per part of `LinearSplitter`.

    Parameters
    ----------
    layouts : TmaLayouts
        Those of the engine.
    vectors : int
        Vectors of the scratchpad.
    descriptors : int
        Descriptors in the engine's file: those of the cache, then those of linear copies.
    scratchpads : int
        Scratchpads of the unit.

    Members
    -------
    i_commands : stream of :func:`hw.tma.standalone.unit_commands.unit_command_layout`
    o_commands : two streams of :func:`hw.tma.commands.command_layout`
        To the load and to the store engine.
    o_tags : two streams of :func:`hw.tma.standalone.tickets.tag_layout`
        Of loads, and of stores and commits. A command and its tag leave together: both must feed
        buffers, whose ready ignores valid.
    o_completions : stream of :data:`hw.tma.standalone.unit_commands.completion_layout`
        Of all other commands.
    o_replacements, i_replaced, i_code_of_replaced
        To a :class:`hw.tma.standalone.field_writer.FieldWriter`, and its `o_done` and `o_code`.
    o_write, i_freed
        As of :class:`hw.tma.standalone.linear_copy.LinearSplitter`.
    o_copies : stream of :func:`hw.tma.standalone.tickets.ticket_layout`
        With several scratchpads: ranges that copies read. Must feed a buffer, as the tags must.
    o_pointer, i_hit, i_entry, o_use, o_invalidate, o_fetch, i_busy, i_done, i_code
        As the opposite members of :class:`hw.tma.standalone.descriptor_cache.DescriptorCache`.
    """

    i_commands: stream.Interface
    o_commands: Sequence[stream.Interface]
    o_tags: Sequence[stream.Interface]
    o_completions: stream.Interface
    o_replacements: stream.Interface
    i_replaced: Signal
    i_code_of_replaced: Signal
    o_write: stream.Interface
    i_freed: Sequence[Signal]
    o_copies: stream.Interface
    o_pointer: Signal
    i_hit: Signal
    i_entry: Signal
    o_use: Signal
    o_invalidate: Signal
    o_fetch: Signal
    i_busy: Signal
    i_done: Signal
    i_code: Signal

    def __init__(
        self, layouts: TmaLayouts, *, vectors: int, descriptors: int, scratchpads: int = 1
    ) -> None:
        self._layouts = layouts
        self._vectors = vectors
        self._descriptors = descriptors
        self._reduces = TmaFeature.REDUCE in layouts.features
        stores = (*_BOXES[1], TmaOperation.REDUCE) if self._reduces else _BOXES[1]
        self._boxes = (_BOXES[0], stores)
        self._scratchpads = scratchpads
        several = {"layouts": layouts, "vectors": vectors, "scratchpads": scratchpads}
        self._several: dict[str, Any] = several if scratchpads > 1 else {}
        self._given = unit_command_layout(layouts.address_bits, scratchpads)
        tags = stream.Signature(tag_layout(vectors, descriptors, scratchpads))
        copies = stream.Signature(ticket_layout(vectors, scratchpads))
        commands = command_layout(descriptors, layouts.features)
        super().__init__(
            {
                "i_commands": In(stream.Signature(self._given)),
                "o_commands": Out(stream.Signature(commands)).array(2),
                "o_tags": Out(tags).array(2),
                "o_completions": Out(stream.Signature(completion_layout)),
                "o_replacements": Out(stream.Signature(replacement_layout(layouts.address_bits))),
                "i_replaced": In(1),
                "i_code_of_replaced": In(8),
                "o_write": Out(stream.Signature(descriptor_write_layout(descriptors))),
                "i_freed": In(1).array(2),
                **({"o_copies": Out(copies)} if scratchpads > 1 else {}),
                "o_pointer": Out(layouts.address_bits),
                "i_hit": In(1),
                "i_entry": In(range(descriptors)),
                "o_use": Out(1),
                "o_invalidate": Out(1),
                "o_fetch": Out(1),
                "i_busy": In(1),
                "i_done": In(1),
                "i_code": In(8),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        buffer = ElasticBuffer(self._given)
        m.submodules.buffer = shared(buffer)
        wiring.connect(m, wiring.flipped(self.i_commands), buffer.i_stream)
        head = buffer.o_stream
        command: Any = head.payload
        astray = command.descriptor[: (DESCRIPTOR_BYTES - 1).bit_length()].any()
        fault = Signal(8)  # code of the fetch for the command at the head
        mine = Signal()  # that fetch is under way
        refusal = Signal(8)
        m.d.comb += [
            self.o_pointer.eq(command.descriptor),
            refusal.eq(Mux(astray, TmaError.POINTER.value, fault)),
        ]
        with m.If(self.i_done & mine):
            m.d.sync += [mine.eq(0), fault.eq(self.i_code)]
        with m.If(head.ready):
            m.d.sync += fault.eq(TmaError.NONE.value)

        prefetching = Signal()
        ended = Signal(COMMAND_ID_BITS)
        end: Any = Signal(completion_layout)
        ending = Signal()
        other: Any = self.o_completions.payload
        answer = Signal()  # the command at the head has a completion of this kind
        m.d.comb += [
            self.o_completions.valid.eq(ending | answer),
            other.id.eq(Mux(ending, end.id, command.id)),
            other.code.eq(Mux(ending, end.code, refusal)),
        ]
        answered = answer & ~ending & self.o_completions.ready
        with m.If(ending & self.o_completions.ready):
            m.d.sync += ending.eq(0)
        with m.If(self.i_done & prefetching):
            m.d.sync += [
                prefetching.eq(0),
                ending.eq(1),
                end.id.eq(ended),
                end.code.eq(self.i_code),
            ]

        refused = refusal != TmaError.NONE.value
        splitter = LinearSplitter(
            address_bits=self._layouts.address_bits, descriptors=self._descriptors
        )
        m.submodules.splitter = shared(splitter)
        wiring.connect(m, splitter.o_write, wiring.flipped(self.o_write))
        m.d.comb += [splitter.i_freed[side].eq(self.i_freed[side]) for side in range(2)]
        part = Signal(2)
        self._describe(m, command, refusal, part)
        asks = Signal()  # a field is to be replaced
        replaced = self._replace(m, head, asks, fault)
        with m.If(head.valid):
            with m.Switch(command.operation):
                for side, operations in enumerate(self._boxes):
                    with m.Case(*operations):
                        more = command.operation == operations[1]
                        self._move(m, side, head, refused, part, more)
                        with m.If(~refused & ~self.i_hit & ~self.i_busy & ~mine):
                            m.d.comb += self.o_fetch.eq(1)
                            m.d.sync += mine.eq(1)
                for side, operation in enumerate(_LINEAR):
                    with m.Case(operation):
                        self._copy(m, side, head, part, splitter)
                if self._several:
                    with m.Case(TmaOperation.COPY):
                        give_copy(m, head, self.o_tags[0], self.o_copies, **self._several)
                with m.Case(TmaOperation.COMMIT):
                    m.d.comb += [self.o_tags[1].valid.eq(1), head.ready.eq(self.o_tags[1].ready)]
                with m.Case(TmaOperation.PREFETCH):
                    m.d.comb += [
                        answer.eq(refused | self.i_hit),
                        self.o_fetch.eq(~answer & ~self.i_busy & ~ending),
                        head.ready.eq(answered | self.o_fetch),
                    ]
                    with m.If(self.o_fetch):
                        m.d.sync += [prefetching.eq(1), ended.eq(command.id)]
                with m.Case(TmaOperation.INVALIDATE):
                    m.d.comb += [
                        answer.eq(refused | ~self.i_busy),
                        self.o_invalidate.eq(answered & ~refused),
                        head.ready.eq(answered),
                    ]
                with m.Case(TmaOperation.REPLACE):
                    # Nothing is read into the cache meanwhile: later commands read the new field.
                    m.d.comb += [
                        asks.eq(~astray & ~self.i_busy),
                        answer.eq(astray | replaced),
                        self.o_invalidate.eq(answered & ~astray),
                        head.ready.eq(answered),
                    ]
                with m.Default():
                    m.d.comb += [
                        answer.eq(1),
                        other.code.eq(Mux(ending, end.code, TmaError.OPERATION.value)),
                        head.ready.eq(answered),
                    ]
        return m

    def _move(
        self, m: Module, side: int, head: stream.Interface, refused: Any, part: Signal, four: Any
    ) -> None:
        """Give the command at the head to an engine with a tag, or a tag with its refusal.

        The command for each of four rows is one of its own; the tag leaves with the first.
        """
        target, tags = self.o_commands[side], self.o_tags[side]
        given: Any = target.payload
        tag: Any = tags.payload
        first = part == 0
        free = tags.ready | ~first
        goes = refused | (self.i_hit & target.ready)
        moves = Signal(name=f"moves{side}")
        continues = four & ~refused & (part != 3)
        m.d.comb += [
            tags.valid.eq(goes & first),
            target.valid.eq(~refused & self.i_hit & free),
            moves.eq(goes & free),
            head.ready.eq(moves & ~continues),
            self.o_use.eq(moves & first & ~refused),
            given.four.eq(four),
            given.continues.eq(continues),
            tag.more.eq(Mux(four, 3, 0)),
        ]
        with m.If(moves & four & ~refused):
            m.d.sync += part.eq(part + 1)

    def _copy(
        self, m: Module, side: int, head: stream.Interface, part: Signal, splitter: LinearSplitter
    ) -> None:
        """Give the linear copy at the head to an engine, in one or two parts, or refuse it."""
        target, tags = self.o_commands[side], self.o_tags[side]
        given: Any = target.payload
        tag: Any = tags.payload
        command: Any = head.payload
        copy: Any = splitter.i_stream.payload
        one: Any = splitter.o_parts.payload
        parts = splitter.o_parts
        size = command.coordinates[0].as_unsigned()
        place = command.local >> self._layouts.beat_shift
        end = Signal(self._layouts.address_bits + 1, name=f"end{side}")
        code = Signal(8, name=f"code{side}")
        m.d.comb += end.eq(command.descriptor + size[: len(copy.bytes)])
        rules = (
            (TmaError.BASE, command.descriptor[:4].any()),
            (TmaError.ROW_BYTES, size[:4].any()),
            (TmaError.BOX, (size == 0) | (size > MAX_LINEAR_BYTES)),
            (TmaError.BASE, end > 1 << self._layouts.address_bits),
            (TmaError.DESTINATION, self._misplaced(command, side)),
            (
                TmaError.DESTINATION,
                size > (self._vectors - place) << self._layouts.beat_shift,
            ),
        )
        for index, (error, broken) in enumerate(rules):
            with m.If(broken) if index == 0 else m.Elif(broken):
                m.d.comb += code.eq(error.value)
        refused = code != TmaError.NONE.value
        free = tags.ready | part.any()
        m.d.comb += [
            copy.side.eq(side),
            copy.address.eq(command.descriptor),
            copy.bytes.eq(size),
            splitter.i_stream.valid.eq(~refused),
            parts.ready.eq(target.ready & free),
            target.valid.eq(parts.valid & free),
            tags.valid.eq(refused | (parts.valid & target.ready & ~part.any())),
            head.ready.eq(Mux(refused, tags.ready, splitter.i_stream.ready)),
            given.descriptor.eq(one.entry),
            given.coordinates.eq(0),
            given.most_units.eq(-1),
            given.continues.eq(one.continues),
            tag.code.eq(code),
            tag.linear.eq(1),
            tag.more.eq(one.continues),
            tag.units.eq(size >> self._layouts.unit_shift),
        ]
        with m.If(parts.valid & parts.ready):
            m.d.sync += part.eq(one.continues)

    def _replace(self, m: Module, head: stream.Interface, asks: Signal, fault: Signal) -> Signal:
        """Request of one field replacement for the command at the head; returns its end."""
        command: Any = head.payload
        given: Any = self.o_replacements.payload
        under_way, ended = Signal(), Signal()
        m.d.comb += [
            self.o_replacements.valid.eq(asks & ~under_way & ~ended),
            given.descriptor.eq(command.descriptor),
            given.field.eq(command.coordinates[0].as_unsigned()),
            given.index.eq(command.coordinates[1].as_unsigned()),
            given.value.eq(Cat(command.coordinates[2], command.coordinates[3])),
        ]
        with m.If(self.o_replacements.valid & self.o_replacements.ready):
            m.d.sync += under_way.eq(1)
        with m.If(self.i_replaced):
            m.d.sync += [under_way.eq(0), ended.eq(1), fault.eq(self.i_code_of_replaced)]
        with m.If(head.ready):
            m.d.sync += ended.eq(0)
        return ended

    def _reduction(self, command: Any, given: Any) -> list[Any]:
        """Statements of the reduction of a box."""
        if not self._reduces:
            return []
        return [
            given.reduction.combines.eq(command.operation == TmaOperation.REDUCE),
            given.reduction.operation.eq(command.reduction),
        ]

    def _misplaced(self, command: Any, side: int) -> Value:
        """Whether the place of a box is none of a vector of the scratchpad."""
        shift = self._layouts.beat_shift
        astray: Value = command.local[:shift].any() | (command.local >> shift >= self._vectors)
        if self._scratchpads > 1:
            astray |= absent_places(command, side, self._scratchpads)
        return astray

    def _describe(self, m: Module, command: Any, refusal: Signal, part: Signal) -> None:
        """Fields of what leaves, from those of the command, unless its kind has others."""
        shift = self._layouts.beat_shift
        place = command.local >> shift
        room = (self._vectors - place) << self._layouts.unit_bits
        commits = command.operation == TmaOperation.COMMIT
        discards = command.operation == TmaOperation.PREFETCH_BOX
        for side, (tags, target) in enumerate(zip(self.o_tags, self.o_commands)):
            tag: Any = tags.payload
            given: Any = target.payload
            misplaced = self._misplaced(command, side)
            if self._scratchpads > 1:
                m.d.comb += tag.pads.eq(places_of(command, side))
            m.d.comb += [
                tag.id.eq(command.id),
                tag.code.eq(Mux(commits, TmaError.NONE.value, refusal)),
                tag.commits.eq(commits),
                tag.vector.eq(place),
                tag.barrier.eq(command.barrier),
                tag.signals.eq(command.signals & ~discards),
                tag.discards.eq(discards),
                tag.entry.eq(self.i_entry),
                given.descriptor.eq(self.i_entry),
                given.coordinates.eq(command.coordinates),
                given.offsets.eq(command.offsets),
                # The row of a part; without parts, coordinate 1.
                given.coordinates[1].eq(command.coordinates[1 + part]),
                given.most_units.eq(Mux(discards, -1, Mux(misplaced, 0, room))),
                *self._reduction(command, given),
                given.aligned.eq(discards | ~command.local[: (_ALIGNED - 1).bit_length()].any()),
            ]
