"""Memory layout of a launch: list, argument tables, images and arrays, with guards between."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hw.arch.config import ChipConfig
from hw.arch.errors import BadInputError
from hw.arch.image import checksum
from hw.arch.launch import (
    ARGUMENT_BYTES,
    ENTRY_NUMBER_BITS,
    HEADER_BYTES,
    LaunchEntry,
    alignment_bytes,
    entry_layout,
    header_layout,
    pack_arguments,
    pack_list,
)
from hw.arch.launch import Argument as LaunchArgument
from hw.numeric.division import ceil_div
from sw.array_spec import ArraySpec
from sw.parts.part import Argument, PartLaunch, in_order

if TYPE_CHECKING:
    from sw.compiled import Compiled

__all__ = ["GUARD_BYTES", "ImageRuns", "LaunchMemory"]

Array = npt.NDArray[Any]

#: Least guard bytes before and after every item in memory, which must not change.
GUARD_BYTES = 4096

_LIST, _ARGUMENTS, _IMAGE = "launch list", "arguments", "image"


@dataclasses.dataclass(frozen=True)
class ImageRuns:
    """An image, and the entries of the launch list that run it.

    Parameters
    ----------
    image : bytes
    launches : tuple of PartLaunch
    """

    image: bytes
    launches: tuple[PartLaunch, ...]

    @property
    def header(self) -> bytes:
        """Header, which is part of each entry."""
        return self.image[:HEADER_BYTES]

    @property
    def beats(self) -> bytes:
        """The image without its header: what an entry's `image_address` points to."""
        return self.image[HEADER_BYTES:]


