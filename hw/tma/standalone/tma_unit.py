"""Stand-alone TMA unit: engine, descriptor cache, scratchpad and bank of barriers."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arch import limits
from hw.arch.checks import Domain
from hw.arch.descriptor import TmaFeature
from hw.arch.tma_sizes import TmaSizes
from hw.emit.shared import shared
from hw.lib.axi import Axi4Interface, Axi4Signature
from hw.lib.component import Component
from hw.tma.barriers.barrier_bank import BarrierBank
from hw.tma.barriers.barrier_layouts import (
    barrier_answer_layout,
    barrier_operation_layout,
    barrier_result_layout,
    barrier_wait_layout,
)
from hw.tma.engine import TmaEngine
from hw.tma.layouts import TmaLayouts
from hw.tma.standalone.abort_sequence import AbortSequence
from hw.tma.standalone.axi_attributes import DEFAULT_ATTRIBUTES, AxiAttributes
from hw.tma.standalone.box_loader import BoxLoader
from hw.tma.standalone.box_storer import BoxStorer
from hw.tma.standalone.completion_mux import CompletionMux
from hw.tma.standalone.descriptor_cache import DescriptorCache
from hw.tma.standalone.dispatcher import Dispatcher
from hw.tma.standalone.field_writer import FieldWriter
from hw.tma.standalone.linear_copy import LINEAR_ENTRIES
from hw.tma.standalone.load_ends import LoadEnds
from hw.tma.standalone.read_mux import ReadMux
from hw.tma.standalone.store_ends import StoreEnds
from hw.tma.standalone.tickets import TicketQueue
from hw.tma.standalone.unit_commands import GROUP_BITS, completion_layout, unit_command_layout
from hw.tma.standalone.vector_scratchpad import Scratchpad, scratchpad_write_layout
from hw.tma.standalone.write_mux import WriteMux

__all__ = ["TmaUnit", "user_ports"]

_FEATURES = tuple(TmaFeature)
_MOST = {"arrivals": limits.BARRIER_ARRIVALS.high, "tx_bytes": limits.BARRIER_TX_BYTES.high}


def user_ports(sizes: TmaSizes, ports: int) -> dict[str, wiring.Member]:
    """Members for the accelerator beside a unit: those of its scratchpad and its barriers."""
    operations = stream.Signature(barrier_operation_layout(**_MOST))
    answer = wiring.Signature({"valid": Out(1), "payload": Out(barrier_answer_layout(**_MOST))})
    read = wiring.Signature({"valid": Out(1), "data": Out(sizes.width_bits)})
    return {
        "i_operations": In(operations).array(ports),
        "o_answers": Out(answer).array(ports),
        "i_waits": In(stream.Signature(barrier_wait_layout)).array(ports),
        "o_waits": Out(stream.Signature(barrier_result_layout)).array(ports),
        "o_phases": Out(sizes.barriers),
        "o_flags": Out(sizes.barriers),
        "o_valid": Out(sizes.barriers),
        "i_writes": In(stream.Signature(scratchpad_write_layout(sizes.width_bits, sizes.vectors))),
        "i_reads": In(stream.Signature(range(sizes.vectors))),
        "o_data": Out(read),
    }


class TmaUnit(Component):
    """Stand-alone TMA unit: moves boxes between memory and its scratchpad. See docs/tma_unit.md.

    Parameters
    ----------
    sizes : TmaSizes
    ports : int
        Ports of barrier operations, and waiters, of the user.
    attributes : AxiAttributes
        Of all bursts.

    Members
    -------
    i_commands : stream of :func:`hw.tma.standalone.unit_commands.unit_command_layout`
    o_completions : stream of :data:`hw.tma.standalone.unit_commands.completion_layout`
        One per command.
    i_operations, o_answers, i_waits, o_waits, o_phases, o_flags, o_valid
        Ports and waiters, as many as ``ports``, of the
        :class:`hw.tma.barriers.barrier_bank.BarrierBank`.
    i_writes, i_reads, o_data
        Of the scratchpad, as in :class:`hw.tma.standalone.vector_scratchpad.Scratchpad`.
    o_groups_read, o_groups_stored
        Groups of stores whose vectors have left the scratchpad, and that are visible in memory.
    axi : AXI4 manager port
        Bursts of loads have the IDs below ``sizes.read_ids``, descriptors that one, stores ID 0,
        fields of descriptors ID 1;
        each plus ``attributes.first_id``.
    i_abort
        End every command without its completion, once the open bursts have ended; every barrier's
        flag is raised then. Ignored while an abort is under way.
    o_aborting
        From the cycle after `i_abort` until the unit takes commands again.
    o_reset
        In the first two cycles in which nothing is left of the commands that were aborted.

    Raises
    ------
    BadInputError
        If a parameter lies outside its domain.
    """

    i_commands: stream.Interface
    o_completions: stream.Interface
    i_operations: Sequence[stream.Interface]
    o_answers: Sequence[Any]
    i_waits: Sequence[stream.Interface]
    o_waits: Sequence[stream.Interface]
    o_phases: Signal
    o_flags: Signal
    o_valid: Signal
    i_writes: stream.Interface
    i_reads: stream.Interface
    o_data: Any
    o_groups_read: Signal
    o_groups_stored: Signal
    axi: Axi4Interface
    i_abort: Signal
    o_aborting: Signal
    o_reset: Signal

    def __init__(
        self,
        sizes: TmaSizes,
        *,
        ports: int = 1,
        attributes: AxiAttributes = DEFAULT_ATTRIBUTES,
    ) -> None:
        # The first port of the bank is the unit's own.
        Domain(1, limits.BARRIER_PORTS.high - 1).require("Ports of the user", ports)
        self._sizes = sizes
        self._layouts = TmaLayouts(sizes.width_bits, sizes.address_bits, 1, _FEATURES)
        self._ports = ports
        self._attributes = attributes
        super().__init__(
            {
                "i_commands": In(stream.Signature(unit_command_layout(sizes.address_bits))),
                "o_completions": Out(stream.Signature(completion_layout)),
                **user_ports(sizes, ports),
                "o_groups_read": Out(GROUP_BITS),
                "o_groups_stored": Out(GROUP_BITS),
                "axi": Out(
                    Axi4Signature(
                        data_bits=sizes.width_bits,
                        address_bits=sizes.address_bits,
                        id_bits=attributes.id_bits(sizes),
                    )
                ),
                "i_abort": In(1),
                "o_aborting": Out(1),
                "o_reset": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        layouts, sizes = self._layouts, self._sizes
        entries = sizes.descriptors + LINEAR_ENTRIES
        places = {"vectors": sizes.vectors, "descriptors": entries}
        engine = TmaEngine(
            width_bits=layouts.width_bits,
            address_bits=layouts.address_bits,
            descriptors=entries,
            load_streams=1,
            store_streams=1,
            features=layouts.features,
            landing_beats=sizes.landing_beats,
            outstanding=sizes.outstanding,
            read_ids=sizes.read_ids,
        )
        dispatcher = Dispatcher(layouts, **places)
        cache = DescriptorCache(
            data_bits=layouts.width_bits,
            address_bits=layouts.address_bits,
            descriptors=sizes.descriptors,
        )
        completions = CompletionMux(sources=3)
        abort = AbortSequence(barriers=self._sizes.barriers, **_MOST)
        m.submodules.abort = shared(abort)
        reset = abort.o_reset
        m.submodules.engine = shared(engine, reset=reset)
        m.submodules.dispatcher = shared(dispatcher, reset=reset)
        m.submodules.cache = shared(cache, reset=reset)
        m.submodules.completions = shared(completions, reset=reset)
        taken = dispatcher.i_commands
        m.d.comb += [
            taken.payload.eq(self.i_commands.payload),
            taken.valid.eq(self.i_commands.valid & ~abort.o_busy),
            self.i_commands.ready.eq(taken.ready & ~abort.o_busy),
        ]
        written, made = engine.i_descriptor_write, dispatcher.o_write
        m.d.comb += [
            written.valid.eq(cache.o_write.valid | made.valid),
            written.payload.eq(made.payload),
            made.ready.eq(~cache.o_write.valid),
        ]
        with m.If(cache.o_write.valid):
            m.d.comb += [
                written.payload[name].eq(cache.o_write.payload[name])
                for name, _ in cache.o_write.payload.shape()
            ]
        wiring.connect(m, dispatcher.o_completions, completions.i_streams[0])
        wiring.connect(m, completions.o_stream, wiring.flipped(self.o_completions))
        m.d.comb += [
            cache.i_pointer.eq(dispatcher.o_pointer),
            cache.i_use.eq(dispatcher.o_use),
            cache.i_invalidate.eq(dispatcher.o_invalidate),
            cache.i_fetch.eq(dispatcher.o_fetch),
            dispatcher.i_hit.eq(cache.o_hit),
            dispatcher.i_entry.eq(cache.o_entry),
            dispatcher.i_busy.eq(cache.o_busy),
            dispatcher.i_done.eq(cache.o_done),
            dispatcher.i_code.eq(cache.o_code),
        ]
        tickets = []
        sides = (
            (engine.i_load_commands[0], engine.o_load_reports),
            (engine.i_store_commands[0], engine.o_store_reports),
        )
        for number, (commands, reports) in enumerate(sides):
            queue = TicketQueue(layouts, **places)
            m.submodules[f"tickets{number}"] = shared(queue, reset=reset)
            wiring.connect(m, dispatcher.o_commands[number], commands)
            wiring.connect(m, dispatcher.o_tags[number], queue.i_tags)
            wiring.connect(m, reports, queue.i_reports)
            m.d.comb += [
                cache.i_freed[number].valid.eq(queue.o_freed.valid & ~queue.o_freed.linear),
                dispatcher.i_freed[number].eq(queue.o_freed.valid & queue.o_freed.linear),
                cache.i_freed[number].entry.eq(queue.o_freed.entry),
            ]
            tickets.append(queue.o_tickets)
        self._move_boxes(m, engine, tickets, completions, abort)
        fields = FieldWriter(data_bits=layouts.width_bits, address_bits=layouts.address_bits)
        m.submodules.fields = shared(fields, reset=reset)
        wiring.connect(m, dispatcher.o_replacements, fields.i_stream)
        m.d.comb += [
            dispatcher.i_replaced.eq(fields.o_done),
            dispatcher.i_code_of_replaced.eq(fields.o_code),
            fields.i_drain.eq(abort.o_drain),
        ]
        self._share_reads(m, engine, cache, reset)
        self._share_writes(m, engine, fields, reset)
        m.d.comb += [
            abort.i_abort.eq(self.i_abort),
            abort.i_idle.eq(engine.o_idle & cache.o_idle & fields.o_idle),
            engine.i_drain.eq(abort.o_drain),
            cache.i_drain.eq(abort.o_drain),
            self.o_aborting.eq(abort.o_busy),
            self.o_reset.eq(reset),
        ]
        return m

    def _move_boxes(
        self,
        m: Module,
        engine: TmaEngine,
        tickets: list[stream.Interface],
        completions: CompletionMux,
        abort: AbortSequence,
    ) -> None:
        """Scratchpad, its boxes, and their ends, with the bank of barriers."""
        layouts = self._layouts
        scratchpad = Scratchpad(width_bits=layouts.width_bits, vectors=self._sizes.vectors)
        loader = BoxLoader(layouts, vectors=self._sizes.vectors)
        storer = BoxStorer(layouts, vectors=self._sizes.vectors)
        loads = LoadEnds(unit_shift=layouts.unit_shift, **_MOST)
        stores = StoreEnds()
        ports = self._ports
        bank = BarrierBank(barriers=self._sizes.barriers, ports=1 + ports, waiters=ports, **_MOST)
        m.submodules.scratchpad = shared(scratchpad)
        m.submodules.bank = shared(bank)
        for part in (loader, storer, loads, stores):
            name = type(part).__name__.lower()
            m.submodules[name] = shared(part, reset=abort.o_reset)
        for source, target in (
            (tickets[0], loader.i_tickets),
            (engine.o_loaded[0], loader.i_stream),
            (loader.o_writes, scratchpad.i_box_write),
            (loader.o_loaded, loads.i_loaded),
            (loads.o_completions, completions.i_streams[1]),
            (tickets[1], storer.i_tickets),
            (storer.o_reads, scratchpad.i_box_read),
            (storer.o_stream, engine.i_vectors[0]),
            (storer.o_ended, stores.i_ended),
            (stores.o_completions, completions.i_streams[2]),
            *(
                (wiring.flipped(self.i_operations[number]), bank.i_operations[1 + number])
                for number in range(ports)
            ),
            *(
                (wiring.flipped(self.i_waits[number]), bank.i_waits[number])
                for number in range(ports)
            ),
            *(
                (bank.o_waits[number], wiring.flipped(self.o_waits[number]))
                for number in range(ports)
            ),
            (wiring.flipped(self.i_writes), scratchpad.i_writes),
            (wiring.flipped(self.i_reads), scratchpad.i_reads),
        ):
            wiring.connect(m, source, target)
        for number, answer in enumerate(self.o_answers):
            given = bank.o_answers[1 + number]
            m.d.comb += [answer.valid.eq(given.valid), answer.payload.eq(given.payload)]
        # The unit's own port: bytes of loads, and flags when nothing of them is left.
        own, raised, landed = bank.i_operations[0], abort.o_operation, loads.o_operation
        m.d.comb += [
            own.valid.eq(raised.valid | landed.valid),
            own.payload.eq(Mux(raised.valid, raised.payload, landed.payload)),
            raised.ready.eq(own.ready),
            landed.ready.eq(own.ready & ~raised.valid),
        ]
        m.d.comb += [
            loader.i_response.eq(engine.o_loaded_response),
            storer.i_data.eq(scratchpad.o_box_data),
            stores.i_stored.eq(engine.o_stored),
            stores.i_response.eq(engine.o_stored_response),
            self.o_groups_read.eq(stores.o_groups_read),
            self.o_groups_stored.eq(stores.o_groups_stored),
            loads.i_answer.valid.eq(bank.o_answers[0].valid),
            loads.i_answer.payload.eq(bank.o_answers[0].payload),
            self.o_phases.eq(bank.o_phases),
            self.o_flags.eq(bank.o_flags),
            self.o_valid.eq(bank.o_valid),
            self.o_data.valid.eq(scratchpad.o_data.valid),
            self.o_data.data.eq(scratchpad.o_data.data),
        ]

    def _share_reads(
        self, m: Module, engine: TmaEngine, cache: DescriptorCache, reset: Signal
    ) -> None:
        """Reads of boxes and of descriptors on the AXI4 port."""
        layouts = self._layouts
        reads = ReadMux(
            data_bits=layouts.width_bits,
            address_bits=layouts.address_bits,
            read_ids=self._sizes.read_ids,
        )
        m.submodules.reads = shared(reads, reset=reset)
        wiring.connect(m, cache.axi, reads.i_descriptors)
        _join(m, engine.axi, reads.i_boxes)
        self._drive_port(m, reads.axi)

    def _share_writes(
        self, m: Module, engine: TmaEngine, fields: FieldWriter, reset: Signal
    ) -> None:
        """Writes of boxes and of fields of descriptors on the AXI4 port."""
        layouts = self._layouts
        writes = WriteMux(
            data_bits=layouts.width_bits,
            address_bits=layouts.address_bits,
            id_bits=self._sizes.id_bits,
        )
        m.submodules.writes = shared(writes, reset=reset)
        wiring.connect(m, fields.axi, writes.i_fields)
        m.d.comb += [writes.i_asks.eq(fields.o_asks), fields.i_granted.eq(writes.o_granted)]
        _join(m, engine.axi, writes.i_stores)
        self._drive_port(m, writes.axi)

    def _drive_port(self, m: Module, manager: Any) -> None:
        """Connect a half of the port, with the attributes of its bursts."""
        attributes = self._attributes
        _join(m, manager, self.axi)
        for wire in manager.signature.members:
            if wire in attributes.constants:
                m.d.comb += getattr(self.axi, wire).eq(attributes.constants[wire])
            elif wire in ("arid", "awid"):
                # A multiple of the number of IDs: the low bits of answers are the unit's.
                m.d.comb += getattr(self.axi, wire).eq(getattr(manager, wire) | attributes.first_id)


def _join(m: Module, manager: Any, port: Any) -> None:
    """Connect a manager to a port, as far as both have the wires."""
    for wire, member in manager.signature.members.items():
        if wire in port.signature.members:
            inner, outer = getattr(manager, wire), getattr(port, wire)
            m.d.comb += outer.eq(inner) if member.flow == Out else inner.eq(outer)
