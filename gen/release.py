"""Check that the installed tools write the same Verilog as the pinned releases.

Other releases within the ranges of `pyproject.toml` may write different but equivalent text.
Figures and hashes of this project are of the pinned ones, so a difference is noted, never refused.
"""

import functools
import hashlib
from importlib import metadata

from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib.memory import Memory

from gen.verilog import convert

__all__ = ["RELEASE", "SAMPLE_SHA256", "sample_text", "text_note"]

#: Release of pyosys with which the figures of this project were made.
RELEASE = "0.70"

#: Digest of the sample's text as the pinned releases write it.
SAMPLE_SHA256 = "9c25d93162006cfb3fa0f0006c8dd74aabcc8e1525586f9f26f1ebf737a16674"


class _Sample(Elaboratable):
    """Adder, signed comparison, memory, register and a choice: what all designs are made of."""

    def __init__(self) -> None:
        self.i_value = Signal(4)
        self.i_choice = Signal(2)
        self.o_value = Signal(4)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        memory: Memory = Memory(shape=4, depth=4, init=[3])
        m.submodules.memory = memory
        write, read = memory.write_port(), memory.read_port(domain="comb")
        total = self.i_value + self.o_value
        m.d.comb += [
            write.addr.eq(self.i_choice),
            write.data.eq(total),
            write.en.eq(self.i_value.as_signed() < self.o_value.as_signed()),
            read.addr.eq(self.i_choice),
        ]
        with m.Switch(self.i_choice):
            with m.Case("00"):
                m.d.sync += self.o_value.eq(total)
            with m.Case("1-"):
                m.d.sync += self.o_value.eq(read.data)
        return m


def sample_text() -> str:
    """Verilog of a small design that never changes, as the installed tools write it."""
    sample = _Sample()
    return convert(sample, name="sample", ports=[sample.i_value, sample.i_choice, sample.o_value])


@functools.cache
def text_note() -> str | None:
    """Note that the installed release writes different text; None if it writes the same.

    Raises
    ------
    hw.arch.errors.MissingToolError
        If the library is not installed.
    """
    digest = hashlib.sha256(sample_text().encode()).hexdigest()
    if digest == SAMPLE_SHA256:
        return None
    return (
        f"pyosys {metadata.version('pyosys')} writes other Verilog text than {RELEASE}: "
        "hashes and areas may differ from those that are stated"
    )
