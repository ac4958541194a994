"""Program of a PMU: slots, loops and barriers of its stream engines, packed into its word."""

from __future__ import annotations

import dataclasses
from typing import Any

from hw.arch.checks import refusal, require_int
from hw.arch.errors import BadInputError, shown
from hw.arch.gather.index_program import IndexProgram, require_packet_filter
from hw.arch.loops import COUNT_BITS, ChainProgram, LoopProgram, Spans
from hw.arch.ports import PortNames, UnitProgram, used
from hw.arch.words.pmu_word import (
    ADDRESS_LOOPS,
    ELEMENT_BYTES,
    ENGINE_LOOPS,
    Access,
    IndexUse,
    Level,
    TokenSource,
    lane_count,
    pmu_layout,
    require_positions,
    rows_log2,
)
from hw.arch.words.word_layout import WordLayout

__all__ = [
    "Beyond",
    "EngineProgram",
    "PmuInput",
    "PmuOutput",
    "PmuProgram",
    "SlotRing",
]


class PmuInput(PortNames):
    """Vector inputs of a PMU: its write engines."""

    W0 = 0
    W1 = 1


class PmuOutput(PortNames):
    """Vector outputs of a PMU: its read engines."""

    R0 = 0
    R1 = 1


@dataclasses.dataclass(frozen=True)
class SlotRing:
    """Ring of slots of a buffer, as one engine addresses it.

    Parameters
    ----------
    buffer : int
        Buffer whose barriers it uses (0 or 1).
    base : int
        Element position of slot 0 for this engine.
    stride : int
        Elements from one slot to the next.
    count : int
        Slots in use.
    """

    buffer: int = 0
    base: int = 0
    stride: int = 0
    count: int = 2


@dataclasses.dataclass(frozen=True)
class Beyond:
    """Steps of an engine where a loop's index is at or above a limit.

    A read engine sends a constant there; a scatter takes indices there only.

    Parameters
    ----------
    loop : int
        Position of the loop in the nest, see ``Level``.
    limit : int
        First index of these steps.
    constant : int
        Bits of the element in every lane; 0 for a write engine.
    """

    loop: int
    limit: int
    constant: int = 0


