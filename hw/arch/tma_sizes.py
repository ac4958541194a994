"""Sizes of a stand-alone TMA unit."""

import dataclasses

from hw.arch import limits

__all__ = ["TmaSizes"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class TmaSizes:
    """Sizes of a TMA unit and of what stands beside it.

    Parameters
    ----------
    width_bits : int
        Width of a vector and of AXI's data (`limits.LINK_BITS`).
    address_bits : int
        Width of a byte address (`limits.AXI_ADDRESS_BITS`).
    landing_beats : int
        Beats of the landing buffer (`limits.LANDING_BEATS`).
    outstanding : int
        Most outstanding bursts, of loads and of stores each (`limits.OUTSTANDING`).
    read_ids : int
        IDs of the bursts of loads (`limits.READ_IDS`).
    descriptors : int
        Entries of the descriptor cache (`limits.CACHED_DESCRIPTORS`).
    barriers : int
        Barriers (`limits.BARRIERS`).
    scratchpad_bytes : int
        Bytes of each scratchpad (`limits.SCRATCHPAD_BYTES`).
    scratchpads : int
        Scratchpads, each with a bank of barriers (`limits.SCRATCHPADS`).

    Raises
    ------
    BadInputError
        If a size lies outside its domain.
    """

    width_bits: int = 256
    address_bits: int = 48
    landing_beats: int = 256
    outstanding: int = 64
    read_ids: int = 1
    descriptors: int = 8
    barriers: int = 32
    scratchpad_bytes: int = 65_536
    scratchpads: int = 1

    def __post_init__(self) -> None:
        limits.LINK_BITS.require("Width in bits", self.width_bits)
        limits.AXI_ADDRESS_BITS.require("Address bits", self.address_bits)
        limits.LANDING_BEATS.require("Landing beats", self.landing_beats)
        limits.OUTSTANDING.require("Outstanding bursts", self.outstanding)
        limits.READ_IDS.require("Read IDs", self.read_ids)
        limits.CACHED_DESCRIPTORS.require("Cached descriptors", self.descriptors)
        limits.BARRIERS.require("Barriers", self.barriers)
        limits.SCRATCHPAD_BYTES.require("Scratchpad bytes", self.scratchpad_bytes)
        limits.SCRATCHPADS.require("Scratchpads", self.scratchpads)

    @property
    def vectors(self) -> int:
        """Vectors of the scratchpad."""
        return self.scratchpad_bytes * 8 // self.width_bits

    @property
    def id_bits(self) -> int:
        """Width of AXI's IDs: those of bursts of loads, and as many more for descriptors."""
        return self.read_ids.bit_length()
