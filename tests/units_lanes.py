"""Netlists of one PCU with a lane program: streams are loaded, results stored as they are."""

import dataclasses
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from hw.arch.agcu import AgcuInput, AgcuOutput, AgcuProgram
from hw.arch.boxes.issuer_program import IssuerProgram, Wait
from hw.arch.config import AgcuConfig, ChipConfig, PcuConfig, PmuConfig
from hw.arch.descriptor import Descriptor, ElementFormat
from hw.arch.lanes.lane_phase import LanePhase
from hw.arch.lanes.lane_program import LaneProgram
from hw.arch.lanes.phase_word import (
    ElementForm,
    Fetched,
    Operand,
    PhaseSource,
    Reduction,
    ResultForm,
    UnitOrder,
)
from hw.arch.loops import BoxLoop, LoopProgram
from hw.arch.pcu import PcuInput, PcuOutput, PcuProgram
from hw.arch.pmu import EngineProgram, PmuInput, PmuOutput, PmuProgram, SlotRing
from hw.arch.words.pmu_word import Level, TokenSource
from hw.numeric.formats import int32
from hw.numeric.lane_model import VectorStream
from sim.launch_memory import LaunchMemory
from sw.array_spec import ArraySpec
from sw.chip_program import ChipProgram
from sw.fabric.assemble import assemble
from sw.fabric.route import place_and_route
from sw.netlist import Net, Netlist, Pin

__all__ = ["CHIP", "Feed", "LaneJob", "Reconvergent", "lane_chip", "placed"]

Words = npt.NDArray[np.uint32]

#: Most vectors of a box of results.
_MOST_ROWS = 64
_NAMES = {PcuInput.ACTIVATION: "X", PcuInput.WEIGHT: "W", PcuInput.AUXILIARY: "Y"}


def lane_chip(**pcu: int) -> ChipConfig:
    """A chip of two PCUs and four PMUs with links of 64 bits; two lanes unless said otherwise."""
    return ChipConfig(
        rows=2,
        columns=3,
        width_bits=64,
        pattern="mcm/mcm",
        pcu=PcuConfig(**pcu),
        pmu=PmuConfig(capacity_bytes=32768),
        agcu=AgcuConfig(count=2),
    )


CHIP = lane_chip()


@dataclasses.dataclass(frozen=True)
class Feed:
    """A stream that is loaded slot by slot and sent in packets.

    Parameters
    ----------
    slots, packets, vectors : int
        Slots, packets of each, vectors of each packet.
    repeats : int
        Times that each slot is sent.
    last : bool
        Whether packets have `last`.
    final : int
        Level whose end has `final` too: `Level.ADDRESS` (the slot) or the next one (the packet).
    """

    slots: int
    packets: int
    vectors: int
    repeats: int = 1
    last: bool = True
    final: int = Level.ADDRESS

    @property
    def rows(self) -> int:
        """Vectors of a slot."""
        return self.packets * self.vectors

    def engines(self, words: int, buffer: int, count: int = 2) -> tuple[EngineProgram, ...]:
        """The write engine and the read engine of its buffer, whose half of a PMU is its own."""
        ring = SlotRing(buffer=buffer, base=buffer * 4096, stride=self.rows * words, count=count)
        loops = (
            LoopProgram(self.packets, stride=self.vectors * words),
            LoopProgram(self.vectors, stride=words),
        )
        write = EngineProgram(
            ring=ring, loops=loops, element_bytes=4, windows=LoopProgram(self.slots)
        )
        read = dataclasses.replace(
            write,
            repeats=LoopProgram(self.repeats),
            last_level=Level.ADDRESS + 1 if self.last else None,
            final_level=self.final if self.last else None,
        )
        return write, read

    def stream(self, data: Words) -> VectorStream:
        """The stream that carries vectors, slots after one another."""
        slots = data.reshape(self.slots, 1, self.rows, -1)
        words = np.repeat(slots, self.repeats, axis=1).reshape(-1, data.shape[1])
        ends = np.arange(1, len(words) + 1)
        final = ends % (self.rows if self.final == Level.ADDRESS else self.vectors) == 0
        last = ends % self.vectors == 0
        return VectorStream(words, last & self.last, final & self.last)


