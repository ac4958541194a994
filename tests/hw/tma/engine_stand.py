"""A TMA engine without features, as the AGCUs of a chip have it, as native models need it."""

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.emit.shared import shared
from hw.lib.axi import Axi4Signature
from hw.lib.component import Component
from hw.lib.stream import vector_signature
from hw.tma.commands import command_layout
from hw.tma.descriptor_file import descriptor_write_layout
from hw.tma.engine import TmaEngine

__all__ = ["EngineStand"]


class EngineStand(Component):
    """A TMA engine with one stream each way; ``o_stored`` is a stream that must be ready."""

    def __init__(self, *, width_bits: int, landing_beats: int, outstanding: int) -> None:
        self._sizes = {
            "width_bits": width_bits,
            "landing_beats": landing_beats,
            "outstanding": outstanding,
        }
        commands = stream.Signature(command_layout(8, ()))
        super().__init__(
            {
                "i_descriptor": In(stream.Signature(descriptor_write_layout(8))),
                "i_loads": In(commands),
                "i_stores": In(commands),
                "o_loaded": Out(vector_signature(width_bits)),
                "i_vectors": In(vector_signature(width_bits)),
                "o_stored": Out(stream.Signature(1)),
                "axi": Out(Axi4Signature(data_bits=width_bits, address_bits=48)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        engine = TmaEngine(**self._sizes, load_streams=1, store_streams=1)
        m.submodules.engine = shared(engine)
        for source, target in (
            (wiring.flipped(self.i_descriptor), engine.i_descriptor_write),
            (wiring.flipped(self.i_loads), engine.i_load_commands[0]),
            (wiring.flipped(self.i_stores), engine.i_store_commands[0]),
            (engine.o_loaded[0], wiring.flipped(self.o_loaded)),
            (wiring.flipped(self.i_vectors), engine.i_vectors[0]),
            (engine.axi, wiring.flipped(self.axi)),
        ):
            wiring.connect(m, source, target)
        m.d.comb += self.o_stored.valid.eq(engine.o_stored)
        return m
