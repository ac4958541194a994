"""Epilogue of a matrix product: element math on the sums before they are stored, as lane programs.

The first program may run in the PCUs of the product and take the sums as they leave. Others follow
as a chain of PCUs. Each has a program of one phase or of joined ones.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence

from hw.arch.config import ChipConfig
from hw.arch.lanes.lane_program import LaneProgram
from hw.arch.lanes.phase_word import AuxiliaryUse, PhaseSource
from sw.epilogue.epilogue_region import EpilogueRegion
from sw.ir import nodes as ir
from sw.ir.format_rules import Format
from sw.ir.types import TileType
from sw.lane_codes.lane_code import LaneCode
from sw.lane_codes.lane_codes import lane_codes
from sw.language.program_error import ProgramError
from sw.stages.region import Source, TilePart

__all__ = ["Epilogue", "epilogue_of", "turned_epilogue_of"]

#: Lane programs of nodes, from the source, with its type, to the value sent, with its format.
_Coded = Callable[
    [Sequence[ir.Node], tuple[str, TileType], tuple[str, Format]], tuple[LaneCode, ...]
]


@dataclasses.dataclass(frozen=True)
class Epilogue:
    """Lane programs of an epilogue, with columns of the product on the lanes.

    Each is of one phase or of joined ones.

    The columns are those of the product that is computed: rows of the result, if it is that of the
    transposes.

    Parameters
    ----------
    sums : str
        Value of the product.
    result : str
        The stored value.
    inputs : mapping of str to Source
        Tiles beside the sums, by the name of the value.
    first : LaneCode or None
        Program of the PCUs of the product; None: the sums leave as they are.
    chain : tuple of LaneCode
        Programs of the PCUs behind them.
    """

    sums: str
    result: str
    inputs: Mapping[str, Source]
    first: LaneCode | None
    chain: tuple[LaneCode, ...]

    @property
    def codes(self) -> tuple[LaneCode, ...]:
        """All programs."""
        return (*([self.first] if self.first else []), *self.chain)

    @property
    def program(self) -> LaneProgram | None:
        """Program of the lanes of a PCU of the product."""
        if self.first is None:
            return None
        phases = (
            dataclasses.replace(each.phase, source=PhaseSource.ACCUMULATORS)
            for each in self.first.phases
        )
        return LaneProgram(tuple(phases), self.first.constants)

    @property
    def sent(self) -> tuple[str, Format]:
        """Value that the PCUs of the product send, and its format."""
        if self.first is None:
            takers = (code for code in self.chain if self.sums in code.formats)
            return self.sums, next(takers).formats[self.sums]
        value = self.first.result
        return value, self.first.formats[value]

    def _taken(self, *uses: AuxiliaryUse) -> tuple[str, ...]:
        """Inputs that a phase takes beside its source in one of some ways."""
        taken = {
            phase.auxiliary
            for code in self.codes
            for phase in code.phases
            if phase.phase.auxiliary in uses
        }
        return tuple(each for each in self.inputs if each in taken)

    @functools.cached_property
    def tiles(self) -> tuple[str, ...]:
        """Inputs with an element for each of the result."""
        return tuple(each for each in self.inputs if each not in (*self.vectors, *self.columns))

    @functools.cached_property
    def vectors(self) -> tuple[str, ...]:
        """Inputs with an element for each column, the same for all rows."""
        return self._taken(AuxiliaryUse.HELD, AuxiliaryUse.LATCHED)

    @property
    def beside_sums(self) -> tuple[str, ...]:
        """Inputs that the PCUs of the product take in one stream, in their order."""
        return self.first.beside if self.first else ()

    @property
    def latched(self) -> str | None:
        """Vector that the PCUs of the product take before a tile."""
        vector, *tile = self.beside_sums or (None,)
        return vector if any(each in self.tiles for each in tile) else None

    @functools.cached_property
    def columns(self) -> tuple[str, ...]:
        """Inputs with an element for each row, the same for all columns."""
        return self._taken(AuxiliaryUse.SPREAD)

    def formats(self, values: Iterable[str]) -> list[Format]:
        """Formats of inputs."""
        return [self.inputs[each].type.format for each in values]

    @property
    def may_stand_apart(self) -> bool:
        """Whether a product and parts behind it may be faster than all in one image.

        Lane programs behind the product take PCUs from its grid. Scales of rows are as well those
        of a result in memory, and a product alone of few rows is computed transposed.
        """
        return bool(self.chain or self.columns or self.beside_sums[1:])

    @functools.cached_property
    def rows(self) -> int:
        """Rows of the result in a packet: those of the longest vector, which has C of each."""
        values = {
            value: form
            for code in self.codes
            for value, form in code.formats.items()
            if value not in (*self.vectors, *self.columns)
        }
        return max(32 // form.bits for form in values.values())


def epilogue_of(
    region: EpilogueRegion, out: Format, config: ChipConfig, *, lane_axis: int = 1
) -> Epilogue:
    """Lane programs of an epilogue: the fewest behind the PCUs of the product.

    Parameters
    ----------
    region : EpilogueRegion
    out : Format
        Of the result.
    config : ChipConfig
    lane_axis : int
        Axis of the result on the lanes: 1 for its columns; 0, for its rows, behind a product of
        the transposes.

    Raises
    ------
    ProgramError
        At a node that no lane program computes, or at the store if the chip has no lanes.
    """
    if not config.pcu.lanes:
        rule = "Element math on a product needs PCUs with lanes, and `pcu.lanes` is 0"
        raise ProgramError("unserved", rule, region.span, value="0")
    coded = functools.partial(
        _codes, region, function_bits=config.pcu.function_bits, lane_axis=lane_axis
    )
    found = [_whole(region, out, coded)]
    values = {node.result.name: node.result.type for node in region.nodes}
    if not values:
        values = {region.sums: region.type}
    for name, type_ in values.items():
        if isinstance(type_, TileType):
            found += _divided(region, name, type_, out, coded)
    served = [each for each in found if not _spreads(each.chain)]
    if not served:
        rule = "A vector along the rows of a product is taken by the PCUs of the product alone"
        raise ProgramError("unserved", rule, region.span)
    return min(served, key=lambda each: (len(each.chain), len(each.codes)))


def turned_epilogue_of(region: EpilogueRegion, out: Format, config: ChipConfig) -> Epilogue | None:
    """Lane programs behind the product of the transposes; None if lanes do not compute them there.

    An element for each row lies one vector of memory behind another, which no buffer of a vector
    along the lanes takes.
    """
    if any(each.part is TilePart.COLUMN for each in region.inputs.values()):
        return None
    with contextlib.suppress(ProgramError):
        return epilogue_of(region, out, config, lane_axis=0)
    return None


def _spreads(chain: Sequence[LaneCode]) -> bool:
    """Whether a chain takes a vector of one element per row: its packets are of few rows."""
    phases = (phase.phase for code in chain for phase in code.phases)
    return any(each.auxiliary is AuxiliaryUse.SPREAD for each in phases)


def _codes(
    region: EpilogueRegion,
    nodes: Sequence[ir.Node],
    source: tuple[str, TileType],
    sent: tuple[str, Format],
    *,
    function_bits: int,
    lane_axis: int,
) -> tuple[LaneCode, ...]:
    types = {name: each.type for name, each in region.inputs.items()}
    return lane_codes(
        nodes,
        {source[0]: source[1], **types},
        dict([sent]),
        lane_axis=lane_axis,
        phases=1,
        function_bits=function_bits,
        first=source[0],
    )


def _whole(region: EpilogueRegion, out: Format, coded: _Coded) -> Epilogue:
    """Epilogue whose programs all follow the PCUs of the product."""
    source, sent = (region.sums, region.type), (region.result, out)
    codes = coded(region.nodes, source, sent)
    return Epilogue(region.sums, region.result, region.inputs, None, codes)


def _divided(
    region: EpilogueRegion, name: str, type_: TileType, out: Format, coded: _Coded
) -> list[Epilogue]:
    """Epilogue of which only one value depends on the sums, and they on the first program."""
    head = _needed(region.nodes, name, region.sums)
    rest = _needed(region.nodes, region.result, name)
    if any(value.name == region.sums for each in rest for value in each.values):
        return []
    ends = name == region.result
    try:
        sent = name, out if ends else type_.format
        codes = coded(head, (region.sums, region.type), sent)
        if not ends:
            codes += coded(rest, (name, type_), (region.result, out))
    except ProgramError:
        return []
    first, *chain = codes
    if first.source != region.sums or any(region.sums in code.formats for code in chain):
        return []
    return [Epilogue(region.sums, region.result, region.inputs, first, tuple(chain))]


def _needed(nodes: Sequence[ir.Node], result: str, source: str) -> tuple[ir.Node, ...]:
    """The nodes that a value depends on, but for what only a source depends on."""
    wanted, found = {result} - {source}, []
    for node in reversed(nodes):
        if node.result.name in wanted:
            found.append(node)
            wanted |= {value.name for value in node.values if value.name != source}
    return tuple(reversed(found))
