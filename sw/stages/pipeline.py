"""Pipeline of stages on a chip: its parts while it is put together, and what it asks of a chip."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from hw.arch.agcu import AGCU_STREAMS
from hw.arch.config import ChipConfig
from hw.arch.descriptor import Descriptor
from hw.arch.errors import BadInputError
from hw.arch.limits import MAX_CREDITS
from hw.arch.loops import BoxLoop
from hw.arch.pcu import FilterProgram, PcuInput, PcuProgram
from hw.arch.words.pmu_word import IndexUse
from hw.numeric.formats import Format
from sw.lane_codes.lane_code import LaneCode
from sw.passes.field_limits import Unfit, require_count, require_stride, unfit
from sw.passes.pack import Buffer, Home, pack
from sw.stages.stage_graph import (
    Boxes,
    Hold,
    Lanes,
    Load,
    Product,
    Socket,
    Stage,
    StageGraph,
    Store,
    Stream,
)

__all__ = [
    "Pipeline",
    "PipelineParts",
    "fitting",
    "pcu_name",
    "require_first_statistics",
]


@dataclasses.dataclass(frozen=True)
class Pipeline:
    """A pipeline on a chip.

    Parameters
    ----------
    graph : StageGraph
    homes : mapping of str to Home
        Allocation of its buffers.
    summary : str
        The choices as a line of text.
    block_rows, block_columns : int
        Rows and columns of the result that a slot holds.
    block_keys : int
        Keys of a block of a softmax between two products, or terms of a slab of a product; else 0.
    macs_issued : int
        Multiply-accumulates of its products, with those on padding and of hidden keys.
    cycles : float
        Estimate by which pipelines of one kind are compared, without those of a start; 0 if there
        is none.
    start : float
        Those of these cycles in which an iteration before ends, if the kernel is repeated.
    """

    graph: StageGraph
    homes: dict[str, Home]
    summary: str
    block_rows: int
    block_columns: int
    block_keys: int = 0
    macs_issued: int = 0
    cycles: float = 0.0
    start: float = 0.0


def pcu_name(line: int, number: int, copy: int) -> str:
    """Name of the PCU of a lane program in a copy of a line's chain."""
    return f"pcu{line}_{copy}_{number}"


def fitting(candidates: Iterable[Pipeline | Unfit], name: str) -> Iterator[Pipeline]:
    """The candidates for a kernel of a name that fit, in their order.

    Raises
    ------
    BadInputError
        If none fits; the message is that of the first one.
    """
    problem: Unfit | None = None
    found = False
    for each in candidates:
        if isinstance(each, Unfit):
            problem = problem or each
        else:
            found = True
            yield each
    if not found:
        assert problem is not None
        raise BadInputError(
            f"`{name}` must fit the chip; {problem}",
            kind="does-not-fit",
            where=name,
            value=problem.value,
            rule=problem.rule,
        )


def require_first_statistics(codes: Sequence[LaneCode]) -> None:
    """Refuse a chain of which another program than the first has statistics, or takes them.

    The others take packets of one vector, or a few, and a statistic is sent once for a packet of
    whole rows or columns.

    Raises
    ------
    Unfit
    """
    phases = max((len(code.phases) for code in codes[1:]), default=1)
    if phases > 1:
        rule = (
            "have one phase (statistics are of tiles that are loaded, and none of int8: write "
            "`.to(tw.fp32)`)"
        )
        raise unfit("Lane programs behind the first", rule, phases)
    behind = [each for code in codes[1:] for each in code.phases]
    taken = {value for each in behind for value in (each.source, *each.beside)}
    sent = [each.result for each in codes[0].phases if each.source is None]
    if once := taken.intersection(filter(None, sent)):
        rule = "take no statistic: it is sent once, and they take each element by itself"
        raise unfit("Lane programs behind the first", rule, len(once))


