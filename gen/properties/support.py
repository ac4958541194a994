"""Helpers of harnesses: assertions, assumptions, and the stream rule."""

from typing import Any

from amaranth.hdl import Assert, Assume, Module, Signal, Value, ValueLike

__all__ = ["always", "given", "kept", "offers_stay"]


def always(condition: ValueLike) -> Any:
    """Assertion of a harness."""
    return Assert(condition, "the property does not hold")


def given(condition: ValueLike) -> Any:
    """Assumption of a harness."""
    return Assume(condition, "the environment breaks its rule")


def kept(m: Module, value: Value) -> None:
    """Assume that an input keeps its first value."""
    former = Signal.like(value)
    later = Signal()
    m.d.sync += [former.eq(value), later.eq(1)]
    m.d.comb += given(~later | (value == former))


def offers_stay(m: Module, valid: Value, ready: Value, payload: Value) -> None:
    """Assume a producer's stream rule: an offer stays, unchanged, until it is taken."""
    waiting = Signal()
    offered = Signal.like(payload)
    m.d.sync += [waiting.eq(valid & ~ready), offered.eq(payload)]
    m.d.comb += given(~waiting | (valid & (payload == offered)))
