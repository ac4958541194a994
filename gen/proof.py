"""Outcome of a proof, and of the faults that were put into the block."""

import dataclasses
import enum

__all__ = ["Outcome", "Proof"]


class Outcome(enum.Enum):
    """How a proof ended."""

    COUNTEREXAMPLE = "counterexample"
    PROVED = "proved"
    OPEN = "open"


@dataclasses.dataclass(frozen=True)
class Proof:
    """Outcome of a proof.

    Members
    -------
    outcome : Outcome
        ``PROVED``: every assertion holds in every reachable state. ``COUNTEREXAMPLE``: a trace
        from reset breaks one. ``OPEN``: neither was found.
    covers, reached : int
        Situations that must occur, and those a trace from reset shows.
    faults : tuple of Outcome
        Of each fault put into the block: a counterexample catches it; ``PROVED`` shows that it is
        equivalent for the property, whose every assertion holds in spite of it.
    seconds : float
    """

    outcome: Outcome
    covers: int
    reached: int
    faults: tuple[Outcome, ...]
    seconds: float

    @property
    def proved(self) -> bool:
        """Every assertion holds in every reachable state."""
        return self.outcome is Outcome.PROVED

    @property
    def caught(self) -> int:
        """Faults that a counterexample catches."""
        return self.faults.count(Outcome.COUNTEREXAMPLE)

    @property
    def equivalent(self) -> int:
        """Faults with which the property is proved all the same."""
        return self.faults.count(Outcome.PROVED)

    @property
    def met(self) -> bool:
        """The property is proved, not vacuously, and every fault but equivalent ones is caught.

        At least one is caught, if any were put in: a check that nothing breaks is none.
        """
        decided = Outcome.OPEN not in self.faults and (self.caught > 0 or not self.faults)
        return self.proved and self.reached == self.covers and decided
