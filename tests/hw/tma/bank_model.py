"""Model of a barrier bank in Python: the rules of docs/barrier.md, an operation at a time."""

from dataclasses import dataclass, field

from hw.arch.error_codes import BarrierError
from hw.tma.barriers.barrier_layouts import BarrierOperation as Op

#: Operations that arrive, expect bytes, and complete bytes.
ARRIVING = (Op.ARRIVE, Op.ARRIVE_NO_COMPLETE, Op.ARRIVE_EXPECT, Op.DROP)
EXPECTING = (Op.ARRIVE_EXPECT, Op.EXPECT)


@dataclass
class Phases:
    """One barrier: what came in this phase and what it was to wait for."""

    valid: bool = False
    flag: bool = False
    completed: int = 0
    wanted: int = 0
    came: int = 0
    dropped: int = 0
    asked: int = 0
    landed: int = 0

    def state(self) -> dict[str, int]:
        """What an answer has, but for its error."""
        if not self.valid:
            return {"phase": 0, "pending": 0, "expected": 0, "tx": 0, "flag": 0}
        return {
            "phase": self.completed % 2,
            "pending": self.wanted - self.came,
            "expected": self.wanted - self.dropped,
            "tx": self.asked - self.landed,
            "flag": int(self.flag),
        }


@dataclass
class BankModel:
    """Barriers, the limits of their counts, and all phases that were completed."""

    barriers: int
    arrivals: int
    tx_bytes: int
    each: list[Phases] = field(default_factory=list)
    completed: int = 0

    def __post_init__(self) -> None:
        self.each = [Phases() for _ in range(self.barriers)]

    def apply(
        self, operation: int, barrier: int, arrivals: int = 0, bytes: int = 0, failed: int = 0
    ) -> dict[str, int]:
        """Apply an operation and return its answer."""
        if barrier >= self.barriers:
            return Phases().state() | {"error": BarrierError.INDEX.value}
        at = self.each[barrier]
        answer = at.state()
        error = self._refusal(operation, at, arrivals, bytes)
        if error is not BarrierError.NONE:
            at.flag |= at.valid
        elif operation == Op.INIT.value:
            self.each[barrier] = Phases(valid=True, wanted=arrivals)
        elif operation == Op.INVALIDATE.value:
            at.valid = False
        else:
            kind = Op(operation)
            at.came += arrivals * (kind in ARRIVING)
            at.dropped += arrivals * (kind is Op.DROP)
            at.asked += bytes * (kind in EXPECTING)
            at.landed += bytes * (kind is Op.COMPLETE)
            at.flag |= kind is Op.COMPLETE and bool(failed)
            if at.wanted and at.came == at.wanted and at.asked == at.landed:
                at.completed += 1
                self.completed += 1
                at.wanted -= at.dropped
                at.came = at.dropped = at.asked = at.landed = 0
        return answer | {"error": error.value}

    def _refusal(self, operation: int, at: Phases, arrivals: int, bytes: int) -> BarrierError:
        if operation not in [each.value for each in Op]:
            return BarrierError.OPERATION
        kind = Op(operation)
        if kind is Op.INIT:
            fits = 1 <= arrivals <= self.arrivals
            return BarrierError.NONE if fits else BarrierError.EXPECTED
        if not at.valid:
            return BarrierError.UNINITIALISED
        coming = arrivals * (kind in ARRIVING)
        tx = at.asked - at.landed + bytes * ((kind in EXPECTING) - (kind is Op.COMPLETE))
        moved = bytes * (kind in EXPECTING or kind is Op.COMPLETE)
        if at.wanted == 0 and coming + moved:
            return BarrierError.RETIRED
        if at.came + coming > at.wanted:
            return BarrierError.ARRIVALS
        if abs(tx) > self.tx_bytes:
            return BarrierError.TX
        if kind is Op.ARRIVE_NO_COMPLETE and coming and at.came + coming == at.wanted and not tx:
            return BarrierError.COMPLETES
        return BarrierError.NONE
