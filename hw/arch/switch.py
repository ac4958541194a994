"""Program of a switch: rotations of its outputs, word layout, packing and unpacking."""

import dataclasses
import functools
from collections.abc import Iterable
from typing import Any

from amaranth.lib import data
from amaranth.utils import bits_for

from hw.arch.checks import require_int
from hw.arch.errors import BadInputError, shown
from hw.arch.ports import Link, Port, SwitchPorts, UnitPort
from hw.arch.words.word_layout import WordLayout

__all__ = [
    "MAX_PACKETS",
    "OutputProgram",
    "SwitchProgram",
    "Turn",
    "rotation_layout",
    "switch_layout",
]

#: Greatest number of packets per turn; 0 in the field marks the turn as absent.
MAX_PACKETS = 15


@functools.cache
def rotation_layout(*, sources: int, turns: int) -> data.ArrayLayout:
    """Layout of an output's rotation: an array of turns ``{source, packets}``."""
    turn = WordLayout({"source": bits_for(sources - 1), "packets": bits_for(MAX_PACKETS)})
    return data.ArrayLayout(turn, turns)


@functools.cache
def switch_layout(ports: SwitchPorts) -> WordLayout:
    """Layout of a switch's program: rotations of the links by direction, then of the unit."""

    def rotation(output: Port) -> data.ArrayLayout:
        return rotation_layout(sources=len(ports.sources(output)), turns=ports.turns(output))

    links = {
        link.direction.name.lower(): data.ArrayLayout(rotation(link), ports.tracks)
        for link in ports.links
    }
    return WordLayout({**links, "unit": data.ArrayLayout(rotation(UnitPort(0)), ports.unit_inputs)})


@dataclasses.dataclass(frozen=True)
class Turn:
    """Turn of a rotation: a number of whole packets from one source.

    Parameters
    ----------
    source : Port
        Input of the switch.
    packets : int
        Packets taken before the next turn (1 to `MAX_PACKETS`).
    """

    source: Port
    packets: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.source, Link | UnitPort):
            raise BadInputError(
                f"Turn source must be a Link or a UnitPort, not {shown(self.source)}"
            )
        require_int("Turn packets", self.packets, 1, MAX_PACKETS)


@dataclasses.dataclass(frozen=True)
class OutputProgram:
    """Program of one output: its rotation of sources, repeated for ever.

    Parameters
    ----------
    output : Port
        Output of the switch.
    rotation : tuple of Turn
        The turns; an output that is off has no program.

    Raises
    ------
    BadInputError
        If the output is not a port, or the rotation is empty, names a source twice, or names one
        that cannot reach the output.
    """

    output: Port
    rotation: tuple[Turn, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.output, Link | UnitPort):
            raise BadInputError(f"Output must be a Link or a UnitPort, not {shown(self.output)}")
        if not self.rotation:
            raise BadInputError(
                f"Rotation of {self.output} must have a turn, not {shown(self.rotation)}"
            )
        seen = set[Port]()
        for turn in self.rotation:
            self._check_reach(turn.source)
            if turn.source in seen:
                raise BadInputError(
                    f"Rotation of {self.output} must name a source once, not {turn.source} twice"
                )
            seen.add(turn.source)

    def _check_reach(self, source: Port) -> None:
        match source, self.output:
            case UnitPort(), UnitPort():
                raise BadInputError(
                    f"Source of {self.output} must be a link, not {source}: "
                    "a unit does not feed itself"
                )
            case Link(), Link() if source.direction == self.output.direction:
                raise BadInputError(
                    f"Source of {self.output} must come from another direction, not {source}: "
                    "a switch makes no U-turn"
                )
            case Link(), Link() if source.track != self.output.track:
                raise BadInputError(
                    f"Source of {self.output} must be on its own track, not {source}"
                )


