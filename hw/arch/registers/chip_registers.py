"""Register map of the host port: the one declaration for hardware, host and documentation."""

from hw.arch.counters import COUNTER_BITS
from hw.arch.launch import ENTRY_NUMBER_BITS
from hw.arch.limits import COUNTER_NUMBER_BITS, COUNTER_WORDS, FABRIC_ROWS
from hw.arch.registers.register_fields import Field, Register, RegisterAccess, word_register

__all__ = [
    "HOST_ADDRESS_BITS",
    "ID",
    "MAP_VERSION",
    "REGISTERS",
    "register",
]

#: Address space of the host port: 4 KiB; SLVERR beyond the last register.
HOST_ADDRESS_BITS = 12
#: "TILE" in memory order.
ID = int.from_bytes(b"TILE", "little")
#: Version of the register map and of the launch list.
MAP_VERSION = 2


_RO, _RW = RegisterAccess.READ_ONLY, RegisterAccess.READ_WRITE
_W1, _W1C = RegisterAccess.WRITE_ONE, RegisterAccess.WRITE_ONE_CLEARS


#: Every register in order of offset.
REGISTERS: tuple[Register, ...] = (
    word_register("ID", 0x00, _RO, f'"TILE" in memory order, {ID:#X}'.replace("0X", "0x")),
    word_register(
        "VERSION", 0x04, _RO, f"version of the register map and the launch list, {MAP_VERSION}"
    ),
    word_register("FINGERPRINT", 0x08, _RO, "configuration fingerprint that images must carry"),
    Register(
        "GEOMETRY",
        0x0C,
        (
            Field(
                "rows",
                0,
                FABRIC_ROWS.high.bit_length(),
                _RO,
                "rows of the fabric",
            ),
            Field("width_bytes", 8, 8, _RO, "bytes per vector"),
            Field(
                "counters", 16, COUNTER_NUMBER_BITS, _RO, "counters that COUNTER_SELECT may name"
            ),
        ),
    ),
    Register(
        "CONTROL",
        0x10,
        (
            Field("launch", 0, 1, _W1, "run the launch list; SLVERR while busy or in error"),
            Field("abort", 1, 1, _W1, "stop, drain and reset the fabric; wins over launch"),
            Field("interrupt_enable", 2, 1, _RW, "raise the interrupt while done or error"),
        ),
    ),
    Register(
        "STATUS",
        0x14,
        (
            Field("busy", 0, 1, _RO, "a launch or a reset is in progress"),
            Field("done", 1, 1, _W1C, "the last launch succeeded; a new launch clears it too"),
            Field("error", 2, 1, _W1C, "the last launch ended with an error"),
        ),
    ),
    Register(
        "ERROR",
        0x18,
        (
            Field("code", 0, 8, _RO, "`LaunchError`; cleared with STATUS.error"),
            Field("detail", 8, 8, _RO, "code of the unit, or `ReadPhase`"),
            Field("unit", 16, 8, _RO, "number of the unit, modulo 256"),
        ),
    ),
    word_register(
        "ERROR_ENTRY", 0x1C, _RO, "entry of the launch list concerned, from 0", ENTRY_NUMBER_BITS
    ),
    word_register("LIST_ADDRESS_LO", 0x20, _RW, "address of the launch list, low half"),
    word_register("LIST_ADDRESS_HI", 0x24, _RW, "address of the launch list, high half"),
    word_register("LIST_ENTRIES", 0x28, _RW, "entries of the launch list", ENTRY_NUMBER_BITS),
    word_register(
        "CYCLES_LO", 0x30, _RO, "cycles of the launch, low half; the read holds the high half"
    ),
    word_register("CYCLES_HI", 0x34, _RO, "high half at the last read of CYCLES_LO"),
    word_register("LAUNCHES", 0x38, _RO, "successful launches since reset"),
    word_register(
        "FIRST_MAC",
        0x3C,
        _RO,
        "cycle of the launch, as CYCLES counts, of the first vector into an array; 0: none",
    ),
    word_register(
        "COUNTER_SELECT",
        0x40,
        _RW,
        f"counter that COUNTER_LO reads: {COUNTER_WORDS} · unit + word",
        COUNTER_NUMBER_BITS,
    ),
    word_register("COUNTER_LO", 0x44, _RO, "low 32 bits; SLVERR if there is no such counter"),
    word_register(
        "COUNTER_HI",
        0x48,
        _RO,
        f"high {COUNTER_BITS - 32} bits at the last read of COUNTER_LO",
        COUNTER_BITS - 32,
    ),
    word_register(
        "LAUNCH_CYCLES",
        0x4C,
        _RO,
        "cycles of the last entry outside its kernel: fetch, check, configuration",
    ),
    word_register(
        "ENTRY_BEGIN_LO",
        0x50,
        _RO,
        "cycle, as CYCLES counts, in which the entry before the last ended, low half; 0: none",
    ),
    word_register("ENTRY_BEGIN_HI", 0x54, _RO, "high half at the last read of ENTRY_BEGIN_LO"),
    word_register(
        "TRACE_LO",
        0x58,
        _RO,
        "oldest trace event, low half; 0: none. The read removes it and holds the high half",
    ),
    word_register("TRACE_HI", 0x5C, _RO, "high half at the last read of TRACE_LO"),
    word_register(
        "TRACE_DROPPED", 0x60, _RO, "trace events since the launch that found the ring full"
    ),
)

_BY_NAME = {each.name: each for each in REGISTERS}


def register(name: str) -> Register:
    """Register with a name.

    Raises
    ------
    KeyError
        If there is none.
    """
    return _BY_NAME[name]
