"""Small programs of chips for tests: products placed by hand, copies with a choice of merges."""

import dataclasses

from hw.arch.agcu import AgcuProgram
from hw.arch.boxes.issuer_program import IssuerProgram, Wait
from hw.arch.config import named
from hw.arch.descriptor import Descriptor, ElementFormat
from hw.arch.loops import BoxLoop, LoopProgram
from hw.arch.pcu import FilterProgram
from hw.arch.places import token_ports, vector_ports
from hw.arch.pmu import EngineProgram, PmuProgram, SlotRing
from hw.arch.ports import Direction, Link, UnitPort
from hw.arch.switch import OutputProgram, SwitchProgram, Turn
from hw.arch.words.pmu_word import TokenSource
from hw.numeric.formats import bf16, fp32
from sw.chip_program import ChipProgram, TileProgram
from tests.units_matmul import UnitsMatmul

__all__ = [
    "TINY",
    "copier",
    "empty_tile",
    "operands_changed",
    "agcu_changed",
    "pcu_changed",
    "product",
    "twins",
    "unit_changed",
]

TINY = named["tiny"]
NORTH, EAST, SOUTH, WEST = Direction


def product(m=37, n=11, k=21, *, slab=8, slots=4, out=fp32):
    """Program of a product on `tiny`, decoded."""
    job = UnitsMatmul(TINY, m, n, k, bf16, out, 16, slab, slots)
    return ChipProgram.unpack(TINY, job.image())


def empty_tile(config, kind):
    """Tile of a kind of unit with everything disabled."""
    ports = vector_ports(config, kind), token_ports(config, kind)
    return TileProgram(None, *map(SwitchProgram, ports))


