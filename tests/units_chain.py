"""Matrix-vector products in a chain, placed by hand: a layer's result is the next one's vector."""

import dataclasses
from typing import Any

import numpy as np

from hw.arch.agcu import AgcuProgram
from hw.arch.boxes.issuer_program import Wait
from hw.arch.config import ChipConfig
from hw.arch.launch import HEADER_BYTES, Argument, LaunchEntry, pack_arguments, pack_list
from hw.arch.ports import Direction, Link, Port, UnitPort
from hw.arch.switch import OutputProgram, SwitchProgram, Turn
from hw.numeric.formats import bf16
from sim.drivers.products import Array
from sim.operands import random_operand
from sim.oracle import product
from sw.array_spec import ArraySpec
from sw.chip_program import ChipProgram
from tests.sw.chips import empty_tile
from tests.units_matmul import UnitsMatmul

__all__ = ["GemvChain"]

_LIST, _TABLES, _IMAGE, _DATA = 0x1000, 0x2000, 0x4000, 0x10000


class _Layer(UnitsMatmul):
    """A product of one column whose result leaves by the second store stream."""

    def _agcu(self) -> AgcuProgram:
        agcu = super()._agcu()
        return dataclasses.replace(agcu, stores=(None, agcu.stores[0]))

    def _routes(self) -> tuple[dict[tuple[int, int], list[tuple[Port, Port]]], ...]:
        vectors, tokens = super()._routes()
        west, east = Direction.WEST, Direction.EAST
        results = {(0, 0): (Link(west, 1), Link(east, 1)), (0, 1): (Link(west, 1), UnitPort(0))}
        for at, route in results.items():
            vectors[at] = [each for each in vectors[at] if each[0] != Link(west, 0)] + [route]
        return vectors, tokens


@dataclasses.dataclass(frozen=True)
class GemvChain:
    """Layers y = W · x as iterations of one kernel on `tiny`: W moves, x stays in the PCU.

    The vectors lie one after the other in memory, as do the matrices: iteration i loads matrix i
    and vector i, and stores vector i + 1. The load of a vector takes one token of its free slot and
    one of the vector stored before, from one port where the two are merged in turn.

    Parameters
    ----------
    config : ChipConfig
    side : int
        Rows and columns of each W, at most one pass and one slab: a multiple of the lanes.
    layers : int
    ordered : bool
        Whether the load of a vector waits for the token of the stored one.
    """

    config: ChipConfig
    side: int
    layers: int
    ordered: bool = True

    @property
    def program(self) -> ChipProgram:
        """The kernel of one layer."""
        side = self.side
        layer = _Layer(self.config, side, 1, side, bf16, bf16, side, side, 2)
        program = ChipProgram.unpack(self.config, layer.image())
        if not self.ordered:
            return program
        agcu = program.agcus[0]
        load_w, load_x = agcu.loads
        assert load_w is not None and load_x is not None
        # The token goes around the four tiles on track 1, and joins that of the free slot.
        north, east, south, west = (Link(side, 1) for side in Direction)
        routes: dict[tuple[int, int], dict[Port, tuple[Port, ...]]] = {
            (0, 0): {east: (west,)},
            (0, 1): {south: (west,)},
            (1, 1): {west: (north,)},
            (1, 0): {north: (UnitPort(1), east)},
        }
        tiles = dict(program.tiles)
        for at, outputs in routes.items():
            tile = tiles.get(at) or empty_tile(self.config, self.config.unit_at(*at))
            kept = [each for each in tile.tokens.outputs if each.output not in outputs]
            added = [OutputProgram(to, tuple(map(Turn, of))) for to, of in outputs.items()]
            tokens = SwitchProgram(tile.tokens.ports, [*kept, *added])
            tiles[at] = dataclasses.replace(tile, tokens=tokens)
        changed = dataclasses.replace(
            agcu,
            loads=(load_w, dataclasses.replace(load_x, waits=(Wait(1, 2),))),
            credits=(agcu.credits[0], 2),
            stored=(1,),
        )
        return ChipProgram(self.config, tiles, {0: changed})

    def operands(self, rng: np.random.Generator) -> tuple[list[Array], Array]:
        """Random matrices, and the first vector."""
        shape = (self.side, self.side)
        matrices = [random_operand(rng, shape, bf16) for _ in range(self.layers)]
        return matrices, random_operand(rng, (self.side, 1), bf16)

    @property
    def arguments(self) -> tuple[Argument, Argument, Argument]:
        """Arguments of the one launch: W, x and y, each with its stride."""
        matrix, vector = self._sizes
        vectors = _DATA + self.layers * matrix
        return (
            Argument(_DATA, matrix),
            Argument(vectors, vector),
            Argument(vectors + vector, vector),
        )

    @property
    def _sizes(self) -> tuple[int, int]:
        """Bytes of a matrix and of a vector."""
        side = self.side
        specs = ArraySpec("W", (side, side), bf16), ArraySpec("x", (side, 1), bf16)
        return specs[0].pitch * side, specs[1].pitch * side

    def memory(self, matrices: list[Array], x: Array, *, together: bool) -> tuple[bytearray, int]:
        """Memory before the launch, and entries of its list: one, or one per layer."""
        matrix, vector = self._sizes
        image = self.program.pack()
        entries, tables = [], []
        for layer in range(1 if together else self.layers):
            address = _TABLES + 64 * layer
            moved = [Argument(a.value + layer * a.stride, a.stride) for a in self.arguments]
            tables.append(pack_arguments(moved).ljust(64, b"\0"))
            entries.append(
                LaunchEntry(
                    image_address=_IMAGE,
                    image_bytes=len(image) - HEADER_BYTES,
                    header=image[:HEADER_BYTES],
                    argument_address=address,
                    argument_count=len(moved),
                    repeat=self.layers if together else 1,
                )
            )
        memory = bytearray(_DATA + self.layers * (matrix + vector) + vector)
        words: dict[int, Any] = {
            _LIST: pack_list(entries, self.config.width_bits),
            _TABLES: b"".join(tables),
            _IMAGE: image[HEADER_BYTES:],
        }
        for layer, weights in enumerate(matrices):
            words[_DATA + layer * matrix] = weights.tobytes()
        for row, element in enumerate(x):
            words[self.arguments[1].value + 16 * row] = element.tobytes()
        for address, data in words.items():
            memory[address : address + len(data)] = data
        return memory, len(entries)

    @property
    def list_address(self) -> int:
        """Address of the launch list."""
        return _LIST

    def vector(self, memory: bytes | bytearray, number: int) -> bytes:
        """Elements of a vector in memory; vector 0 is the input."""
        _, vector = self._sizes
        at = self.arguments[1].value + number * vector
        return b"".join(
            bytes(memory[at + 16 * row : at + 16 * row + 2]) for row in range(self.side)
        )

    def expected(self, matrices: list[Array], x: Array) -> list[bytes]:
        """Elements of every vector, the input first."""
        vectors = [x]
        for weights in matrices:
            vectors.append(product(weights, vectors[-1], bf16))
        return [each.tobytes() for each in vectors]