@dataclasses.dataclass(frozen=True)
class LaneJob:
    """One PCU with lanes between the PMUs of its streams and the PMU of its results.

    Parameters
    ----------
    unit : PcuProgram
    feeds : mapping of PcuInput to Feed
        The streams that the unit takes.
    results : int
        Vectors of all results.
    config : ChipConfig
    """

    unit: PcuProgram
    feeds: dict[PcuInput, Feed]
    results: int
    config: ChipConfig = CHIP

    @property
    def arrays(self) -> tuple[ArraySpec, ...]:
        """Arguments of the launch: a row for each vector of a stream, and of the results Z."""
        words = self.config.grid_columns
        return (
            *(
                ArraySpec(_NAMES[port], (feed.slots * feed.rows, words), int32)
                for port, feed in self.feeds.items()
            ),
            ArraySpec("Z", (self.results, words), int32, output=True),
        )

    @property
    def _box(self) -> int:
        """Vectors of a box of results."""
        return max(n for n in range(1, _MOST_ROWS + 1) if self.results % n == 0)

    def _tensor(self, number: int, rows: int) -> tuple[Descriptor, int]:
        array = self.arrays[number]
        return Descriptor(
            base=0,
            format=ElementFormat.INT32,
            dims=array.shape[::-1],
            strides=(array.pitch,),
            box=(array.shape[1], rows),
        ), number

    def netlist(self) -> Netlist:
        """Units and nets: AGCU 0 loads for the PMU ``operands``, AGCU 1 for ``beside``."""
        words = self.config.grid_columns
        units: dict[str, Any] = {"pcu": self.unit}
        nets: list[Net] = []
        for number, homes in enumerate(
            ((PcuInput.ACTIVATION, PcuInput.WEIGHT), (PcuInput.AUXILIARY,))
        ):
            ports = [port for port in homes if port in self.feeds]
            pmu, agcu = ("operands", "beside")[number], f"agcu{number}"
            feeds = [self.feeds[port] for port in ports]
            engines = [feed.engines(words, buffer) for buffer, feed in enumerate(feeds)]
            if not engines and not number:
                continue
            loads = tuple(
                IssuerProgram(n, (BoxLoop(feed.slots, 1, feed.rows),), (Wait(n),))
                for n, feed in enumerate(feeds)
            )
            arrays = list(self.feeds)
            descriptors = [self._tensor(arrays.index(p), self.feeds[p].rows) for p in ports]
            stores: tuple[IssuerProgram, ...] = ()
            if number:
                box = self._box
                stores = (IssuerProgram(len(ports), (BoxLoop(self.results // box, 1, box),)),)
                descriptors.append(self._tensor(len(self.feeds), box))
            units[agcu] = AgcuProgram(
                loads=loads,
                stores=stores,
                descriptors=tuple(descriptors),
                credits=(2,) * len(ports),
            )
            if engines:
                pad: tuple[EngineProgram | None, ...] = (None,) * (2 - len(engines))
                units[pmu] = PmuProgram(
                    writers=(*(e[0] for e in engines), *pad),
                    readers=(*(e[1] for e in engines), *pad),
                    tokens=(TokenSource.R0, TokenSource.R1)[: len(engines)],
                )
            for n, port in enumerate(ports):
                name = _NAMES[port]
                nets += [
                    _net(f"load {name}", (agcu, AgcuOutput(n)), (pmu, PmuInput(n))),
                    _net(f"send {name}", (pmu, PmuOutput(n)), ("pcu", port)),
                    _net(f"free {name}", (pmu, n), (agcu, n), tokens=True),
                ]
        write, read = Feed(self.results // self._box, 1, self._box, last=False).engines(words, 0)
        units["results"] = PmuProgram(writers=(write, None), readers=(read, None))
        nets += [
            _net("give Z", ("pcu", PcuOutput.RESULT), ("results", PmuInput.W0)),
            _net("store Z", ("results", PmuOutput.R0), ("agcu1", AgcuInput.STORE_0)),
        ]
        fixed = {f"agcu{number}": number for number in range(2) if f"agcu{number}" in units}
        return Netlist(units, tuple(nets), fixed)

    def program(self) -> ChipProgram:
        """The decoded image of the placed and routed netlist."""
        return ChipProgram.unpack(self.config, placed(self.netlist(), self.config))

    def memory(
        self, data: dict[str, Words], seed: int, program: ChipProgram | None = None
    ) -> tuple[LaunchMemory, bytearray]:
        """A launch of it, and memory that holds the vectors of its streams."""
        image = (program or self.program()).pack()
        layout = LaunchMemory.of_image(self.config, image, self.arrays, seed=seed)
        return layout, layout.bytes_before(
            {name: each.view(np.int32) for name, each in data.items()}
        )

    def streams(self, data: dict[str, Words]) -> dict[PhaseSource, VectorStream]:
        """The streams of the lanes, but for sums, as `LaneModel` takes them."""
        found = {}
        for source, port in (
            (PhaseSource.ACTIVATION, PcuInput.ACTIVATION),
            (PhaseSource.AUXILIARY, PcuInput.AUXILIARY),
        ):
            if port in self.feeds:
                found[source] = self.feeds[port].stream(data[_NAMES[port]])
        return found


@dataclasses.dataclass(frozen=True)
class Reconvergent(LaneJob):
    """Packets minus their sums: one stream goes to two PCUs, the sums of one to the other.

    The second PCU needs the sum of a packet before it takes the packet, all of which must wait in
    its auxiliary FIFO and on the way to it, while the first PCU adds.
    """

    @classmethod
    def of(cls, depth: int, packets: int, config: ChipConfig = CHIP) -> Self:
        """Such a netlist for packets of so many vectors."""
        phases = (
            LanePhase(
                PhaseSource.ACTIVATION,
                ElementForm.BF16,
                order=UnitOrder.SFU_ALU_FMA,
                reduction=Reduction.REPLACE,
            ),
            LanePhase(
                PhaseSource.AUXILIARY,
                ElementForm.BF16,
                y=Fetched.STATISTIC_0,
                order=UnitOrder.SFU_ALU_FMA,
                fma=(Operand.X, Operand.ONE, Operand.Y),
                negate_addend=True,
                result=ResultForm.BF16,
            ),
        )
        feeds = {PcuInput.ACTIVATION: Feed(packets, 1, depth)}
        return cls(PcuProgram(lanes=LaneProgram(phases)), feeds, packets * depth, config)

    def netlist(self) -> Netlist:
        base = super().netlist()
        phases = (
            LanePhase(
                PhaseSource.ACTIVATION,
                ElementForm.BF16,
                order=UnitOrder.SFU_ALU_FMA,
                reduction=Reduction.SUM,
            ),
            LanePhase(
                PhaseSource.STATISTICS,
                y=Fetched.STATISTIC_0,
                order=UnitOrder.SFU_ALU_FMA,
                fma=(Operand.Y, Operand.ONE, Operand.MINUS_ZERO),
                argument=Operand.Y,
                result=ResultForm.BF16,
            ),
        )
        units = {**base.units, "adder": PcuProgram(lanes=LaneProgram(phases))}
        kept = [net for net in base.nets if net.name != "send X"]
        both = (("adder", PcuInput.ACTIVATION), ("pcu", PcuInput.AUXILIARY))
        nets = (
            *kept,
            _net("send X", ("operands", PmuOutput.R0), *both),
            _net("sums", ("adder", PcuOutput.RESULT), ("pcu", PcuInput.ACTIVATION)),
        )
        return Netlist(units, nets, base.fixed)


def _net(name: str, source: tuple[str, int], *sinks: tuple[str, int], tokens: bool = False) -> Net:
    return Net(name, ((Pin(*source), 1),), tuple(Pin(*sink) for sink in sinks), tokens)


def placed(netlist: Netlist, config: ChipConfig) -> bytes:
    """Image of a netlist."""
    placement, routes = place_and_route(netlist, config, seed=1)
    return assemble(netlist, placement, routes, config).pack()
