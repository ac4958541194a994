"""Memory layout of a launch: launch list, argument table, image and arrays, with guards between."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.arch.config import ChipConfig
from hw.arch.errors import BadInputError
from hw.arch.image import checksum
from hw.arch.launch import (
    ARGUMENT_BYTES,
    HEADER_BYTES,
    Argument,
    LaunchEntry,
    alignment_bytes,
    entry_layout,
    header_layout,
    pack_arguments,
    pack_list,
)
from hw.numeric.division import ceil_div
from sw.array_spec import ArraySpec

__all__ = ["GUARD_BYTES", "LaunchMemory"]

Array = npt.NDArray[Any]

#: Least guard bytes before and after every item in memory, which must not change.
GUARD_BYTES = 4096

_LIST, _ARGUMENTS, _IMAGE = "launch list", "arguments", "image"


class LaunchMemory:
    """Addresses of everything that a launch reads and writes, from `base` up.

    All bytes outside the launch list, argument table, image and input elements are random: guards,
    padding of rows, and the outputs before the launch.

    Parameters
    ----------
    config : ChipConfig
        The chip; its link width determines alignments.
    image : bytes
    arrays : sequence of ArraySpec
        Arguments of the launch, in order.
    seed : int
        Seed of the random bytes.
    launches : int
        Equal entries of the launch list: repetitions of the kernel.
    base : int
        First byte of memory that is used, a multiple of `GUARD_BYTES`.
    origin : int
        Address by which the chip knows byte 0 of memory.

    Members
    -------
    places : mapping of str to (int, int)
        Address and size in bytes of each item; arrays have their names. The launch list has the
        image's header.
    """

    def __init__(
        self,
        config: ChipConfig,
        image: bytes,
        arrays: Sequence[ArraySpec],
        *,
        seed: int,
        launches: int = 1,
        base: int = 0,
        origin: int = 0,
    ) -> None:
        self._config = config
        self._header, self._image = image[:HEADER_BYTES], image[HEADER_BYTES:]
        self._arrays = {spec.name: spec for spec in arrays}
        self._seed = seed
        self._launches = launches
        self._origin = origin
        sizes = {
            _LIST: launches * alignment_bytes(config.width_bits),
            _ARGUMENTS: len(arrays) * ARGUMENT_BYTES,
            _IMAGE: len(self._image),
        } | {spec.name: spec.bytes for spec in arrays}
        self.places: dict[str, tuple[int, int]] = {}
        address = base + GUARD_BYTES
        for name, size in sizes.items():
            self.places[name] = (address, size)
            address = ceil_div(address + size, GUARD_BYTES) * GUARD_BYTES + GUARD_BYTES
        self.size = address

    @property
    def list_address(self) -> int:
        """Address of the launch list."""
        return self._origin + self.places[_LIST][0]

    @property
    def entry(self) -> LaunchEntry:
        """Launch-list entry of this kernel."""
        return LaunchEntry(
            image_address=self._origin + self.places[_IMAGE][0],
            image_bytes=len(self._image),
            header=self._header,
            argument_address=self._origin + self.places[_ARGUMENTS][0],
            argument_count=len(self._arrays),
        )

    @property
    def entries(self) -> int:
        """Number of entries of the launch list."""
        return self._launches

    def bytes_before(self, inputs: Mapping[str, Array]) -> bytearray:
        """Contents of memory before the launch.

        Parameters
        ----------
        inputs : mapping of str to array
            Every array other than pure outputs, in the shape and format of its `ArraySpec`.

        Raises
        ------
        BadInputError
            If an array is missing or does not fit.
        """
        raw = np.frombuffer(np.random.default_rng(self._seed).bytes(self.size), np.uint8).copy()
        places = self.places
        fixed = {
            _LIST: pack_list([self.entry] * self._launches, self._config.width_bits),
            _ARGUMENTS: pack_arguments(
                [Argument(self._origin + places[name][0]) for name in self._arrays]
            ),
            _IMAGE: self._image,
        }
        for name, data in fixed.items():
            address = places[name][0]
            raw[address : address + len(data)] = np.frombuffer(data, np.uint8)
        for name, spec in self._arrays.items():
            if name in inputs:
                elements = _checked(spec, inputs[name])
                self._rows(raw, name)[:, : spec.row_bytes] = elements
            elif not spec.output:
                raise BadInputError(f"Array {name} must be given", where=name)
        return bytearray(raw)

    def read(self, memory: bytes | bytearray, name: str) -> Array:
        """Read the elements of an array from memory after a launch."""
        spec = self._arrays[name]
        rows = self._rows(np.frombuffer(memory, np.uint8), name)[:, : spec.row_bytes]
        return np.ascontiguousarray(rows).view(spec.format.dtype).reshape(spec.shape)

    def image_in(self, memory: bytes | bytearray) -> bytes:
        """Image of the first entry as memory has it: its header, and its beats."""
        first, size = self.places[_IMAGE]
        header = self._header_at(0)
        return bytes(memory[header : header + HEADER_BYTES]) + bytes(memory[first : first + size])

    def sign(self, memory: bytearray) -> None:
        """Give every entry the checksum of the image's beats as memory has them."""
        first, size = self.places[_IMAGE]
        value = checksum(bytes(memory[first : first + size])).to_bytes(4, "little")
        for entry in range(self._launches):
            at = self._header_at(entry) + header_layout["checksum"].offset // 8
            memory[at : at + len(value)] = value

    def _header_at(self, entry: int) -> int:
        pitch = alignment_bytes(self._config.width_bits)
        return self.places[_LIST][0] + entry * pitch + entry_layout["header"].offset // 8

    def changed_outside(self, before: bytes | bytearray, after: bytes | bytearray) -> int | None:
        """First changed address outside the elements of outputs.

        Returns
        -------
        int or None
            None if guards, padding of rows, inputs and image are unchanged.
        """
        changed = np.frombuffer(before, np.uint8) != np.frombuffer(after, np.uint8)
        for name, spec in self._arrays.items():
            if spec.output:
                self._rows(changed, name)[:, : spec.row_bytes] = False
        return int(changed.argmax()) if changed.any() else None

    def where(self, address: int) -> str:
        """Description of an address, for messages."""
        for name, (first, size) in self.places.items():
            if not first <= address < first + size:
                continue
            offset = address - first
            if name not in self._arrays:
                return f"byte {offset} of the {name}"
            row, byte = divmod(offset, self._arrays[name].pitch)
            part = "padding" if byte >= self._arrays[name].row_bytes else "byte"
            return f"{part} {byte} of row {row} of {name}"
        nearest = min(
            self.places,
            key=lambda name: min(
                abs(address - self.places[name][0]), abs(address - sum(self.places[name]))
            ),
        )
        first, size = self.places[nearest]
        side = (
            f"{first - address} bytes before"
            if address < first
            else f"{address - first - size} bytes behind the end of"
        )
        return f"{side} {nearest}"

    def _rows(self, raw: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
        address, size = self.places[name]
        return raw[address : address + size].reshape(-1, self._arrays[name].pitch)


def _checked(spec: ArraySpec, array: Array) -> Array:
    """Rows of an array as bytes, after a check of shape and format."""
    if array.shape != spec.shape or array.dtype != spec.format.dtype:
        raise BadInputError(
            f"Array {spec.name} must be {spec.format.name} of {spec.shape}, "
            f"not {array.dtype} of {array.shape}",
            where=spec.name,
            value=list(array.shape),
            rule=f"{spec.format.name} of {spec.shape}",
        )
    flat = np.ascontiguousarray(array).view(spec.format.dtype)
    return flat.reshape(-1, spec.shape[-1]).view(np.uint8)
