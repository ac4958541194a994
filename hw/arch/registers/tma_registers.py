"""Register map of a stand-alone TMA unit: the one declaration for hardware, host and docs."""

from hw.arch.limits import SCRATCHPAD_BYTES
from hw.arch.registers.register_fields import Field, Register, RegisterAccess, word_register

__all__ = [
    "CHAIN_LOOPS",
    "CHAIN_NO_DIMENSION",
    "COMMAND_ID_BITS",
    "REDUCTION_BITS",
    "TMA_ADDRESS_BITS",
    "TMA_ID",
    "TMA_MAP_VERSION",
    "TMA_REGISTERS",
    "tma_register",
]

#: Loops of a command chain; loop 0 is the outermost.
CHAIN_LOOPS = 5
#: Dimension of a loop that repeats the same boxes.
CHAIN_NO_DIMENSION = 7
#: Width of a command's identifier.
COMMAND_ID_BITS = 16
#: Width of a `ReductionOperation`; a command may have a code of none.
REDUCTION_BITS = 3
#: Address space of the register port: 4 KiB; SLVERR beyond the last register.
TMA_ADDRESS_BITS = 12
#: "TMAU" in memory order.
TMA_ID = int.from_bytes(b"TMAU", "little")
#: Version of the register map.
TMA_MAP_VERSION = 1

_PITCH_BITS = SCRATCHPAD_BYTES.high.bit_length()
_RO, _RW = RegisterAccess.READ_ONLY, RegisterAccess.READ_WRITE
_WO, _W1, _W1C = (
    RegisterAccess.WRITE_ONLY,
    RegisterAccess.WRITE_ONE,
    RegisterAccess.WRITE_ONE_CLEARS,
)
_COORDINATES = (
    "signed coordinate of the box in dimension 1; bytes of a linear copy",
    "in dimension 2; first of four rows",
    "in dimension 3; second of four rows",
    "in dimension 4; third of four rows",
    "in dimension 5; fourth of four rows",
)
_BARRIER = Field("barrier", 8, 8, _WO, "number of the barrier")
_SCRATCHPAD = Field("scratchpad", 16, 4, _WO, "scratchpad of the barrier")


def _count(name: str, offset: int, text: str) -> tuple[Register, Register]:
    """Registers of a count of 64 bits; the read of the low half holds the high half."""
    return (
        word_register(f"{name}_LO", offset, _RO, f"{text}; the read holds the high half"),
        word_register(f"{name}_HI", offset + 4, _RO, f"high half at the last read of {name}_LO"),
    )


