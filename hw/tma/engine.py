"""TMA engine: load and store engine on one AXI4 port, with a shared descriptor file."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arch import limits
from hw.arch.descriptor import TmaFeature
from hw.arch.error_codes import TmaError
from hw.emit.shared import shared
from hw.lib.axi import Axi4Interface, Axi4Signature
from hw.lib.component import Component
from hw.lib.stream import vector_signature
from hw.tma.arbiter import CommandArbiter
from hw.tma.box_readers import readers_of
from hw.tma.commands import command_layout
from hw.tma.descriptor_file import DescriptorFile, descriptor_write_layout
from hw.tma.layouts import TmaLayouts
from hw.tma.load import LoadEngine, id_bits_of
from hw.tma.reduction.reduction_fields import reduction_layout
from hw.tma.store import StoreEngine

__all__ = ["TmaEngine"]

#: Depth of each stream's command FIFO.
_QUEUED_COMMANDS = 4


class TmaEngine(Component):
    """TMA engine: moves boxes between memory and vector streams, one command per box.

    Loads and stores are independent; each moves one beat per cycle. Only ``o_stored`` orders a load
    after a store. See docs/tma.md.

    Parameters
    ----------
    width_bits : int
        Width of a vector and of AXI's data (`limits.LINK_BITS`).
    address_bits : int
        Width of a byte address (`limits.AXI_ADDRESS_BITS`).
    landing_beats : int
        Beats of the landing buffer (`limits.LANDING_BEATS`).
    outstanding : int
        Most outstanding bursts, of loads and of stores each (`limits.OUTSTANDING`).
    read_ids : int
        IDs of the bursts of loads, from 0 on (`limits.READ_IDS`).
    descriptors : int
        Descriptors in the file.
    load_streams, store_streams : int
        Streams, each with its own command FIFO, served round robin.
    features : tuple of TmaFeature
        What it can do beyond dense boxes with zeros outside the tensor.

    Members
    -------
    i_descriptor_write : stream of :func:`hw.tma.descriptor_file.descriptor_write_layout`
        Always ready.
    i_load_commands, i_store_commands : arrays of streams of :func:`hw.tma.commands.command_layout`
        Boxes to load and to store, one stream of commands per stream of vectors.
    o_loaded : array of vector streams
        One packet per box.
    i_vectors : array of vector streams
        Vectors to store; their flags are ignored.
    o_load_reports, o_store_reports : streams of :attr:`TmaLayouts.report`
        One per command, in order; present with `TmaFeature.PARALLEL_BOXES`.
    o_loaded_response, o_stored_response
        Responses that failed, of the box whose last vector ``o_loaded`` has and of the one that
        ``o_stored`` reports: bit 0 SLVERR, bit 1 DECERR; present with the reports.
    o_reduction, i_failed_read
        As of :class:`hw.tma.store.StoreEngine`; present with `TmaFeature.REDUCE`.
    o_stored
        One bit per store stream, high for one cycle per box that has become visible in memory.
    axi : AXI4 manager port
        AXI4, commanded by the engine: loads and stores.
    i_drain
        Start no new burst.
    o_idle
        No burst is open or unanswered.
    o_error
        First error since reset, an :class:`hw.arch.error_codes.TmaError`.

    Raises
    ------
    BadInputError
        If a parameter lies outside its domain.
    """

    i_descriptor_write: stream.Interface
    i_load_commands: Sequence[stream.Interface]
    i_store_commands: Sequence[stream.Interface]
    o_loaded: Sequence[stream.Interface]
    i_vectors: Sequence[stream.Interface]
    o_load_reports: stream.Interface
    o_store_reports: stream.Interface
    o_loaded_response: Signal
    o_stored_response: Signal
    o_reduction: Any
    i_failed_read: Signal
    o_stored: Signal
    axi: Axi4Interface
    i_drain: Signal
    o_idle: Signal
    o_error: Signal

    def __init__(
        self,
        *,
        width_bits: int = 256,
        address_bits: int = 48,
        landing_beats: int = 256,
        outstanding: int = 16,
        read_ids: int = 1,
        descriptors: int = 8,
        load_streams: int = 2,
        store_streams: int = 2,
        features: tuple[TmaFeature, ...] = (),
    ) -> None:
        limits.LINK_BITS.require("Width in bits", width_bits)
        limits.LANDING_BEATS.require("Landing beats", landing_beats)
        limits.AXI_ADDRESS_BITS.require("Address bits", address_bits)
        limits.OUTSTANDING.require("Outstanding bursts", outstanding)
        limits.READ_IDS.require("Read IDs", read_ids)
        limits.DESCRIPTOR_COUNT.require("Descriptors", descriptors)
        limits.STREAM_COUNT.require("Load streams", load_streams)
        limits.STREAM_COUNT.require("Store streams", store_streams)
        self._loaded = TmaLayouts(width_bits, address_bits, load_streams, features)
        self._stored = TmaLayouts(width_bits, address_bits, store_streams, features)
        self._landing = {"landing_beats": landing_beats, "read_ids": read_ids}
        self._sizes = {"outstanding": outstanding, "descriptors": descriptors}
        commands = stream.Signature(command_layout(descriptors, features))
        vectors = vector_signature(width_bits)
        words = stream.Signature(descriptor_write_layout(descriptors))
        self._reports = TmaFeature.PARALLEL_BOXES in features
        report = Out(stream.Signature(self._loaded.report))
        reports: dict[str, wiring.Member] = {}
        if self._reports:
            reports = {f"o_{side}_reports": report for side in ("load", "store")}
            reports["o_loaded_response"] = Out(2)
            reports["o_stored_response"] = Out(self._stored.stored_bits)
        self._reduces = TmaFeature.REDUCE in features
        if self._reduces:
            reports |= {"o_reduction": Out(reduction_layout), "i_failed_read": In(1)}
        super().__init__(
            {
                "i_descriptor_write": In(words),
                "i_load_commands": In(commands).array(load_streams),
                "i_store_commands": In(commands).array(store_streams),
                "o_loaded": Out(vectors).array(load_streams),
                "i_vectors": In(vectors).array(store_streams),
                **reports,
                "o_stored": Out(store_streams),
                "axi": Out(
                    Axi4Signature(
                        data_bits=width_bits,
                        address_bits=address_bits,
                        id_bits=id_bits_of(read_ids),
                    )
                ),
                "i_drain": In(1),
                "o_idle": Out(1),
                "o_error": Out(8),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        descriptors = self._sizes["descriptors"]
        readers = readers_of(self._loaded)
        m.submodules.file = file = DescriptorFile(descriptors=descriptors, readers=2 * readers)
        load = LoadEngine(self._loaded, **self._landing, **self._sizes)
        store = StoreEngine(self._stored, **self._sizes)
        m.submodules.load = shared(load)
        m.submodules.store = shared(store)
        wiring.connect(m, wiring.flipped(self.i_descriptor_write), file.i_write)
        for produced, port in zip(load.o_streams, self.o_loaded):
            wiring.connect(m, produced, wiring.flipped(port))
        for port, taken in zip(self.i_vectors, store.i_streams):
            wiring.connect(m, wiring.flipped(port), taken)

        sides: tuple[tuple[str, LoadEngine | StoreEngine, Sequence[stream.Interface]], ...] = (
            ("load", load, self.i_load_commands),
            ("store", store, self.i_store_commands),
        )
        for number, (name, side, commands) in enumerate(sides):
            arbiter = CommandArbiter(
                descriptors=descriptors,
                streams=len(commands),
                depth=_QUEUED_COMMANDS,
                features=self._loaded.features,
            )
            m.submodules[f"{name}_commands"] = shared(arbiter)
            for given, queued in zip(commands, arbiter.i_streams):
                wiring.connect(m, wiring.flipped(given), queued)
            wiring.connect(m, arbiter.o_stream, side.i_stream)
            m.d.comb += side.i_drain.eq(self.i_drain)
            for each in range(readers):
                place = number * readers + each
                m.d.comb += [
                    file.i_index[place].eq(side.o_index[each]),
                    file.i_read[place].eq(side.o_read[each]),
                    side.i_descriptor[each].eq(file.o_descriptor[place]),
                    side.i_stride[each].eq(file.o_stride[place]),
                ]
            if self._reports:
                wiring.connect(
                    m, side.o_reports, wiring.flipped(getattr(self, f"o_{name}_reports"))
                )
            for wire, member in side.axi.signature.members.items():
                whole, half = getattr(self.axi, wire), getattr(side.axi, wire)
                m.d.comb += whole.eq(half) if member.flow == Out else half.eq(whole)
        if self._reports:
            m.d.comb += [
                self.o_loaded_response.eq(load.o_loaded_response),
                self.o_stored_response.eq(store.o_stored_response),
            ]
        if self._reduces:
            m.d.comb += [
                self.o_reduction.eq(store.o_reduction),
                store.i_failed_read.eq(self.i_failed_read),
            ]
        m.d.comb += [
            self.o_stored.eq(store.o_stored),
            self.o_idle.eq(load.o_idle & store.o_idle),
        ]
        with m.If(self.o_error == TmaError.NONE.value):
            m.d.sync += self.o_error.eq(Mux(load.o_error != 0, load.o_error, store.o_error))
        return m
