"""Vector memory with compact RTLIL: one write port with enables, one read port, any depth."""

from __future__ import annotations

from functools import cached_property

from amaranth.hdl import Module, Signal
from amaranth.lib import memory
from amaranth.lib.wiring import In, Out

from hw.emit.shared import Library
from hw.lib.component import Component

__all__ = ["VectorMemory"]


class VectorMemory(Component):
    """Memory of vectors with one write port, enabled per granule, and one read port.

    Its initial contents are unknown. Amaranth would write an initial value for every bit, and the
    first TPU has 24 MiB of them; so an emitted design gets RTLIL written here.

    Parameters
    ----------
    width, depth : int
        Bits of a vector; number of vectors.
    granule : int
        Write-enable granularity in bits.

    Members
    -------
    i_write, i_write_address, i_data
        Write enable per granule, address and vector.
    i_read, i_read_address, o_data
        Read enable and address; the vector from the next cycle on, until the next read.
    """

    i_write: Signal
    i_write_address: Signal
    i_data: Signal
    i_read: Signal
    i_read_address: Signal
    o_data: Signal

    def __init__(self, *, width: int, depth: int, granule: int) -> None:
        self._width = width
        self._depth = depth
        self._granule = granule
        super().__init__(
            {
                "i_write": In(width // granule),
                "i_write_address": In(range(depth)),
                "i_data": In(width),
                "i_read": In(1),
                "i_read_address": In(range(depth)),
                "o_data": Out(width),
            }
        )

    @cached_property
    def bank(self) -> memory.Memory:
        """The memory in a simulation."""
        return memory.Memory(shape=self._width, depth=self._depth, init=[])

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.bank = self.bank
        write, read = self.bank.write_port(granularity=self._granule), self.bank.read_port()
        m.d.comb += [
            write.en.eq(self.i_write),
            write.addr.eq(self.i_write_address),
            write.data.eq(self.i_data),
            read.en.eq(self.i_read),
            read.addr.eq(self.i_read_address),
            self.o_data.eq(read.data),
        ]
        return m

    def rtlil(self, library: Library) -> str:
        """RTLIL of its definition in an emitted design."""
        width, depth, address = self._width, self._depth, len(self.i_read_address)
        ports = {
            "i_write": ("input", len(self.i_write)),
            "i_write_address": ("input", address),
            "i_data": ("input", width),
            "i_read": ("input", 1),
            "i_read_address": ("input", address),
            "o_data": ("output", width),
            "clk": ("input", 1),
        }
        enables = " ".join(
            f"\\i_write [{granule}]"
            for granule in reversed(range(len(self.i_write)))
            for _ in range(self._granule)
        )
        common = [
            '    parameter \\MEMID "\\\\bank"',
            f"    parameter \\ABITS {address}",
            f"    parameter \\WIDTH {width}",
            "    parameter \\CLK_ENABLE 1",
            "    parameter \\CLK_POLARITY 1",
            "    connect \\CLK \\clk",
        ]
        unknown = f"{width}'{'x' * width}"
        return "\n".join(
            [
                f"module \\{self.definition_name}",
                *(
                    f"  wire width {bits} {direction} {index} \\{port}"
                    for index, (port, (direction, bits)) in enumerate(ports.items())
                ),
                f"  memory width {width} size {depth} \\bank",
                "  cell $memwr_v2 $write",
                *common,
                "    parameter \\PORTID 0",
                "    parameter \\PRIORITY_MASK 0",
                "    connect \\ADDR \\i_write_address",
                "    connect \\DATA \\i_data",
                f"    connect \\EN {{ {enables} }}",
                "  end",
                "  cell $memrd_v2 $read",
                *common,
                "    parameter \\TRANSPARENCY_MASK 1'0",
                "    parameter \\COLLISION_X_MASK 1'0",
                *(f"    parameter \\{kind}_VALUE {unknown}" for kind in ("ARST", "SRST", "INIT")),
                "    parameter \\CE_OVER_SRST 0",
                "    connect \\ADDR \\i_read_address",
                "    connect \\DATA \\o_data",
                "    connect \\ARST 1'0",
                "    connect \\SRST 1'0",
                "    connect \\EN \\i_read",
                "  end",
                "end",
                "",
            ]
        )
