"""Predicted cycles of a chip program: how long what is proved live takes."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from hw.arch.config import ChipConfig
from hw.arch.errors import BadInputError
from hw.arch.unit_kind import AGCU, UnitKind
from sw.chip_program import ChipProgram
from sw.fabric.nets import Output, find_nets
from sw.prove.stream_packets import StreamPackets
from sw.timing.iterations import iterated
from sw.timing.launch_cycles import launch_cycles, ready_cycles
from sw.timing.timed_network import TimedNetwork, burst_beats

__all__ = ["END", "LATENCY", "Prediction", "predict_cycles", "unit_name"]

#: Latency of the memory if none is given: that of a run without ``--latency``.
LATENCY = 100
#: Cycles from the report of the last box to the end of the kernel: the count of boxes, and the
#: command processor (`hw.agcu.unit`, `hw.command.processor`).
END = 2
#: Iterations of a period: two, for with two slots of a buffer every other iteration may wait.
_PERIOD = 2
#: Most cycles of a short iteration. Several are under way at once, so their periods are longer: of
#: at least and at most so many iterations.
_SHORT, _SHORT_PERIOD, _LONGEST_PERIOD = 2048, 4, 32
#: Two periods of short iterations are alike if their cycles differ by at most this part.
_ALIKE = 1 / 128
#: Runs that are remembered.
_REMEMBERED = 256


@dataclasses.dataclass(frozen=True)
class Prediction:
    """Predicted cycles of a launch.

    Parameters
    ----------
    kernel : int
        From the start of the kernel to its end, all iterations.
    before : int
        From the launch write of a cold launch to the start of the kernel.
    ready : int
        From the end of another kernel before it in the launch list to its start, if its own entry
        has been fetched by then.
    to_multiply : int or None
        From the start of the kernel to the first vector that enters an array; None without any.
    busy : mapping of str to float
        Share of the cycles of one iteration in which a unit moves something, by its name in a
        report: PCUs by vectors that enter the array or groups that enter the lanes, whichever are
        more, PMUs by vectors at the busier one of their ports, AGCUs by beats that they read or
        that they write.
    vectors : mapping of (str, int) to int
        Vectors that leave a port of a unit in one iteration, by its name in a report and the port.
    by_lanes : frozenset of str
        PCUs that are busy by their lanes, not by their array.
    """

    kernel: int
    before: int
    ready: int
    to_multiply: int | None
    busy: Mapping[str, float]
    vectors: Mapping[tuple[str, int], int]
    by_lanes: frozenset[str] = frozenset()

    @property
    def cycles(self) -> int:
        """Cycles of a cold launch."""
        return self.before + self.kernel

    def after(self, kernel: int) -> int:
        """Cycles from the end of a kernel before it, of so many cycles, to its start."""
        return max(self.before - kernel, self.ready)

    @property
    def between(self) -> int:
        """Cycles from the end of the same kernel before it to its start."""
        return self.after(self.kernel)

    @property
    def warm_cycles(self) -> int:
        """Cycles of a warm launch, which follows another in the launch list."""
        return self.between + self.kernel


def predict_cycles(
    program: ChipProgram,
    *,
    repeat: int = 1,
    latency: int = LATENCY,
    arguments: Sequence[int] = (),
) -> Prediction:
    """Predict the cycles of a decoded image by a timed run of its network.

    Memory answers after ``latency`` cycles and never pauses.

    Parameters
    ----------
    program : ChipProgram
        A decoded image that is live for this number of iterations (`sw.prove.liveness`).
    repeat : int
        Iterations of the launch.
    latency : int
        Cycles from a read address to its first beat, and from the last beat of a write to its
        response.
    arguments : sequence of int
        Launch arguments, as far as they are not multiples of a page: addresses of tensors.

    Raises
    ------
    BadInputError
        If the latency is negative, or the program is not live.
    StepLimitError
        If the run takes too many steps.
    """
    if latency < 0:
        raise BadInputError(
            f"Latency must be at least 0 cycles, not {latency}", where="latency", value=latency
        )
    places = _places(program.config, arguments)
    return _predicted(_Case(program.config, program.pack(), repeat, latency, places, program))


@dataclasses.dataclass(frozen=True)
class _Case:
    """All that the cycles of a kernel depend on; the program is that of the image."""

    config: ChipConfig
    image: bytes
    repeat: int
    latency: int
    arguments: tuple[int, ...]
    program: ChipProgram = dataclasses.field(compare=False)


def _places(chip: ChipConfig, arguments: Sequence[int]) -> tuple[int, ...]:
    """Places of the arguments within the bursts of loads and stores, up to the last that is not 0.

    So equal images at other addresses are one case.
    """
    bursts = math.lcm(burst_beats(chip, store=False), burst_beats(chip, store=True))
    places = [argument % (bursts * (chip.width_bits // 8)) for argument in arguments]
    while places and not places[-1]:
        places.pop()
    return tuple(places)


@functools.lru_cache(maxsize=_REMEMBERED)
def _predicted(case: _Case) -> Prediction:
    """The prediction of a case: the finalists of a search, equal parts and the result share it."""
    program, latency, arguments = case.program, case.latency, case.arguments
    network = _timed(program, latency, arguments)
    once = round(network.end) + END
    kernel = once
    if case.repeat > 1:
        kernel = _repeated(program, once, case.repeat, latency, arguments)
    number = len({argument for agcu in program.agcus.values() for _, argument in agcu.descriptors})
    first = network.first_issue
    return Prediction(
        kernel=kernel,
        before=launch_cycles(program.config, len(case.image), number, latency=latency),
        ready=ready_cycles(number),
        to_multiply=None if first is None else round(first),
        busy=MappingProxyType(
            {
                unit_name(kind, at): network.moves(at, kind is AGCU) / once
                for kind, at, _ in program.units()
            }
        ),
        vectors=MappingProxyType(
            {
                (unit_name(root.kind, root.at), root.port): channel.written
                for root, channel in network.channels.items()
                if isinstance(root, Output) and not root.tokens
            }
        ),
        by_lanes=frozenset(
            unit_name(kind, at) for kind, at, _ in program.units() if network.by_lanes(at)
        ),
    )


def unit_name(kind: UnitKind, at: Sequence[int]) -> str:
    """Name of a unit in a report, such as ``pcu_0_1``."""
    return f"{kind.name}_{'_'.join(map(str, at))}"


def _timed(program: ChipProgram, latency: int, arguments: Sequence[int]) -> TimedNetwork:
    """The network after its run."""
    nets = find_nets(program)
    packets = StreamPackets(program, nets)
    network = TimedNetwork(program, nets, packets, latency=latency, arguments=tuple(arguments))
    network.run()
    for actor in network.actors:
        if actor.ends_launch and (reasons := actor.reasons()):
            raise BadInputError(
                f"Program must be live to be timed, but {actor.name} waits for {reasons[0][0]}",
                where=actor.name,
                rule="every stream must be taken, and every slot filled or freed",
            )
    return network


def _repeated(
    program: ChipProgram, once: int, repeat: int, latency: int, arguments: Sequence[int]
) -> int:
    """Cycles of a kernel of several iterations, given those of one.

    Two periods are run. Further iterations take as long as those of the second one. If periods of
    short iterations differ, both become the first one of a run of twice as many.
    """
    ends = {1: once}
    period = _PERIOD if once > _SHORT else _SHORT_PERIOD
    while True:
        last = min(repeat, 2 * period + 1)
        for count in (last,) if last == repeat else (period + 1, last):
            if count not in ends:
                several = iterated(program, count)
                if several is None:
                    return once * repeat
                ends[count] = round(_timed(several, latency, arguments).end) + END
        if last == repeat:
            return ends[last]
        first, second = ends[period + 1] - once, ends[last] - ends[period + 1]
        alike = abs(first - second) <= _ALIKE * second
        if once > _SHORT or alike or period == _LONGEST_PERIOD:
            return ends[last] + round((repeat - last) * second / period)
        period *= 2
