"""Components that a test inspects and never elaborates."""

from typing import Any, TypeVar

from amaranth.hdl import Elaboratable

__all__ = ["unelaborated"]

Made = TypeVar("Made")


def unelaborated(component: Made) -> Made:
    """Keep Amaranth from warning that a component, and what it has made for itself, is not used."""
    pending: list[Any] = [component]
    seen: set[int] = set()
    while pending:
        each = pending.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, Elaboratable):
            each.__dict__["_MustUse__used"] = True
            pending += vars(each).values()
        elif isinstance(each, list | tuple):
            pending += each
        elif isinstance(each, dict):
            pending += each.values()
    return component
