"""Samples of counters and memory ports that the harness takes while a kernel runs."""

from __future__ import annotations

import ctypes
import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.arch.config import ChipConfig
from hw.arch.counters import ACTIVITIES, unit_kinds
from hw.arch.limits import COUNTER_WORDS

__all__ = ["PORT_COUNTS", "KernelSamples", "read_samples"]

#: Counts of a memory port in a sample. The last four are cycles: memory owes read data and shows
#: none, shows some that the chip does not take, does not take an address, does not take data.
PORT_COUNTS = ("read_beats", "write_beats", "read_owed", "read_held", "address_held", "write_held")
_BEGIN, _END = 0, 2

Ints = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class KernelSamples:
    """Samples of one kernel: one when it begins, every n cycles of it, one when it has ended.

    Members
    -------
    cycles : array
        Cycle of each sample, counted as the model counts.
    units : mapping of str to array
        Counter words of each unit by its name in a report: samples × 8, in the order of
        `hw.arch.counters`.
    ports : mapping of str to array
        Counts of each memory port since the launch began: samples × `PORT_COUNTS`.
    ended : bool
        Whether the last sample is that of the end.
    """

    cycles: Ints
    units: dict[str, Ints]
    ports: dict[str, Ints]
    ended: bool

    def activity(self, unit: str) -> Ints:
        """Cycles of a unit by state between samples: intervals × `ACTIVITIES`."""
        found: Ints = np.diff(self.units[unit][:, : len(ACTIVITIES)], axis=0)
        return found

    def traffic(self, port: str) -> Ints:
        """Counts of a port between samples: intervals × `PORT_COUNTS`."""
        found: Ints = np.diff(self.ports[port], axis=0)
        return found


def _unit_of(instance: str, config: ChipConfig) -> str:
    """Name of a unit in a report, of the instance of its part."""
    kind, *at = instance.split("_")
    if kind == "agcu":
        return instance
    row, column = map(int, at)
    return f"{config.unit_at(row, column).name}_{row}_{column}"


def read_samples(
    library: ctypes.CDLL,
    handle: ctypes.c_void_p,
    config: ChipConfig,
    instances: Sequence[str],
    ports: Sequence[str],
) -> tuple[KernelSamples, ...]:
    """Samples of every kernel that ran since the harness began to take them.

    Parameters
    ----------
    library, handle
        The harness, and its model.
    config : ChipConfig
    instances : sequence of str
        Instances of the parts that have counters, in the harness's order.
    ports : sequence of str
        Names of the memory ports, in the harness's order.
    """
    count = ctypes.c_int64()
    words: Any = library.chip_samples(handle, ctypes.byref(count))
    if not count.value:
        return ()
    names = [_unit_of(each, config) for each in instances]
    width = 2 + COUNTER_WORDS * len(names) + len(PORT_COUNTS) * len(ports)
    rows = np.ctypeslib.as_array(words, (count.value // width, width)).copy()
    first_port = 2 + COUNTER_WORDS * len(names)
    begins = [*np.flatnonzero(rows[:, 1] == _BEGIN), len(rows)]
    kernels = []
    for first, end in zip(begins, begins[1:], strict=False):
        own = rows[first:end]
        units = own[:, 2:first_port].reshape(len(own), len(names), COUNTER_WORDS)
        traffic = own[:, first_port:].reshape(len(own), len(ports), len(PORT_COUNTS))
        by_name = {name: units[:, number] for number, name in enumerate(names)}
        kernels.append(
            KernelSamples(
                cycles=own[:, 0],
                units={name: by_name[name] for name in unit_kinds(config) if name in by_name},
                ports={name: traffic[:, number] for number, name in enumerate(ports)},
                ended=bool(own[-1, 1] == _END),
            )
        )
    return tuple(kernels)
