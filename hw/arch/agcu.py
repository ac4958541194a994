"""Program of an AGCU: its issuers' lists, descriptors, initial credits and reports."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

from amaranth.hdl import unsigned
from amaranth.lib import data

from hw.arch.boxes.issuer_program import ISSUER_PROGRAMS, IssuerProgram, nest_layout
from hw.arch.descriptor import DESCRIPTOR_BYTES, STORED_WORDS, WORD_BITS, Descriptor, TmaFeature
from hw.arch.errors import BadInputError
from hw.arch.launch import MAX_ARGUMENTS
from hw.arch.limits import MAX_CREDITS
from hw.arch.ports import PortNames, UnitProgram, used
from hw.arch.words.word_layout import WordLayout

__all__ = [
    "AGCU_DESCRIPTORS",
    "AGCU_FEATURES",
    "AGCU_STREAMS",
    "INDEX_BITS",
    "MAX_INDICES",
    "AgcuInput",
    "AgcuOutput",
    "AgcuProgram",
    "agcu_layout",
    "index_input",
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


#: Descriptors of an AGCU: two per stream.
AGCU_DESCRIPTORS = 4 * AGCU_STREAMS
#: What an AGCU's engine can do beyond dense boxes with zeros outside the tensor.
AGCU_FEATURES = (TmaFeature.NAN_FILL, TmaFeature.SHORTFALL)


#: Width of an index, without a sign.
INDEX_BITS = 32
#: Greatest number of indices in range of an indexed dimension: coordinates have a sign.
MAX_INDICES = 1 << 31


def index_input(stream: int, *, store: bool) -> int:
    """Vector input at which the index stream of a load stream, or of a store stream, arrives.

    A store's data come by the input of its number, its indices by the other one.
    """
    return AGCU_STREAMS - 1 - stream if store else stream


@functools.cache
def agcu_layout(token_ports: int) -> WordLayout:
    """Layout of an AGCU's program.

    ``issuers`` are the first programs of the lists of the load streams, then of the store streams;
    ``following`` their second programs, third ones and so on, which stand last so that an image of
    lists of one is short. ``credits`` are the initial tokens of each token port; ``stored`` enables
    the token outputs that report stored boxes.
    """
    nest = nest_layout(descriptors=AGCU_DESCRIPTORS, token_ports=token_ports)
    nests = data.ArrayLayout(nest, 2 * AGCU_STREAMS)
    words = data.ArrayLayout(unsigned(WORD_BITS), STORED_WORDS)
    return WordLayout(
        {
            "issuers": nests,
            "credits": data.ArrayLayout(range(MAX_CREDITS + 1), token_ports),
            "stored": AGCU_STREAMS,
            "arguments": data.ArrayLayout(range(MAX_ARGUMENTS), AGCU_DESCRIPTORS),
            "descriptors": data.ArrayLayout(words, AGCU_DESCRIPTORS),
            "following": data.ArrayLayout(nests, ISSUER_PROGRAMS - 1),
        }
    )


@functools.cache
def _nest_offsets(token_ports: int, stream: int) -> tuple[int, ...]:
    """Bit at which each program of a stream's list begins in the AGCU's word."""
    layout = agcu_layout(token_ports)
    nests = layout["issuers"].shape
    within = stream * nests.elem_shape.bits
    rest = range(ISSUER_PROGRAMS - 1)
    return (
        layout["issuers"].offset + within,
        *(layout["following"].offset + place * nests.size + within for place in rest),
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
        If there is too much of something, a program names a missing descriptor, two issuers
        wait for one token port, a program cannot index its tensor, or an index stream and
        another stream need one input.
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
        for issuer in (*self.loads, *self.stores):
            if issuer is None:
                continue
            for program in issuer.programs:
                if program.descriptor >= len(self.descriptors):
                    raise BadInputError(
                        f"AGCU program must name one of {len(self.descriptors)} descriptors, "
                        f"not {program.descriptor}"
                    )
                self._check_index(program)
            ports = {wait.port for program in issuer.programs for wait in program.waits}
            for port in sorted(ports & waited):
                raise BadInputError(f"Token port {port} must have one issuer that waits")
            waited |= ports
        for port in range(AGCU_STREAMS):
            if self.inputs.count(port) > 1:
                raise BadInputError(
                    f"Input {AgcuInput(port).name} must have one stream, of data or of indices"
                )
        for count in self.credits:
            if not 0 <= count <= MAX_CREDITS:
                raise BadInputError(f"AGCU credits must be from 0 to {MAX_CREDITS}, not {count}")
        for number, (descriptor, argument) in enumerate(self.descriptors):
            for feature in descriptor.features - set(AGCU_FEATURES):
                raise BadInputError(
                    f"Descriptor {number} must need no feature that an AGCU's engine is made "
                    f"without, not {feature.name}"
                )
            if not 0 <= argument < MAX_ARGUMENTS:
                raise BadInputError(
                    f"Argument must be from 0 to {MAX_ARGUMENTS - 1}, not {argument}"
                )
        if len(set(self.stored) & set(range(AGCU_STREAMS))) != len(self.stored):
            raise BadInputError(
                f"Store streams must be different and below {AGCU_STREAMS}, not {self.stored}"
            )

    def _check_index(self, program: IssuerProgram) -> None:
        descriptor, _ = self.descriptors[program.descriptor]
        if program.index >= descriptor.rank:
            raise BadInputError(
                f"Indexed dimension must be below the tensor's {descriptor.rank} dimensions, "
                f"not {program.index}"
            )
        if not program.index:
            return
        if descriptor.box[program.index] != 1:
            raise BadInputError(
                "Box must have 1 element in its indexed dimension, "
                f"not {descriptor.box[program.index]}"
            )
        if descriptor.dims[program.index] > MAX_INDICES:
            raise BadInputError(
                f"Indexed dimension must have at most {MAX_INDICES} indices, "
                f"not {descriptor.dims[program.index]}"
            )

    @property
    def index_inputs(self) -> dict[tuple[int, bool], int]:
        """Input of each stream's index stream, by number of the stream and whether it stores."""
        return {
            (stream, store): index_input(stream, store=store)
            for store, issuers in ((False, self.loads), (True, self.stores))
            for stream, issuer in enumerate(issuers)
            if issuer is not None and any(program.index for program in issuer.programs)
        }

    @property
    def inputs(self) -> tuple[int, ...]:
        return tuple(sorted((*used(self.stores), *self.index_inputs.values())))

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
        word = layout.pack(fields)
        descriptors = layout["descriptors"]
        bits = layout["issuers"].shape.elem_shape.bits
        streams = (
            *enumerate(self.loads),
            *((AGCU_STREAMS + number, program) for number, program in enumerate(self.stores)),
        )
        for number, program in streams:
            if program is not None:
                packed = program.pack(descriptors=AGCU_DESCRIPTORS, token_ports=token_ports)
                for position, offset in enumerate(_nest_offsets(token_ports, number)):
                    word |= (packed >> position * bits & (1 << bits) - 1) << offset
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
        fields: Any = layout.unpack(word)
        bits = layout["issuers"].shape.elem_shape.bits
        streams: list[IssuerProgram | None] = []
        for number in range(2 * AGCU_STREAMS):
            packed = 0
            for position, offset in enumerate(_nest_offsets(token_ports, number)):
                packed |= (word >> offset & (1 << bits) - 1) << position * bits
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
