"""Attributes of the bursts of a TMA unit: cache, protection, quality of service and IDs."""

import dataclasses

from hw.arch import limits
from hw.arch.checks import refusal
from hw.arch.tma_sizes import TmaSizes
from hw.lib.axi import CACHE_NORMAL

__all__ = ["DEFAULT_ATTRIBUTES", "AxiAttributes"]

#: Codes of AxCACHE: allocation bits need the bit of modifiable memory.
_CACHE_CODES = (0, 1, 2, 3, 6, 7, 10, 11, 14, 15)


@dataclasses.dataclass(frozen=True, kw_only=True)
class AxiAttributes:
    """Constant attributes of all bursts at the AXI4 port of a TMA unit.

    Parameters
    ----------
    read_cache, write_cache : int
        ``arcache`` and ``awcache``: a code that AXI4 does not reserve.
    read_protection, write_protection : int
        ``arprot`` and ``awprot`` (`limits.AXI_PROTECTION`).
    read_qos, write_qos : int
        ``arqos`` and ``awqos`` (`limits.AXI_QOS`).
    first_id : int
        Added to the unit's IDs (`limits.AXI_FIRST_ID`), a multiple of their number.

    Raises
    ------
    BadInputError
        If an attribute lies outside its domain.
    """

    read_cache: int = CACHE_NORMAL
    write_cache: int = CACHE_NORMAL
    read_protection: int = 0
    write_protection: int = 0
    read_qos: int = 0
    write_qos: int = 0
    first_id: int = 0

    def __post_init__(self) -> None:
        for noun, cache in (("Read cache", self.read_cache), ("Write cache", self.write_cache)):
            # A Boolean is equal to 0 or 1.
            if type(cache) is not int or cache not in _CACHE_CODES:
                raise refusal(noun, f"be one of {', '.join(map(str, _CACHE_CODES))}", cache)
        limits.AXI_PROTECTION.require("Read protection", self.read_protection)
        limits.AXI_PROTECTION.require("Write protection", self.write_protection)
        limits.AXI_QOS.require("Read QoS", self.read_qos)
        limits.AXI_QOS.require("Write QoS", self.write_qos)
        limits.AXI_FIRST_ID.require("First ID", self.first_id)

    def id_bits(self, sizes: TmaSizes) -> int:
        """Width of the port's IDs.

        Raises
        ------
        BadInputError
            If the first ID is not a multiple of the number of IDs of the unit.
        """
        count = 1 << sizes.id_bits
        if self.first_id % count:
            raise refusal("First ID", f"be a multiple of {count}", self.first_id)
        return (self.first_id + count - 1).bit_length()

    @property
    def constants(self) -> dict[str, int]:
        """Values of the signals of the port that are the same for all bursts."""
        return {
            "arcache": self.read_cache,
            "awcache": self.write_cache,
            "arprot": self.read_protection,
            "awprot": self.write_protection,
            "arqos": self.read_qos,
            "awqos": self.write_qos,
        }


#: Normal memory, AxPROT and AxQOS 0, IDs from 0 on.
DEFAULT_ATTRIBUTES = AxiAttributes()