@dataclasses.dataclass(frozen=True)
class EngineProgram:
    """Program of one stream engine; loops and slopes use the positions of ``Level``.

    Parameters
    ----------
    ring : SlotRing
        The slots.
    loops : tuple of LoopProgram
        Address loops inside a slot, outermost first, strides in elements.
    element_bytes : int
        Width of an element: 1, 2 or 4.
    access : Access
        Block shape that one vector covers.
    launches, windows, repeats, slots : LoopProgram
        Outer loops: launches of windows of slots, each window repeated ``repeats`` times.
    last_level, final_level : int or None
        The vector is flagged if this loop and all inward are at their last index; ``ENGINE_LOOPS``
        flags every vector, None none. Used by read engines.
    beyond : Beyond or None
        Out-of-box constant of a read engine; steps of a scatter that take an index (None: all).
    modulus, index : int
        The engine takes packet i if i mod modulus = index. Used by write engines.
    """

    ring: SlotRing
    loops: tuple[LoopProgram, ...]
    element_bytes: int = 2
    access: Access = Access.ROW
    launches: LoopProgram = LoopProgram()
    windows: LoopProgram = LoopProgram()
    repeats: LoopProgram = LoopProgram()
    slots: LoopProgram = LoopProgram()
    last_level: int | None = None
    final_level: int | None = None
    beyond: Beyond | None = None
    modulus: int = 1
    index: int = 0

    def __post_init__(self) -> None:
        if self.element_bytes not in ELEMENT_BYTES:
            raise BadInputError(f"Element bytes must be 1, 2 or 4, not {shown(self.element_bytes)}")
        if self.ring.buffer not in (0, 1):
            raise BadInputError(f"Buffer must be 0 or 1, not {shown(self.ring.buffer)}")
        if len(self.loops) > ADDRESS_LOOPS:
            raise BadInputError(
                f"Engine program must have at most {ADDRESS_LOOPS} address loops, "
                f"not {len(self.loops)}"
            )
        for noun, level in (("Last", self.last_level), ("Final", self.final_level)):
            if level is not None and not 0 <= level <= ENGINE_LOOPS:
                raise BadInputError(
                    f"{noun} level must be from 0 to {ENGINE_LOOPS}, not {shown(level)}"
                )
        if self.final_level is not None and (
            self.last_level is None or self.last_level < self.final_level
        ):
            raise BadInputError(
                f"Final level must be at most the last level, for a final vector is a last one, "
                f"not {self.final_level} with {self.last_level}"
            )
        require_packet_filter(self.modulus, self.index)
        counts = self.chain.counts()
        for level, (least, _) in enumerate(counts):
            if least < 1:
                raise BadInputError(
                    f"Loop {level} of an engine must have an iteration everywhere, "
                    f"for arrivals ride on steps, not {least}"
                )
        window = counts[Level.SLOTS][1]
        if counts[Level.REPEATS][1] > 1 and window > self.ring.count:
            raise BadInputError(
                f"Slots of a repeated window must be at most the ring's {self.ring.count}, "
                f"not {window}"
            )

    @property
    def chain(self) -> ChainProgram:
        """The whole nest, outer loops first."""
        loops = (self.launches, self.windows, self.repeats, self.slots, *self.loops)
        return ChainProgram(loops + (LoopProgram(),) * (ENGINE_LOOPS - len(loops)))

    def check(
        self, indexed: IndexProgram | None, *, width_bits: int, capacity_bytes: int, slots: int
    ) -> None:
        """Refuse a program that a PMU of these parameters cannot run, its indices included.

        Raises
        ------
        BadInputError
            If the ring has too many slots, or an access is out of range or misaligned.
        """
        if not 1 <= self.ring.count <= slots:
            raise BadInputError(f"Ring must have 1 to {slots} slots, not {self.ring.count}")
        lanes = lane_count(width_bits=width_bits, element_bytes=self.element_bytes)
        pieces = lanes, rows_log2(self.access, lanes=lanes), capacity_bytes // self.element_bytes
        beyond = self.beyond or Beyond(0, 1 << COUNT_BITS)
        filled = self.beyond and indexed is not None and indexed.use is not IndexUse.GATHER
        below, above = (0, beyond.limit - 1), (beyond.limit, 1 << COUNT_BITS)
        for spans in self.chain.spans({beyond.loop: below}):
            self._check_spans(spans, pieces, None if filled else indexed)
        for spans in self.chain.spans({beyond.loop: above}) if filled else ():
            self._check_spans(spans, pieces, indexed)

    def _check_spans(
        self, spans: Spans, pieces: tuple[int, int, int], indexed: IndexProgram | None
    ) -> None:
        """Refuse positions of steps with indices between bounds."""
        walks = [(self.ring.base, 1, 1), (self.ring.stride, 0, self.ring.count - 1)]
        walks += [(each.stride, *span) for each, span in zip(self.chain.loops, spans)]
        lanes, rows, elements = pieces
        if indexed is not None and indexed.elements:
            # The hardware joins bits: a table begins at a multiple of the power of two above it.
            lanes, rows = 1 << (indexed.limit - 1).bit_length(), 0
            require_int("Index limit", indexed.limit, 1, elements)
        elif indexed is not None:
            walks.append((1 << indexed.shift, 0, indexed.limit - 1))
        require_positions(walks, elements=elements, lanes=lanes, rows_log2=rows)

    def fields(self, layout: WordLayout) -> dict[str, Any]:
        """Values of the layout's fields."""
        chain = layout["chain"].shape
        beyond = self.beyond or Beyond(0, 0)
        none = ENGINE_LOOPS + 1
        return {
            "enable": 1,
            "buffer": self.ring.buffer,
            "base": self.ring.base,
            "slot_stride": self.ring.stride,
            "slot_count": self.ring.count,
            "element": ELEMENT_BYTES.index(self.element_bytes),
            "access": self.access,
            "chain": self.chain.pack(chain),
            "last_level": none if self.last_level is None else self.last_level,
            "final_level": none if self.final_level is None else self.final_level,
            "limited": int(self.beyond is not None),
            "limit_loop": beyond.loop,
            "limit": beyond.limit,
            "constant": beyond.constant,
            "modulus": self.modulus,
            "index": self.index,
        }

    @classmethod
    def from_fields(cls, layout: WordLayout, fields: Any) -> EngineProgram:
        """Program from a layout's fields; padding loops of ``chain`` remain.

        Raises
        ------
        BadInputError
            If `fields` makes no such fields.
        """
        if fields["element"] >= len(ELEMENT_BYTES):
            raise BadInputError(
                f"Element field must be below {len(ELEMENT_BYTES)}, not {fields['element']}"
            )
        chain = layout["chain"].shape
        loops = ChainProgram.unpack(chain, fields["chain"].bits).loops
        launches, windows, repeats, slots = loops[: Level.ADDRESS]
        levels = {
            name: None if fields[name] == ENGINE_LOOPS + 1 else fields[name]
            for name in ("last_level", "final_level")
        }
        beyond = Beyond(fields["limit_loop"], fields["limit"], fields["constant"])
        return cls(
            SlotRing(fields["buffer"], fields["base"], fields["slot_stride"], fields["slot_count"]),
            loops[Level.ADDRESS :],
            element_bytes=ELEMENT_BYTES[fields["element"]],
            access=fields["access"],
            launches=launches,
            windows=windows,
            repeats=repeats,
            slots=slots,
            beyond=beyond if fields["limited"] else None,
            modulus=fields["modulus"],
            index=fields["index"],
            **levels,
        )


