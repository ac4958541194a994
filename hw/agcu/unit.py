"""Address generation and coalescing unit (AGCU): the fabric's memory port."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.agcu.descriptor_writer import DescriptorWriter
from hw.agcu.index_unpacker import IndexUnpacker
from hw.agcu.issuer import CommandIssuer
from hw.arch.agcu import (
    AGCU_DESCRIPTORS,
    AGCU_FEATURES,
    AGCU_STREAMS,
    agcu_layout,
    index_input,
)
from hw.arch.boxes.issuer_program import ISSUER_PROGRAMS
from hw.arch.config import ChipConfig
from hw.arch.counters import ACTIVITIES, COUNTER_BITS, activity_layout
from hw.arch.launch import REPEAT_BITS
from hw.arch.limits import (
    AXI_ADDRESS_BITS,
    COUNTER_WORDS,
    LANDING_BEATS,
    LINK_BITS,
    MAX_CREDITS,
    OUTSTANDING,
    TRACKS,
)
from hw.arch.unit_kind import AGCU
from hw.command.argument_reader import argument_write_layout
from hw.emit.shared import shared
from hw.lib.activity import chosen_counter, count_activity
from hw.lib.axi import Axi4Interface, Axi4Signature
from hw.lib.component import Component
from hw.lib.stream import token_signature, vector_signature
from hw.tma.engine import TmaEngine

__all__ = ["Agcu"]


class Agcu(Component):
    """Memory port of the fabric: loop nests of boxes, credit flow control and a TMA engine.

    At ``i_start`` the descriptors of the program, each with its launch argument added to its
    base, are written to the TMA engine, one per cycle. Meanwhile the issuers compute their
    first commands. In iteration i of the program, a box lies
    i times the argument's stride further. An arriving token increments the count
    of its port, from which commands take theirs. A box that has become visible in memory sends a
    token, if so programmed.

    Parameters
    ----------
    width_bits, axi_address_bits, landing_beats, outstanding, token_tracks : int
        As of :class:`hw.arch.config.ChipConfig` and its AGCUs.

    Members
    -------
    o_load, i_store : arrays of vector streams
        Boxes to and from the fabric, one packet per box.
    i_token, o_token : arrays of token streams
        Credits from destinations; reports of boxes visible in memory.
    axi : AXI4 manager port
        AXI4, commanded by the unit: loads and stores.
    config : ``In(agcu_layout(...))``
        The program; constant from ``i_start`` on.
    i_last_iteration : ``In(REPEAT_BITS)``
        Iterations of the program less 1; constant from the cycle after ``i_start`` on.
    i_start
        Start the program; one cycle, after a reset.
    i_argument_valid, i_argument
        Launch arguments, before ``i_start``; a reset does not clear them.
    i_drain
        Start no new burst.
    o_done
        Every box has been moved and every store has its response.
    o_idle
        No burst is open or unanswered.
    o_error
        First error of the TMA engine since reset.
    i_run
        The counters count in this cycle.
    i_counter, o_counter : ``In(range(8))``, ``Out(48)``
        Number of a counter (`hw.arch.counters`), and its value.

    Raises
    ------
    BadInputError
        A parameter is outside its domain.
    """

    o_load: Sequence[stream.Interface]
    i_store: Sequence[stream.Interface]
    i_token: Sequence[stream.Interface]
    o_token: Sequence[stream.Interface]
    axi: Axi4Interface
    config: data.View[data.StructLayout]
    i_last_iteration: Signal
    i_start: Signal
    i_argument_valid: Signal
    i_argument: data.View[data.StructLayout]
    i_drain: Signal
    o_done: Signal
    o_idle: Signal
    o_error: Signal
    i_run: Signal
    i_counter: Signal
    o_counter: Signal

    def __init__(
        self,
        *,
        width_bits: int,
        axi_address_bits: int,
        landing_beats: int,
        outstanding: int,
        token_tracks: int,
    ) -> None:
        LINK_BITS.require("Link width in bits", width_bits)
        AXI_ADDRESS_BITS.require("AXI address bits", axi_address_bits)
        LANDING_BEATS.require("Landing beats", landing_beats)
        OUTSTANDING.require("Outstanding bursts", outstanding)
        TRACKS.require("Token tracks", token_tracks)
        self._width_bits = width_bits
        self._axi_address_bits = axi_address_bits
        self._landing_beats = landing_beats
        self._outstanding = outstanding
        self._token_tracks = ports = token_tracks
        link = vector_signature(width_bits)
        axi = Axi4Signature(data_bits=width_bits, address_bits=axi_address_bits)
        super().__init__(
            {
                "o_load": Out(link).array(AGCU_STREAMS),
                "i_store": In(link).array(AGCU_STREAMS),
                "i_token": In(token_signature()).array(ports),
                "o_token": Out(token_signature()).array(min(ports, AGCU_STREAMS)),
                "axi": Out(axi),
                "config": In(agcu_layout(ports)),
                "i_last_iteration": In(REPEAT_BITS),
                "i_start": In(1),
                "i_argument_valid": In(1),
                "i_argument": In(argument_write_layout()),
                "i_drain": In(1),
                "o_done": Out(1),
                "o_idle": Out(1),
                "o_error": Out(8),
                "i_run": In(1),
                "i_counter": In(range(COUNTER_WORDS)),
                "o_counter": Out(COUNTER_BITS),
            }
        )

    @classmethod
    def of_chip(cls, config: ChipConfig) -> Agcu:
        """Memory port of a chip."""
        return cls(
            width_bits=config.width_bits,
            axi_address_bits=config.agcu.axi_address_bits,
            landing_beats=config.agcu.landing_beats,
            outstanding=config.agcu.outstanding,
            token_tracks=config.token_tracks,
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        engine = TmaEngine(
            width_bits=self._width_bits,
            address_bits=self._axi_address_bits,
            landing_beats=self._landing_beats,
            outstanding=self._outstanding,
            descriptors=AGCU_DESCRIPTORS,
            load_streams=AGCU_STREAMS,
            store_streams=AGCU_STREAMS,
            features=AGCU_FEATURES,
        )
        m.submodules.engine = shared(engine)
        wiring.connect(m, engine.axi, wiring.flipped(self.axi))
        for number in range(AGCU_STREAMS):
            wiring.connect(m, engine.o_loaded[number], wiring.flipped(self.o_load[number]))
        m.d.comb += [
            engine.i_drain.eq(self.i_drain),
            self.o_idle.eq(engine.o_idle),
            self.o_error.eq(engine.o_error),
        ]

        m.submodules.descriptors = writer = DescriptorWriter(token_ports=self._token_tracks)
        wiring.connect(m, writer.o_write, engine.i_descriptor_write)
        m.d.comb += [
            writer.config.eq(self.config),
            writer.i_start.eq(self.i_start),
            writer.i_argument_valid.eq(self.i_argument_valid),
            writer.i_argument.eq(self.i_argument),
        ]
        commands = [*engine.i_load_commands, *engine.i_store_commands]
        full = Signal(AGCU_STREAMS)
        may_leave = [writer.o_written] * AGCU_STREAMS + [writer.o_written & ~bit for bit in full]
        issuers = self._issuers(m, commands, may_leave)
        self._share_inputs(m, engine, issuers)
        begun = [command.valid & command.ready for command in commands]
        ended = [port.valid & port.ready & port.payload.last for port in self.o_load]
        ended += list(engine.o_stored)
        # Boxes in flight between command and completion: loaded packets sent, stores answered.
        boxes = [Signal(8, name=f"boxes_{number}") for number in range(len(begun))]
        for count, begins, ends in zip(boxes, begun, ended, strict=True):
            m.d.sync += count.eq(count + begins - ends)
        issued = Cat(issuer.o_done for issuer in issuers).all()
        m.d.comb += self.o_done.eq(issued & ~Cat(boxes).any() & writer.o_idle)
        for number, pending in enumerate(self._stored_tokens(m, engine)):
            # So many reports at most are due, or the count of those pending would wrap around.
            due = boxes[AGCU_STREAMS + number] + pending
            m.d.comb += full[number].eq(self.config.stored[number] & (due >= MAX_CREDITS))
        lacking = [issuer.o_waits & writer.o_written for issuer in issuers[:AGCU_STREAMS]]
        self._count(m, lacking, begun, ended)
        return m

    def _issuers(
        self, m: Module, commands: Sequence[stream.Interface], may_leave: Sequence[Value]
    ) -> list[CommandIssuer]:
        """Add an issuer per command stream, and the token counts that they wait for."""
        issuers = []
        following = [(i, self.config.following[i]) for i in range(ISSUER_PROGRAMS - 1)]
        for index, command in enumerate(commands):
            issuer = CommandIssuer(descriptors=AGCU_DESCRIPTORS, token_ports=self._token_tracks)
            m.submodules[f"issuer_{index}"] = shared(issuer)
            offer = issuer.o_command
            m.d.comb += [
                command.valid.eq(offer.valid & may_leave[index]),
                command.payload.eq(offer.payload),
                offer.ready.eq(command.ready & may_leave[index]),
                issuer.config[0].eq(self.config.issuers[index]),
                *(issuer.config[1 + place].eq(later[index]) for place, later in following),
                issuer.i_last_iteration.eq(self.i_last_iteration),
                issuer.i_start.eq(self.i_start),
            ]
            issuers.append(issuer)
        for number, port in enumerate(self.i_token):
            count = Signal(range(MAX_CREDITS + 1), name=f"tokens_{number}")
            taken = sum(
                (issuer.o_take[number] for issuer in issuers[1:]), issuers[0].o_take[number]
            )
            arrives = port.valid & port.ready
            m.d.comb += port.ready.eq(count != MAX_CREDITS)
            m.d.sync += count.eq(
                Mux(self.i_start, self.config.credits[number], count + arrives - taken)
            )
            m.d.comb += [issuer.i_tokens[number].eq(count) for issuer in issuers]
        return issuers

    def _share_inputs(self, m: Module, engine: TmaEngine, issuers: Sequence[CommandIssuer]) -> None:
        """Give each vector input to its store stream if that is on, else to an index unpacker."""
        for number, port in enumerate(self.i_store):
            m.submodules[f"indices_{number}"] = reader = IndexUnpacker(width_bits=self._width_bits)
            stores = self.config.issuers[AGCU_STREAMS + number].enable
            target = engine.i_vectors[number]
            m.d.comb += [
                target.payload.eq(port.payload),
                reader.i_stream.payload.eq(port.payload),
                target.valid.eq(port.valid & stores),
                reader.i_stream.valid.eq(port.valid & ~stores),
                port.ready.eq(Mux(stores, target.ready, reader.i_stream.ready)),
            ]
            users = [
                issuers[stream + AGCU_STREAMS * store]
                for store in (False, True)
                for stream in range(AGCU_STREAMS)
                if index_input(stream, store=store) == number
            ]
            m.d.comb += [
                reader.i_take.eq(Cat(issuer.o_index_take for issuer in users).any()),
                reader.i_drop.eq(Cat(issuer.o_index_drop for issuer in users).any()),
            ]
            for issuer in users:
                m.d.comb += [
                    issuer.i_index_valid.eq(reader.o_valid),
                    issuer.i_index.eq(reader.o_index),
                ]

    def _count(
        self,
        m: Module,
        lacking: Sequence[Value],
        begun: Sequence[Value],
        ended: Sequence[Value],
    ) -> None:
        """Add the counters: activity, boxes begun and ended, beats on the bus."""
        axi = self.axi
        inner = [*self.o_load, *self.i_store]
        reads, writes = axi.rvalid & axi.rready, axi.wvalid & axi.wready
        moves = Cat(reads, writes, *(port.valid & port.ready for port in inner))
        refused = Cat(
            *(port.valid & ~port.ready for port in (*self.o_load, *self.o_token)),
            *lacking,
            axi.arvalid & ~axi.arready,
            axi.awvalid & ~axi.awready,
            axi.wvalid & ~axi.wready,
        )
        counters: Any = Signal(activity_layout())
        sums = {
            name: Signal(COUNTER_BITS, name=name)
            for name in ("commands", "boxes", "beats", "bus_idle")
        }
        with m.If(self.i_run):
            count_activity(m, counters, busy=moves.any(), idle=self.o_done, wait_room=refused.any())
            m.d.sync += [
                sums["commands"].eq(sums["commands"] + sum(begun[1:], begun[0])),
                sums["boxes"].eq(sums["boxes"] + sum(ended[1:], ended[0])),
                sums["beats"].eq(sums["beats"] + (reads + writes)),
                sums["bus_idle"].eq(sums["bus_idle"] + ~(reads | writes)),
            ]
        values: dict[str, Value] = {name: counters[name] for name in ACTIVITIES}
        beat_bytes = self._width_bits // 8
        values |= {name: sums[name] for name in ("commands", "boxes", "bus_idle")}
        values["bytes"] = sums["beats"] << (beat_bytes.bit_length() - 1)
        chosen_counter(m, AGCU, self.i_counter, values, self.o_counter)

    def _stored_tokens(self, m: Module, engine: TmaEngine) -> list[Signal]:
        """Send a token per stored box of each stream that reports them; returns those pending."""
        counts = []
        for number, port in enumerate(self.o_token):
            pending = Signal(range(MAX_CREDITS + 1), name=f"stored_{number}")
            m.d.comb += port.valid.eq(pending != 0)
            m.d.sync += pending.eq(
                pending
                + (engine.o_stored[number] & self.config.stored[number])
                - (port.valid & port.ready)
            )
            counts.append(pending)
        return counts
