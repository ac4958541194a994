"""Registers of a command chain in the front end of a TMA unit."""

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data

from hw.arch.registers.tma_registers import CHAIN_LOOPS, tma_register

__all__ = ["CHAIN_KEPT", "stage_chain", "write_loop"]

#: Registers that are kept for a chain, and refuse a value of more bits or while it is busy.
CHAIN_KEPT = ("CHAIN_STEP", "CHAIN_RING", "CHAIN_PITCH", "CHAIN_BYTES")


def stage_chain(config: Any, kept: Mapping[str, Signal]) -> list[Any]:
    """Drive a chain's configuration from the values of its registers."""
    ring: Any = data.View(tma_register("CHAIN_RING").layout, kept["CHAIN_RING"])
    return [
        *(config[name].eq(ring[name]) for name in ("operation", "slots", "empty")),
        config.pitch.eq(kept["CHAIN_PITCH"]),
        config.bytes.eq(kept["CHAIN_BYTES"]),
    ]


def write_loop(
    m: Module, loop: Any, busy: Signal, step: Signal, word: Any, refused: Signal
) -> None:
    """Change the loop that a write of CHAIN_LOOP names, unless there is none or it is in use."""
    m.d.comb += [
        refused.eq(busy | (word.loop >= CHAIN_LOOPS)),
        loop.valid.eq(~refused),
        *(loop.payload[name].eq(word[name]) for name in ("loop", "dimension", "count")),
        loop.payload.step.eq(step.as_signed()),
    ]
