"""Scratchpad of byte-wide banks with conflict-free access to rows, columns and tiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hw.arch.errors import BadInputError, shown
from hw.arch.words.pmu_word import ELEMENT_BYTES, INDEX_BYTES, Access
from hw.emit.shared import shared
from hw.lib.component import Component
from hw.pmu.element_selector import pass_layout
from hw.pmu.permuter import Permuter

__all__ = ["READ_LATENCY", "Banks", "ByteBank", "request_layout"]

#: Latency in cycles of a read request.
READ_LATENCY = 3


def request_layout(position_bits: int) -> data.StructLayout:
    """Layout of a request: position of lane 0, index of the element width, access shape."""
    return data.StructLayout({"position": position_bits, "element": 2, "access": Access})


class ByteBank(Component):
    """Memory bank one byte wide: one read and one write per cycle, read latency one cycle.

    A read of the word that is written in the same cycle returns the old byte.

    Parameters
    ----------
    depth : int
        Words.

    Members
    -------
    i_write, i_write_address, i_write_data : ``In``
    i_read, i_read_address : ``In``
    o_read_data : ``Out(8)``
    """

    i_write: Signal
    i_write_address: Signal
    i_write_data: Signal
    i_read: Signal
    i_read_address: Signal
    o_read_data: Signal

    def __init__(self, *, depth: int) -> None:
        self._depth = depth
        super().__init__(
            {
                "i_write": In(1),
                "i_write_address": In(range(depth)),
                "i_write_data": In(8),
                "i_read": In(1),
                "i_read_address": In(range(depth)),
                "o_read_data": Out(8),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        memory: Memory[Any, Any] = Memory(shape=8, depth=self._depth, init=[])
        m.submodules.memory = memory
        write = memory.write_port()
        read = memory.read_port()
        m.d.comb += [
            write.en.eq(self.i_write),
            write.addr.eq(self.i_write_address),
            write.data.eq(self.i_write_data),
            read.en.eq(self.i_read),
            read.addr.eq(self.i_read_address),
            self.o_read_data.eq(read.data),
        ]
        return m


class _Plan:
    """Bank addresses and permutation of one access; docs/pmu.md has the formulas."""

    def __init__(self, m: Module, name: str, request: data.View, lane_bits: int) -> None:
        position = Value.cast(request.position)
        address_bits = len(position) - lane_bits
        self.lane_bits = lane_bits
        self.rows_log2 = Signal(range(lane_bits + 1), name=f"{name}_rows_log2")
        self.xor = Signal(lane_bits, name=f"{name}_xor")
        #: Address for banks whose number has a 0, or a 1, in the bits that the address depends on.
        self.addresses = [Signal(address_bits, name=f"{name}_address_{i}") for i in (0, 1)]
        row = Signal(address_bits, name=f"{name}_row")
        with m.Switch(request.element):
            for element in range(len(ELEMENT_BYTES)):
                bits = lane_bits - element
                with m.Case(element):
                    column = position[:bits]
                    reverse = Cat(position[2 * bits - 1 - i] for i in range(bits))
                    m.d.comb += [
                        self.xor[element:].eq(column ^ reverse),
                        row.eq(position[bits:]),
                        self.rows_log2.eq(
                            Mux(request.access == Access.COLUMN, bits, Value.cast(request.access))
                        ),
                    ]
        for i, address in enumerate(self.addresses):
            m.d.comb += address.eq(row)
            for bit in range(min(lane_bits, address_bits)):
                with m.If(bit < self.rows_log2):
                    m.d.comb += address[bit].eq(self.xor[lane_bits - 1 - bit] ^ i)

    def read_xor(self) -> Value:
        """XOR mask of a read, applied after the lane reversal: its top bits reversed."""
        bits = self.lane_bits
        value: Value = self.xor
        for rows in range(2, bits + 1):
            swapped = Cat(self.xor[: bits - rows], self.xor[bits - rows :][::-1])
            value = Mux(self.rows_log2 == rows, swapped, value)
        return value


class _Addresses(NamedTuple):
    """Addresses of a write that adds, in the cycle in which it reads: ``fetch``."""

    fetch: Signal
    single: Signal
    held: list[Signal]


def _bank_address(addresses: Sequence[Value], bank: int, lane_bits: int) -> Value:
    bits = [
        addresses[bank >> (lane_bits - 1 - bit) & 1 if bit < lane_bits else 0][bit]
        for bit in range(len(addresses[0]))
    ]
    return Cat(bits)


class Banks(Component):
    """Conflict-free scratchpad of ``width_bits / 8`` byte banks, one write and one read port.

    One vector written and one read in every cycle, in any mix of access shapes and element widths.
    Read data come ``READ_LATENCY`` cycles after the request and include every write requested in
    an earlier cycle; a write requested in the same cycle may or may not be included. Accesses must
    be aligned.

    A write that adds takes the read port in its cycle, and the write port in the next one as well:
    no read may be requested with it, and no write in the cycle after it. A read sees it from two
    cycles after it on.

    Parameters
    ----------
    width_bits : int
        Bits of a vector (a power of two, 64 to 1024).
    capacity_bytes : int
        Bytes of the scratchpad (a power of two, at least one block of bytes, (width_bits / 8)²).

    Members
    -------
    i_write_valid, i_write : ``In(1)``, ``In({request, add, data})``
        With ``add``, words of 32 bits are added to those stored; elements have 4 bytes.
    i_read_valid, i_read : ``In(1)``, ``In(request)``
    i_elements : ``In(pass_layout(...))``
    i_write_elements, i_read_elements : ``In(1)``
        The write, or the read, is one of single elements of 4 bytes, as ``i_elements`` has them, in
        place of the request. Not both while passes over a vector are under way. A read fills the
        lanes that it serves, and the first one over a vector the others with zeros: the data are
        complete with its last one, if no other read came between.
    o_read_valid, o_read : ``Out(1)``, ``Out(width_bits)``

    Raises
    ------
    BadInputError
        If a parameter lies outside its domain, or the capacity does not hold a block.
    """

    i_write: data.View[data.StructLayout]
    i_write_valid: Signal
    i_read: data.View[data.StructLayout]
    i_read_valid: Signal
    i_elements: Any
    i_write_elements: Signal
    i_read_elements: Signal
    o_read: Signal
    o_read_valid: Signal

    def __init__(self, *, width_bits: int, capacity_bytes: int) -> None:
        for noun, value, least in (
            ("Vector width in bits", width_bits, 64),
            ("PMU capacity in bytes", capacity_bytes, 64),
        ):
            if not isinstance(value, int) or value < least or value & (value - 1):
                raise BadInputError(
                    f"{noun} must be a power of two from {least}, not {shown(value)}"
                )
        if capacity_bytes < (width_bits // 8) ** 2:
            raise BadInputError(
                f"PMU capacity must be at least {(width_bits // 8) ** 2} bytes at a vector width "
                f"of {width_bits} bits, not {capacity_bytes}"
            )
        self._width_bits = width_bits
        self._capacity_bytes = capacity_bytes
        request = request_layout(self.position_bits)
        self._pass = pass_layout(width_bits=width_bits, position_bits=self.position_bits)
        write = data.StructLayout({"request": request, "add": 1, "data": width_bits})
        super().__init__(
            {
                "i_write": In(write),
                "i_write_valid": In(1),
                "i_read": In(request),
                "i_read_valid": In(1),
                "i_elements": In(self._pass),
                "i_write_elements": In(1),
                "i_read_elements": In(1),
                "o_read": Out(width_bits),
                "o_read_valid": Out(1),
            }
        )

    @property
    def position_bits(self) -> int:
        """Bits of an element position."""
        return self._capacity_bytes.bit_length() - 1

    def elaborate(self, platform: object) -> Module:
        m = Module()
        count = self._width_bits // 8
        banks = [ByteBank(depth=self._capacity_bytes // count) for _ in range(count)]
        for index, bank in enumerate(banks):
            m.submodules[f"bank_{index}"] = shared(bank)
        fetched = Signal(self._width_bits)
        m.d.comb += fetched.eq(Cat(bank.o_read_data for bank in banks))

        # Elements: an address for each bank of words, and one crossbar of words, from the banks or
        # to them.
        words = count // INDEX_BYTES
        places = [Signal(range(self._capacity_bytes // count)) for _ in range(words)]
        with m.If(
            (self.i_write_valid & self.i_write_elements)
            | (self.i_read_valid & self.i_read_elements)
        ):
            m.d.sync += [
                place.eq(self.i_elements.address[word]) for word, place in enumerate(places)
            ]
        tag = data.StructLayout(
            {"element": 1} | {name: self._pass[name].shape for name in ("first", "served", "bank")}
        )
        tags: list[Any] = [Signal(tag, name=f"tag_{stage}") for stage in range(READ_LATENCY)]
        m.d.comb += [tags[0].element.eq(self.i_read_elements)]
        m.d.comb += [
            tags[0][name].eq(self.i_elements[name]) for name in ("first", "served", "bank")
        ]
        m.d.sync += [later.eq(earlier) for earlier, later in zip(tags, tags[1:])]
        sources = Mux(self.i_write_elements, self.i_write.data, fetched)
        crossed = Signal(self._width_bits)
        for word in range(words):
            chosen = Mux(self.i_write_elements, self.i_elements.lane[word], tags[-1].bank[word])
            m.d.comb += crossed.word_select(word, 32).eq(sources.word_select(chosen, 32))

        added = self._write(m, banks, places, crossed, fetched)
        self._read(m, banks, places, crossed, fetched, tags, added)
        return m

    def _write(
        self,
        m: Module,
        banks: Sequence[ByteBank],
        places: Sequence[Signal],
        crossed: Value,
        fetched: Value,
    ) -> _Addresses:
        """Permute, register, store; returns the addresses to be read for a sum."""
        lane_bits = len(banks).bit_length() - 1
        plan = _Plan(m, "write", self.i_write.request, lane_bits)
        scatter = Permuter(width_bits=self._width_bits)
        m.submodules.scatter = shared(scatter)
        m.d.comb += [
            scatter.i_data.eq(self.i_write.data),
            scatter.i_rows_log2.eq(plan.rows_log2),
            scatter.i_xor.eq(plan.xor),
        ]
        write, fetch, add = Signal(), Signal(name="fetch_sum"), Signal(name="add_sum")
        write_data = Signal(self._width_bits, reset_less=True)
        held = [Signal.like(a, reset_less=True, name_suffix="_held") for a in plan.addresses]
        single = Signal(name="write_single")
        enable = Signal.like(self.i_elements.enable, name="enable")
        m.d.sync += [
            write.eq(self.i_write_valid & ~self.i_write.add),
            fetch.eq(self.i_write_valid & self.i_write.add),
            add.eq(fetch),
        ]
        with m.If(self.i_write_valid):
            m.d.sync += [
                write_data.eq(Mux(self.i_write_elements, crossed, scatter.o_data)),
                single.eq(self.i_write_elements),
                enable.eq(self.i_elements.enable),
            ]
            m.d.sync += [each.eq(address) for each, address in zip(held, plan.addresses)]
        for number, bank in enumerate(banks):
            word, byte = divmod(number, INDEX_BYTES)
            if not byte:
                value = write_data.word_select(word, 32)
                total = Signal(32, name=f"sum_{word}")
                m.d.comb += total.eq(fetched.word_select(word, 32) + value)
            m.d.comb += [
                bank.i_write.eq((write | add) & (~single | enable[word])),
                bank.i_write_address.eq(
                    Mux(single, places[word], _bank_address(held, number, lane_bits))
                ),
                bank.i_write_data.eq(Mux(add, total, value).word_select(byte, 8)),
            ]
        return _Addresses(fetch, single, held)

    def _read(
        self,
        m: Module,
        banks: Sequence[ByteBank],
        places: Sequence[Signal],
        crossed: Value,
        fetched: Value,
        tags: Sequence[Any],
        added: _Addresses,
    ) -> None:
        """Register, fetch, permute, register."""
        lane_bits = len(banks).bit_length() - 1
        plan = _Plan(m, "read", self.i_read, lane_bits)
        gather = Permuter(width_bits=self._width_bits)
        m.submodules.gather = shared(gather)
        held = [Signal.like(a, reset_less=True, name_suffix="_held") for a in plan.addresses]
        m.d.sync += [each.eq(address) for each, address in zip(held, plan.addresses)]
        valid: Value = self.i_read_valid
        rows_log2: Value = plan.rows_log2
        xor = plan.read_xor()
        stages: list[Signal] = []
        for stage in range(READ_LATENCY - 1):
            later = [
                Signal(1, name=f"valid_{stage}"),
                Signal(len(rows_log2), reset_less=True, name=f"rows_log2_{stage}"),
                Signal(lane_bits, reset_less=True, name=f"xor_{stage}"),
            ]
            m.d.sync += [h.eq(v) for h, v in zip(later, (valid, rows_log2, xor))]
            valid, rows_log2, xor = later
            stages.append(later[0])
        addresses = [Mux(added.fetch, sums, reads) for sums, reads in zip(added.held, held)]
        single = Mux(added.fetch, added.single, tags[1].element)
        for number, bank in enumerate(banks):
            address = _bank_address(addresses, number, lane_bits)
            m.d.comb += [
                bank.i_read.eq(stages[0] | added.fetch),
                bank.i_read_address.eq(Mux(single, places[number // INDEX_BYTES], address)),
            ]
        m.d.comb += [
            gather.i_data.eq(fetched),
            gather.i_rows_log2.eq(rows_log2),
            gather.i_xor.eq(xor),
        ]
        m.d.sync += self.o_read_valid.eq(valid)
        tag = tags[-1]
        for word in range(len(places)):
            # A pass keeps what the ones before it over the same vector have read.
            with m.If(valid & (~tag.element | tag.served[word])):
                m.d.sync += self.o_read.word_select(word, 32).eq(
                    Mux(tag.element, crossed, gather.o_data).word_select(word, 32)
                )
            with m.Elif(valid & tag.first):
                m.d.sync += self.o_read.word_select(word, 32).eq(0)
