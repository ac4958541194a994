"""Predicted cycles of a chip program: how long what is proved live takes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from hw.arch.errors import BadInputError
from hw.arch.unit_kind import AGCU
from sw.chip_program import ChipProgram
from sw.fabric.nets import find_nets
from sw.prove.stream_packets import StreamPackets
from sw.timing.launch_cycles import launch_cycles
from sw.timing.timed_network import TimedNetwork

__all__ = ["LATENCY", "Prediction", "predict_cycles"]

#: Latency of the memory if none is given: that of a run without ``--latency``.
LATENCY = 100
#: Cycles from the report of the last box to the end of the kernel: the count of boxes, and the
#: command processor (`hw.agcu.unit`, `hw.command.processor`).
_END = 2


@dataclasses.dataclass(frozen=True)
class Prediction:
    """Predicted cycles of a launch.

    Parameters
    ----------
    kernel : int
        From the start of the kernel to its end.
    before, between : int
        Before the kernel: from the launch write of a cold launch; from the end of the same kernel
        before it in the launch list.
    to_multiply : int or None
        From the start of the kernel to the first vector that enters an array; None without any.
    busy : mapping of str to float
        Share of the kernel's cycles in which a unit moves something, by its name in a report: PCUs
        by vectors that enter the array or groups that enter the lanes, PMUs by vectors at the
        busier one of their ports, AGCUs by beats.
    """

    kernel: int
    before: int
    between: int
    to_multiply: int | None
    busy: Mapping[str, float]

    @property
    def cycles(self) -> int:
        """Cycles of a cold launch."""
        return self.before + self.kernel

    @property
    def warm_cycles(self) -> int:
        """Cycles of a warm launch, which follows another in the launch list."""
        return self.between + self.kernel


def predict_cycles(
    program: ChipProgram,
    *,
    latency: int = LATENCY,
    image_bytes: int | None = None,
    arguments: Sequence[int] = (),
) -> Prediction:
    """Predict the cycles of a decoded image by a timed run of its network.

    Memory answers after ``latency`` cycles and never pauses. The prediction is for one iteration.

    Parameters
    ----------
    program : ChipProgram
        A decoded image that is live (`sw.prove.liveness`).
    latency : int
        Cycles from a read address to its first beat, and from the last beat of a write to its
        response.
    image_bytes : int or None
        Size of the image file, if the caller has it.
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
    kernel = round(network.end) + _END
    number = len({argument for agcu in program.agcus.values() for _, argument in agcu.descriptors})
    size = len(program.pack()) if image_bytes is None else image_bytes
    launch: Any = {"latency": latency}
    first = network.first_issue
    return Prediction(
        kernel=kernel,
        before=launch_cycles(program.config, size, number, **launch),
        between=launch_cycles(program.config, size, number, **launch, behind=kernel),
        to_multiply=None if first is None else round(first),
        busy={
            f"{kind}_{'_'.join(map(str, at))}".lower(): network.moves(at, kind is AGCU) / kernel
            for kind, at, _ in program.units()
        },
    )
