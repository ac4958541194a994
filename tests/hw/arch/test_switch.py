# amaranth: UnusedElaboratable=no
"""Programs of a switch: what is legal, what is refused and how it reads, and the packed word."""

import random
import re

import pytest

from hw.arch.errors import BadInputError
from hw.arch.ports import Direction, Link, SwitchPorts, UnitPort
from hw.arch.switch import OutputProgram, SwitchProgram, Turn, rotation_layout, switch_layout
from hw.mesh.fork import EagerFork
from hw.mesh.merge import OrderedMerge
from hw.mesh.switch import Switch

NORTH, EAST, SOUTH, WEST = Direction
PORTS = SwitchPorts(tracks=3, unit_outputs=2, unit_inputs=3)
LEGAL = (Turn(Link(WEST, 1)), Turn(UnitPort(1), 15))


def random_program(rng, ports):
    outputs = []
    for output in ports.outputs:
        sources = ports.sources(output)
        chosen = rng.sample(sources, rng.randint(0, min(len(sources), ports.turns(output))))
        if chosen:
            rotation = tuple(Turn(source, rng.randint(1, 15)) for source in chosen)
            outputs.append(OutputProgram(output, rotation))
    rng.shuffle(outputs)
    return SwitchProgram(ports, outputs)


@pytest.mark.parametrize(
    "ports",
    [
        PORTS,
        SwitchPorts(tracks=1, unit_outputs=1, unit_inputs=1),
        SwitchPorts(tracks=2, unit_outputs=0, unit_inputs=0),
        SwitchPorts(tracks=8, unit_outputs=8, unit_inputs=8, link_turns=8, unit_turns=8),
    ],
    ids=str,
)
def test_unpack_is_the_inverse_of_pack(ports):
    rng = random.Random(20261120)
    words = set()
    for _ in range(30):
        program = random_program(rng, ports)
        word = program.pack()
        words.add(word)
        assert 0 <= word < 1 << switch_layout(ports).size
        assert SwitchProgram.unpack(ports, word) == program
    assert len(words) > 25


def test_fields_are_where_the_layout_says():
    program = SwitchProgram(
        PORTS, [OutputProgram(Link(EAST, 1), LEGAL), OutputProgram(UnitPort(2), LEGAL[:1])]
    )
    # A link's turn: 5 sources in 3 bits, 4 bits of packets; three a link, three links a direction.
    link, turn = 21, 7
    east = 3 * link + link
    # Of the sources of an output to the east, west is number 2 and unit output 1 number 4.
    expected = (2 | 1 << 3 | (4 | 15 << 3) << turn) << east
    # A unit's turn: 12 sources in 4 bits; the west's track 1 is number 3 * 3 + 1.
    expected |= (10 | 1 << 4) << 12 * link + 2 * 32
    assert program.pack() == expected
    assert switch_layout(PORTS).size == 12 * 21 + 3 * 32


def test_nothing_packs_to_zero():
    assert SwitchProgram(PORTS).pack() == 0
    assert SwitchProgram.unpack(PORTS, 0) == SwitchProgram(PORTS)


def test_programs_in_another_order_are_equal():
    outputs = [OutputProgram(Link(EAST, 1), LEGAL), OutputProgram(UnitPort(2), LEGAL[:1])]
    assert SwitchProgram(PORTS, outputs) == SwitchProgram(PORTS, reversed(outputs))


def test_branches_follow_from_the_rotations():
    outputs = [OutputProgram(Link(EAST, 1), LEGAL), OutputProgram(UnitPort(2), LEGAL[:1])]
    program = SwitchProgram(PORTS, outputs)
    assert program.branches(Link(WEST, 1)) == (Link(EAST, 1), UnitPort(2))
    assert program.branches(UnitPort(1)) == (Link(EAST, 1),)
    assert program.branches(Link(NORTH, 1)) == ()
    assert program.rotation(Link(EAST, 1)) == LEGAL
    assert program.rotation(Link(WEST, 1)) == ()


def test_sources_keep_their_track_and_turn_no_way_back():
    assert PORTS.sources(Link(SOUTH, 2)) == (
        Link(NORTH, 2),
        Link(EAST, 2),
        Link(WEST, 2),
        UnitPort(0),
        UnitPort(1),
    )
    assert PORTS.sources(UnitPort(0)) == PORTS.links
    assert len(PORTS.links) == 12


def one_output(output, *sources):
    return lambda: OutputProgram(output, tuple(Turn(source) for source in sources))


def whole(*outputs):
    return lambda: SwitchProgram(PORTS, [output() for output in outputs])