@dataclasses.dataclass(frozen=True)
class SwitchProgram:
    """Program of one switch.

    Parameters
    ----------
    ports : SwitchPorts
        Ports of the switch that it is for.
    outputs : iterable of OutputProgram
        Programs of the outputs that are on, in any order; kept in the order of the ports.

    Raises
    ------
    BadInputError
        If the switch has no such port, an output has two programs, or a rotation is too long.
    """

    ports: SwitchPorts
    outputs: tuple[OutputProgram, ...]

    def __init__(self, ports: SwitchPorts, outputs: Iterable[OutputProgram] = ()) -> None:
        programs = tuple(outputs)
        known = ports.outputs
        seen = set[Port]()
        for program in programs:
            output = program.output
            if output not in known:
                raise BadInputError(
                    f"Output must be one of the switch's {len(known)}, not {output}"
                )
            if output in seen:
                raise BadInputError(f"Output {output} must have one program, not two")
            seen.add(output)
            if len(program.rotation) > ports.turns(output):
                raise BadInputError(
                    f"Rotation of {output} must have at most {ports.turns(output)} turns, "
                    f"not {len(program.rotation)}"
                )
            sources = ports.sources(output)
            for turn in program.rotation:
                if turn.source not in sources:
                    raise BadInputError(
                        f"Source of {output} must be one of the switch's {len(ports.inputs)} "
                        f"inputs, not {turn.source}"
                    )
        object.__setattr__(self, "ports", ports)
        object.__setattr__(
            self, "outputs", tuple(sorted(programs, key=lambda each: known.index(each.output)))
        )

    def rotation(self, output: Port) -> tuple[Turn, ...]:
        """Rotation of an output; empty if it is off."""
        for program in self.outputs:
            if program.output == output:
                return program.rotation
        return ()

    def branches(self, source: Port) -> tuple[Port, ...]:
        """Outputs that an input feeds: those whose rotations name it."""
        return tuple(
            program.output
            for program in self.outputs
            if any(turn.source == source for turn in program.rotation)
        )

    def pack(self) -> int:
        """Program word, laid out by ``switch_layout(ports)``."""
        fields: dict[str, dict[int, Any]] = {}
        for program in self.outputs:
            sources = self.ports.sources(program.output)
            fields.setdefault(_field(program.output), {})[_position(program.output)] = [
                {"source": sources.index(turn.source), "packets": turn.packets}
                for turn in program.rotation
            ]
        return switch_layout(self.ports).pack(fields)

    @classmethod
    def unpack(cls, ports: SwitchPorts, word: int) -> "SwitchProgram":
        """Program of a word; the inverse of `pack`.

        Raises
        ------
        BadInputError
            If the word does not have the layout's width, or `pack` makes no such word.
        """
        layout = switch_layout(ports)
        require_int("Switch configuration", word, 0, (1 << layout.bits) - 1)
        fields: Any = layout.unpack(word)
        programs = []
        for output in ports.outputs:
            sources = ports.sources(output)
            turns = fields[_field(output)][_position(output)]
            if not turns.bits:
                continue
            rotation: list[Turn] = []
            for index in range(ports.turns(output)):
                source, packets = turns[index]["source"], turns[index]["packets"]
                if packets == 0:
                    continue
                if index != len(rotation):
                    raise BadInputError(f"Turns of {output} must follow each other, not skip one")
                if source >= len(sources):
                    raise BadInputError(
                        f"Source field of {output} must be below {len(sources)}, not {source}"
                    )
                rotation.append(Turn(sources[source], packets))
            if rotation:
                programs.append(OutputProgram(output, tuple(rotation)))
        program = cls(ports, programs)
        if program.pack() != word:
            raise BadInputError("Source fields of absent turns must be 0 in a switch configuration")
        return program


def _field(output: Port) -> str:
    return output.direction.name.lower() if isinstance(output, Link) else "unit"


def _position(output: Port) -> int:
    return output.track if isinstance(output, Link) else output.index