class LaunchMemory:
    """Addresses of everything that a launch reads and writes, from `base` up.

    All bytes outside the launch list, argument tables, images and input elements are random:
    guards, padding of rows, intermediates, and the outputs before the launch.

    Parameters
    ----------
    config : ChipConfig
        The chip; its link width determines alignments.
    images : sequence of ImageRuns
        In the order of the launch list, but for `PartLaunch.group`. Each is in memory once.
    arrays : sequence of ArraySpec
        Arguments of the kernel, in order.
    intermediates : sequence of ArraySpec
        Arrays that an image writes and later ones read. Their elements may change.
    seed : int
        Seed of the random bytes.
    launches : int
        Repetitions of the kernel: so many times the entries of all images.
    base : int
        First byte of memory that is used, a multiple of `GUARD_BYTES`.
    origin : int
        Address by which the chip knows byte 0 of memory.

    Members
    -------
    places : mapping of str to (int, int)
        Address and size in bytes of each item; arrays have their names. The launch list has the
        headers of images; of several images, all but the first have a number.

    changing : tuple of str
        Arrays that the launch writes: outputs and intermediates.

    Raises
    ------
    BadInputError
        If the launch list has more entries than its register can count.
    """

    def __init__(
        self,
        config: ChipConfig,
        images: Sequence[ImageRuns],
        arrays: Sequence[ArraySpec],
        *,
        intermediates: Sequence[ArraySpec] = (),
        seed: int,
        launches: int = 1,
        base: int = 0,
        origin: int = 0,
    ) -> None:
        self._config = config
        self._runs = [
            (images[number], launch)
            for number, launch in in_order(each.launches for each in images)
        ]
        self._arrays = {spec.name: spec for spec in (*arrays, *intermediates)}
        self.changing = (
            *(spec.name for spec in arrays if spec.output),
            *(spec.name for spec in intermediates),
        )
        self._inputs = {spec.name for spec in arrays if not spec.output}
        self._seed = seed
        self._launches = launches
        self._origin = origin
        self._pitch = alignment_bytes(config.width_bits)
        if self.entries >= 1 << ENTRY_NUMBER_BITS:
            raise BadInputError(
                f"Launch list must have fewer than {1 << ENTRY_NUMBER_BITS} entries, not "
                f"{self.entries}",
                where=_LIST,
                value=self.entries,
                rule=f"fewer than {1 << ENTRY_NUMBER_BITS} entries",
            )
        self._images = {
            f"{_IMAGE} {number}" if number > 1 else _IMAGE: runs
            for number, runs in enumerate(images, 1)
        }
        #: Place of each entry's table in the item of all tables.
        self._tables: list[int] = []
        tables = 0
        for _, launch in self._runs:
            begin = ceil_div(tables, self._pitch) * self._pitch
            self._tables.append(begin)
            tables = begin + len(launch.arguments) * ARGUMENT_BYTES
        sizes = {_LIST: self.entries * self._pitch, _ARGUMENTS: tables}
        sizes |= {name: len(runs.beats) for name, runs in self._images.items()}
        sizes |= {name: spec.bytes for name, spec in self._arrays.items()}
        self.places: dict[str, tuple[int, int]] = {}
        address = base + GUARD_BYTES
        for name, size in sizes.items():
            self.places[name] = (address, size)
            address = ceil_div(address + size, GUARD_BYTES) * GUARD_BYTES + GUARD_BYTES
        self.size = address

    @classmethod
    def of_image(
        cls, config: ChipConfig, image: bytes, arrays: Sequence[ArraySpec], **how: Any
    ) -> LaunchMemory:
        """Memory of one image, launched once with the arrays; ``how``: keywords of the class."""
        launch = PartLaunch(tuple(Argument(spec.name) for spec in arrays))
        return cls(config, [ImageRuns(image, (launch,))], arrays, **how)

    @classmethod
    def of_kernel(cls, compiled: Compiled, **how: Any) -> LaunchMemory:
        """Memory of a compiled kernel; ``how``: keywords of the class."""
        return cls(
            compiled.config,
            [ImageRuns(part.image, part.part.launches) for part in compiled.parts],
            compiled.arrays,
            intermediates=compiled.intermediates,
            **how,
        )

    @property
    def regions(self) -> tuple[tuple[int, int], ...]:
        """First address, and the one after the last, of each item."""
        return tuple(
            (self._origin + address, self._origin + address + size)
            for address, size in self.places.values()
            if size
        )

    @property
    def list_address(self) -> int:
        """Address of the launch list."""
        return self._origin + self.places[_LIST][0]

    @property
    def list_entries(self) -> tuple[LaunchEntry, ...]:
        """Entries of the launch list for one run of the kernel."""
        images = {id(runs): name for name, runs in self._images.items()}
        return tuple(
            LaunchEntry(
                image_address=self._origin + self.places[images[id(runs)]][0],
                image_bytes=len(runs.beats),
                header=runs.header,
                argument_address=self._origin + self.places[_ARGUMENTS][0] + table,
                argument_count=len(launch.arguments),
                repeat=launch.repeat,
            )
            for (runs, launch), table in zip(self._runs, self._tables, strict=True)
        )

    @property
    def entries(self) -> int:
        """Number of entries of the launch list."""
        return self._launches * len(self._runs)

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
        entries = pack_list(self.list_entries * self._launches, self._config.width_bits)
        fixed = [(self.places[_LIST][0], entries)]
        fixed += [(self.places[name][0], runs.beats) for name, runs in self._images.items()]
        for (_, launch), table in zip(self._runs, self._tables, strict=True):
            values = [LaunchArgument(self._address(each), each.stride) for each in launch.arguments]
            fixed.append((self.places[_ARGUMENTS][0] + table, pack_arguments(values)))
        for address, data in fixed:
            raw[address : address + len(data)] = np.frombuffer(data, np.uint8)
        for name, spec in self._arrays.items():
            if name in inputs:
                elements = _checked(spec, inputs[name])
                self._rows(raw, name)[:, : spec.row_bytes] = elements
            elif name in self._inputs:
                raise BadInputError(f"Array {name} must be given", where=name)
        return bytearray(raw)

    def _address(self, argument: Argument) -> int:
        return self._origin + self.places[argument.array][0] + argument.offset

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
        """Give every entry the checksum of its image's beats as memory has them."""
        for number, entry in enumerate(self.list_entries * self._launches):
            first = entry.image_address - self._origin
            beats = bytes(memory[first : first + entry.image_bytes])
            value = checksum(beats).to_bytes(4, "little")
            at = self._header_at(number) + header_layout["checksum"].offset // 8
            memory[at : at + len(value)] = value

    def _header_at(self, entry: int) -> int:
        return self.places[_LIST][0] + entry * self._pitch + entry_layout["header"].offset // 8

    def changed_outside(self, before: bytes | bytearray, after: bytes | bytearray) -> int | None:
        """First changed address outside the elements of outputs and intermediates.

        Returns
        -------
        int or None
            None if guards, padding of rows, inputs and images are unchanged.
        """
        changed = np.frombuffer(before, np.uint8) != np.frombuffer(after, np.uint8)
        for name in self.changing:
            self._rows(changed, name)[:, : self._arrays[name].row_bytes] = False
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
