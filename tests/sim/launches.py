"""Launches that a chip refuses: what is wrong in memory, and the error that it must end with."""

from hw.arch.descriptor import ErrorCode as TmaError
from hw.arch.launch import ErrorCode

__all__ = ["SPOILED", "put"]


def put(memory, address, value, size=4):
    """Write a number into memory."""
    memory[address : address + size] = value.to_bytes(size, "little")


#: Changes of a product's memory, given the places of its parts, that return the address of the
#: launch list if it is another; error code; error detail.
SPOILED = [
    (lambda m, p: p["launch list"] + 32, ErrorCode.LIST_ADDRESS, 0),
    (lambda m, p: 1 << 50, ErrorCode.LIST_ADDRESS, 0),
    (lambda m, p: 1 << 30, ErrorCode.READ_DECERR, 0),
    (lambda m, p: put(m, p["launch list"], 8), ErrorCode.IMAGE_ADDRESS, 0),
    (lambda m, p: put(m, p["launch list"] + 16, 0), ErrorCode.IMAGE_BYTES, 0),
    (lambda m, p: put(m, p["launch list"] + 16, 1385), ErrorCode.IMAGE_BYTES, 0),
    (lambda m, p: put(m, p["launch list"] + 20, 17), ErrorCode.ARGUMENT_COUNT, 0),
    (lambda m, p: put(m, p["launch list"] + 8, 8), ErrorCode.ARGUMENT_ADDRESS, 0),
    (lambda m, p: put(m, p["launch list"] + 8, 1 << 30), ErrorCode.READ_DECERR, 1),
    (lambda m, p: put(m, p["launch list"] + 24, 0), ErrorCode.REPEAT, 0),
    (lambda m, p: put(m, p["launch list"] + 24, 2), ErrorCode.UNIT, 255),
    (lambda m, p: put(m, p["launch list"] + 60, 1), ErrorCode.RESERVED, 0),
    (lambda m, p: put(m, p["launch list"], 1 << 30), ErrorCode.READ_DECERR, 2),
    (lambda m, p: put(m, p["image"], 0), ErrorCode.MAGIC, 0),
    (lambda m, p: put(m, p["image"] + 4, 2, 2), ErrorCode.VERSION, 0),
    (lambda m, p: put(m, p["image"] + 6, 3, 2), ErrorCode.ROWS, 0),
    (lambda m, p: put(m, p["image"] + 8, 0), ErrorCode.FINGERPRINT, 0),
    (lambda m, p: put(m, p["image"] + 12, 1), ErrorCode.RESERVED, 0),
    (lambda m, p: put(m, p["image"] + 16, 5, 2), ErrorCode.IMAGE_SIZE, 0),
    (lambda m, p: put(m, p["arguments"], 8), ErrorCode.UNIT, TmaError.BASE.value),
    (lambda m, p: put(m, p["arguments"], 1 << 30), ErrorCode.UNIT, TmaError.READ_DECERR.value),
    (
        lambda m, p: put(m, p["arguments"] + 32, 1 << 30),
        ErrorCode.UNIT,
        TmaError.WRITE_DECERR.value,
    ),
]
