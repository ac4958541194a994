"""A manually placed matrix product: one PCU, one PMU for its operands and one for its result."""

import dataclasses
from typing import Any, Self

import numpy as np

from hw.arch.agcu import AgcuProgram
from hw.arch.boxes.issuer_program import IssuerProgram, Wait
from hw.arch.config import ChipConfig
from hw.arch.descriptor import Descriptor, ElementFormat
from hw.arch.loops import BoxLoop, LoopProgram
from hw.arch.pcu import PcuProgram
from hw.arch.places import token_ports, vector_ports
from hw.arch.pmu import EngineProgram, PmuProgram, SlotRing
from hw.arch.ports import Direction, Link, Port, SwitchPorts, UnitPort
from hw.arch.switch import OutputProgram, SwitchProgram, Turn
from hw.arch.words.pmu_word import Access, Level, TokenSource
from hw.numeric.division import ceil_div
from hw.numeric.formats import Format, bf16, fp32, int8, int32
from sim.drivers.products import Array
from sim.launch_memory import LaunchMemory
from sim.operands import random_operand
from sw.array_spec import ArraySpec
from sw.chip_program import ChipProgram, TileProgram

__all__ = ["UnitsMatmul"]

_ELEMENTS = {
    bf16: ElementFormat.BF16,
    fp32: ElementFormat.FP32,
    int8: ElementFormat.INT8,
    int32: ElementFormat.INT32,
}


def _switch(ports: SwitchPorts, routes: list[tuple[Port, Port]]) -> SwitchProgram:
    """Program of a switch without merges."""
    return SwitchProgram(ports, [OutputProgram(out, (Turn(source),)) for out, source in routes])


