"""Multicast: one payload to a set of branches, each in its own time."""

from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import In, Out

from hw.arch.checks import require_int
from hw.lib.component import Component

__all__ = ["EagerFork"]


class EagerFork(Component):
    """Control of an eager fork; the payload itself goes to every branch and needs no logic.

    Each branch takes the payload in the first cycle in which it can, and never sees it again; the
    input is done with it in the cycle in which the last branch takes it. No branch's ``valid``
    depends on a ``ready``, so siblings never wait for each other within a payload. Latency 0, one
    payload a cycle while all branches are ready.

    Parameters
    ----------
    branches : int
        Branches there are (1 to 64).

    Members
    -------
    i_valid : ``In(1)``
        A payload is there.
    o_ready : ``Out(1)``
        All its branches have it; low for ever if it has none. Depends on ``i_ready``.
    o_valid : ``Out(branches)``
        The payload is offered to a branch.
    i_ready : ``In(branches)``
        A branch takes what it is offered.
    feeds : ``In(branches)``
        Branches that every payload goes to; static.
    i_clear : ``In(1)``
        Forgets which branches have the payload.

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
        """Branches there are."""
        return self._branches

    @property
    def definition_name(self) -> str:
        """Name of the module when it is shared."""
        return f"eager_fork_{self._branches}"

    def elaborate(self, platform: object) -> Module:
        m = Module()
        done = self.done
        have = Signal(self._branches)
        m.d.comb += [
            self.o_valid.eq(self.i_valid.replicate(self._branches) & self.feeds & ~done),
            have.eq(done | (self.o_valid & self.i_ready)),
            # A payload without a branch stays where it is, and the watchdog names it.
            self.o_ready.eq(~(self.feeds & ~have).any() & self.feeds.any()),
        ]
        with m.If(self.i_clear | (self.i_valid & self.o_ready)):
            m.d.sync += done.eq(0)
        with m.Else():
            m.d.sync += done.eq(have)
        return m
