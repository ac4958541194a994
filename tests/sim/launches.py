"""Launches that a chip refuses: what is wrong in memory, and the error that it must end with."""

from hw.arch.error_codes import LaunchError, TmaError
from hw.arch.image import IMAGE_VERSION, checksum

__all__ = ["SPOILED", "put"]


def put(memory, address, value, size=4):
    """Write a number into memory."""
    memory[address : address + size] = value.to_bytes(size, "little")


def cut_signed(memory, places):
    """Leave the image its first two beats, with their checksum."""
    put(memory, places["launch list"] + 16, 16)
    first = places["image"]
    put(memory, places["launch list"] + 40, checksum(bytes(memory[first : first + 16])))


#: Changes of a product's memory, given the places of its parts, that return the address of the
#: launch list if it is another; error code; error detail.
SPOILED = [
    (lambda m, p: p["launch list"] + 32, LaunchError.LIST_ADDRESS, 0),
    (lambda m, p: 1 << 50, LaunchError.LIST_ADDRESS, 0),
    (lambda m, p: 1 << 30, LaunchError.READ_DECERR, 0),
    (lambda m, p: put(m, p["launch list"], 8), LaunchError.IMAGE_ADDRESS, 0),
    (lambda m, p: put(m, p["launch list"] + 16, 0), LaunchError.IMAGE_BYTES, 0),
    (lambda m, p: put(m, p["launch list"] + 16, 1385), LaunchError.IMAGE_BYTES, 0),
    (lambda m, p: put(m, p["launch list"] + 20, 17), LaunchError.ARGUMENT_COUNT, 0),
    (lambda m, p: put(m, p["launch list"] + 8, 8), LaunchError.ARGUMENT_ADDRESS, 0),
    (lambda m, p: put(m, p["launch list"] + 8, 1 << 30), LaunchError.READ_DECERR, 1),
    (lambda m, p: put(m, p["launch list"] + 24, 0), LaunchError.REPEAT, 0),
    (lambda m, p: put(m, p["launch list"] + 60, 1), LaunchError.RESERVED, 0),
    (lambda m, p: put(m, p["launch list"], 1 << 30), LaunchError.READ_DECERR, 2),
    (lambda m, p: put(m, p["launch list"] + 28, 0), LaunchError.MAGIC, 0),
    (lambda m, p: put(m, p["launch list"] + 32, IMAGE_VERSION + 1, 2), LaunchError.VERSION, 0),
    (lambda m, p: put(m, p["launch list"] + 34, 3, 2), LaunchError.RESERVED, 0),
    (lambda m, p: put(m, p["launch list"] + 36, 0), LaunchError.FINGERPRINT, 0),
    (lambda m, p: put(m, p["launch list"] + 40, 0), LaunchError.CHECKSUM, 0),
    (lambda m, p: put(m, p["image"], 2, 1), LaunchError.RUN, 0),
    (lambda m, p: put(m, p["image"] + 1, 9, 1), LaunchError.RUN, 0),
    (lambda m, p: put(m, p["image"] + 2, 255, 1), LaunchError.RUN, 0),
    (lambda m, p: put(m, p["image"] + 8, 0x600D), LaunchError.CHECKSUM, 0),
    (lambda m, p: put(m, p["launch list"] + 16, 64), LaunchError.CHECKSUM, 0),
    (cut_signed, LaunchError.IMAGE_SIZE, 0),
    (lambda m, p: put(m, p["arguments"], 8), LaunchError.UNIT, TmaError.BASE.value),
    (lambda m, p: put(m, p["arguments"], 1 << 30), LaunchError.UNIT, TmaError.READ_DECERR.value),
    (
        lambda m, p: put(m, p["arguments"] + 32, 1 << 30),
        LaunchError.UNIT,
        TmaError.WRITE_DECERR.value,
    ),
]
