"""Index program of a PMU: the loop of an engine whose index comes from a stream."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from hw.arch.checks import refusal, require_bool, require_int
from hw.arch.errors import BadInputError, shown
from hw.arch.limits import MAX_MODULUS
from hw.arch.words.pmu_word import ENGINE_LOOPS, INDEX_BYTES, Access, IndexUse, Level
from hw.arch.words.word_layout import WordLayout

if TYPE_CHECKING:
    from hw.arch.pmu import EngineProgram

__all__ = ["IndexProgram", "require_packet_filter"]


def require_packet_filter(modulus: int, index: int) -> None:
    """Refuse a packet filter that a unit's input cannot have."""
    if not 1 <= modulus <= MAX_MODULUS or not 0 <= index < modulus:
        raise BadInputError(
            f"Packet filter must have a modulus from 1 to {MAX_MODULUS} and an index below it, "
            f"not {modulus} and {index}"
        )


@dataclasses.dataclass(frozen=True)
class IndexProgram:
    """Loop of an engine whose index comes from a stream instead of a counter.

    It lies outside the address loops from ``level`` inwards: they share an index. The index of a
    step moves its position by ``index << shift`` elements. See docs/gather.md.

    Parameters
    ----------
    use : IndexUse
        Engine, and what it does there.
    limit : int
        Indices from 0 to ``limit - 1`` are in range.
    shift : int
        Logarithm of the elements from one index to the next.
    level : int
        From `Level.ADDRESS`, a new index per iteration of that loop's outer loops, to
        `ENGINE_LOOPS`, a new index per step.
    modulus, index : int
        The engine takes packet i of the index stream if i mod modulus = index.
    elements : bool
        Each step takes a vector of indices, one for each of its elements of 4 bytes.

    Raises
    ------
    BadInputError
        If a field is out of range.
    """

    use: IndexUse
    limit: int
    shift: int
    level: int = ENGINE_LOOPS
    modulus: int = 1
    index: int = 0
    elements: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.use, IndexUse) or self.use is IndexUse.OFF:
            raise BadInputError(f"Index use must be GATHER or a SCATTER, not {shown(self.use)}")
        require_int("Index limit", self.limit, 1, 1 << 32)
        require_int("Index shift", self.shift, 0, 31)
        require_int("Index level", self.level, Level.ADDRESS.value, ENGINE_LOOPS)
        require_packet_filter(self.modulus, self.index)
        require_bool("Index elements", self.elements)
        if self.elements and self.shift:
            raise refusal("Index shift", "be 0 for indices of elements", self.shift)
        if self.elements and self.level != ENGINE_LOOPS:
            raise refusal("Index level", f"be {ENGINE_LOOPS} for indices of elements", self.level)

    def check(self, layout: WordLayout) -> None:
        """Refuse a shift beyond the elements of a PMU; positions bound the limit.

        Raises
        ------
        BadInputError
            If a PMU with this `index_layout` has fewer positions.
        """
        require_int("Index shift", self.shift, 0, layout["limit"].width - 2)

    @property
    def engine(self) -> int:
        """Position of its engine among W0, W1, R0, R1."""
        return 3 if self.use is IndexUse.GATHER else 0

    def require_engine(self, engine: EngineProgram | None) -> None:
        """Refuse another engine than one that can take the indices.

        Raises
        ------
        BadInputError
            If it is off, or its steps or elements do not suit the use of the indices.
        """
        if engine is None:
            name = ("W0", "W1", "R0", "R1")[self.engine]
            raise refusal(f"Engine {name}", f"be on for {self.use.name}", engine)
        if self.elements and engine.access is not Access.ROW:
            raise refusal("Access with indices of elements", "be ROW", engine.access)
        words = self.elements or self.use is IndexUse.SCATTER_ADD
        if words and engine.element_bytes != INDEX_BYTES:
            raise refusal(
                "Element bytes",
                f"be {INDEX_BYTES} for indices of elements, and to add int32",
                engine.element_bytes,
            )
        if self.use is IndexUse.GATHER:
            return
        if engine.beyond and engine.beyond.loop >= self.level:
            raise refusal(
                "Limit loop of a scatter",
                f"lie outside the loops that share an index, from {self.level}",
                engine.beyond.loop,
            )
        if engine.beyond and engine.beyond.constant:
            raise refusal("Constant of a scatter", "be 0", engine.beyond.constant)

    def fields(self, layout: WordLayout) -> dict[str, Any]:
        """Values of the layout's fields."""
        self.check(layout)
        level = self.level - Level.ADDRESS.value
        fields = {"use": self.use, "elements": int(self.elements), "limit": self.limit}
        return fields | {"shift": self.shift, "level": level}

    @classmethod
    def from_fields(cls, fields: Any, filtered: Any) -> IndexProgram | None:
        """Program from a layout's fields and those of W1, whose filter it has; None if off."""
        if fields["use"] is IndexUse.OFF:
            return None
        level = fields["level"] + Level.ADDRESS.value
        taken = filtered["modulus"], filtered["index"], bool(fields["elements"])
        return cls(fields["use"], fields["limit"], fields["shift"], level, *taken)
