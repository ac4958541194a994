"""Rules of AXI4 that a checker watches: who has to keep each, and where it is written."""

import enum
from typing import Self

__all__ = ["AxiRule", "Side", "broken_rules", "rule_rows"]


class Side(enum.Enum):
    """Who has to keep a rule."""

    #: Drives AW, W, AR.
    MANAGER = "manager"
    #: Drives B, R.
    SUBORDINATE = "subordinate"
    #: No rule of AXI4: beyond it the checker has lost count.
    CHECKER = "checker"


_M, _S, _C = Side.MANAGER, Side.SUBORDINATE, Side.CHECKER


class AxiRule(enum.Enum):
    """Rule of an AXI4 port: bit of the checker's outputs, side, section of IHI 0022E, statement.

    Members
    -------
    value : int
        Bit of ``o_breaks`` and ``o_broken``.
    side : Side
        Who has to keep it.
    section : str
        Section of the AMBA AXI and ACE Protocol Specification, issue E.
    statement : str
        The rule in one sentence.
    """

    side: Side
    section: str
    statement: str

    def __new__(cls, side: Side, section: str, statement: str) -> Self:
        """Number the rules in the order of their declaration."""
        rule = object.__new__(cls)
        rule._value_ = len(cls.__members__)
        rule.side, rule.section, rule.statement = side, section, statement
        return rule

    AW_RESET = _M, "A3.1.2", "AWVALID is low in the first cycle after reset"
    AW_HELD = _M, "A3.2.1", "AWVALID stays high until AWREADY"
    AW_STABLE = _M, "A3.2.1", "the payload of AW does not change until AWREADY"
    AW_SIZE = _M, "A3.4.1", "AWSIZE is at most the width of the data"
    AW_BURST = _M, "A3.4.1", "AWBURST is not the reserved code"
    AW_FIXED = _M, "A3.4.1", "a FIXED write burst has at most 16 beats"
    AW_WRAP_LENGTH = _M, "A3.4.1", "a WRAP write burst has 2, 4, 8 or 16 beats"
    AW_WRAP_ALIGNED = _M, "A3.4.1", "a WRAP write burst begins at a multiple of its size"
    AW_BOUNDARY = _M, "A3.4.1", "an INCR write burst does not cross a multiple of 4 KiB"
    AW_CACHE = _M, "A4.4", "AWCACHE is not a reserved code: allocation bits need bit 1"

    W_RESET = _M, "A3.1.2", "WVALID is low in the first cycle after reset"
    W_HELD = _M, "A3.2.1", "WVALID stays high until WREADY"
    W_STABLE = _M, "A3.2.1", "the payload of W does not change until WREADY"
    W_LAST = _M, "A3.2.2", "WLAST is high exactly in the last beat of its AW, in the order of AW"
    W_STROBES = _M, "A3.4.3", "WSTRB is low in byte lanes outside the transfer"

    B_RESET = _S, "A3.1.2", "BVALID is low in the first cycle after reset"
    B_HELD = _S, "A3.2.1", "BVALID stays high until BREADY"
    B_STABLE = _S, "A3.2.1", "the payload of B does not change until BREADY"
    B_ID = _S, "A3.3.1, A5.2", "B answers an accepted and unanswered AW of its id"
    B_DATA = _S, "A3.3.1", "B comes after the last beat of its burst, in order within an id"
    B_EXOKAY = _S, "A3.4.4", "BRESP is not EXOKAY: the port has no exclusive accesses"

    AR_RESET = _M, "A3.1.2", "ARVALID is low in the first cycle after reset"
    AR_HELD = _M, "A3.2.1", "ARVALID stays high until ARREADY"
    AR_STABLE = _M, "A3.2.1", "the payload of AR does not change until ARREADY"
    AR_SIZE = _M, "A3.4.1", "ARSIZE is at most the width of the data"
    AR_BURST = _M, "A3.4.1", "ARBURST is not the reserved code"
    AR_FIXED = _M, "A3.4.1", "a FIXED read burst has at most 16 beats"
    AR_WRAP_LENGTH = _M, "A3.4.1", "a WRAP read burst has 2, 4, 8 or 16 beats"
    AR_WRAP_ALIGNED = _M, "A3.4.1", "a WRAP read burst begins at a multiple of its size"
    AR_BOUNDARY = _M, "A3.4.1", "an INCR read burst does not cross a multiple of 4 KiB"
    AR_CACHE = _M, "A4.4", "ARCACHE is not a reserved code: allocation bits need bit 1"

    R_RESET = _S, "A3.1.2", "RVALID is low in the first cycle after reset"
    R_HELD = _S, "A3.2.1", "RVALID stays high until RREADY"
    R_STABLE = _S, "A3.2.1", "the payload of R does not change until RREADY"
    R_ID = _S, "A3.3.1, A5.2", "R belongs to an accepted and unfinished AR of its id"
    R_LAST = _S, "A3.2.2, A5.3", "RLAST is high exactly in the last beat of the oldest AR of its id"
    R_EXOKAY = _S, "A3.4.4", "RRESP is not EXOKAY: the port has no exclusive accesses"

    WRITES_BOUND = _C, "", "at most `writes` bursts are accepted on AW and unanswered"
    EARLY_BOUND = _C, "", "at most `early_beats` beats of W wait for their AW"
    READS_BOUND = _C, "", "at most `reads` bursts are accepted on AR and unfinished"


def broken_rules(bits: int) -> list[AxiRule]:
    """Rules whose bits of a checker's output are high."""
    return [rule for rule in AxiRule if bits >> rule.value & 1]


def rule_rows() -> list[tuple[str, str, str, str]]:
    """Name, side, section and statement of every rule, as texts of a table."""
    return [(f"`{each.name}`", each.side.value, each.section, each.statement) for each in AxiRule]