def twins(job):
    """Program of a product placed by hand, its groups of columns shared out over both PCUs.

    Activations are multicast; of one stream of weights PCU (0, 0) takes the packets of even
    groups, PCU (1, 1) of odd ones; their results are merged in turn.
    """
    program = ChipProgram.unpack(TINY, job.image())
    unit = program.tiles[1, 0].unit
    activations, weights = unit.readers
    columns = TINY.grid_columns
    groups = job.lanes // columns
    blocks, column, *_ = weights.loops
    unit = dataclasses.replace(
        unit,
        readers=(
            dataclasses.replace(activations, repeats=LoopProgram(groups // 2)),
            dataclasses.replace(
                weights,
                repeats=LoopProgram(groups // 2, stride=2 * columns),
                loops=(blocks, LoopProgram(2, stride=columns), column),
                last_level=6,
            ),
        ),
    )
    pcu = program.tiles[0, 0].unit
    first, second = (dataclasses.replace(pcu, weight=FilterProgram(2, n)) for n in (0, 1))
    idle = program.tiles[0, 0].tokens
    at_source, at_result = program.tiles[1, 0], program.tiles[0, 1]
    out, _ = _switches(
        (1, 0),
        [
            (UnitPort(0), (Turn(Link(NORTH, 0)),)),
            (UnitPort(1), (Turn(Link(NORTH, 1)),)),
            *((Link(side, n), (Turn(UnitPort(n)),)) for side in (NORTH, EAST) for n in (0, 1)),
        ],
    )
    far = _switches(
        (1, 1),
        [
            (UnitPort(0), (Turn(Link(WEST, 0)),)),
            (UnitPort(1), (Turn(Link(WEST, 1)),)),
            (Link(NORTH, 0), (Turn(UnitPort(0)),)),
        ],
    )
    into, _ = _switches(
        (0, 1),
        [
            (UnitPort(0), (Turn(Link(WEST, 0)), Turn(Link(SOUTH, 0)))),
            (Link(WEST, 0), (Turn(UnitPort(0)),)),
        ],
    )
    tiles = {
        (0, 0): TileProgram(first, program.tiles[0, 0].vectors, idle),
        (1, 0): TileProgram(unit, out, at_source.tokens),
        (0, 1): TileProgram(at_result.unit, into, at_result.tokens),
        (1, 1): TileProgram(second, *far),
    }
    return dataclasses.replace(program, tiles=tiles)


def unit_changed(program, at, change):
    """Program with another unit at a place."""
    tile = program.tiles[at]
    tiles = dict(program.tiles) | {at: dataclasses.replace(tile, unit=change(tile.unit))}
    return dataclasses.replace(program, tiles=tiles)


def pcu_changed(program, at, **changes):
    """Program whose PCU at a place has other fields."""
    return unit_changed(program, at, lambda unit: dataclasses.replace(unit, **changes))


def operands_changed(program, **changes):
    """Product whose PMU of operands has other fields."""
    return unit_changed(program, (1, 0), lambda unit: dataclasses.replace(unit, **changes))


def agcu_changed(program, **changes):
    """Program whose AGCU 0 has other fields."""
    agcu = dataclasses.replace(program.agcus[0], **changes)
    return dataclasses.replace(program, agcus={**program.agcus, 0: agcu})


def _switches(at, vectors, tokens=()):
    kind = TINY.unit_at(*at)
    return (
        SwitchProgram(vector_ports(TINY, kind), [OutputProgram(*each) for each in vectors]),
        SwitchProgram(token_ports(TINY, kind), [OutputProgram(*each) for each in tokens]),
    )


def copier(*, first, second, packet, blocks=6, waits=True):
    """Program that copies two tensors of bytes, merged in two rotations.

    AGCU 0 loads X and Y into PMU (1, 0), whose two readers both go to both writers of PMU (0, 1):
    to W0 by the rotation ``first``, to W1 by ``second``; its readers go to the two stores.

    Parameters
    ----------
    first, second : list of (int, int)
        Turns: the reader, and packets.
    packet : int
        Vectors of a packet: 1, 2, 4, 8, 16 or 32.
    blocks : int
        Slots of each tensor: 8 vectors or a packet.
    waits : bool
        Loads wait for tokens of free slots.
    """
    lines, lanes = max(8, packet), 8
    size = lines * lanes

    def ring(buffer):
        return SlotRing(buffer=buffer, base=buffer * 1024, stride=size, count=2)

    def engine(buffer, windows, *, marks=None):
        loops = (
            LoopProgram(lines // packet, stride=packet * lanes),
            LoopProgram(packet, stride=lanes),
        )
        return EngineProgram(
            ring(buffer), loops, element_bytes=1, windows=LoopProgram(windows), last_level=marks
        )

    read = tuple(engine(buffer, blocks, marks=5) for buffer in (0, 1))
    write = tuple(engine(buffer, blocks) for buffer in (0, 1))
    source = PmuProgram(write, read, (TokenSource.R0, TokenSource.R1))
    gather = PmuProgram(
        tuple(engine(buffer, 2 * blocks) for buffer in (0, 1)),
        tuple(engine(buffer, 2 * blocks) for buffer in (0, 1)),
    )
    cross = [Link(WEST, 0), Link(WEST, 1)]
    tiles = {
        (1, 0): TileProgram(
            source,
            *_switches(
                (1, 0),
                [
                    (UnitPort(0), (Turn(Link(NORTH, 0)),)),
                    (UnitPort(1), (Turn(Link(NORTH, 1)),)),
                    (Link(NORTH, 0), (Turn(UnitPort(0)),)),
                    (Link(NORTH, 1), (Turn(UnitPort(1)),)),
                ],
                [
                    (Link(NORTH, 0), (Turn(UnitPort(0)),)),
                    (Link(NORTH, 1), (Turn(UnitPort(1)),)),
                ],
            ),
        ),
        (0, 0): TileProgram(
            None,
            *_switches(
                (0, 0),
                [
                    (Link(SOUTH, 0), (Turn(Link(WEST, 0)),)),
                    (Link(SOUTH, 1), (Turn(Link(WEST, 1)),)),
                    (Link(EAST, 0), (Turn(Link(SOUTH, 0)),)),
                    (Link(EAST, 1), (Turn(Link(SOUTH, 1)),)),
                    (Link(WEST, 0), (Turn(Link(EAST, 0)),)),
                    (Link(WEST, 1), (Turn(Link(EAST, 1)),)),
                ],
                [
                    (Link(WEST, 0), (Turn(Link(SOUTH, 0)),)),
                    (Link(WEST, 1), (Turn(Link(SOUTH, 1)),)),
                ],
            ),
        ),
        (0, 1): TileProgram(
            gather,
            *_switches(
                (0, 1),
                [
                    (UnitPort(0), tuple(Turn(cross[r], n) for r, n in first)),
                    (UnitPort(1), tuple(Turn(cross[r], n) for r, n in second)),
                    (Link(WEST, 0), (Turn(UnitPort(0)),)),
                    (Link(WEST, 1), (Turn(UnitPort(1)),)),
                ],
            ),
        ),
    }

    def tensor(boxes):
        return Descriptor(base=0, format=ElementFormat.INT8, dims=(size * boxes,), box=(size,))

    loads = tuple(
        IssuerProgram(number, (BoxLoop(blocks, 0, size),), (Wait(number),) if waits else ())
        for number in (0, 1)
    )
    stores = tuple(IssuerProgram(2 + number, (BoxLoop(2 * blocks, 0, size),)) for number in (0, 1))
    agcu = AgcuProgram(
        loads=loads,
        stores=stores,
        descriptors=(
            (tensor(blocks), 0),
            (tensor(blocks), 1),
            (tensor(2 * blocks), 2),
            (tensor(2 * blocks), 3),
        ),
        credits=(2, 2),
    )
    return ChipProgram(TINY, tiles, {0: agcu})