#: Every register in order of offset.
TMA_REGISTERS: tuple[Register, ...] = (
    word_register("ID", 0x00, _RO, f'"TMAU" in memory order, 0x{TMA_ID:X}'),
    word_register("VERSION", 0x04, _RO, f"version of the register map, {TMA_MAP_VERSION}"),
    Register(
        "GEOMETRY",
        0x08,
        (
            Field("width_bytes", 0, 8, _RO, "bytes per vector"),
            Field("descriptors", 8, 8, _RO, "entries of the descriptor cache"),
            Field("barriers", 16, 16, _RO, "barriers"),
        ),
    ),
    word_register("SCRATCHPAD", 0x0C, _RO, "bytes of the scratchpad"),
    Register(
        "CONTROL",
        0x10,
        (
            Field("abort", 0, 1, _W1, "end every command with ABORTED and reset the unit"),
            Field("clear", 1, 1, _W1, "set the counters of bytes, bursts and stalls to 0"),
        ),
    ),
    Register(
        "STATUS",
        0x14,
        (
            Field("idle", 0, 1, _RO, "every command has completed"),
            Field("full", 1, 1, _RO, "SUBMIT answers SLVERR: too many commands, or an abort"),
            Field("aborting", 2, 1, _RO, "an abort is under way"),
            Field("completions", 3, 1, _RO, "COMPLETION has one"),
        ),
    ),
    Register(
        "INTERRUPT_ENABLE",
        0x18,
        (
            Field("done", 0, 1, _RW, "interrupt while INTERRUPT_STATUS.done"),
            Field("error", 1, 1, _RW, "interrupt while INTERRUPT_STATUS.error"),
            Field("wait", 2, 1, _RW, "interrupt while INTERRUPT_STATUS.wait"),
        ),
    ),
    Register(
        "INTERRUPT_STATUS",
        0x1C,
        (
            Field("done", 0, 1, _W1C, "a command has completed with code 0"),
            Field("error", 1, 1, _W1C, "a command has completed with another code"),
            Field("wait", 2, 1, _W1C, "a wait for a barrier has ended"),
        ),
    ),
    word_register(
        "DESCRIPTOR_LO", 0x20, _RW, "address of the descriptor, or of a linear copy, low half"
    ),
    word_register("DESCRIPTOR_HI", 0x24, _RW, "its high half"),
    *(
        word_register(
            f"COORDINATE_{number}",
            0x28 + 4 * number,
            _RW,
            _COORDINATES[number],
        )
        for number in range(5)
    ),
    word_register("LOCAL", 0x3C, _RW, "byte address of the box in the scratchpad"),
    Register(
        "SIGNAL",
        0x40,
        (
            Field("signals", 0, 1, _RW, "a load completes its bytes at the barrier"),
            Field("barrier", 8, 8, _RW, "number of the barrier"),
        ),
    ),
    Register(
        "SUBMIT",
        0x44,
        (
            Field("operation", 0, 4, _WO, "`TmaOperation`; the write submits the command"),
            Field("id", 16, COMMAND_ID_BITS, _WO, "identifier, which the completion returns"),
        ),
    ),
    Register(
        "COMPLETION",
        0x48,
        (
            Field("id", 0, COMMAND_ID_BITS, _RO, "identifier of the command; the read removes it"),
            Field("code", 16, 8, _RO, "0, or code of a `TmaError` or `BarrierError`"),
            Field("valid", 31, 1, _RO, "a command has completed; if 0, the others are 0"),
        ),
    ),
    Register(
        "GROUPS",
        0x4C,
        (
            Field("read", 0, 16, _RO, "groups whose vectors have left the scratchpad"),
            Field("stored", 16, 16, _RO, "groups that are visible in memory"),
        ),
    ),
    word_register("BARRIER_ARRIVALS", 0x50, _RW, "arrivals of the operation", 20),
    word_register("BARRIER_BYTES", 0x54, _RW, "bytes of the operation", 20),
    Register(
        "BARRIER_OPERATION",
        0x58,
        (
            Field("operation", 0, 4, _WO, "`BarrierOperation`; the write applies it"),
            Field("failed", 4, 1, _WO, "COMPLETE raises the flag"),
            _BARRIER,
            _SCRATCHPAD,
        ),
    ),
    Register(
        "BARRIER_ANSWER",
        0x5C,
        (
            Field("phase", 0, 1, _RO, "parity before the last operation"),
            Field("flag", 1, 1, _RO, "error flag before it"),
            Field("valid", 2, 1, _RO, "the last operation has its answer"),
            Field("error", 8, 8, _RO, "0, or the `BarrierError` that refused it"),
        ),
    ),
    word_register("BARRIER_PENDING", 0x60, _RO, "arrivals pending before the last operation", 20),
    word_register("BARRIER_TX", 0x64, _RO, "signed bytes expected before it"),
    word_register("WAIT_CYCLES", 0x68, _RW, "cycles after which a wait times out"),
    Register(
        "WAIT",
        0x6C,
        (
            Field("parity", 0, 1, _WO, "parity of the phase; the write begins the wait"),
            _BARRIER,
            _SCRATCHPAD,
        ),
    ),
    Register(
        "WAIT_RESULT",
        0x70,
        (
            Field("passed", 0, 1, _RO, "the phase has completed"),
            Field("flag", 1, 1, _RO, "the barrier's error flag is up"),
            Field("timed_out", 2, 1, _RO, "the cycles are over"),
            Field("valid", 3, 1, _RO, "the last wait has ended"),
            Field("error", 8, 8, _RO, "0, or a `BarrierError`"),
        ),
    ),
    word_register("REDUCTION", 0x74, _RW, "`ReductionOperation` of REDUCE", REDUCTION_BITS),
    word_register("OFFSETS", 0x78, _RW, "offsets of an im2col command, of W in the low bits", 16),
    Register(
        "DESTINATIONS",
        0x7C,
        (
            Field("mask", 0, 16, _RW, "scratchpads that a load or a copy goes to"),
            Field("source", 16, 4, _RW, "scratchpad that a store or a copy comes from"),
            Field("scratchpads", 24, 5, _RO, "scratchpads of the unit"),
        ),
    ),
    *_count("READ_BYTES", 0x80, "bytes of the beats read"),
    *_count("WRITTEN_BYTES", 0x88, "bytes of the beats written"),
    *_count("READ_BURSTS", 0x90, "bursts read"),
    *_count("WRITE_BURSTS", 0x98, "bursts written"),
    *_count("READ_STALLS", 0xA0, "cycles in which memory held up an AR"),
    *_count("WRITE_STALLS", 0xA8, "cycles in which memory held up an AW or a W"),
    word_register("CHAIN_STEP", 0xC0, _RW, "signed step of the coordinate for CHAIN_LOOP"),
    Register(
        "CHAIN_LOOP",
        0xC4,
        (
            Field("loop", 0, 3, _WO, "loop of a chain, 0 the outermost; the write changes it"),
            Field("dimension", 4, 3, _WO, "coordinate that CHAIN_STEP is added to; 7: none"),
            Field("count", 16, 16, _WO, "indices of the loop"),
        ),
    ),
    Register(
        "CHAIN_RING",
        0xC8,
        (
            Field("slots", 0, 4, _RW, "slots of the ring less 1"),
            Field("operation", 4, 4, _RW, "`TmaOperation` of each step"),
            Field("empty", 8, 8, _RW, "empty barrier of slot 0; SIGNAL has the full one"),
        ),
    ),
    word_register("CHAIN_PITCH", 0xCC, _RW, "bytes from a slot to the next", _PITCH_BITS),
    word_register("CHAIN_BYTES", 0xD0, _RW, "bytes that a load completes at its barrier", 20),
    Register(
        "CHAIN_STATUS", 0xD4, (Field("busy", 0, 1, _RO, "a chain is submitted or under way"),)
    ),
    word_register("CHAIN_STEPS", 0xD8, _RO, "steps of the last chain that have completed"),
)

_BY_NAME = {each.name: each for each in TMA_REGISTERS}


def tma_register(name: str) -> Register:
    """Register with a name.

    Raises
    ------
    KeyError
        If there is none.
    """
    return _BY_NAME[name]
