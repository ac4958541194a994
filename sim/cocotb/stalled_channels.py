"""AXI memories and channels of a testbench that pause in random cycles."""

import itertools
import logging
from collections.abc import Iterable
from typing import Any

import numpy as np
from cocotbext.axi import AxiBus, AxiRam

from sim.cocotb.bench_support import random_generator

__all__ = ["stall_channels", "stalled_memory"]


def stall_channels(channels: Iterable[Any], rng: np.random.Generator, share: float) -> None:
    """Let channels of cocotbext pause in a share of the cycles, all by one sequence."""
    for channel in channels:
        channel.set_pause_generator(bool(rng.random() < share) for _ in itertools.count())


def stalled_memory(dut: Any, size: int, share: float) -> AxiRam:
    """A memory at the port ``axi``, each of whose five channels pauses by a sequence of its own.

    Parameters
    ----------
    dut
        The device under test.
    size : int
        Bytes of the memory.
    share : float
        Share of the cycles in which a channel pauses.
    """
    memory = AxiRam(AxiBus.from_prefix(dut, "axi_"), dut.clk, dut.rst, size=size)
    for side, names in (
        (memory.read_if, ("ar_channel", "r_channel")),
        (memory.write_if, ("aw_channel", "w_channel", "b_channel")),
    ):
        side.log.setLevel(logging.WARNING)
        for name in names:
            stall_channels([getattr(side, name)], random_generator(name), share)
    return memory
