"""The chip: a mesh of tiles, AGCUs at its edges, and the command processor."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import (
    Cat,
    ClockDomain,
    ClockSignal,
    DomainRenamer,
    Module,
    ResetSignal,
    Signal,
)
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.agcu.unit import Agcu
from hw.arch.agcu import AGCU_STREAMS
from hw.arch.config import ChipConfig
from hw.arch.launch import REPEAT_BITS
from hw.arch.places import agcu_places, row_segments
from hw.arch.registers.chip_registers import HOST_ADDRESS_BITS
from hw.arch.unit_kind import AGCU
from hw.command.processor import CommandProcessor
from hw.emit.shared import shared
from hw.lib.axi import (
    Axi4Interface,
    Axi4ReadInterface,
    Axi4ReadSignature,
    Axi4Signature,
    AxiLiteInterface,
    AxiLiteSignature,
)
from hw.lib.component import Component
from hw.lib.config_segment import ConfigSegment
from hw.tile import Tile

__all__ = ["Chip"]


class Chip(Component):
    """Whole accelerator: mesh of tiles, AGCUs at its edges, command processor.

    Parameters
    ----------
    config : ChipConfig

    Members
    -------
    host
        AXI4-Lite, commanded by the host: its registers are in docs/command.md.
    launch
        AXI4 read, commanded by the chip: launch lists.
    memory
        AXI4, commanded by the chip: operands and results, one port per AGCU.
    o_interrupt
        High while an interrupt of the command processor is pending.
    """

    host: AxiLiteInterface
    launch: Axi4ReadInterface
    memory: Sequence[Axi4Interface]
    o_interrupt: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._chip = config
        sizes = {"data_bits": config.width_bits, "address_bits": config.agcu.axi_address_bits}
        super().__init__(
            {
                "host": In(AxiLiteSignature(address_bits=HOST_ADDRESS_BITS)),
                "launch": Out(Axi4ReadSignature(**sizes)),
                "memory": Out(Axi4Signature(**sizes)).array(config.agcu.count),
                "o_interrupt": Out(1),
            }
        )

    @property
    def definition_name(self) -> str:
        """Name of the top module."""
        return "tilewright"

    def elaborate(self, platform: object) -> Module:
        m = Module()
        chip = self._chip
        tiles = [
            [
                Tile(kind, chip.of_tile(kind))
                for kind in (chip.unit_at(row, column) for column in range(chip.columns))
            ]
            for row in range(chip.rows)
        ]
        places = agcu_places(chip)
        agcus = [Agcu.of_chip(chip) for _ in places]
        flat = [tile for row in tiles for tile in row]
        processor = CommandProcessor.of_chip(chip)
        m.submodules.processor = shared(processor)
        wiring.connect(m, wiring.flipped(self.host), processor.host)
        wiring.connect(m, processor.memory, wiring.flipped(self.launch))
        m.d.comb += self.o_interrupt.eq(processor.o_interrupt)

        # A stop resets everything but the command processor and the shadows of the segments, which
        # have no reset: the fabric is a reset domain of its own on the same clock.
        m.domains.fabric = ClockDomain("fabric")
        m.d.comb += [
            ClockSignal("fabric").eq(ClockSignal()),
            ResetSignal("fabric").eq(ResetSignal() | processor.o_clear),
        ]
        in_fabric = DomainRenamer("fabric")
        for row in range(chip.rows):
            for column in range(chip.columns):
                m.submodules[f"tile_{row}_{column}"] = in_fabric(shared(tiles[row][column]))
        for index, agcu in enumerate(agcus):
            m.submodules[f"agcu_{index}"] = in_fabric(shared(agcu))
            wiring.connect(m, agcu.axi, wiring.flipped(self.memory[index]))

        self._links(m, tiles)
        for place, agcu in zip(places, agcus, strict=True):
            self._attach(m, tiles[place.row][place.column(chip)], place.side, agcu)
        self._segments(m, processor, tiles, agcus)
        self._control(m, processor, flat, agcus)
        return m

    def _links(self, m: Module, tiles: list[list[Tile]]) -> None:
        chip = self._chip
        for row in range(chip.rows):
            for column in range(chip.columns):
                tile = tiles[row][column]
                neighbours = []
                if column + 1 < chip.columns:
                    neighbours.append((tiles[row][column + 1], "east", "west"))
                if row + 1 < chip.rows:
                    neighbours.append((tiles[row + 1][column], "south", "north"))
                for other, side, back in neighbours:
                    for kind in ("", "_token"):
                        for one, its, there in ((tile, side, back), (other, back, side)):
                            target = other if one is tile else tile
                            for source, sink in zip(
                                getattr(one, f"o_{its}{kind}"),
                                getattr(target, f"i_{there}{kind}"),
                                strict=True,
                            ):
                                wiring.connect(m, source, sink)

    def _attach(self, m: Module, tile: Tile, side: str, agcu: Agcu) -> None:
        # With one track only, the second streams are left unconnected.
        for number in range(min(AGCU_STREAMS, self._chip.tracks)):
            wiring.connect(m, agcu.o_load[number], getattr(tile, f"i_{side}")[number])
            wiring.connect(m, getattr(tile, f"o_{side}")[number], agcu.i_store[number])
        for number, port in enumerate(agcu.i_token):
            wiring.connect(m, getattr(tile, f"o_{side}_token")[number], port)
        for number, port in enumerate(agcu.o_token):
            wiring.connect(m, port, getattr(tile, f"i_{side}_token")[number])

    def _segments(
        self,
        m: Module,
        processor: CommandProcessor,
        tiles: list[list[Tile]],
        agcus: list[Agcu],
    ) -> None:
        chip = self._chip
        for row in range(chip.rows):
            for number, (kind, index, bits) in enumerate(row_segments(chip, row)):
                if kind is AGCU:
                    segment = ConfigSegment(width_bits=chip.width_bits, config_bits=bits)
                    m.submodules[f"agcu_segment_{index}"] = DomainRenamer("fabric")(shared(segment))
                    m.d.comb += agcus[index].config.eq(segment.o_config)
                    target: Tile | ConfigSegment = segment
                else:
                    target = tiles[row][index]
                m.d.comb += [
                    target.i_begin.eq(processor.o_begin),
                    target.i_write.eq(processor.o_row[row] & processor.o_segment[number]),
                    target.i_word.eq(processor.o_word),
                    target.i_data.eq(processor.o_data),
                    target.i_load.eq(processor.o_load),
                ]

    def _control(
        self, m: Module, processor: CommandProcessor, tiles: list[Tile], agcus: list[Agcu]
    ) -> None:
        last_iteration = Signal(REPEAT_BITS)
        with m.If(processor.o_start):
            m.d.sync += last_iteration.eq(processor.o_repeat - 1)
        code = Signal(8)
        failed = Signal(8)
        for number, tile in reversed(list(enumerate(tiles))):
            with m.If(tile.o_error != 0):
                m.d.comb += [code.eq(tile.o_error), failed.eq(number)]
        for index, agcu in reversed(list(enumerate(agcus))):
            with m.If(agcu.o_error != 0):
                m.d.comb += [code.eq(agcu.o_error), failed.eq(len(tiles) + index)]
            m.d.comb += [
                agcu.i_start.eq(processor.o_start),
                agcu.i_drain.eq(processor.o_stop),
                agcu.i_argument_valid.eq(processor.o_argument_valid),
                agcu.i_argument.eq(processor.o_argument),
            ]
        units: tuple[Tile | Agcu, ...] = (*tiles, *agcus)
        for number, unit in enumerate(units):
            m.d.comb += [
                unit.i_last_iteration.eq(last_iteration),
                unit.i_run.eq(processor.o_run),
                unit.i_counter.eq(processor.o_counter),
                processor.i_counters[number].eq(unit.o_counter),
            ]
        m.d.comb += [
            *(tile.i_start.eq(processor.o_start) for tile in tiles),
            processor.i_issue.eq(Cat(*(tile.o_issue for tile in tiles)).any()),
            processor.i_error.eq(code.any()),
            processor.i_error_code.eq(code),
            processor.i_error_unit.eq(failed),
            processor.i_done.eq(
                Cat(*(tile.o_done for tile in tiles), *(agcu.o_done for agcu in agcus)).all()
                & Cat(*(agcu.o_idle for agcu in agcus)).all()
            ),
            processor.i_drained.eq(Cat(*(agcu.o_idle for agcu in agcus)).all()),
        ]
