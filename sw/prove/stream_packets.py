"""Packets of every stream of an image, computed before the run: none depends on data."""

from __future__ import annotations

import numpy as np

from hw.arch.pcu import PcuProgram
from hw.arch.pmu import PmuProgram
from sw.chip_program import ChipProgram
from sw.fabric.nets import Input, Junction, MergeInput, Nets, Output
from sw.prove.packets import Packets, engine_packets, even_packets, rotate
from sw.prove.unrolled_loops import box_points

__all__ = ["CyclicStreamError", "StreamPackets"]


class CyclicStreamError(Exception):
    """A stream whose packets would depend on themselves."""


class StreamPackets:
    """Packets at every output and input of units and merges.

    Parameters
    ----------
    program : ChipProgram
    nets : Nets
    """

    def __init__(self, program: ChipProgram, nets: Nets) -> None:
        self._program = program
        self._nets = nets
        self._known: dict[Output | Junction, Packets | None] = {}
        #: Faults of PCU tiles.
        self.faults: list[str] = []

    def arriving(self, end: Input | MergeInput) -> Packets:
        """Packets that arrive at an input; none if no stream reaches it."""
        root = self._nets.feeds.get(end)
        return even_packets(0, 1, final=False) if root is None else self.leaving(root)

    def leaving(self, root: Output | Junction) -> Packets:
        """Packets that leave an output of vectors.

        Raises
        ------
        CyclicStreamError
            If they depend on themselves.
        """
        if root in self._known:
            packets = self._known[root]
            if packets is None:
                raise CyclicStreamError(f"{root} depends on itself")
            return packets
        self._known[root] = None
        packets = self._packets(root)
        self._known[root] = packets
        return packets

    def _packets(self, root: Output | Junction) -> Packets:
        if isinstance(root, Junction):
            counts = self._nets.packets[root]
            turns = [self.arriving(MergeInput(root, turn)) for turn in range(len(counts))]
            return rotate(turns, counts).packets
        if root.kind == "agcu":
            agcu = self._program.agcus[root.at[0]]
            issuer = agcu.loads[root.port]
            if issuer is None:
                raise CyclicStreamError(f"{root} is off")
            descriptor = agcu.descriptors[issuer.descriptor][0]
            vectors = descriptor.box_bytes // (self._program.config.width_bits // 8)
            return even_packets(len(box_points(issuer)), vectors, final=False)
        unit = self._program.tiles[root.at[0], root.at[1]].unit
        if isinstance(unit, PmuProgram):
            reader = unit.readers[root.port]
            if reader is not None:
                return engine_packets(reader)
        return self._results(root.at)

    def tiles(self, at: tuple[int, ...]) -> Packets:
        """Activation tiles that a PCU takes."""
        unit = self._program.tiles[at[0], at[1]].unit
        if not isinstance(unit, PcuProgram):
            return even_packets(0, 1, final=False)
        return self.arriving(Input("pcu", at, 0)).taken(
            unit.activation.modulus, unit.activation.index
        )

    def _results(self, at: tuple[int, ...]) -> Packets:
        unit = self._program.tiles[at[0], at[1]].unit
        tiles = self.tiles(at)
        ends = np.flatnonzero(tiles.finals) + 1
        if not len(ends) or not isinstance(unit, PcuProgram):
            return even_packets(0, 1, final=True)
        rows = tiles.lengths[np.append(0, ends[:-1])]
        most = self._program.config.pcu.accumulator_rows
        if int(tiles.lengths.max()) > most:
            self.faults.append(
                f"PCU {at} gets a tile of {int(tiles.lengths.max())} rows, its banks hold {most}"
            )
        passes = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
        if (tiles.lengths[: int(ends[-1])] != rows[passes]).any():
            self.faults.append(f"PCU {at} gets tiles of different rows in one pass")
        sizes = -(-rows // 2) if unit.out.bits == 16 else rows
        return Packets(sizes, np.ones(len(sizes), np.bool_))
