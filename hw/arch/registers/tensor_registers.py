"""Register map of a tensor unit: the one declaration for hardware, host and documentation."""

from hw.arch.registers.register_fields import Field, Register, RegisterAccess, word_register

__all__ = [
    "INSTRUCTION_WORDS",
    "TENSOR_ADDRESS_BITS",
    "TENSOR_ID",
    "TENSOR_MAP_VERSION",
    "TENSOR_REGISTERS",
    "tensor_register",
]

#: Registers that hold the instruction to submit.
INSTRUCTION_WORDS = 4
#: Address space of the register port: 4 KiB; SLVERR beyond the last register.
TENSOR_ADDRESS_BITS = 12
#: "TENS" in memory order.
TENSOR_ID = int.from_bytes(b"TENS", "little")
#: Version of the register map.
TENSOR_MAP_VERSION = 1

_RO, _RW = RegisterAccess.READ_ONLY, RegisterAccess.READ_WRITE
_W1, _W1C = RegisterAccess.WRITE_ONE, RegisterAccess.WRITE_ONE_CLEARS

#: Every register in order of offset.
TENSOR_REGISTERS: tuple[Register, ...] = (
    word_register("ID", 0x00, _RO, f'"TENS" in memory order, 0x{TENSOR_ID:X}'),
    word_register("VERSION", 0x04, _RO, f"version of the register map, {TENSOR_MAP_VERSION}"),
    Register(
        "GEOMETRY",
        0x08,
        (
            Field("rows", 0, 16, _RO, "rows of the array, lanes of a vector"),
            Field("columns", 16, 16, _RO, "columns of the array"),
        ),
    ),
    word_register("BUFFER", 0x0C, _RO, "vectors of the unified buffer"),
    word_register("ACCUMULATORS", 0x10, _RO, "rows of sums"),
    Register(
        "CONTROL",
        0x14,
        (
            Field(
                "reset",
                0,
                1,
                _W1,
                "drop queued instructions, commands in progress and the fault; the contents of "
                "the buffer stay",
            ),
        ),
    ),
    Register(
        "STATUS",
        0x18,
        (
            Field("fault", 0, 4, _RO, "`Fault` of the refused instruction, 0 if there is none"),
            Field("idle", 8, 1, _RO, "every submitted instruction has ended"),
            Field("full", 9, 1, _RO, "the queue of instructions has no room"),
        ),
    ),
    Register(
        "INTERRUPT_ENABLE",
        0x1C,
        (
            Field("done", 0, 1, _RW, "raise the interrupt for INTERRUPT_STATUS.done"),
            Field("fault", 1, 1, _RW, "raise the interrupt for INTERRUPT_STATUS.fault"),
        ),
    ),
    Register(
        "INTERRUPT_STATUS",
        0x20,
        (
            Field("done", 0, 1, _W1C, "the last submitted instruction ended"),
            Field("fault", 1, 1, _W1C, "an instruction was refused"),
        ),
    ),
    *(
        word_register(
            f"INSTRUCTION_{word}",
            0x24 + 4 * word,
            _RW,
            f"bits {32 * word} to {32 * word + 31} of the instruction to submit",
        )
        for word in range(INSTRUCTION_WORDS)
    ),
    Register(
        "SUBMIT",
        0x34,
        (
            Field(
                "submit",
                0,
                1,
                _W1,
                "queue the instruction; SLVERR if the queue is full or there is a fault",
            ),
        ),
    ),
    word_register("SUBMITTED", 0x38, _RO, "instructions submitted since reset"),
    word_register("BEGUN", 0x3C, _RO, "instructions begun since reset"),
    word_register("ACTIVE", 0x40, _RO, "cycles in which the array multiplied"),
    word_register("WEIGHT_STALL", 0x44, _RO, "cycles in which it waited for weights"),
    word_register("WEIGHT_SHIFT", 0x48, _RO, "cycles in which it waited for weights to shift in"),
    word_register("NON_MATRIX", 0x4C, _RO, "other cycles"),
)

_BY_NAME = {each.name: each for each in TENSOR_REGISTERS}


def tensor_register(name: str) -> Register:
    """Register with a name.

    Raises
    ------
    KeyError
        If there is none.
    """
    return _BY_NAME[name]