@dataclasses.dataclass(frozen=True)
class PmuProgram(UnitProgram):
    """Program of a PMU.

    Parameters
    ----------
    writers, readers : tuple of (EngineProgram or None)
        W0 and W1, R0 and R1; None for an engine that is off.
    tokens : tuple of TokenSource
        Event that each token output reports.
    indexed : IndexProgram or None
        Loop of R1 or W0 whose index comes from the stream at W1, which then writes nothing.

    Raises
    ------
    BadInputError
        If the engines' programs contradict each other.
    """

    writers: tuple[EngineProgram | None, EngineProgram | None] = (None, None)
    readers: tuple[EngineProgram | None, EngineProgram | None] = (None, None)
    tokens: tuple[TokenSource, TokenSource] = (TokenSource.OFF, TokenSource.OFF)
    indexed: IndexProgram | None = None

    def __post_init__(self) -> None:
        self._check_indexed()
        for writer in self.writers:
            if writer is not None and writer.chain.counts()[Level.REPEATS] != (1, 1):
                raise BadInputError(
                    f"Repeats of a write engine must be 1, not {writer.repeats.base}"
                )
        for buffer in (0, 1):
            counts = {e.ring.count for e in self.engines if e and e.ring.buffer == buffer}
            if len(counts) > 1:
                raise BadInputError(
                    f"Engines of buffer {buffer} must agree on its slots, not {sorted(counts)}"
                )
        for source in self.tokens:
            if source is not TokenSource.OFF and self.engines[int(source.value) - 1] is None:
                raise BadInputError(f"Token source must be an engine that is on, not {source.name}")

    def _check_indexed(self) -> None:
        indexed = self.indexed
        for number, writer in enumerate(self.writers):
            scattered = indexed is not None and indexed.engine == number
            if writer is not None and writer.beyond and not scattered:
                raise refusal("Limit of a write engine", "be that of a scatter", writer.beyond)
        if indexed is not None:
            if self.writers[1] is not None:
                raise refusal("W1", "be off, for it takes the index stream", self.writers[1])
            indexed.require_engine(self.engines[indexed.engine])

    @property
    def engines(self) -> tuple[EngineProgram | None, ...]:
        """The engines in the layout's order: W0, W1, R0, R1."""
        return self.writers + self.readers

    def partners(self, number: int) -> list[int]:
        """Engines of the other direction on the same buffer: their arrivals open its slots."""
        writers = len(self.writers)
        engine = self.engines[number]
        return [
            other
            for other, each in enumerate(self.engines)
            if engine and each and each.ring.buffer == engine.ring.buffer
            if (other < writers) != (number < writers)
        ]

    @property
    def inputs(self) -> tuple[int, ...]:
        return used((self.writers[0], self.writers[1] or self.indexed))

    @property
    def outputs(self) -> tuple[int, ...]:
        return used(self.readers)

    @property
    def token_outputs(self) -> tuple[int, ...]:
        return tuple(n for n, source in enumerate(self.tokens) if source is not TokenSource.OFF)

    def pack(self, *, width_bits: int, capacity_bytes: int, slots: int) -> int:
        """Program word for a PMU of these parameters.

        Raises
        ------
        BadInputError
            If the program does not fit the PMU.
        """
        layout = pmu_layout(capacity_bytes=capacity_bytes, slots=slots)
        engine_shape = layout["engines"].shape.elem_shape
        sizes = {"width_bits": width_bits, "capacity_bytes": capacity_bytes, "slots": slots}
        engines: list[dict[str, Any]] = []
        for number, engine in enumerate(self.engines):
            if engine is not None:
                mine = self.indexed if self.indexed and number == self.indexed.engine else None
                engine.check(mine, **sizes)
            engines.append({} if engine is None else engine.fields(engine_shape))
        fields: dict[int | str, Any] = {"engines": engines, "tokens": self.tokens}
        if self.indexed is not None:
            engines[1] = {"modulus": self.indexed.modulus, "index": self.indexed.index}
            fields["index"] = self.indexed.fields(layout["index"].shape)
        return layout.pack(fields)

    @classmethod
    def unpack(cls, word: int, *, capacity_bytes: int, slots: int) -> PmuProgram:
        """Program of a word."""
        layout = pmu_layout(capacity_bytes=capacity_bytes, slots=slots)
        engine_shape = layout["engines"].shape.elem_shape
        fields: Any = layout.unpack(word)
        entries = [fields["engines"][number] for number in range(4)]
        engines = [
            EngineProgram.from_fields(engine_shape, entry) if entry["enable"] else None
            for entry in entries
        ]
        tokens = (fields["tokens"][0], fields["tokens"][1])
        indexed = IndexProgram.from_fields(fields["index"], entries[1])
        return cls((engines[0], engines[1]), (engines[2], engines[3]), tokens, indexed)
