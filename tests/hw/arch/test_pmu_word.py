"""The map of elements to banks, exhaustively, and the formulas the hardware uses."""

import itertools
import operator
import random

import pytest

from hw.arch.words.pmu_word import (
    Access,
    bit_reverse,
    piece_positions,
    require_positions,
    rows_log2,
)

LANES = (2, 4, 8, 16, 32)


def locate(position: int, *, lanes: int) -> tuple[int, int]:
    """Bank group of an element position, and its address in each of the group's banks."""
    bits = lanes.bit_length() - 1
    column = position % lanes
    row = position // lanes % lanes
    return column ^ bit_reverse(row, bits), position // lanes


def pieces(lanes: int, rows: int, blocks: int) -> list[int]:
    columns = lanes >> rows
    return [
        block * lanes * lanes + r * lanes + c
        for block in range(blocks)
        for r in range(0, lanes, 1 << rows)
        for c in range(0, lanes, columns)
    ]


@pytest.mark.parametrize("lanes", LANES)
def test_no_two_lanes_of_a_piece_meet_in_a_bank(lanes: int) -> None:
    bits = lanes.bit_length() - 1
    for rows in range(bits + 1):
        for position in pieces(lanes, rows, blocks=1):
            positions = piece_positions(position, lanes=lanes, rows_log2=rows)
            assert len({locate(p, lanes=lanes)[0] for p in positions}) == lanes


@pytest.mark.parametrize("lanes", LANES)
def test_every_element_has_a_place_of_its_own(lanes: int) -> None:
    places = {locate(p, lanes=lanes) for p in range(3 * lanes * lanes)}
    assert places == {(b, a) for b in range(lanes) for a in range(3 * lanes)}


@pytest.mark.parametrize("lanes", LANES)
def test_a_bank_finds_its_address_by_the_same_xor(lanes: int) -> None:
    bits = lanes.bit_length() - 1
    for rows in range(bits + 1):
        for position in pieces(lanes, rows, blocks=2):
            row, column = divmod(position, lanes)
            xor = column ^ bit_reverse(row % lanes, bits)
            for p in piece_positions(position, lanes=lanes, rows_log2=rows):
                bank, address = locate(p, lanes=lanes)
                top = (bank ^ xor) >> (bits - rows)
                assert address == row | bit_reverse(top, rows)


def test_a_rotating_map_would_conflict_on_two_packed_rows() -> None:
    # Why the map is an XOR: the usual rotation fails on the 2 x 8 pieces that PCUs emit.
    banks = {(p // 16 + p % 16) % 16 for p in piece_positions(0, lanes=16, rows_log2=1)}
    assert len(banks) < 16


def test_pieces_are_row_major_and_aligned() -> None:
    assert piece_positions(36, lanes=8, rows_log2=1) == (36, 37, 38, 39, 44, 45, 46, 47)
    assert piece_positions(3, lanes=4, rows_log2=rows_log2(Access.COLUMN, lanes=4)) == (
        3,
        7,
        11,
        15,
    )
    with pytest.raises(ValueError, match="must start a piece of 2 by 4 elements, not 44"):
        piece_positions(44, lanes=8, rows_log2=1)
    with pytest.raises(ValueError, match="Access FOUR_ROWS must have at least 4 lanes, not 2"):
        rows_log2(Access.FOUR_ROWS, lanes=2)


def test_walks_are_refused_exactly_if_a_position_starts_no_piece(seed: int) -> None:
    rng = random.Random(seed)
    answers = set()
    for _ in range(400):
        lanes, rows = 8, rng.randrange(4)
        walks = [(rng.choice((0, 1, 2, 4, 8, 16, 32, 64)), 0, rng.randrange(4)) for _ in range(3)]
        factors = itertools.product(*(range(first, last + 1) for _, first, last in walks))
        strides = [stride for stride, _, _ in walks]
        wrong = set()
        for each in factors:
            position = sum(map(operator.mul, strides, each))
            if position // lanes % (1 << rows) or position % lanes % (lanes >> rows):
                wrong.add(position)
        answers.add(bool(wrong))
        if wrong:
            with pytest.raises(ValueError, match=f"elements, not {min(wrong)}$"):
                require_positions(walks, elements=1024, lanes=lanes, rows_log2=rows)
        else:
            require_positions(walks, elements=1024, lanes=lanes, rows_log2=rows)
    assert answers == {True, False}