REFUSED = {
    "change of track": (
        one_output(Link(EAST, 0), Link(WEST, 1)),
        ValueError,
        "Source of east track 0 must be on its own track, not west track 1",
    ),
    "u-turn": (
        one_output(Link(EAST, 0), Link(EAST, 0)),
        ValueError,
        "Source of east track 0 must come from another direction, not east track 0: "
        "a switch makes no U-turn",
    ),
    "unit to itself": (
        one_output(UnitPort(1), UnitPort(0)),
        ValueError,
        "Source of unit port 1 must be a link, not unit port 0: a unit does not feed itself",
    ),
    "source twice": (
        one_output(Link(EAST, 0), UnitPort(0), Link(WEST, 0), UnitPort(0)),
        ValueError,
        "Rotation of east track 0 must name a source once, not unit port 0 twice",
    ),
    "no turn": (
        one_output(Link(EAST, 0)),
        ValueError,
        "Rotation of east track 0 must have a turn, not ()",
    ),
    "unknown track": (
        whole(one_output(UnitPort(0), Link(WEST, 3))),
        ValueError,
        "Source of unit port 0 must be one of the switch's 14 inputs, not west track 3",
    ),
    "unknown unit output": (
        whole(one_output(Link(EAST, 0), UnitPort(2))),
        ValueError,
        "Source of east track 0 must be one of the switch's 14 inputs, not unit port 2",
    ),
    "unknown output": (
        whole(one_output(UnitPort(3), Link(WEST, 0))),
        ValueError,
        "Output must be one of the switch's 15, not unit port 3",
    ),
    "output twice": (
        whole(one_output(UnitPort(0), Link(WEST, 0)), one_output(UnitPort(0), Link(EAST, 0))),
        ValueError,
        "Output unit port 0 must have one program, not two",
    ),
    "rotation too long for a link": (
        whole(one_output(Link(EAST, 0), Link(WEST, 0), Link(NORTH, 0), UnitPort(0), UnitPort(1))),
        ValueError,
        "Rotation of east track 0 must have at most 3 turns, not 4",
    ),
    "rotation too long for the unit": (
        whole(one_output(UnitPort(0), *PORTS.links[:5])),
        ValueError,
        "Rotation of unit port 0 must have at most 4 turns, not 5",
    ),
    "no packets": (
        lambda: Turn(UnitPort(0), 0),
        BadInputError,
        "Turn packets must be an integer from 1 to 15, not 0",
    ),
    "too many packets": (
        lambda: Turn(UnitPort(0), 16),
        BadInputError,
        "Turn packets must be an integer from 1 to 15, not 16",
    ),
    "source is no port": (
        lambda: Turn("west"),
        BadInputError,
        "Turn source must be a Link or a UnitPort, not 'west'",
    ),
    "output is no port": (
        lambda: OutputProgram(3, LEGAL),
        BadInputError,
        "Output must be a Link or a UnitPort, not 3",
    ),
    "direction is a number": (
        lambda: Link(1, 0),
        BadInputError,
        "Link direction must be a Direction, not 1",
    ),
    "track below zero": (
        lambda: Link(EAST, -1),
        BadInputError,
        "Link track must be an integer from 0 to 7, not -1",
    ),
    "unit port too high": (
        lambda: UnitPort(8),
        BadInputError,
        "Unit port index must be an integer from 0 to 7, not 8",
    ),
    "no tracks": (
        lambda: SwitchPorts(tracks=0, unit_outputs=1, unit_inputs=1),
        BadInputError,
        "Switch tracks must be an integer from 1 to 8, not 0",
    ),
    "no branches": (
        lambda: EagerFork(branches=0),
        BadInputError,
        "Fork branches must be an integer from 1 to 64, not 0",
    ),
    "one source": (
        lambda: OrderedMerge(sources=1, turns=1),
        BadInputError,
        "Merge sources must be an integer from 2 to 64, not 1",
    ),
    "no turns": (
        lambda: OrderedMerge(sources=2, turns=True),
        BadInputError,
        "Merge turns must be an integer from 1 to 8, not True",
    ),
    "too many tracks": (
        lambda: Switch(payload_shape=0, tracks=9, unit_outputs=1, unit_inputs=1),
        BadInputError,
        "Switch tracks must be an integer from 1 to 8, not 9",
    ),
    "word too wide": (
        lambda: SwitchProgram.unpack(PORTS, 1 << 348),
        BadInputError,
        f"Switch configuration must be an integer from 0 to {(1 << 348) - 1}, not {1 << 348}",
    ),
    "turn skipped": (
        lambda: SwitchProgram.unpack(PORTS, 1 << 7 + 3),
        ValueError,
        "Turns of north track 0 must follow each other, not skip one",
    ),
    "source field beyond the last": (
        lambda: SwitchProgram.unpack(PORTS, 5 | 1 << 3),
        ValueError,
        "Source field of north track 0 must be below 5, not 5",
    ),
    "source of an absent turn": (
        lambda: SwitchProgram.unpack(PORTS, 1),
        ValueError,
        "Source fields of absent turns must be 0 in a switch configuration",
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_refused(case):
    build, error, message = case
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        build()


def test_a_rotation_is_an_array_of_turns():
    layout = rotation_layout(sources=12, turns=4)
    assert (layout.length, layout.size) == (4, 32)
