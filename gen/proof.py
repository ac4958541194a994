"""Outcome of a formal proof and of the faults injected into the block."""

import dataclasses
import enum

__all__ = ["Outcome", "Proof"]


class Outcome(enum.Enum):
    """Outcome of a proof attempt."""

    COUNTEREXAMPLE = "counterexample"
    PROVED = "proved"
    OPEN = "open"
    BOUNDED = "bounded"


@dataclasses.dataclass(frozen=True)
class Proof:
    """Result of a proof: property, covers and injected faults.

    Members
    -------
    outcome : Outcome
        ``PROVED``: every assertion holds in every reachable state. ``COUNTEREXAMPLE``: a trace
        from reset violates one. ``OPEN``: neither was found. ``BOUNDED``: no trace of the length
        that the property states violates one, which says nothing of longer traces.
    covers, reached : int
        Covers: situations that must occur, and those that a trace from reset shows.
    faults : tuple of Outcome
        Outcome per injected fault: a counterexample catches it; ``PROVED`` shows that it is
        equivalent for the property, whose every assertion holds despite it.
    seconds : float
    """

    outcome: Outcome
    covers: int
    reached: int
    faults: tuple[Outcome, ...]
    seconds: float

    @property
    def proved(self) -> bool:
        """Whether every assertion holds in every reachable state."""
        return self.outcome is Outcome.PROVED

    @property
    def holds(self) -> bool:
        """Whether it is proved, or has no counterexample of the length that the property states."""
        return self.outcome in (Outcome.PROVED, Outcome.BOUNDED)

    @property
    def caught(self) -> int:
        """Number of faults that a counterexample catches."""
        return self.faults.count(Outcome.COUNTEREXAMPLE)

    @property
    def equivalent(self) -> int:
        """Number of faults with which the property still holds."""
        return self.faults.count(Outcome.PROVED)

    @property
    def met(self) -> bool:
        """Whether the property is proved, not vacuously, and every non-equivalent fault is caught.

        Of a bounded property, whether no trace violates it. At least one fault must be caught, if
        any were injected: a check that nothing violates is void.
        """
        decided = Outcome.OPEN not in self.faults and (self.caught > 0 or not self.faults)
        return self.holds and self.reached == self.covers and decided
