"""Memory of a chip in cocotb that finds accesses outside the items of its launch."""

from collections.abc import Sequence

__all__ = ["LaunchItems"]

#: Bytes of the address space: more than a chip can address, so cocotbext's memory wraps no address.
_SPACE_BYTES = 1 << 62


class LaunchItems:
    """Memory for cocotbext's `AxiRam`, with a check of each access against the items of a launch.

    Every beat read must have a byte of an item; every byte written must be one of an item. Another
    access raises `IndexError`, which cocotbext answers with SLVERR.

    Parameters
    ----------
    memory : bytes
        Contents, from address 0.
    regions : sequence of (int, int)
        First address of each item, and the one after its last; all of memory if there is none.

    Members
    -------
    fault : str
        Description of the first access outside the items; empty if there was none.
    """

    def __init__(self, memory: bytes, regions: Sequence[tuple[int, int]]) -> None:
        self._bytes = bytearray(memory)
        self._regions = regions or [(0, len(memory))]
        self.fault = ""

    def __len__(self) -> int:
        return _SPACE_BYTES

    def __bytes__(self) -> bytes:
        return bytes(self._bytes)

    def __getitem__(self, beat: slice) -> bytearray:
        if not any(first < beat.stop and beat.start < end for first, end in self._regions):
            self._refuse(f"read of a beat at {beat.start}, in which the launch has no byte")
        return self._bytes[beat]

    def __setitem__(self, place: slice, data: bytes) -> None:
        if not any(first <= place.start and place.stop <= end for first, end in self._regions):
            self._refuse(
                f"write of {len(data)} bytes at {place.start}, which are not all the launch's"
            )
        self._bytes[place] = data

    def _refuse(self, fault: str) -> None:
        self.fault = self.fault or fault
        raise IndexError(fault)
