"""Images out of programs of chips and back, and bytes that are no image."""

import dataclasses
import random

import pytest

from hw.arch.agcu import AgcuProgram
from hw.arch.boxes.issuer_program import IssuerProgram
from hw.arch.config import named
from hw.arch.descriptor import Descriptor, ElementFormat
from hw.arch.image import Image, fingerprint
from hw.arch.loops import BoxLoop, LoopProgram
from hw.arch.pcu import FilterProgram, PcuProgram
from hw.arch.places import tile_layout, token_ports, vector_ports
from hw.arch.pmu import Beyond, EngineProgram, PmuProgram, SlotRing
from hw.arch.switch import OutputProgram, SwitchProgram, Turn
from hw.arch.unit_kind import PCU, PMU
from hw.arch.words.pmu_word import Access, TokenSource
from hw.numeric.division import ceil_div
from hw.numeric.formats import bf16, fp32, int8, int32
from sw.chip_program import ChipProgram, ImageError, TileProgram
from tests.sw.chips import empty_tile
from tests.units_matmul import UnitsMatmul

TINY, SMALL = named["tiny"], named["small"]
PCU_BITS = tile_layout(TINY, PCU).size


def random_switch(rng, ports):
    programs = []
    for output in ports.outputs:
        sources = list(ports.sources(output))
        if not sources or rng.random() < 0.5:
            continue
        count = rng.randint(1, min(ports.turns(output), len(sources)))
        turns = [Turn(source, rng.randint(1, 15)) for source in rng.sample(sources, count)]
        programs.append(OutputProgram(output, tuple(turns)))
    return SwitchProgram(ports, programs)


def random_engine(rng, lanes, count, *, reads):
    block = lanes * lanes
    return EngineProgram(
        SlotRing(rng.randrange(2), 0, block, count),
        tuple(LoopProgram(rng.randint(1, 3), stride=block * rng.randint(0, 2)) for _ in range(2)),
        element_bytes=1,
        access=rng.choice([Access.ROW, Access.ROW, Access.COLUMN]),
        windows=LoopProgram(rng.randint(1, 9)),
        repeats=LoopProgram(rng.randint(1, 5) if reads else 1),
        slots=LoopProgram(rng.randint(1, count)),
        last_level=rng.choice([None, 5, 8]) if reads else None,
        beyond=Beyond(1, 3, 0x55) if reads and rng.random() < 0.3 else None,
        modulus=1 if reads else 4,
        index=0 if reads else rng.randrange(4),
    )


def random_pmu(rng, lanes):
    count = rng.randint(1, 4)
    writers = (random_engine(rng, lanes, count, reads=False), None)
    readers = (
        random_engine(rng, lanes, count, reads=True),
        random_engine(rng, lanes, count, reads=True),
    )
    return PmuProgram(
        writers, readers, (rng.choice([TokenSource.W0, TokenSource.R1]), TokenSource.OFF)
    )


