"""Cycles of the command processor before a kernel starts, cold and behind another."""

from __future__ import annotations

from hw.arch.config import ChipConfig
from hw.arch.launch import ARGUMENT_BYTES, ENTRY_BYTES, HEADER_BYTES
from hw.numeric.division import ceil_div

__all__ = ["launch_cycles", "ready_cycles"]

#: Cycles of a cold launch besides those of memory and of what is read (`docs/command.md`), and
#: between two kernels if the next entry has been fetched.
_FETCH, _BETWEEN = 8, 5


def launch_cycles(config: ChipConfig, image_bytes: int, arguments: int, *, latency: int) -> int:
    """Cycles from the launch write to the start of the first kernel.

    Parameters
    ----------
    config : ChipConfig
    image_bytes : int
        Size of the image file, its header included.
    arguments : int
    latency : int
        Latency of the memory in cycles.
    """
    beat_bytes = config.width_bits // 8
    beats = ceil_div(ENTRY_BYTES, beat_bytes) + ceil_div(image_bytes - HEADER_BYTES, beat_bytes)
    read = beats + max(arguments, ceil_div(arguments * ARGUMENT_BYTES, beat_bytes))
    # The entry comes first, then arguments and image together.
    return 2 * latency + _FETCH + read


def ready_cycles(arguments: int) -> int:
    """Cycles from the end of a kernel to the start of the next, which has been fetched."""
    return _BETWEEN + arguments