@dataclasses.dataclass(frozen=True)
class UnitsMatmul:
    """C[M, N] = A[M, K] · B[K, N] on the PCU at (0, 0) of a checkerboard chip.

    AGCU 0 loads K-blocks of A and of B into the PMU at (1, 0), each enabled by the token of a free
    slot; that PMU streams rows of A and columns of B to the PCU. The PMU at (0, 1) reorders the
    results into rows, which the AGCU stores. All four stages overlap.

    Parameters
    ----------
    config : ChipConfig
    m, n, k : int
    fmt, out : Format
    block_rows : int
        Rows of C per pass; a multiple of the lanes of a vector.
    slab : int
        Extent of k per slot; a multiple of the lanes of a vector.
    slots : int
        Slots of each operand's buffer.
    """

    config: ChipConfig
    m: int
    n: int
    k: int
    fmt: Format
    out: Format
    block_rows: int
    slab: int
    slots: int

    @classmethod
    def random(cls, config: ChipConfig, rng: np.random.Generator) -> Self:
        """Draw a small product in a random format, ragged in all extents."""
        fmt = (bf16, int8)[rng.integers(2)]
        out = int32 if fmt == int8 else (bf16, fp32)[rng.integers(2)]
        m, n, k = (int(side) for side in rng.integers(1, (41, 14, 41)))
        return cls(config, m, n, k, fmt, out, 16, 16, max(2, ceil_div(k, 16)))

    def operands(self, rng: np.random.Generator, **kinds: Any) -> tuple[Array, Array]:
        """Random A and B from `sim.operands.random_operand`."""
        a, b = (random_operand(rng, each.shape, self.fmt, **kinds) for each in self._arrays[:2])
        return a, b

    @property
    def lanes(self) -> int:
        """Operand elements per vector."""
        return self.config.width_bits // self.fmt.bits

    @property
    def box_columns(self) -> int:
        """Columns of B and C per box."""
        return self.lanes

    @property
    def blocks(self) -> tuple[int, int, int]:
        """Numbers of row blocks, column boxes and K-blocks."""
        return (
            ceil_div(self.m, self.block_rows),
            ceil_div(self.n, self.box_columns),
            ceil_div(self.k, self.slab),
        )

    @property
    def _arrays(self) -> tuple[ArraySpec, ArraySpec, ArraySpec]:
        """The arguments of the launch: A, B and C."""
        return (
            ArraySpec("A", (self.m, self.k), self.fmt),
            ArraySpec("B", (self.k, self.n), self.fmt),
            ArraySpec("C", (self.m, self.n), self.out, output=True),
        )

    def _pcu(self) -> PcuProgram:
        return PcuProgram(fmt=self.fmt, out=self.out)

    def _operands(self) -> PmuProgram:
        lanes, size = self.lanes, self.fmt.bits // 8
        rows, columns, slabs = self.blocks
        square = lanes * lanes
        slab_blocks, row_blocks = self.slab // lanes, self.block_rows // lanes
        a_slot, b_slot = self.block_rows * self.slab, self.slab * lanes
        a_ring = SlotRing(buffer=0, base=0, stride=a_slot, count=self.slots)
        b_ring = SlotRing(buffer=1, base=self.slots * a_slot, stride=b_slot, count=self.slots)
        windows, slots = LoopProgram(rows * columns), LoopProgram(slabs)
        groups = lanes // self.config.grid_columns
        row = LoopProgram(lanes, stride=lanes)
        write_a = EngineProgram(
            ring=a_ring,
            loops=(
                LoopProgram(row_blocks, stride=slab_blocks * square),
                row,
                LoopProgram(slab_blocks, stride=square),
            ),
            element_bytes=size,
            windows=windows,
            slots=slots,
        )
        write_b = EngineProgram(
            ring=b_ring,
            loops=(LoopProgram(slab_blocks, stride=square), row),
            element_bytes=size,
            windows=windows,
            slots=slots,
        )
        read_a = EngineProgram(
            ring=a_ring,
            loops=(
                LoopProgram(slab_blocks, stride=square),
                LoopProgram(row_blocks, stride=slab_blocks * square),
                row,
            ),
            element_bytes=size,
            windows=windows,
            repeats=LoopProgram(groups),
            slots=slots,
            last_level=Level.ADDRESS + 1,
            final_level=Level.SLOTS,
        )
        read_b = EngineProgram(
            ring=b_ring,
            loops=(
                LoopProgram(slab_blocks, stride=square),
                LoopProgram(self.config.grid_columns, stride=1),
            ),
            element_bytes=size,
            access=Access.COLUMN,
            windows=windows,
            repeats=LoopProgram(groups, stride=self.config.grid_columns),
            slots=slots,
            last_level=Level.ADDRESS + 1,
        )
        return PmuProgram(
            writers=(write_a, write_b),
            readers=(read_a, read_b),
            tokens=(TokenSource.R0, TokenSource.R1),
        )

    def _results(self) -> PmuProgram:
        size = self.out.bits // 8
        lanes = self.config.width_bits // self.out.bits
        square = lanes * lanes
        rows, columns, _ = self.blocks
        row_blocks, column_blocks = self.block_rows // lanes, self.lanes // lanes
        groups = self.lanes // self.config.grid_columns
        packed = self.out == bf16
        ring = SlotRing(buffer=0, base=0, stride=self.block_rows * self.lanes, count=2)
        across = LoopProgram(row_blocks, stride=column_blocks * square)
        write = EngineProgram(
            ring=ring,
            loops=(
                LoopProgram(groups, stride=self.config.grid_columns if packed else square),
                across,
                LoopProgram(lanes // 2 if packed else lanes, stride=2 * lanes if packed else lanes),
            ),
            element_bytes=size,
            access=Access.TWO_ROWS if packed else Access.ROW,
            windows=LoopProgram(rows * columns),
        )
        read = EngineProgram(
            ring=ring,
            loops=(
                across,
                LoopProgram(lanes, stride=lanes),
                LoopProgram(column_blocks, stride=square),
            ),
            element_bytes=size,
            windows=LoopProgram(rows * columns),
        )
        return PmuProgram(writers=(write, None), readers=(read, None))

    def _agcu(self) -> AgcuProgram:
        rows, columns, slabs = self.blocks

        def tensor(array: ArraySpec, box: tuple[int, int]) -> Descriptor:
            return Descriptor(
                base=0,
                format=_ELEMENTS[array.format],
                dims=array.shape[::-1],
                strides=(array.pitch,),
                box=box,
            )

        a, b, c = self._arrays

        return AgcuProgram(
            loads=(
                IssuerProgram(
                    0,
                    (
                        BoxLoop(rows, 1, self.block_rows),
                        BoxLoop(columns),
                        BoxLoop(slabs, 0, self.slab),
                    ),
                    (Wait(0),),
                ),
                IssuerProgram(
                    1,
                    (
                        BoxLoop(rows),
                        BoxLoop(columns, 0, self.box_columns),
                        BoxLoop(slabs, 1, self.slab),
                    ),
                    (Wait(1),),
                ),
            ),
            stores=(
                IssuerProgram(
                    2,
                    (BoxLoop(rows, 1, self.block_rows), BoxLoop(columns, 0, self.box_columns)),
                ),
            ),
            descriptors=(
                (tensor(a, (self.slab, self.block_rows)), 0),
                (tensor(b, (self.box_columns, self.slab)), 1),
                (tensor(c, (self.box_columns, self.block_rows)), 2),
            ),
            credits=(self.slots, self.slots),
        )

    def _routes(self) -> tuple[dict[tuple[int, int], list[tuple[Port, Port]]], ...]:
        """Connections of each switch, output to input, for vectors and for tokens."""
        north, east, south, west = Direction
        vectors: dict[tuple[int, int], list[tuple[Port, Port]]] = {
            (0, 0): [
                (Link(south, 0), Link(west, 0)),
                (Link(south, 1), Link(west, 1)),
                (UnitPort(0), Link(south, 0)),
                (UnitPort(1), Link(south, 1)),
                (Link(east, 0), UnitPort(0)),
                (Link(west, 0), Link(east, 0)),
            ],
            (1, 0): [
                (UnitPort(0), Link(north, 0)),
                (UnitPort(1), Link(north, 1)),
                (Link(north, 0), UnitPort(0)),
                (Link(north, 1), UnitPort(1)),
            ],
            (0, 1): [
                (UnitPort(0), Link(west, 0)),
                (Link(west, 0), UnitPort(0)),
            ],
        }
        tokens: dict[tuple[int, int], list[tuple[Port, Port]]] = {
            (1, 0): [(Link(north, 0), UnitPort(0)), (Link(north, 1), UnitPort(1))],
            (0, 0): [(Link(west, 0), Link(south, 0)), (Link(west, 1), Link(south, 1))],
        }
        return vectors, tokens

    def image(self) -> bytes:
        """Pack the image."""
        chip = self.config
        units: dict[tuple[int, int], PcuProgram | PmuProgram] = {
            (0, 0): self._pcu(),
            (1, 0): self._operands(),
            (0, 1): self._results(),
        }
        vectors, tokens = self._routes()
        tiles = {
            at: TileProgram(
                unit,
                _switch(vector_ports(chip, chip.unit_at(*at)), vectors.get(at, [])),
                _switch(token_ports(chip, chip.unit_at(*at)), tokens.get(at, [])),
            )
            for at, unit in units.items()
        }
        return ChipProgram(chip, tiles, {0: self._agcu()}).pack()

    def launch_memory(
        self, seed: int, *, launches: int = 1, origin: int = 0, image: bytes | None = None
    ) -> LaunchMemory:
        """Memory layout of a launch with the arrays A, B and C; all other bytes are random.

        Parameters
        ----------
        seed : int
            Seed of the random bytes.
        launches : int
            Equal entries of the launch list.
        origin : int
            Address of byte 0 of memory on the chip's ports.
        image : bytes or None
            Another image than its own.
        """
        return LaunchMemory.of_image(
            self.config,
            self.image() if image is None else image,
            self._arrays,
            seed=seed,
            launches=launches,
            origin=origin,
        )
