"""A run of one image that no kernel made, such as one of units placed by hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.arch.errors import BadInputError
from sim.backends.choose import open_backend
from sim.backends.interface import LaunchOrder, Setup
from sim.launch_memory import LaunchMemory
from sim.native.conditions import MemoryConditions
from sim.run.endings import raise_ending
from sw.array_spec import ArraySpec
from sw.chip_program import ChipProgram
from sw.ir.format_rules import format_of

__all__ = ["ImageRun", "run_image"]

Array = npt.NDArray[Any]


@dataclasses.dataclass(frozen=True)
class ImageRun:
    """Result of a launch of an image.

    Members
    -------
    outputs : mapping of str to array
    cycles : int or None
        From the launch write to the last cycle in which the chip is busy; None on the emulator.
    bytes_read, bytes_written : int or None
        Over all AXI ports.
    """

    outputs: Mapping[str, Array]
    cycles: int | None
    bytes_read: int | None
    bytes_written: int | None

    def __getattr__(self, name: str) -> Array:
        """An output by its name."""
        outputs: Mapping[str, Array] = object.__getattribute__(self, "outputs")
        if name not in outputs:
            raise AttributeError(f"no output `{name}`; outputs are {', '.join(outputs)}")
        return outputs[name]


def run_image(
    program: ChipProgram,
    inputs: Mapping[str, npt.ArrayLike],
    outputs: Mapping[str, tuple[tuple[int, ...], Any]],
    *,
    backend: str = "rtl",
    seed: int = 1,
    latency: int = 100,
    jitter: int = 0,
    stall: float = 0.0,
    max_cycles: int = 1_000_000,
) -> ImageRun:
    """Launch an image once, cold.

    Parameters
    ----------
    program : ChipProgram
    inputs : mapping of str to array
        Arguments 0 and on of the launch.
    outputs : mapping of str to (shape, format)
        The arguments behind them.
    backend : str
        ``rtl``, ``cocotb`` or ``emulator``.
    seed : int
        Of the bytes around the arrays, of jitter and of stalls.
    latency, jitter : int
        Cycles of a memory access, and random cycles added.
    stall : float
        Share of cycles in which a handshake is refused.
    max_cycles : int
        Cycles after which the launch counts as a hang.

    Raises
    ------
    BadInputError
        If a name stands twice, or an array or format is not supported.
    DeviceError, HangError
        If the launch ends with an error, or does not end.
    """
    arrays = {name: np.asarray(each) for name, each in inputs.items()}
    both = arrays.keys() & outputs.keys()
    if both:
        raise BadInputError(f"Array `{min(both)}` must be an input or an output, not both")
    specs = [ArraySpec(name, each.shape, format_of(each.dtype)) for name, each in arrays.items()]
    specs += [
        ArraySpec(name, tuple(shape), format_of(format_), output=True)
        for name, (shape, format_) in outputs.items()
    ]
    config = program.config
    layout = LaunchMemory.of_image(config, program.pack(), specs, seed=seed)
    memory = bytearray(layout.bytes_before(arrays))
    conditions = MemoryConditions(latency=latency, jitter=jitter, stall=stall, seed=seed)
    with open_backend(backend, Setup(config, conditions)) as chip:
        answer = chip.launch(
            memory,
            LaunchOrder(
                layout.list_address,
                layout.entries,
                max_cycles=max_cycles,
                regions=layout.regions,
            ),
        )
    if answer.status != "done":
        raise_ending(config, answer, {})
    found = {name: layout.read(memory, name) for name in outputs}
    return ImageRun(found, answer.cycles, answer.bytes_read, answer.bytes_written)
