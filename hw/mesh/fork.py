"""Eager fork: multicast of one payload to a set of branches, each at its own pace."""

from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import In, Out

from hw.arch.checks import require_int
from hw.lib.component import Component

__all__ = ["EagerFork"]


class EagerFork(Component):
    """Control of an eager fork; the payload goes to every branch unchanged.

    Each branch takes the payload in the first cycle in which it is ready, and is not offered it
    again; the input transfers in the cycle in which the last branch takes it. No branch's ``valid``
    depends on a ``ready``, so branches never wait for each other within a payload. Latency 0, one
    payload per cycle while all branches are ready.

    Parameters
    ----------
    branches : int
        Number of branches (1 to 64).

    Members
    -------
    i_valid : ``In(1)``
        A payload is offered.
    o_ready : ``Out(1)``
        Every selected branch has it; always low if none is selected. Depends on ``i_ready``.
    o_valid : ``Out(branches)``
        The payload is offered to a branch.
    i_ready : ``In(branches)``
        A branch is ready.
    feeds : ``In(branches)``
        Branches that every payload goes to; static.
    i_clear : ``In(1)``
        Clears the record of branches that have the payload.

    Attributes
    ----------
    done : Signal
        Branches that have the payload, for proofs.

    Raises
    ------
    BadInputError
        If the number of branches lies outside its domain.
    """

    i_valid: Signal
    o_ready: Signal
    o_valid: Signal
    i_ready: Signal
    feeds: Signal
    i_clear: Signal

    def __init__(self, *, branches: int) -> None:
        require_int("Fork branches", branches, 1, 64)
        self._branches = branches
        self.done = Signal(branches)
        super().__init__(
            {
                "i_valid": In(1),
                "o_ready": Out(1),
                "o_valid": Out(branches),
                "i_ready": In(branches),
                "feeds": In(branches),
                "i_clear": In(1),
            }
        )

    @property
    def branches(self) -> int:
        """Number of branches."""
        return self._branches

    def elaborate(self, platform: object) -> Module:
        m = Module()
        done = self.done
        have = Signal(self._branches)
        m.d.comb += [
            self.o_valid.eq(self.i_valid.replicate(self._branches) & self.feeds & ~done),
            have.eq(done | (self.o_valid & self.i_ready)),
            # A payload without a branch stays at the input, and the watchdog reports it.
            self.o_ready.eq(~(self.feeds & ~have).any() & self.feeds.any()),
        ]
        with m.If(self.i_clear | (self.i_valid & self.o_ready)):
            m.d.sync += done.eq(0)
        with m.Else():
            m.d.sync += done.eq(have)
        return m