class PipelineParts:
    """Stages and streams of a pipeline while it is put together.

    Parameters
    ----------
    config : ChipConfig
    """

    def __init__(self, config: ChipConfig) -> None:
        self.config = config
        self.stages: dict[str, Stage] = {}
        self.streams: list[Stream] = []
        self.buffers: list[Buffer] = []
        self._loads = [0] * config.agcu.count
        self._stores = [0] * config.agcu.count

    @property
    def load_streams(self) -> int:
        """Load streams of an AGCU: each needs a token port."""
        return min(AGCU_STREAMS, self.config.token_tracks)

    def vector(self, form: Format) -> int:
        """Elements of a format in a vector."""
        return self.config.width_bits // form.bits

    def join(
        self, name: str, sources: Sequence[tuple[Socket, int]], sinks: Sequence[Socket]
    ) -> None:
        """Add a stream."""
        self.streams.append(Stream(name, tuple(sources), tuple(sinks)))

    def load(
        self,
        name: str,
        agcu: int,
        tensor: tuple[Descriptor, int],
        loops: Sequence[BoxLoop],
        sinks: Sequence[Socket],
        *,
        slots: int = 1,
        takers: int = 1,
        index: int = 0,
        following: Boxes = (),
    ) -> None:
        """Add a load stream, at the wanted AGCU or the next one with a free stream.

        A box fills a number of slots in a number of buffers, its takers; ``index`` and
        ``following``, tensors that the stream loads next, are as of `Load`.

        Raises
        ------
        Unfit
            If no AGCU has one.
        """
        at, stream = self._free_stream("Load", self._loads, agcu, self.load_streams, loops)
        self.stages[name] = Load(
            at,
            stream,
            *tensor,
            tuple(loops),
            stream,
            slots=slots,
            takers=takers,
            index=index,
            following=following,
        )
        self.join(name, [(Socket(name), 1)], sinks)

    def store(
        self,
        name: str,
        agcu: int,
        tensor: tuple[Descriptor, int],
        loops: Sequence[BoxLoop],
        sources: Sequence[tuple[Socket, int]],
        *,
        index: int = 0,
        following: Boxes = (),
    ) -> None:
        """Add a store stream, at the wanted AGCU or the next one with a free stream.

        ``index`` and ``following`` are as of `Store`.

        Raises
        ------
        Unfit
            If no AGCU has one.
        """
        at, stream = self._free_stream("Store", self._stores, agcu, AGCU_STREAMS, loops)
        self.stages[name] = Store(
            at, stream, *tensor, tuple(loops), index=index, following=following
        )
        self.join(name, sources, [Socket(name)])

    def _free_stream(
        self, noun: str, used: list[int], agcu: int, most: int, loops: Sequence[BoxLoop]
    ) -> tuple[int, int]:
        """AGCU and number of a free stream, from the wanted AGCU on; it counts as used."""
        for each in loops:
            require_count("boxes", each.count)
        count = len(used)
        for at in ((agcu + step) % count for step in range(count)):
            if used[at] < most:
                used[at] += 1
                return at, used[at] - 1
        raise self.too_many_streams(noun, most)

    def too_many_streams(self, noun: str, most: int) -> Unfit:
        """Refusal of one stream more than there are, so many an AGCU."""
        every = self.config.agcu.count * most
        return Unfit(
            f"{noun} streams must be at most {every}, {most} an AGCU, not {every + 1}",
            value=every + 1,
            rule=f"at most {most} {noun.lower()} streams an AGCU",
        )

    def hold(
        self,
        name: str,
        hold: Hold,
        *,
        wanted: int,
        rate: float,
        alignment: int,
        tokens: bool,
        least: int = 1,
    ) -> None:
        """Add a buffer, as `sw.passes.pack.Buffer` describes it."""
        self.stages[name] = hold
        self.buffers.append(
            Buffer(
                name=name,
                slot_bytes=hold.slot_bytes,
                least=least,
                wanted=wanted,
                writers=hold.inputs,
                tokens=tokens,
                rate=rate,
                alignment=alignment,
                readers=len(hold.reads),
            )
        )

    def lanes(
        self, name: str, code: LaneCode, filters: dict[PcuInput, FilterProgram], cut: int = 0
    ) -> None:
        """Add the lanes of a PCU, with the packets that its ports take.

        Parameters
        ----------
        name : str
        code : LaneCode
        filters : dict of PcuInput to FilterProgram
            Those that do not take every packet.
        cut : int
            Vectors of a result packet; 0: it is not cut.
        """
        all_packets = FilterProgram()
        self.stages[name] = Lanes(
            PcuProgram(
                lanes=code.program,
                activation=filters.get(PcuInput.ACTIVATION, all_packets),
                auxiliary=filters.get(PcuInput.AUXILIARY, all_packets),
                packet_vectors=cut,
            )
        )

    def product(self, name: str, program: PcuProgram) -> None:
        """Add a matrix unit."""
        self.stages[name] = Product(program)

    def done(
        self, summary: str, block_rows: int, block_columns: int, block_keys: int = 0
    ) -> Pipeline:
        """The whole pipeline, with its buffers in PMUs.

        Raises
        ------
        Unfit
            If they do not fit.
        """
        homes, _ = pack(self.config, self.buffers)
        graph = StageGraph(self.stages, tuple(self.streams))
        for name, hold in graph.of(Hold):
            for walk in (*hold.writes, *hold.reads):
                for each in walk.loops:
                    require_stride(f"parts of buffer `{name}`", each.stride, self.config)
            if hold.indexed is not None and hold.indexed.use is IndexUse.GATHER:
                # Reader 1 takes the indices, and its PMU has no other buffer.
                homes[name] = dataclasses.replace(homes[name], reader=1)
        least = {each.name: each.least for each in self.buffers}
        for name, load in graph.of(Load):
            sinks = {each.stage for each in graph.sinks(name)}
            # The free slots of all buffers of a stream are credits of one port.
            most = MAX_CREDITS // (len(graph.sinks(name)) * load.readers)
            needs = max(least[each] for each in sinks)
            if needs > most:
                raise unfit(f"Slots of each of {len(sinks)} buffers", f"be at most {most}", needs)
            common = min(most, *(homes[each].slots for each in sinks))
            homes |= {
                each: dataclasses.replace(homes[each], slots=common) for each in sorted(sinks)
            }
        return Pipeline(graph, homes, summary, block_rows, block_columns, block_keys)
