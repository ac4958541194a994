"""Loops of a walk over a slot of a buffer, from counts and strides in elements."""

from __future__ import annotations

from hw.arch.loops import LoopProgram

__all__ = ["loop", "nest"]


def loop(count: int, stride: int) -> LoopProgram:
    """Loop with a stride, which is dropped for one iteration: its field may be too small."""
    return LoopProgram(count, stride=stride if count > 1 else 0)


def nest(*loops: tuple[int, int]) -> tuple[LoopProgram, ...]:
    """Loop nest from counts and strides, without loops of one iteration."""
    return tuple(LoopProgram(count, stride=stride) for count, stride in loops if count > 1)