def random_chip(rng, chip):
    tiles = {}
    for row in range(chip.rows):
        for column in range(chip.columns):
            if rng.random() < 0.3:
                continue
            kind = chip.unit_at(row, column)
            fmt = rng.choice([bf16, int8])
            unit = (
                random_pmu(rng, chip.width_bits // 8)
                if kind is PMU
                else PcuProgram(
                    fmt,
                    int32 if fmt == int8 else rng.choice([bf16, fp32]),
                    rng.random() < 0.5,
                    FilterProgram(4, rng.randrange(4)),
                    FilterProgram(16, rng.randrange(16)),
                    packet_vectors=rng.randrange(256),
                )
            )
            tiles[row, column] = TileProgram(
                unit if rng.random() < 0.8 else None,
                random_switch(rng, vector_ports(chip, kind)),
                random_switch(rng, token_ports(chip, kind)),
            )
    descriptor = Descriptor(base=32, format=ElementFormat.INT8, dims=(64,), box=(64,))
    agcus = {
        number: AgcuProgram(
            loads=(IssuerProgram(0, (BoxLoop(rng.randint(1, 9)),)),),
            descriptors=((descriptor, number),),
        )
        for number in range(chip.agcu.count)
        if rng.random() < 0.7
    }
    return ChipProgram(chip, tiles, agcus)


@pytest.mark.parametrize("chip", [TINY, SMALL], ids=["tiny", "small"])
def test_random_programs_survive_packing(chip, seed):
    rng = random.Random(seed)
    for _ in range(3):
        program = random_chip(rng, chip)
        raw = program.pack()
        back = ChipProgram.unpack(chip, raw)
        assert back.pack() == raw
        for at, tile in back.tiles.items():
            ours = program.tiles[at]
            assert (tile.vectors, tile.tokens) == (ours.vectors, ours.tokens)
            assert type(tile.unit) is type(ours.unit)
        assert back.agcus.keys() == program.agcus.keys()


@pytest.mark.parametrize("fmt", [bf16, int8])
def test_the_product_placed_by_hand_is_decoded(fmt):
    out = int32 if fmt == int8 else fp32
    raw = UnitsMatmul(TINY, 37, 11, 21, fmt, out, 16, 8, 4).image()
    program = ChipProgram.unpack(TINY, raw)
    assert program.pack() == raw
    assert program.tiles.keys() == {(0, 0), (0, 1), (1, 0)}
    assert program.tiles[0, 0].unit == PcuProgram(fmt, out)
    assert program.agcus[0].credits == (4, 4)


def test_what_is_off_is_not_there():
    raw = ChipProgram(TINY, {(0, 0): empty_tile(TINY, PCU)}, {}).pack()
    assert ChipProgram.unpack(TINY, raw) == ChipProgram(TINY, {}, {})


MESH = dataclasses.replace(
    SMALL, rows=40, columns=52, agcu=dataclasses.replace(SMALL.agcu, count=16)
)


def image_on_a_large_mesh():
    """Image of a product on one PCU, two PMUs and an AGCU of 40 × 52 tiles."""
    return UnitsMatmul(MESH, 37, 11, 21, bf16, fp32, 16, 16, 4).image()


def test_tiles_that_are_not_in_use_cost_nothing():
    """The image is as long as that for 4 × 4 tiles."""
    chip, raw = MESH, image_on_a_large_mesh()
    little = UnitsMatmul(SMALL, 37, 11, 21, bf16, fp32, 16, 16, 4).image()
    assert len(raw) == len(little) <= 3 << 10
    program = ChipProgram.unpack(chip, raw)
    assert program.units_used() == {"pcu": 1, "pmu": 2, "agcu": 1} and program.pack() == raw


def test_lanes_that_are_not_in_use_cost_nothing():
    """The words of a product are those for a chip without lanes."""
    without = dataclasses.replace(SMALL, pcu=dataclasses.replace(SMALL.pcu, lanes=0))
    images = [
        Image.unpack(UnitsMatmul(chip, 37, 11, 21, bf16, fp32, 16, 16, 4).image(), 256)
        for chip in (SMALL, without)
    ]
    assert images[0].programs == images[1].programs
    assert images[0].fingerprint != images[1].fingerprint


def _flip(raw, at, bit):
    """Flip a bit of a segment's program, and sign the image anew."""
    image = Image.unpack(raw, TINY.width_bits)
    programs = dict(image.programs)
    programs[at] ^= 1 << bit
    return Image(image.fingerprint, programs).pack(TINY.width_bits)


@pytest.mark.parametrize(
    ("spoil", "rule"),
    [
        (lambda raw: raw[:-8], "Image checksum must be"),
        (lambda raw: b"?" + raw[1:], "Image magic must be"),
        (lambda raw: raw[:8] + b"1234" + raw[12:], "fingerprint must be"),
        (lambda raw: Image(fingerprint(TINY), {(2, 0): 1}).pack(64), "row 2: Segment must be one"),
        (lambda raw: Image(fingerprint(TINY), {(1, 2): 1}).pack(64), "row 1: Segment .* 2, not 2"),
        (
            lambda raw: Image(fingerprint(TINY), {(0, 0): 1 << PCU_BITS}).pack(64),
            rf"PCU \(0, 0\): Configuration must have {PCU_BITS} bits",
        ),
    ],
)
def test_other_bytes_are_refused(spoil, rule):
    raw = UnitsMatmul(TINY, 4, 4, 4, bf16, fp32, 8, 8, 2).image()
    with pytest.raises(ImageError, match=rule) as caught:
        ChipProgram.unpack(TINY, spoil(raw))
    assert caught.value.record()["kind"] == "bad-image"
    assert caught.value.where


def test_no_flipped_bit_goes_by_unseen(seed):
    """Each bit of an image is refused, or changes the program: none is lost in decoding."""
    rng = random.Random(seed)
    raw = UnitsMatmul(TINY, 4, 4, 4, bf16, fp32, 8, 8, 2).image()
    image = Image.unpack(raw, 64)
    outcomes = {"refused": 0, "changed": 0}
    for _ in range(60):
        at = rng.choice(list(image.programs))
        spoiled = _flip(raw, at, rng.randrange(64 * ceil_div(image.programs[at].bit_length(), 64)))
        try:
            program = ChipProgram.unpack(TINY, spoiled)
        except ImageError as error:
            outcomes["refused"] += 1
            assert error.where and "list index" not in error.message
        else:
            outcomes["changed"] += 1
            assert program.pack() == spoiled
    assert all(outcomes.values()), outcomes
