"""Model of the command processor: reads and checks launch list, arguments and image."""

from __future__ import annotations

import dataclasses
from typing import Any

from hw.arch.config import ChipConfig
from hw.arch.error_codes import LaunchError, ReadPhase
from hw.arch.errors import BadInputError
from hw.arch.image import (
    IMAGE_MAGIC,
    IMAGE_VERSION,
    checksum,
    fingerprint,
    image_words,
)
from hw.arch.launch import (
    ARGUMENT_BYTES,
    ENTRY_BYTES,
    HEADER_BYTES,
    MAX_ARGUMENTS,
    MAX_IMAGE_BYTES,
    Argument,
    alignment_bytes,
    argument_layout,
    entry_layout,
)
from hw.arch.places import chip_segments
from hw.numeric.division import ceil_div
from sim.emulator.emulator_error import LaunchFault

__all__ = ["Fetched", "LaunchReader"]


@dataclasses.dataclass(frozen=True)
class Fetched:
    """A fetched entry of a launch list.

    Parameters
    ----------
    image : bytes
    arguments : tuple of Argument
        The argument table.
    repeat : int
        Iterations of the kernel.
    hold_next : bool
        The next entry is fetched after the kernel has ended.
    """

    image: bytes
    arguments: tuple[Argument, ...]
    repeat: int
    hold_next: bool


class LaunchReader:
    """Reader of launch lists that counts the bytes read.

    Parameters
    ----------
    config : ChipConfig
    memory : bytearray
    """

    def __init__(self, config: ChipConfig, memory: bytearray) -> None:
        self._config = config
        self._memory = memory
        self._beat = config.width_bits // 8
        self.bytes_read = 0

    def check_list(self, address: int, entries: int) -> None:
        """Check address and length of the launch list.

        Raises
        ------
        LaunchFault
            With the error code of the command processor.
        """
        if entries == 0:
            raise LaunchFault(LaunchError.NO_ENTRIES)
        if self._misplaced(address):
            raise LaunchFault(LaunchError.LIST_ADDRESS)

    def _misplaced(self, address: int) -> bool:
        bits = self._config.agcu.axi_address_bits
        return bool(address % alignment_bytes(self._config.width_bits)) or bool(address >> bits)

    def _read(self, address: int, size: int, phase: ReadPhase) -> bytes:
        whole = ceil_div(size, self._beat) * self._beat
        if address + whole > len(self._memory):
            raise LaunchFault(LaunchError.READ_DECERR, int(phase.value))
        self.bytes_read += whole
        return bytes(self._memory[address : address + size])

    def entry(self, list_address: int, index: int) -> Fetched:
        """Fetch an entry of the list.

        Raises
        ------
        LaunchFault
            With the error code of the command processor.
        """
        address = list_address + index * alignment_bytes(self._config.width_bits)
        raw = self._read(address, ENTRY_BYTES, ReadPhase.LIST)
        entry: Any = entry_layout.unpack(int.from_bytes(raw, "little"))
        size, count = entry["image_bytes"], entry["argument_count"]
        for code, broken in (
            (LaunchError.IMAGE_ADDRESS, self._misplaced(entry["image_address"])),
            (LaunchError.IMAGE_BYTES, not 0 < size <= MAX_IMAGE_BYTES or size % self._beat),
            (LaunchError.ARGUMENT_COUNT, count > MAX_ARGUMENTS),
            (LaunchError.ARGUMENT_ADDRESS, count and self._misplaced(entry["argument_address"])),
            (LaunchError.REPEAT, entry["repeat"] == 0),
            (LaunchError.RESERVED, entry["reserved"] or entry["header"]["reserved"]),
            (LaunchError.MAGIC, entry["header"]["magic"] != IMAGE_MAGIC),
            (LaunchError.VERSION, entry["header"]["version"] != IMAGE_VERSION),
            (LaunchError.FINGERPRINT, entry["header"]["fingerprint"] != fingerprint(self._config)),
        ):
            if broken:
                raise LaunchFault(code)
        arguments = []
        if count:
            table = self._read(
                entry["argument_address"], count * ARGUMENT_BYTES, ReadPhase.ARGUMENTS
            )
            for at in range(0, len(table), ARGUMENT_BYTES):
                number = int.from_bytes(table[at : at + ARGUMENT_BYTES], "little")
                fields: Any = argument_layout.unpack(number)
                arguments.append(Argument(int(fields["value"]), int(fields["stride"])))
        body = self._read(entry["image_address"], size, ReadPhase.IMAGE)
        self._check_words(body, entry["header"]["checksum"])
        header = entry["header"].bits.to_bytes(HEADER_BYTES, "little")
        return Fetched(header + body, tuple(arguments), entry["repeat"], bool(entry["hold_next"]))

    def preview(self, list_address: int, index: int) -> Fetched | LaunchError:
        """An entry as it is now, or the code of its refusal; counts no bytes."""
        before = self.bytes_read
        try:
            return self.entry(list_address, index)
        except LaunchFault as fault:
            return fault.code
        finally:
            self.bytes_read = before

    def _check_words(self, body: bytes, expected: int) -> None:
        """Check positions of an image's words, then its checksum, then that it is whole."""
        rows = enumerate(chip_segments(self._config))
        sizes = {(row, number): size for row, each in rows for number, size in enumerate(each)}
        whole = True
        try:
            for row, segment, word, _ in image_words(body, self._config.width_bits):
                if word >= sizes.get((row, segment), 0):
                    raise LaunchFault(LaunchError.RUN)
        except BadInputError:
            whole = False
        if checksum(body) != expected:
            raise LaunchFault(LaunchError.CHECKSUM)
        if not whole:
            raise LaunchFault(LaunchError.IMAGE_SIZE)
