"""The configuration of an AGCU: its word's layout, and the program that packs into it."""

from __future__ import annotations

import dataclasses
from typing import Any

from amaranth.hdl import Const, unsigned
from amaranth.lib import data

from hw.arch.descriptor import DESCRIPTOR_BYTES, STORED_WORDS, WORD_BITS, Descriptor
from hw.arch.errors import BadInputError
from hw.arch.issuer import IssuerProgram, issuer_layout
from hw.arch.launch import MAX_ARGUMENTS
from hw.arch.limits import MAX_CREDITS

__all__ = ["DESCRIPTORS", "STREAMS", "AgcuProgram", "agcu_layout"]

#: Load streams, store streams, and descriptors: one for each stream.
STREAMS = 2
DESCRIPTORS = 2 * STREAMS


def agcu_layout(token_ports: int) -> data.StructLayout:
    """Layout of an AGCU's configuration.

    ``issuers`` are the load streams' and then the store streams'; ``credits`` the tokens each
    token port begins with; ``stored`` the token outputs that report boxes of their store stream.
    """
    issuer = issuer_layout(descriptors=DESCRIPTORS, token_ports=token_ports)
    words = data.ArrayLayout(unsigned(WORD_BITS), STORED_WORDS)
    return data.StructLayout(
        {
            "issuers": data.ArrayLayout(issuer, 2 * STREAMS),
            "credits": data.ArrayLayout(range(MAX_CREDITS + 1), token_ports),
            "stored": STREAMS,
            "arguments": data.ArrayLayout(range(MAX_ARGUMENTS), DESCRIPTORS),
            "descriptors": data.ArrayLayout(words, DESCRIPTORS),
        }
    )


@dataclasses.dataclass(frozen=True)
class AgcuProgram:
    """Configuration of an AGCU.

    Parameters
    ----------
    loads, stores : tuple of IssuerProgram or None
        Program of each stream, at most two each; None for one that is off.
    descriptors : tuple of (Descriptor, int)
        At most four tensors, each with the launch argument that is added to its base.
    credits : tuple of int
        Tokens that each token port begins with (0 to 255).
    stored : tuple of int
        Store streams whose boxes are reported, each on the token output of its number.

    Raises
    ------
    BadInputError
        If there is too much of something, a program names a descriptor that is not there, or two
        programs wait for one token port.
    """

    loads: tuple[IssuerProgram | None, ...] = ()
    stores: tuple[IssuerProgram | None, ...] = ()
    descriptors: tuple[tuple[Descriptor, int], ...] = ()
    credits: tuple[int, ...] = ()
    stored: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for noun, entries, limit in (
            ("load streams", self.loads, STREAMS),
            ("store streams", self.stores, STREAMS),
            ("descriptors", self.descriptors, DESCRIPTORS),
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
        if not set(self.stored) <= set(range(STREAMS)):
            raise BadInputError(f"Store streams must be below {STREAMS}, not {self.stored}")

    def pack(self, token_ports: int) -> int:
        """Configuration word, laid out by `agcu_layout`.

        Raises
        ------
        BadInputError
            If a program names a token port that does not exist, or there are more credits.
        """
        if len(self.credits) > token_ports:
            raise BadInputError(
                f"AGCU credits must be for {token_ports} token ports, not {len(self.credits)}"
            )
        layout = agcu_layout(token_ports)
        padding = DESCRIPTORS - len(self.descriptors)
        fields: dict[int | str, Any] = {
            "credits": [*self.credits, *[0] * (token_ports - len(self.credits))],
            "stored": sum(1 << number for number in self.stored),
            "arguments": [argument for _, argument in self.descriptors] + [0] * padding,
        }
        word = Const.cast(layout.const(fields)).value
        issuers, descriptors = layout["issuers"], layout["descriptors"]
        issuer_bits = issuer_layout(descriptors=DESCRIPTORS, token_ports=token_ports).size
        streams = (
            *enumerate(self.loads),
            *((STREAMS + number, program) for number, program in enumerate(self.stores)),
        )
        for number, program in streams:
            if program is not None:
                packed = program.pack(descriptors=DESCRIPTORS, token_ports=token_ports)
                word |= packed << issuers.offset + number * issuer_bits
        for number, (descriptor, _) in enumerate(self.descriptors):
            stored = int.from_bytes(descriptor.pack(), "little") & (
                (1 << STORED_WORDS * WORD_BITS) - 1
            )
            word |= stored << descriptors.offset + number * STORED_WORDS * WORD_BITS
        return word

    @classmethod
    def unpack(cls, word: int, token_ports: int) -> AgcuProgram:
        """Program of a configuration word; the inverse of `pack`.

        Raises
        ------
        BadInputError
            If the word is none that `pack` makes.
        """
        layout = agcu_layout(token_ports)
        fields: Any = layout.from_bits(word)
        bits = issuer_layout(descriptors=DESCRIPTORS, token_ports=token_ports).size
        streams: list[IssuerProgram | None] = []
        for number in range(2 * STREAMS):
            packed = word >> layout["issuers"].offset + number * bits & (1 << bits) - 1
            streams.append(
                IssuerProgram.unpack(packed, descriptors=DESCRIPTORS, token_ports=token_ports)
                if packed
                else None
            )
        stored_bits = STORED_WORDS * WORD_BITS
        descriptors: list[tuple[Descriptor, int]] = []
        for number in range(DESCRIPTORS):
            stored = word >> layout["descriptors"].offset + number * stored_bits
            stored &= (1 << stored_bits) - 1
            if stored:
                if len(descriptors) != number:
                    raise BadInputError(f"Descriptor {number} must follow another, not stand alone")
                raw = stored.to_bytes(DESCRIPTOR_BYTES, "little")
                descriptors.append((Descriptor.unpack(raw), fields["arguments"][number]))
        program = cls(
            loads=tuple(streams[:STREAMS]),
            stores=tuple(streams[STREAMS:]),
            descriptors=tuple(descriptors),
            credits=tuple(fields["credits"][port] for port in range(token_ports)),
            stored=tuple(number for number in range(STREAMS) if fields["stored"] >> number & 1),
        )
        if program.pack(token_ports) != word:
            raise BadInputError(
                f"AGCU configuration must be one that a program makes, not {word:#x}"
            )
        return program
