"""Copies of a chain of lane programs of one phase, which take packets of elements in turn."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from hw.arch.config import ChipConfig
from hw.arch.pcu import FilterProgram, PcuInput, PcuOutput
from sw.lane_codes.lane_code import LaneCode
from sw.stages.pipeline import PipelineParts, pcu_name
from sw.stages.stage_graph import Socket

__all__ = ["LaneChains", "packet_elements"]


def packet_elements(codes: tuple[LaneCode, ...], config: ChipConfig) -> int:
    """Elements of a packet: as many as the largest vector of lane programs has."""
    return max(config.width_bits // form.bits for code in codes for form in code.formats.values())


class LaneChains:
    """Copies of a chain in a pipeline: one PCU for each program and copy.

    Parameters
    ----------
    parts : PipelineParts
    codes : tuple of LaneCode
        Chain of lane programs of one phase each.
    line : int
        Number of the chains in the names of their PCUs.
    copies : int
        They take packets in turn, and their results are merged in the same turn.
    loaded : collection of str
        Values that come from buffers; all copies get their packets.
    """

    def __init__(
        self,
        parts: PipelineParts,
        codes: tuple[LaneCode, ...],
        line: int,
        copies: int,
        loaded: Collection[str],
    ) -> None:
        self._parts, self._codes = parts, codes
        self._line, self._copies = line, copies
        self._loaded = loaded

    def takers(self, value: str) -> list[Socket]:
        """Sockets that take a loaded value."""
        return [each for copy in range(self._copies) for each in self._takers(value, copy)]

    def results(self, value: str) -> list[tuple[Socket, int]]:
        """Sources of a result, in their turn."""
        number = next(number for number, code in enumerate(self._codes) if code.result == value)
        return [
            (Socket(pcu_name(self._line, number, copy), PcuOutput.RESULT), 1)
            for copy in range(self._copies)
        ]

    def add(self) -> None:
        """Add the PCUs, and the streams between them."""
        for number, code in enumerate(self._codes):
            loaded = [port for port, taken in _ports(code).items() if taken in self._loaded]
            for copy in range(self._copies):
                turn = FilterProgram(self._copies, copy)
                name = pcu_name(self._line, number, copy)
                self._parts.lanes(name, code, dict.fromkeys(loaded, turn))
                if takers := self._takers(code.result, copy):
                    source = Socket(name, PcuOutput.RESULT)
                    self._parts.join(f"{name}_results", [(source, 1)], takers)

    def _takers(self, value: str, copy: int) -> list[Socket]:
        """Sockets of a copy that take a value."""
        return [
            Socket(pcu_name(self._line, number, copy), port)
            for number, code in enumerate(self._codes)
            for port, taken in _ports(code).items()
            if taken == value
        ]


def _ports(code: LaneCode) -> Mapping[PcuInput, str | None]:
    """Value that each input of a PCU takes."""
    return {PcuInput.ACTIVATION: code.source, PcuInput.AUXILIARY: code.auxiliary}
