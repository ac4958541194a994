"""Matrix-vector products in a chain on every AGCU of a chip: W moves, x stays in the PCUs."""

import dataclasses
import functools

import numpy as np

from hw.arch.agcu import AgcuInput, AgcuOutput, AgcuProgram
from hw.arch.boxes.issuer_program import IssuerProgram, Wait
from hw.arch.config import ChipConfig
from hw.arch.descriptor import Descriptor, ElementFormat
from hw.arch.launch import Argument
from hw.arch.loops import BoxLoop, LoopProgram
from hw.arch.pcu import PcuInput, PcuOutput, PcuProgram
from hw.arch.pmu import EngineProgram, PmuInput, PmuOutput, PmuProgram, SlotRing
from hw.arch.ports import UnitProgram
from hw.arch.words.pmu_word import Access, Level, TokenSource
from hw.numeric.formats import bf16
from hw.numeric.reference import cast
from sim.drivers.products import Array
from sim.oracle import product
from sw.chip_program import ChipProgram
from sw.fabric.assemble import assemble
from sw.fabric.place import place
from sw.fabric.route import route
from sw.netlist import Net, Netlist, Pin

__all__ = ["GemvLayers"]


@dataclasses.dataclass(frozen=True)
class GemvLayers:
    """Layers y = W · x as iterations of one kernel; W is side × side, of bf16.

    Each AGCU loads an equal part of the rows of W for a PMU and a PCU of its own. The first one
    also loads x, for all PCUs, and stores y. The vectors lie one after the other in memory, as do
    the matrices: iteration i loads matrix i and vector i, and stores vector i + 1.

    Parameters
    ----------
    config : ChipConfig
        A chip of two AGCUs at most, whose PMUs hold what they are given.
    side : int
    pass_rows, box_columns : int
        Rows of W whose sums are together in the accumulators; a box of W has as many rows, and so
        many columns.
    ordered : bool
        Whether the load of x waits for the vector stored before, or but for a free slot.
    """

    config: ChipConfig
    side: int
    pass_rows: int
    box_columns: int
    ordered: bool = True

    @property
    def _lanes(self) -> int:
        return self.config.width_bits // 16

    @property
    def _parts(self) -> int:
        return self.config.agcu.count

    @property
    def _passes(self) -> int:
        """Passes of each part."""
        return self.side // self._parts // self.pass_rows

    @property
    def matrix_bytes(self) -> int:
        """Bytes of a matrix."""
        return 2 * self.side**2

    @property
    def vector_bytes(self) -> int:
        """Bytes of a vector."""
        return 2 * self.side

    def _weights(self) -> PmuProgram:
        """Boxes of a part of W, written row by row, read tile by tile."""
        lanes, columns, slot = self._lanes, self.box_columns, self.pass_rows * self.box_columns
        count = self.config.pmu.capacity_bytes // 2 // slot
        ring = SlotRing(base=0, stride=slot if count > 1 else 0, count=count)
        walk = {
            "ring": ring,
            "windows": LoopProgram(self._passes),
            "slots": LoopProgram(self.side // columns),
        }
        write = EngineProgram(loops=(LoopProgram(slot // lanes, stride=lanes),), **walk)
        read = EngineProgram(
            loops=(
                LoopProgram(columns // lanes, stride=lanes),
                LoopProgram(self.pass_rows, stride=columns),
            ),
            last_level=Level.ADDRESS + 1,
            final_level=Level.SLOTS,
            **walk,
        )
        return PmuProgram(
            writers=(write, None), readers=(read, None), tokens=(TokenSource.R0, TokenSource.OFF)
        )

    def _vector(self) -> PmuProgram:
        """x: every vector of its elements is all columns of a tile of weights, for every pass."""
        lanes, columns = self._lanes, self.config.grid_columns
        ring = SlotRing(base=0, stride=self.side, count=2)
        tiles = LoopProgram(self.side // lanes, stride=lanes)
        read = EngineProgram(
            ring=ring,
            loops=(tiles, LoopProgram(columns)),
            repeats=LoopProgram(self._passes),
            last_level=Level.ADDRESS + 1,
        )
        return PmuProgram(
            writers=(EngineProgram(ring=ring, loops=(tiles,)), None),
            readers=(read, None),
            tokens=(TokenSource.OFF, TokenSource.OFF if self.ordered else TokenSource.R0),
        )

    def _results(self) -> PmuProgram:
        """y: a row of equal sums for each of its elements, of which a column is read."""
        lanes, rows = self._lanes, self.side // self._parts
        slot = self.side * lanes
        writers = [
            EngineProgram(
                ring=SlotRing(base=part * rows * lanes, stride=slot, count=2),
                loops=(
                    LoopProgram(self._passes, stride=self.pass_rows * lanes),
                    LoopProgram(self.pass_rows // 2, stride=2 * lanes),
                ),
                access=Access.TWO_ROWS,
            )
            for part in range(self._parts)
        ]
        read = EngineProgram(
            ring=SlotRing(base=0, stride=slot, count=2),
            loops=(LoopProgram(self.side // lanes, stride=lanes * lanes),),
            access=Access.COLUMN,
        )
        return PmuProgram(writers=(*writers, *[None] * (2 - len(writers))), readers=(read, None))

    def _agcu(self, part: int) -> AgcuProgram:
        side, lanes, rows = self.side, self._lanes, self.side // self._parts
        matrix = Descriptor(
            base=part * rows * 2 * side,
            format=ElementFormat.BF16,
            dims=(side, rows),
            strides=(2 * side,),
            box=(self.box_columns, self.pass_rows),
        )
        vector = Descriptor(
            base=0,
            format=ElementFormat.BF16,
            dims=(lanes, side // lanes),
            strides=(2 * lanes,),
            box=(lanes, side // lanes),
        )
        boxes = (
            BoxLoop(self._passes, 1, self.pass_rows),
            BoxLoop(side // self.box_columns, 0, self.box_columns),
        )
        load = IssuerProgram(0, boxes, (Wait(0),))
        credits = self._weights().readers[0].ring.count
        if part:
            return AgcuProgram(loads=(load,), descriptors=((matrix, 0),), credits=(credits,))
        return AgcuProgram(
            loads=(load, IssuerProgram(1, (BoxLoop(1),), (Wait(1),))),
            stores=(None, IssuerProgram(2, (BoxLoop(1),))),
            descriptors=((matrix, 0), (vector, 1), (vector, 2)),
            credits=(credits, 1 if self.ordered else 2),
            stored=(1,) if self.ordered else (),
        )

    @functools.cached_property
    def program(self) -> ChipProgram:
        """The kernel of one layer."""
        parts = range(self._parts)
        units: dict[str, UnitProgram] = {"x": self._vector(), "y": self._results()}
        nets = []

        def net(name, source, sinks, **kinds):
            pins = tuple(Pin(*sink) for sink in sinks)
            nets.append(Net(name, ((Pin(*source), 1),), pins, **kinds))

        for part in parts:
            agcu, w, pcu = f"agcu{part}", f"w{part}", f"pcu{part}"
            units |= {
                agcu: self._agcu(part),
                w: self._weights(),
                pcu: PcuProgram(fmt=bf16, out=bf16),
            }
            net(f"{w}_load", (agcu, AgcuOutput.LOAD_0), [(w, PmuInput.W0)])
            net(f"{w}_free", (w, 0), [(agcu, 0)], tokens=True)
            net(f"{w}_rows", (w, PmuOutput.R0), [(pcu, PcuInput.ACTIVATION)])
            net(f"{pcu}_sums", (pcu, PcuOutput.RESULT), [("y", PmuInput.W0 + part)])
        net("x_load", ("agcu0", AgcuOutput.LOAD_1), [("x", PmuInput.W0)])
        net("x_tiles", ("x", PmuOutput.R0), [(f"pcu{part}", PcuInput.WEIGHT) for part in parts])
        net("y_store", ("y", PmuOutput.R0), [("agcu0", AgcuInput.STORE_1)])
        net("x_loadable", ("agcu0" if self.ordered else "x", 1), [("agcu0", 1)], tokens=True)
        netlist = Netlist(units, tuple(nets), {f"agcu{part}": part for part in parts})
        placement = place(netlist, self.config, seed=1)
        routes = route(netlist, placement, self.config, seed=1)
        return assemble(netlist, placement, routes, self.config)

    def operands(self, rng: np.random.Generator, layers: int) -> tuple[list[Array], Array]:
        """Random matrices, and the first vector; results keep about the size of their operands."""

        def drawn(*shape: int) -> Array:
            return cast(rng.standard_normal(shape).astype(np.float32), bf16)

        scale = np.float32(self.side**-0.5)
        matrices = [
            cast(drawn(self.side, self.side).astype(np.float32) * scale, bf16)
            for _ in range(layers)
        ]
        return matrices, drawn(self.side, 1)

    def arguments(self, matrices: int, vectors: int) -> tuple[Argument, Argument, Argument]:
        """Arguments of a launch: W, x and y from the addresses of the first ones."""
        step = self.vector_bytes
        return (
            Argument(matrices, self.matrix_bytes),
            Argument(vectors, step),
            Argument(vectors + step, step),
        )

    @staticmethod
    def expected(matrices: list[Array], x: Array) -> list[bytes]:
        """Bytes of every vector, the input first."""
        vectors = [x]
        for weights in matrices:
            vectors.append(product(weights, vectors[-1], bf16))
        return [each.tobytes() for each in vectors]
