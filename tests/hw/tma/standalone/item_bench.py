"""A native TMA unit with a window of memory and the expected bytes, for tests item by item."""

from collections.abc import Sequence

import numpy as np

from hw.arch.descriptor import DESCRIPTOR_BYTES, Descriptor, OobFill
from hw.tma.standalone.unit_commands import TmaOperation
from tests.hw.tma.model import box_elements, random_bytes
from tests.hw.tma.standalone.native_unit import NativeUnit, UnitCommand
from tests.hw.tma.standalone.unit_bench import swizzled_places
from tests.hw.tma.standalone.unit_stand import STAND_SIZES
from tests.native.native_memory import MemoryTiming, NativeMemory
from tests.native.stream_model import StreamModel

__all__ = ["ITEM_SIZES", "WINDOW_BYTES", "ItemBench"]

ITEM_SIZES = STAND_SIZES[256]
WINDOW_BYTES = 0x8000


class ItemBench:
    """A unit after reset, its memory from an address on, and what numpy expects of both.

    Parameters
    ----------
    model : StreamModel
        With a unit of `ITEM_SIZES`, ports after ``tma``.
    seed : int
    origin : int
        Address of the first byte of memory, of which there are `WINDOW_BYTES`.
    timing : MemoryTiming

    Members
    -------
    memory, scratchpad : array of uint8
        The memory of the unit; the expected content of its scratchpad.
    unit : NativeUnit
    """

    def __init__(
        self,
        model: StreamModel,
        seed: int,
        *,
        origin: int = 0,
        timing: MemoryTiming | None = None,
    ) -> None:
        model.reset(seed)
        self.origin = origin
        self.memory = random_bytes(seed, WINDOW_BYTES)
        served = NativeMemory(
            self.memory, origin=origin, timing=timing or MemoryTiming(), seed=seed
        )
        self.unit = NativeUnit(model, "tma", ITEM_SIZES, served)
        self.scratchpad = random_bytes(seed + 1, ITEM_SIZES.scratchpad_bytes)
        self.unit.fill(self.scratchpad)

    def describe(self, offset: int, descriptor: Descriptor | bytes) -> int:
        """Put a descriptor at an offset of the window; its address."""
        packed = descriptor if isinstance(descriptor, bytes) else descriptor.pack()
        self.memory[offset : offset + DESCRIPTOR_BYTES] = np.frombuffer(packed, np.uint8)
        return self.origin + offset

    def codes(self, *commands: UnitCommand) -> list[int]:
        """Run commands; the code of each, in their order."""
        return [code for _, code in sorted(self.unit.run(commands).completions)]

    def code(
        self, operation: TmaOperation, pointer: int = 0, at: Sequence[int] = (), **fields: int
    ) -> int:
        """Run one command; its code."""
        return self.codes(UnitCommand(operation, pointer, at, fields))[0]

    def expect_load(self, descriptor: Descriptor, at: Sequence[int], local: int = 0) -> None:
        """Do what a load of a box does, in the expected scratchpad."""
        size = descriptor.format.bytes
        box = np.zeros((descriptor.box_bytes // size, size), np.uint8)
        if descriptor.oob_fill is OobFill.NAN:
            box[:] = [0xFF] * (size - 1) + [0x7F]
        flat, places = self._elements(descriptor, at)
        box[flat] = self.memory[places[:, None] + np.arange(size)]
        self.scratchpad[self._inside(descriptor, local)] = box.reshape(-1)

    def expect_store(
        self, memory: np.ndarray, descriptor: Descriptor, at: Sequence[int], local: int = 0
    ) -> None:
        """Do what a store of a box does, in a copy of the memory."""
        size = descriptor.format.bytes
        box = self.scratchpad[self._inside(descriptor, local)].reshape(-1, size)
        flat, places = self._elements(descriptor, at)
        memory[places[:, None] + np.arange(size)] = box[flat]

    def check(self, memory: np.ndarray | None = None) -> None:
        """The scratchpad, and the memory if it is given, are as expected."""
        assert np.array_equal(self.unit.dump(), self.scratchpad)
        assert memory is None or np.array_equal(self.memory, memory)

    def _elements(self, descriptor: Descriptor, at: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Positions in the box and in the window of the elements inside the tensor."""
        flat, offsets = box_elements(descriptor, at)
        return flat, offsets + (descriptor.base - self.origin)

    @staticmethod
    def _inside(descriptor: Descriptor, local: int) -> np.ndarray:
        """Places of the box's bytes in the scratchpad."""
        return swizzled_places(local, descriptor.box_bytes, descriptor.swizzle)
