"""The program of a command issuer: which boxes, in which order, and what each waits for."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from amaranth.hdl import Const
from amaranth.lib import data

from hw.arch.descriptor import MAX_RANK
from hw.arch.errors import BadInputError
from hw.arch.loops import ChainProgram, LoopProgram, chain_layout

__all__ = ["COUNT_BITS", "LOOPS", "STEP_BITS", "WAITS", "BoxLoop", "IssuerProgram", "Wait",
           "issuer_layout"]  # fmt: skip

#: Loops of an issuer's chain, bits of their counts and of a coordinate's step.
LOOPS = 6
COUNT_BITS = 16
STEP_BITS = 18
#: Token ports that one command can wait for, and the most tokens it takes from each.
WAITS = 2
_MAX_TOKENS = 15


def issuer_layout(*, descriptors: int, token_ports: int) -> data.StructLayout:
    """Layout of an issuer's configuration; a wait for 0 tokens is none."""
    wait = data.StructLayout({"port": range(max(token_ports, 2)), "tokens": range(_MAX_TOKENS + 1)})
    return data.StructLayout(
        {
            "enable": 1,
            "descriptor": range(max(descriptors, 2)),
            "waits": data.ArrayLayout(wait, WAITS),
            "dimensions": data.ArrayLayout(range(MAX_RANK), LOOPS),
            "chain": chain_layout(loops=LOOPS, count_bits=COUNT_BITS, offset_bits=STEP_BITS),
        }
    )


@dataclasses.dataclass(frozen=True)
class BoxLoop:
    """One loop over boxes: each iteration moves one coordinate by ``step`` elements.

    Parameters
    ----------
    count : int
        Iterations at index 0 of the outer loop.
    dimension : int
        Dimension of the tensor whose coordinate moves, 0 the innermost.
    step : int
        Elements that an iteration moves it.
    slope, outer : int
        Iterations more for each step of loop ``outer`` of the nest.
    """

    count: int
    dimension: int = 0
    step: int = 0
    slope: int = 0
    outer: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.dimension < MAX_RANK:
            raise BadInputError(
                f"Box loop dimension must be from 0 to {MAX_RANK - 1}, not {self.dimension}"
            )
        limit = 1 << (STEP_BITS - 1)
        if not -limit <= self.step < limit:
            raise BadInputError(
                f"Box loop step must be from {-limit} to {limit - 1} elements, not {self.step}"
            )


@dataclasses.dataclass(frozen=True)
class Wait:
    """Tokens that each command takes from a token port before it is issued.

    Raises
    ------
    BadInputError
        If it takes none, or more than 15.
    """

    port: int
    tokens: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.tokens <= _MAX_TOKENS:
            raise BadInputError(f"Wait must take 1 to {_MAX_TOKENS} tokens, not {self.tokens}")


@dataclasses.dataclass(frozen=True)
class IssuerProgram:
    """Commands of one stream of an AGCU.

    Parameters
    ----------
    descriptor : int
        Index of the tensor's descriptor.
    loops : tuple of BoxLoop
        The loop nest, outermost first; one command an iteration of the innermost.
    waits : tuple of Wait
        Tokens each command takes.

    Raises
    ------
    BadInputError
        If there are too many loops or waits, two waits for one port, or a count that does not fit.
    """

    descriptor: int
    loops: tuple[BoxLoop, ...]
    waits: tuple[Wait, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= len(self.loops) <= LOOPS:
            raise BadInputError(f"Issuer must have 1 to {LOOPS} loops, not {len(self.loops)}")
        if len({wait.port for wait in self.waits}) != len(self.waits) or len(self.waits) > WAITS:
            raise BadInputError(
                f"Issuer must wait for at most {WAITS} different ports, not {self.waits}"
            )
        for low, high in self.chain().counts():
            if low < 0 or high >= 1 << COUNT_BITS:
                raise BadInputError(
                    f"Issuer counts must be from 0 to {(1 << COUNT_BITS) - 1}, not {low} to {high}"
                )

    def chain(self) -> ChainProgram:
        """The nest as a counter chain, padded by loops of one iteration."""
        loops = [
            LoopProgram(base=loop.count, stride=loop.step, slope=loop.slope, outer=loop.outer)
            for loop in self.loops
        ]
        return ChainProgram((*loops, *[LoopProgram()] * (LOOPS - len(loops))))

    def coordinates(self) -> Iterator[tuple[int, ...]]:
        """Coordinates of each command, in order."""
        for step in self.chain().steps():
            point = [0] * MAX_RANK
            for index, loop in zip(step.indices, self.loops, strict=False):
                point[loop.dimension] += index * loop.step
            yield tuple(point)

    def pack(self, *, descriptors: int, token_ports: int) -> int:
        """Configuration word, laid out by `issuer_layout`.

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
            "waits": waits + [{"port": 0, "tokens": 0}] * (WAITS - len(waits)),
            "dimensions": [loop.dimension for loop in self.loops] + [0] * (LOOPS - len(self.loops)),
        }
        word = Const.cast(layout.const(fields)).value
        return word | chain_word << layout["chain"].offset

    @classmethod
    def unpack(cls, word: int, *, descriptors: int, token_ports: int) -> IssuerProgram:
        """Program of a configuration word; the inverse of `pack`.

        Raises
        ------
        BadInputError
            If the word is none that `pack` makes.
        """
        layout = issuer_layout(descriptors=descriptors, token_ports=token_ports)
        fields: Any = layout.from_bits(word)
        chain = ChainProgram.unpack(layout["chain"].shape, Const.cast(fields["chain"]).value)
        loops = [
            BoxLoop(loop.base, fields["dimensions"][index], loop.stride, loop.slope, loop.outer)
            for index, loop in enumerate(chain.loops)
        ]
        while len(loops) > 1 and loops[-1] == BoxLoop(1):
            loops.pop()
        waits = [fields["waits"][index] for index in range(WAITS)]
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
