"""Program of a command issuer: lists of box nests, their order, and the tokens they wait for."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

from amaranth.lib import data

from hw.arch.descriptor import MAX_RANK
from hw.arch.errors import BadInputError
from hw.arch.loops import COUNT_BITS, STEP_BITS, BoxLoop, ChainProgram, LoopProgram, chain_layout
from hw.arch.words.word_layout import WordLayout

__all__ = [
    "ISSUER_LOOPS",
    "ISSUER_PROGRAMS",
    "MAX_TOKENS",
    "MAX_WAITS",
    "IssuerProgram",
    "Wait",
    "issuer_layout",
    "nest_layout",
]

#: Loops of an issuer's counter chain.
ISSUER_LOOPS = 6
#: Most programs of an issuer's list.
ISSUER_PROGRAMS = 4
#: Token ports that one command can wait for.
MAX_WAITS = 2
#: Most tokens that a command takes from one port.
MAX_TOKENS = 15


@functools.cache
def nest_layout(*, descriptors: int, token_ports: int) -> WordLayout:
    """Layout of one program of a list; a wait for 0 tokens is no wait."""
    wait = WordLayout({"port": range(max(token_ports, 2)), "tokens": range(MAX_TOKENS + 1)})
    return WordLayout(
        {
            "enable": 1,
            "descriptor": range(max(descriptors, 2)),
            "index": range(MAX_RANK),
            "waits": data.ArrayLayout(wait, MAX_WAITS),
            "dimensions": data.ArrayLayout(range(MAX_RANK), ISSUER_LOOPS),
            "chain": chain_layout(loops=ISSUER_LOOPS, count_bits=COUNT_BITS, offset_bits=STEP_BITS),
        }
    )


def issuer_layout(*, descriptors: int, token_ports: int) -> data.ArrayLayout:
    """Layout of an issuer's list: its programs in order, those behind the last one 0."""
    nest = nest_layout(descriptors=descriptors, token_ports=token_ports)
    return data.ArrayLayout(nest, ISSUER_PROGRAMS)


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
    """Program of a command issuer: boxes of one stream of an AGCU, and the programs after it.

    Parameters
    ----------
    descriptor : int
        Index of the tensor's descriptor.
    loops : tuple of BoxLoop
        The loop nest, outermost first; one command per iteration of the innermost loop.
    waits : tuple of Wait
        Tokens that each command takes.
    index : int
        Dimension of the tensor whose coordinate each command takes from the index stream; 0: none.
    following : tuple of IssuerProgram
        The rest of the issuer's list, in order; each begins when the one before it has issued its
        last command.

    Raises
    ------
    BadInputError
        If there are too many loops, waits or programs, two waits for one port, a count out of
        range, a loop over the indexed dimension, or a program of the list has a list of its own.
    """

    descriptor: int
    loops: tuple[BoxLoop, ...]
    waits: tuple[Wait, ...] = ()
    index: int = 0
    following: tuple[IssuerProgram, ...] = ()

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
        if not 0 <= self.index < MAX_RANK:
            raise BadInputError(
                f"Indexed dimension must be from 1 to {MAX_RANK - 1}, or 0, not {self.index}"
            )
        for loop in self.loops:
            if self.index and loop.step and loop.dimension == self.index:
                raise BadInputError(
                    f"Loop must not move the indexed dimension {self.index}, not by {loop.step}"
                )
        for low, high in self.chain().counts():
            if low < 0 or high >= 1 << COUNT_BITS:
                raise BadInputError(
                    f"Issuer counts must be from 0 to {(1 << COUNT_BITS) - 1}, not {low} to {high}"
                )
        if len(self.following) >= ISSUER_PROGRAMS:
            raise BadInputError(
                f"Issuer must have at most {ISSUER_PROGRAMS} programs, "
                f"not {1 + len(self.following)}"
            )
        for program in self.following:
            if program.following:
                raise BadInputError(
                    f"Program of a list must have no list of its own, not {program.following}"
                )

    @property
    def programs(self) -> tuple[IssuerProgram, ...]:
        """The whole list, each program by itself."""
        if not self.following:
            return (self,)
        return (dataclasses.replace(self, following=()), *self.following)

    def chain(self) -> ChainProgram:
        """The nest as a counter chain, padded with loops of one iteration."""
        loops = [
            LoopProgram(loop.count, loop.step, loop.slope, loop.outer, loop.shift)
            for loop in self.loops
        ]
        return ChainProgram((*loops, *[LoopProgram()] * (ISSUER_LOOPS - len(loops))))

    def pack(self, *, descriptors: int, token_ports: int) -> int:
        """Word of the list, laid out by `issuer_layout`.

        Raises
        ------
        BadInputError
            If a descriptor or a token port does not exist.
        """
        bits = nest_layout(descriptors=descriptors, token_ports=token_ports).bits
        word = 0
        for position, program in enumerate(self.programs):
            word |= program._nest(descriptors, token_ports) << position * bits
        return word

    def _nest(self, descriptors: int, token_ports: int) -> int:
        """Word of this program alone, laid out by `nest_layout`."""
        if not 0 <= self.descriptor < descriptors:
            raise BadInputError(
                f"Issuer descriptor must be from 0 to {descriptors - 1}, not {self.descriptor}"
            )
        for wait in self.waits:
            if not 0 <= wait.port < token_ports:
                raise BadInputError(
                    f"Token port must be from 0 to {token_ports - 1}, not {wait.port}"
                )
        layout = nest_layout(descriptors=descriptors, token_ports=token_ports)
        waits = [dataclasses.asdict(wait) for wait in self.waits]
        chain_word = self.chain().pack(layout["chain"].shape)
        fields: dict[int | str, Any] = {
            "enable": 1,
            "descriptor": self.descriptor,
            "index": self.index,
            "waits": waits + [{"port": 0, "tokens": 0}] * (MAX_WAITS - len(waits)),
            "dimensions": [loop.dimension for loop in self.loops]
            + [0] * (ISSUER_LOOPS - len(self.loops)),
        }
        word = layout.pack(fields)
        return word | chain_word << layout["chain"].offset

    @classmethod
    def unpack(cls, word: int, *, descriptors: int, token_ports: int) -> IssuerProgram:
        """Program of a word; the inverse of `pack`.

        Raises
        ------
        BadInputError
            If `pack` makes no such word.
        """
        bits = nest_layout(descriptors=descriptors, token_ports=token_ports).bits
        nests = [word >> position * bits & (1 << bits) - 1 for position in range(ISSUER_PROGRAMS)]
        while len(nests) > 1 and not nests[-1]:
            nests.pop()
        for position, nest in enumerate(nests[:-1]):
            if not nest:
                raise BadInputError(
                    f"Issuer program {position + 1} must follow another, not stand alone"
                )
        first, *following = (cls._of_nest(nest, descriptors, token_ports) for nest in nests)
        program = dataclasses.replace(first, following=tuple(following))
        if program.pack(descriptors=descriptors, token_ports=token_ports) != word:
            raise BadInputError(
                f"Issuer configuration must be one that a program makes, not {word:#x}"
            )
        return program

    @classmethod
    def _of_nest(cls, word: int, descriptors: int, token_ports: int) -> IssuerProgram:
        layout = nest_layout(descriptors=descriptors, token_ports=token_ports)
        fields: Any = layout.unpack(word)
        chain = ChainProgram.unpack(layout["chain"].shape, fields["chain"].bits)
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
        return cls(
            descriptor=fields["descriptor"],
            loops=tuple(loops),
            waits=tuple(Wait(wait["port"], wait["tokens"]) for wait in waits if wait["tokens"]),
            index=fields["index"],
        )
