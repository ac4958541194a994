"""Skew registers at the edges of an array: each lane enters some cycles after the one before."""

from hw.emit.structure import Bits, Structure

__all__ = ["skewed"]


def skewed(structure: Structure, name: str, lanes: Bits, cycles: int) -> Bits:
    """Lanes, and flags, delayed by so many registers: one is shared by all lanes further on."""
    for stage in range(cycles):
        lanes = structure.register(f"{name}_{stage}", lanes)
    return lanes
