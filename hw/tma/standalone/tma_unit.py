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
from hw.lib.axi import Axi4Interface, Axi4ReadInterface, Axi4Signature
from hw.lib.component import Component
from hw.tma.engine import TmaEngine
from hw.tma.layouts import TmaLayouts
from hw.tma.reduction.reducing_port import ReducingPort
from hw.tma.reduction.reduction_interlock import interlock_signature
from hw.tma.scratchpads.copier import Copier
from hw.tma.scratchpads.local_memories import LocalMemories
from hw.tma.scratchpads.local_memory import (
    BANK_LIMITS,
    LocalMemory,
    connect_operations,
    connect_user,
    user_ports,
    users_of,
)
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
from hw.tma.standalone.store_ends import StoreEnds
from hw.tma.standalone.tickets import TicketQueue
from hw.tma.standalone.unit_commands import GROUP_BITS, completion_layout, unit_command_layout
from hw.tma.standalone.unit_port import UnitPort

__all__ = ["TmaUnit"]

_FEATURES = tuple(each for each in TmaFeature if each is not TmaFeature.REDUCE)


class TmaUnit(Component):
    """Stand-alone TMA unit: moves boxes between memory and its scratchpad. See docs/tma_unit.md.

    Parameters
    ----------
    sizes : TmaSizes
    ports : int
        Ports of barrier operations, and waiters, of the user.
    attributes : AxiAttributes
        Of all bursts.
    reduces : bool
        With REDUCE, whose area a design with plain stores does not need: docs/tma_reductions.md.

    Members
    -------
    i_commands : stream of :func:`hw.tma.standalone.unit_commands.unit_command_layout`
    o_completions : stream of :data:`hw.tma.standalone.unit_commands.completion_layout`
        One per command.
    i_operations, o_answers, i_waits, o_waits, o_phases, o_flags, o_valid
        Ports and waiters, as many as ``ports``, of the
        :class:`hw.tma.barriers.barrier_bank.BarrierBank`.
    further
        With several scratchpads, the members above and below for each beyond the first.
    i_writes, i_reads, o_data
        Of the scratchpad, as in :class:`hw.tma.standalone.vector_scratchpad.Scratchpad`.
    o_groups_read, o_groups_stored
        Groups of stores whose vectors have left the scratchpad, and that are visible in memory.
    axi : AXI4 manager port
        Bursts of loads have the IDs below ``sizes.read_ids``, descriptors that one, stores ID 0,
        fields of descriptors ID 1;
        each plus ``attributes.first_id``.
    interlock : :func:`hw.tma.reduction.reduction_interlock.interlock_signature`
        With ``reduces``.
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
    further: Sequence[Any]
    o_groups_read: Signal
    o_groups_stored: Signal
    axi: Axi4Interface
    interlock: Any
    i_abort: Signal
    o_aborting: Signal
    o_reset: Signal

    def __init__(
        self,
        sizes: TmaSizes,
        *,
        ports: int = 1,
        attributes: AxiAttributes = DEFAULT_ATTRIBUTES,
        reduces: bool = False,
    ) -> None:
        # The first port of the bank is the unit's own.
        # With several scratchpads, one port of each is that of the others.
        own = 1 if sizes.scratchpads == 1 else 2
        Domain(1, limits.BARRIER_PORTS.high - own).require("Ports of the user", ports)
        self._sizes = sizes
        features = (*_FEATURES, TmaFeature.REDUCE) if reduces else _FEATURES
        self._layouts = TmaLayouts(sizes.width_bits, sizes.address_bits, 1, features)
        self._reduces = reduces
        self._ports = ports
        self._attributes = attributes
        super().__init__(
            {
                "i_commands": In(
                    stream.Signature(unit_command_layout(sizes.address_bits, sizes.scratchpads))
                ),
                "o_completions": Out(stream.Signature(completion_layout)),
                **user_ports(sizes, ports),
                "o_groups_read": Out(GROUP_BITS),
                "o_groups_stored": Out(GROUP_BITS),
                "axi": Out(
                    Axi4Signature(
                        data_bits=sizes.width_bits,
                        address_bits=sizes.address_bits,
                        id_bits=attributes.id_bits(sizes),
                        qos_bits=4,
                    )
                ),
                **({"interlock": Out(interlock_signature(sizes.address_bits))} if reduces else {}),
                "i_abort": In(1),
                "o_aborting": Out(1),
                "o_reset": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        layouts, sizes = self._layouts, self._sizes
        entries = sizes.descriptors + LINEAR_ENTRIES
        places = {
            "vectors": sizes.vectors,
            "descriptors": entries,
            "scratchpads": sizes.scratchpads,
        }
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
        abort = AbortSequence(barriers=self._sizes.barriers, **BANK_LIMITS)
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
        self._move_boxes(m, engine, tickets, completions, abort, dispatcher)
        fields = FieldWriter(data_bits=layouts.width_bits, address_bits=layouts.address_bits)
        m.submodules.fields = shared(fields, reset=reset)
        wiring.connect(m, dispatcher.o_replacements, fields.i_stream)
        m.d.comb += [
            dispatcher.i_replaced.eq(fields.o_done),
            dispatcher.i_code_of_replaced.eq(fields.o_code),
            fields.i_drain.eq(abort.o_drain),
        ]
        self._share_port(m, engine, cache, fields, abort)
        m.d.comb += [
            abort.i_abort.eq(self.i_abort),
            abort.i_idle.eq(engine.o_idle & cache.o_idle & fields.o_idle),
            engine.i_drain.eq(abort.o_drain),
            cache.i_drain.eq(abort.o_drain),
            self.o_aborting.eq(abort.o_busy),
            self.o_reset.eq(reset),
        ]
        return m

    def _reduce(
        self, m: Module, engine: TmaEngine, cache: DescriptorCache, abort: AbortSequence
    ) -> tuple[Axi4Interface, Axi4ReadInterface]:
        """Ports of engine and cache with reducing stores between."""
        port = ReducingPort(self._sizes)
        m.submodules.reducing = shared(port, reset=abort.o_reset)
        wiring.connect(m, engine.axi, port.i_boxes)
        wiring.connect(m, cache.axi, port.i_descriptors)
        wiring.connect(m, port.interlock, wiring.flipped(self.interlock))
        m.d.comb += [
            port.i_reduction.eq(engine.o_reduction),
            engine.i_failed_read.eq(port.o_failed_read),
            port.i_drain.eq(abort.o_drain),
        ]
        return port.boxes, port.descriptors

    def _move_boxes(
        self,
        m: Module,
        engine: TmaEngine,
        tickets: list[stream.Interface],
        completions: CompletionMux,
        abort: AbortSequence,
        dispatcher: Dispatcher,
    ) -> None:
        """Boxes into the local memory and out of it, and their ends."""
        layouts, pads = self._layouts, self._sizes.scratchpads
        local: Any = (LocalMemory if pads == 1 else LocalMemories)(self._sizes, ports=self._ports)
        places = {"vectors": self._sizes.vectors, "scratchpads": pads}
        loader = BoxLoader(layouts, **places)
        storer = BoxStorer(layouts, **places)
        loads = LoadEnds(unit_shift=layouts.unit_shift, scratchpads=pads, **BANK_LIMITS)
        stores = StoreEnds(response_bits=layouts.stored_bits)
        m.submodules.local = shared(local)
        for part in (loader, storer, loads, stores):
            name = type(part).__name__.lower()
            m.submodules[name] = shared(part, reset=abort.o_reset)
        for source, target in (
            (tickets[0], loader.i_tickets),
            (engine.o_loaded[0], loader.i_stream),
            (loader.o_writes, local.i_box_write),
            (loader.o_loaded, loads.i_loaded),
            (loads.o_completions, completions.i_streams[1]),
            (tickets[1], storer.i_tickets),
            (storer.o_reads, local.i_box_read),
            (storer.o_stream, engine.i_vectors[0]),
            (storer.o_ended, stores.i_ended),
            (stores.o_completions, completions.i_streams[2]),
        ):
            wiring.connect(m, source, target)
        for outer, inner in zip(users_of(self), users_of(local), strict=True):
            connect_user(m, outer, inner)
            connect_operations(m, outer, inner)
        # The unit's own port: bytes of loads, and flags when nothing of them is left.
        own, raised, landed = local.i_own_operations, abort.o_operation, loads.o_operation
        m.d.comb += [
            own.valid.eq(raised.valid | landed.valid),
            own.payload.eq(Mux(raised.valid, raised.payload, landed.payload)),
            raised.ready.eq(own.ready),
            landed.ready.eq(own.ready & ~raised.valid),
        ]
        m.d.comb += [
            loader.i_response.eq(engine.o_loaded_response),
            storer.i_data.eq(local.o_box_data),
            stores.i_stored.eq(engine.o_stored),
            stores.i_response.eq(engine.o_stored_response),
            self.o_groups_read.eq(stores.o_groups_read),
            self.o_groups_stored.eq(stores.o_groups_stored),
            loads.i_answer.valid.eq(local.o_own_answers.valid),
            loads.i_answer.payload.eq(local.o_own_answers.payload),
        ]
        if pads > 1:
            m.d.comb += [
                local.i_write_pads.eq(loader.o_pads),
                local.i_read_pads.eq(storer.o_pads),
                local.i_operation_pads.eq(Mux(raised.valid, -1, loads.o_pads)),
                local.i_reset.eq(abort.o_reset),
            ]
            copier = Copier(layouts, **places)
            m.submodules.copier = shared(copier, reset=abort.o_reset)
            for source, target in (
                (dispatcher.o_copies, copier.i_tickets),
                (copier.o_reads, local.i_copy_read),
                (copier.o_stream, loader.i_copied),
            ):
                wiring.connect(m, source, target)
            m.d.comb += [
                local.i_copy_pads.eq(copier.o_pads),
                copier.i_data.eq(local.o_copy_data),
            ]

    def _share_port(
        self,
        m: Module,
        engine: TmaEngine,
        cache: DescriptorCache,
        fields: FieldWriter,
        abort: AbortSequence,
    ) -> None:
        """AXI4 port of boxes, of descriptors and of their fields."""
        boxes, descriptors = engine.axi, cache.axi
        if self._reduces:
            boxes, descriptors = self._reduce(m, engine, cache, abort)
        port = UnitPort(self._sizes, self._attributes)
        m.submodules.port = shared(port, reset=abort.o_reset)
        for source, target in (
            (boxes, port.i_boxes),
            (descriptors, port.i_descriptors),
            (fields.axi, port.i_fields),
            (port.axi, wiring.flipped(self.axi)),
        ):
            wiring.connect(m, source, target)
        m.d.comb += [port.i_asks.eq(fields.o_asks), fields.i_granted.eq(port.o_granted)]
