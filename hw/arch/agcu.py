"""Programs of an AGCU and its command issuers: boxes, their order, and the tokens they wait for."""

from __future__ import annotations

import dataclasses
from typing import Any

from amaranth.hdl import Const, unsigned
from amaranth.lib import data

from hw.arch.descriptor import DESCRIPTOR_BYTES, MAX_RANK, STORED_WORDS, WORD_BITS, Descriptor
from hw.arch.errors import BadInputError
from hw.arch.launch import MAX_ARGUMENTS
from hw.arch.limits import MAX_CREDITS
from hw.arch.loops import COUNT_BITS, STEP_BITS, BoxLoop, ChainProgram, LoopProgram, chain_layout
from hw.arch.ports import PortNames, UnitProgram, used

__all__ = [
    "ISSUER_LOOPS",
    "MAX_TOKENS",
    "MAX_WAITS",
    "IssuerProgram",
    "Wait",
    "issuer_layout",
    "AGCU_DESCRIPTORS",
    "AGCU_STREAMS",
    "AgcuInput",
    "AgcuOutput",
    "AgcuProgram",
    "agcu_layout",
]

#: Load streams of an AGCU, and store streams.
AGCU_STREAMS = 2


class AgcuInput(PortNames):
    """Vector inputs of an AGCU: its store streams."""

    STORE_0 = 0
    STORE_1 = 1


class AgcuOutput(PortNames):
    """Vector outputs of an AGCU: its load streams."""

    LOAD_0 = 0
    LOAD_1 = 1


#: Descriptors of an AGCU: one per stream.
AGCU_DESCRIPTORS = 2 * AGCU_STREAMS
#: Loops of an issuer's counter chain.
ISSUER_LOOPS = 6
#: Token ports that one command can wait for.
MAX_WAITS = 2
#: Most tokens that a command takes from one port.
MAX_TOKENS = 15


def issuer_layout(*, descriptors: int, token_ports: int) -> data.StructLayout:
    """Layout of an issuer's program; a wait for 0 tokens is no wait."""
    wait = data.StructLayout({"port": range(max(token_ports, 2)), "tokens": range(MAX_TOKENS + 1)})
    return data.StructLayout(
        {
            "enable": 1,
            "descriptor": range(max(descriptors, 2)),
            "waits": data.ArrayLayout(wait, MAX_WAITS),
            "dimensions": data.ArrayLayout(range(MAX_RANK), ISSUER_LOOPS),
            "chain": chain_layout(loops=ISSUER_LOOPS, count_bits=COUNT_BITS, offset_bits=STEP_BITS),
        }
    )


@dataclasses.dataclass(frozen=True)
class Wait:
    """Tokens that each command takes from one token port before it is issued.

    Raises
    ------
    BadInputError
        If it takes none, or more than `MAX_TOKENS`.
    """

    port: int
    tokens: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.tokens <= MAX_TOKENS:
            raise BadInputError(f"Wait must take 1 to {MAX_TOKENS} tokens, not {self.tokens}")


