"""Program of `tiny` that looks up rows of tables in memory by indices in memory."""

from hw.arch.agcu import AgcuProgram
from hw.arch.boxes.issuer_program import IssuerProgram, Wait
from hw.arch.config import named
from hw.arch.descriptor import Descriptor, ElementFormat
from hw.arch.gather.index_program import IndexProgram
from hw.arch.launch import HEADER_BYTES, Argument, LaunchEntry, pack_arguments, pack_list
from hw.arch.loops import BoxLoop, LoopProgram
from hw.arch.places import token_ports, vector_ports
from hw.arch.pmu import EngineProgram, PmuProgram, SlotRing
from hw.arch.ports import Direction, Link, UnitPort
from hw.arch.switch import OutputProgram, SwitchProgram, Turn
from hw.arch.words.pmu_word import IndexUse, TokenSource
from sw.chip_program import ChipProgram, TileProgram

__all__ = ["CHIP", "LIST", "RESULT", "ROWS", "launch_memory", "lookup"]

CHIP = named["tiny"]
#: Rows of a table, each a vector of bytes.
ROWS = 16
#: Addresses of the launch list and of the rows that are stored.
LIST, RESULT = 0, 0x30000
_ARGUMENTS, _IMAGE, _TABLES, _INDICES = 0x400, 0x1000, 0x10000, 0x20000
_NORTH, _, _SOUTH, _WEST = Direction


def _switches(at, vectors, tokens):
    kind = CHIP.unit_at(*at)
    return (
        SwitchProgram(vector_ports(CHIP, kind), [OutputProgram(*each) for each in vectors]),
        SwitchProgram(token_ports(CHIP, kind), [OutputProgram(*each) for each in tokens]),
    )


def lookup(*, tables, indices, given=None, elements=False):
    """Program that stores ``indices`` rows of each of ``tables`` tables.

    AGCU 0 loads the tables to W0 and vectors of two indices to W1 of PMU (1, 0), whose R1 goes to
    store 0. A table is loaded once its slot is free, its indices once the slot is full.

    Parameters
    ----------
    tables, indices : int
    given : int or None
        Index vectors that are loaded for each table; None: as many as needed.
    elements : bool
        Each step of R1 looks up the words of a vector of indices instead of a row.
    """
    lanes = CHIP.width_bits // 8
    size = ROWS * lanes
    turns = LoopProgram(tables)
    bytes_each = 4 if elements else 1
    ring = SlotRing(0, 0, size // bytes_each, 2)
    write, read = (
        EngineProgram(ring, (LoopProgram(count, stride),), element_bytes=bytes_each, windows=turns)
        for count, stride in ((ROWS, lanes // bytes_each), (indices, 0))
    )
    indexed = IndexProgram(IndexUse.GATHER, ROWS, lanes.bit_length() - 1)
    if elements:
        indexed = IndexProgram(IndexUse.GATHER, size // 4, 0, elements=True)
    unit = PmuProgram(
        (write, None),
        (None, read),
        (TokenSource.R1, TokenSource.W0),
        indexed,
    )
    here = [(UnitPort(n), (Turn(Link(_NORTH, n)),)) for n in (0, 1)]
    through = [(Link(_SOUTH, n), (Turn(Link(_WEST, n)),)) for n in (0, 1)]
    out, on = (Link(_NORTH, 0), (Turn(UnitPort(1)),)), (Link(_WEST, 0), (Turn(Link(_SOUTH, 0)),))
    tokens = [(Link(_NORTH, n), (Turn(UnitPort(n)),)) for n in (0, 1)]
    pass_on = [(Link(_WEST, n), (Turn(Link(_SOUTH, n)),)) for n in (0, 1)]
    tiles = {
        (1, 0): TileProgram(unit, *_switches((1, 0), [*here, out], tokens)),
        (0, 0): TileProgram(None, *_switches((0, 0), [*through, on], pass_on)),
    }
    words = given or (indices if elements else -(-indices // 2))
    parts = ((tables, size), (tables, words * lanes), (tables * indices, lanes))
    boxes = [BoxLoop(count, 0, box) for count, box in parts]
    agcu = AgcuProgram(
        loads=(
            IssuerProgram(0, (boxes[0],), (Wait(0),)),
            IssuerProgram(1, (boxes[1],), (Wait(1),)),
        ),
        stores=(IssuerProgram(2, (boxes[2],)), None),
        descriptors=tuple(
            (Descriptor(base=0, format=ElementFormat.INT8, dims=(n * box,), box=(box,)), number)
            for number, (n, box) in enumerate(parts)
        ),
        credits=(2, 0),
    )
    return ChipProgram(CHIP, tiles, {0: agcu})


def launch_memory(program, tables, words):
    """Memory before a launch of `lookup`, with tables and index vectors at `TABLES`, `INDICES`."""
    image = program.pack()
    entry = LaunchEntry(
        image_address=_IMAGE,
        image_bytes=len(image) - HEADER_BYTES,
        header=image[:HEADER_BYTES],
        argument_address=_ARGUMENTS,
        argument_count=3,
    )
    places = (_TABLES, _INDICES, RESULT)
    memory = bytearray(RESULT + (1 << 16))
    for address, content in (
        (LIST, pack_list([entry], CHIP.width_bits)),
        (_ARGUMENTS, pack_arguments([Argument(place) for place in places])),
        (_IMAGE, image[HEADER_BYTES:]),
        (_TABLES, tables.tobytes()),
        (_INDICES, words.tobytes()),
    ):
        memory[address : address + len(content)] = content
    return memory
