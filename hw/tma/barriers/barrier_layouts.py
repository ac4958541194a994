"""Layouts of a barrier bank: operations, answers, waits and their results."""

from amaranth.hdl import Const, Value, signed, unsigned
from amaranth.lib import data, enum

from hw.arch.error_codes import BarrierError
from hw.arch.limits import BARRIERS

__all__ = [
    "BarrierOperation",
    "barrier_answer_layout",
    "barrier_counts_layout",
    "barrier_operation_layout",
    "barrier_result_layout",
    "barrier_wait_layout",
    "is_above",
]

#: Barrier of an operation: of equal width whatever the bank's size, so that the bank checks it.
_INDEX = range(BARRIERS.high)


class BarrierOperation(enum.Enum, shape=4):
    """Operation on one barrier of a bank."""

    #: Begin with ``arrivals`` expected, at phase 0.
    INIT = 0
    #: End the use of the barrier until the next INIT.
    INVALIDATE = 1
    #: Arrive ``arrivals`` times.
    ARRIVE = 2
    #: Arrive, which is an error if it would complete the phase.
    ARRIVE_NO_COMPLETE = 3
    #: Expect ``bytes`` and arrive, as one operation.
    ARRIVE_EXPECT = 4
    #: Expect ``bytes``.
    EXPECT = 5
    #: Complete ``bytes``; raise the flag if they ``failed``.
    COMPLETE = 6
    #: Arrive, and arrive no more in later phases.
    DROP = 7
    #: Read the counts.
    PENDING_COUNT = 8


def barrier_operation_layout(*, arrivals: int, tx_bytes: int) -> data.StructLayout:
    """Layout of an operation. ``arrivals`` and ``bytes`` are used as the operation says."""
    return data.StructLayout(
        {
            "operation": BarrierOperation,
            "barrier": _INDEX,
            "arrivals": range(arrivals + 1),
            "bytes": range(tx_bytes + 1),
            "failed": 1,
        }
    )


def barrier_counts_layout(*, arrivals: int, tx_bytes: int) -> data.StructLayout:
    """Layout of the counts of a barrier: arrivals expected and pending, and signed bytes."""
    return data.StructLayout(
        {
            "expected": range(arrivals + 1),
            "pending": range(arrivals + 1),
            "tx": signed(tx_bytes.bit_length() + 1),
        }
    )


def barrier_answer_layout(*, arrivals: int, tx_bytes: int) -> data.StructLayout:
    """Layout of an answer: the state before the operation, and the error that refused it."""
    counts = barrier_counts_layout(arrivals=arrivals, tx_bytes=tx_bytes)
    return data.StructLayout({"phase": 1, **counts.members, "flag": 1, "error": BarrierError})


#: A wait until the phase of ``parity`` has completed, tested ``cycles`` + 1 times at most.
barrier_wait_layout = data.StructLayout({"barrier": _INDEX, "parity": 1, "cycles": unsigned(32)})

#: End of a wait: the phase has completed, the barrier's flag is up, the time is over, or an error.
barrier_result_layout = data.StructLayout(
    {"passed": 1, "flag": 1, "timed_out": 1, "error": BarrierError}
)


def is_above(value: Value, most: int) -> Value:
    """Whether a field has a value above ``most``; false, not compared, if it is too narrow."""
    return value > most if most < (1 << len(value)) - 1 else Const(0)