@dataclasses.dataclass(frozen=True)
class IssuerProgram:
    """Program of a command issuer: the boxes of one stream of an AGCU.

    Parameters
    ----------
    descriptor : int
        Index of the tensor's descriptor.
    loops : tuple of BoxLoop
        The loop nest, outermost first; one command per iteration of the innermost loop.
    waits : tuple of Wait
        Tokens that each command takes.

    Raises
    ------
    BadInputError
        If there are too many loops or waits, two waits for one port, or a count out of range.
    """

    descriptor: int
    loops: tuple[BoxLoop, ...]
    waits: tuple[Wait, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= len(self.loops) <= ISSUER_LOOPS:
            raise BadInputError(
                f"Issuer must have 1 to {ISSUER_LOOPS} loops, not {len(self.loops)}"
            )
        if (
            len({wait.port for wait in self.waits}) != len(self.waits)
            or len(self.waits) > MAX_WAITS
        ):
            raise BadInputError(
                f"Issuer must wait for at most {MAX_WAITS} different ports, not {self.waits}"
            )
        for low, high in self.chain().counts():
            if low < 0 or high >= 1 << COUNT_BITS:
                raise BadInputError(
                    f"Issuer counts must be from 0 to {(1 << COUNT_BITS) - 1}, not {low} to {high}"
                )

    def chain(self) -> ChainProgram:
        """The nest as a counter chain, padded with loops of one iteration."""
        loops = [
            LoopProgram(loop.count, loop.step, loop.slope, loop.outer, loop.shift)
            for loop in self.loops
        ]
        return ChainProgram((*loops, *[LoopProgram()] * (ISSUER_LOOPS - len(loops))))

    def pack(self, *, descriptors: int, token_ports: int) -> int:
        """Program word, laid out by `issuer_layout`.

        Raises
        ------
        BadInputError
            If the descriptor or a token port does not exist.
        """
        if not 0 <= self.descriptor < descriptors:
            raise BadInputError(
                f"Issuer descriptor must be from 0 to {descriptors - 1}, not {self.descriptor}"
            )
        for wait in self.waits:
            if not 0 <= wait.port < token_ports:
                raise BadInputError(
                    f"Token port must be from 0 to {token_ports - 1}, not {wait.port}"
                )
        layout = issuer_layout(descriptors=descriptors, token_ports=token_ports)
        waits = [dataclasses.asdict(wait) for wait in self.waits]
        chain_word = self.chain().pack(layout["chain"].shape)
        fields: dict[int | str, Any] = {
            "enable": 1,
            "descriptor": self.descriptor,
            "waits": waits + [{"port": 0, "tokens": 0}] * (MAX_WAITS - len(waits)),
            "dimensions": [loop.dimension for loop in self.loops]
            + [0] * (ISSUER_LOOPS - len(self.loops)),
        }
        word = Const.cast(layout.const(fields)).value
        return word | chain_word << layout["chain"].offset

    @classmethod
    def unpack(cls, word: int, *, descriptors: int, token_ports: int) -> IssuerProgram:
        """Program of a word; the inverse of `pack`.

        Raises
        ------
        BadInputError
            If `pack` makes no such word.
        """
        layout = issuer_layout(descriptors=descriptors, token_ports=token_ports)
        fields: Any = layout.from_bits(word)
        chain = ChainProgram.unpack(layout["chain"].shape, Const.cast(fields["chain"]).value)
        loops = [
            BoxLoop(
                count=loop.base,
                dimension=fields["dimensions"][index],
                step=loop.stride,
                slope=loop.slope,
                outer=loop.outer,
                shift=loop.shift,
            )
            for index, loop in enumerate(chain.loops)
        ]
        while len(loops) > 1 and loops[-1] == BoxLoop(1):
            loops.pop()
        waits = [fields["waits"][index] for index in range(MAX_WAITS)]
        program = cls(
            descriptor=fields["descriptor"],
            loops=tuple(loops),
            waits=tuple(Wait(wait["port"], wait["tokens"]) for wait in waits if wait["tokens"]),
        )
        if program.pack(descriptors=descriptors, token_ports=token_ports) != word:
            raise BadInputError(
                f"Issuer configuration must be one that a program makes, not {word:#x}"
            )
        return program


def agcu_layout(token_ports: int) -> data.StructLayout:
    """Layout of an AGCU's program.

    ``issuers`` are those of the load streams, then of the store streams; ``credits`` the initial
    tokens of each token port; ``stored`` enables the token outputs that report stored boxes.
    """
    issuer = issuer_layout(descriptors=AGCU_DESCRIPTORS, token_ports=token_ports)
    words = data.ArrayLayout(unsigned(WORD_BITS), STORED_WORDS)
    return data.StructLayout(
        {
            "issuers": data.ArrayLayout(issuer, 2 * AGCU_STREAMS),
            "credits": data.ArrayLayout(range(MAX_CREDITS + 1), token_ports),
            "stored": AGCU_STREAMS,
            "arguments": data.ArrayLayout(range(MAX_ARGUMENTS), AGCU_DESCRIPTORS),
            "descriptors": data.ArrayLayout(words, AGCU_DESCRIPTORS),
        }
    )


@dataclasses.dataclass(frozen=True)
class AgcuProgram(UnitProgram):
    """Program of an AGCU: issuers, descriptors, initial credits and reports.

    Parameters
    ----------
    loads, stores : tuple of IssuerProgram or None
        Program of each stream, at most `AGCU_STREAMS` each; None for one that is off.
    descriptors : tuple of (Descriptor, int)
        At most `AGCU_DESCRIPTORS` tensors, each with the launch argument that is added to its base.
    credits : tuple of int
        Initial tokens of each token port (0 to `MAX_CREDITS`).
    stored : tuple of int
        Store streams whose boxes are reported, each on the token output of its number.

    Raises
    ------
    BadInputError
        If there is too much of something, a program names a missing descriptor, or two
        programs wait for one token port.
    """

    loads: tuple[IssuerProgram | None, ...] = ()
    stores: tuple[IssuerProgram | None, ...] = ()
    descriptors: tuple[tuple[Descriptor, int], ...] = ()
    credits: tuple[int, ...] = ()
    stored: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for noun, entries, limit in (
            ("load streams", self.loads, AGCU_STREAMS),
            ("store streams", self.stores, AGCU_STREAMS),
            ("descriptors", self.descriptors, AGCU_DESCRIPTORS),
        ):
            if len(entries) > limit:
                raise BadInputError(f"AGCU must have at most {limit} {noun}, not {len(entries)}")
        waited: set[int] = set()
        for program in (*self.loads, *self.stores):
            if program is None:
                continue
            if program.descriptor >= len(self.descriptors):
                raise BadInputError(
                    f"AGCU program must name one of {len(self.descriptors)} descriptors, "
                    f"not {program.descriptor}"
                )
            for wait in program.waits:
                if wait.port in waited:
                    raise BadInputError(f"Token port {wait.port} must have one program that waits")
                waited.add(wait.port)
        for count in self.credits:
            if not 0 <= count <= MAX_CREDITS:
                raise BadInputError(f"AGCU credits must be from 0 to {MAX_CREDITS}, not {count}")
        for _, argument in self.descriptors:
            if not 0 <= argument < MAX_ARGUMENTS:
                raise BadInputError(
                    f"Argument must be from 0 to {MAX_ARGUMENTS - 1}, not {argument}"
                )
        if len(set(self.stored) & set(range(AGCU_STREAMS))) != len(self.stored):
            raise BadInputError(
                f"Store streams must be different and below {AGCU_STREAMS}, not {self.stored}"
            )

    @property
    def inputs(self) -> tuple[int, ...]:
        return used(self.stores)

    @property
    def outputs(self) -> tuple[int, ...]:
        return used(self.loads)

    @property
    def token_outputs(self) -> tuple[int, ...]:
        return self.stored

    def pack(self, token_ports: int) -> int:
        """Program word, laid out by `agcu_layout`.

        Raises
        ------
        BadInputError
            If a program names a token port that does not exist, or there are more credits or
            reports than token ports.
        """
        if len(self.credits) > token_ports:
            raise BadInputError(
                f"AGCU credits must be for {token_ports} token ports, not {len(self.credits)}"
            )
        if any(number >= token_ports for number in self.stored):
            raise BadInputError(
                f"Reported store streams must be below {token_ports} token ports, not {self.stored}"
            )
        layout = agcu_layout(token_ports)
        padding = AGCU_DESCRIPTORS - len(self.descriptors)
        fields: dict[int | str, Any] = {
            "credits": [*self.credits, *[0] * (token_ports - len(self.credits))],
            "stored": sum(1 << number for number in self.stored),
            "arguments": [argument for _, argument in self.descriptors] + [0] * padding,
        }
        word = Const.cast(layout.const(fields)).value
        issuers, descriptors = layout["issuers"], layout["descriptors"]
        issuer_bits = issuer_layout(descriptors=AGCU_DESCRIPTORS, token_ports=token_ports).size
        streams = (
            *enumerate(self.loads),
            *((AGCU_STREAMS + number, program) for number, program in enumerate(self.stores)),
        )
        for number, program in streams:
            if program is not None:
                packed = program.pack(descriptors=AGCU_DESCRIPTORS, token_ports=token_ports)
                word |= packed << issuers.offset + number * issuer_bits
        for number, (descriptor, _) in enumerate(self.descriptors):
            stored = int.from_bytes(descriptor.pack(), "little") & (
                (1 << STORED_WORDS * WORD_BITS) - 1
            )
            word |= stored << descriptors.offset + number * STORED_WORDS * WORD_BITS
        return word

    @classmethod
    def unpack(cls, word: int, token_ports: int) -> AgcuProgram:
        """Program of a word; the inverse of `pack`.

        Raises
        ------
        BadInputError
            If `pack` makes no such word.
        """
        layout = agcu_layout(token_ports)
        fields: Any = layout.from_bits(word)
        bits = issuer_layout(descriptors=AGCU_DESCRIPTORS, token_ports=token_ports).size
        streams: list[IssuerProgram | None] = []
        for number in range(2 * AGCU_STREAMS):
            packed = word >> layout["issuers"].offset + number * bits & (1 << bits) - 1
            streams.append(
                IssuerProgram.unpack(packed, descriptors=AGCU_DESCRIPTORS, token_ports=token_ports)
                if packed
                else None
            )
        stored_bits = STORED_WORDS * WORD_BITS
        descriptors: list[tuple[Descriptor, int]] = []
        for number in range(AGCU_DESCRIPTORS):
            stored = word >> layout["descriptors"].offset + number * stored_bits
            stored &= (1 << stored_bits) - 1
            if stored:
                if len(descriptors) != number:
                    raise BadInputError(f"Descriptor {number} must follow another, not stand alone")
                raw = stored.to_bytes(DESCRIPTOR_BYTES, "little")
                descriptors.append((Descriptor.unpack(raw), fields["arguments"][number]))
        program = cls(
            loads=tuple(streams[:AGCU_STREAMS]),
            stores=tuple(streams[AGCU_STREAMS:]),
            descriptors=tuple(descriptors),
            credits=tuple(fields["credits"][port] for port in range(token_ports)),
            stored=tuple(
                number for number in range(AGCU_STREAMS) if fields["stored"] >> number & 1
            ),
        )
        if program.pack(token_ports) != word:
            raise BadInputError(
                f"AGCU configuration must be one that a program makes, not {word:#x}"
            )
        return program
