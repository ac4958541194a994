"""Two products with a softmax between them on chips: emulator equals golden; what is refused."""

import dataclasses
import random

import pytest

from hw.arch.config import ChipConfig, PcuConfig, PmuConfig, named
from hw.arch.descriptor import MAX_BOX
from hw.arch.errors import BadInputError
from sw.chip_program import ChipProgram
from sw.fabric.route import RouteError
from sw.prove import prove
from sw.stages.softmax.softmax_pipeline import softmax_pipelines
from sw.stages.softmax.softmax_sizes import softmax_sizes
from tests.sw.stages.softmax_cases import SoftmaxCase, drawn_product, softmax_product

#: Most rows, and most columns, of random products.
MOST = {"tiny": (100, 12), "small": (300, 100), "large": (300, 100)}


def verify(work, config, seed=1, **choice):
    """Prove a product live, run it on the emulator, and compare it with golden by bits."""
    case = SoftmaxCase(work, config, **choice)
    found = prove(ChipProgram.unpack(case.chip, case.image))
    assert found.live, (work, config, found.faults, found.waits)
    inputs = case.inputs(seed)
    assert case.emulated(inputs).tobytes() == case.golden(inputs).tobytes(), (work, config)
    return case


@pytest.mark.few(2)
@pytest.mark.parametrize("config", MOST)
def test_random_products_equal_golden(config, seed, draws):
    rng = random.Random(seed)
    for _ in range(draws(3, 5)):
        verify(drawn_product(rng, *MOST[config]), config, seed)


@pytest.mark.slow
@pytest.mark.parametrize("config", MOST)
def test_many_random_products_equal_golden(config, seed):
    rng = random.Random(seed)
    for _ in range(40):
        verify(drawn_product(rng, *MOST[config]), config, seed)


@pytest.mark.few(2)
@pytest.mark.parametrize("offset", [None, 0, 60])
@pytest.mark.parametrize("config", ["small", "large"])
def test_blocks_are_kept_or_loaded_for_each_group(config, offset, seed):
    """Both, for the same product: the same output, for blocks of one size."""
    work = softmax_product(90, 150, 40, 24, offset=offset, block=32)
    for kept in (True, False):
        verify(work, config, seed, wanted="kept" if kept else "loaded for each group")


def test_blocks_that_are_kept_may_take_several_buffers(seed):
    """Keys by tiles of their rows, values by keys of a block; both are loaded once."""
    work = softmax_product(70, 430, 128, 112, offset=370, block=48)
    for config in ("small", "large"):
        case = verify(work, config, seed, wanted="kept")
        # 48 keys are three tiles of values.
        assert set(case.pipeline.homes) >= {"keys0", "keys1", "values0_0", "values0_1", "values0_2"}


@pytest.mark.few(1)
@pytest.mark.parametrize("config", ["small", "large"])
def test_choices_count_the_cycles_in_which_slots_are_filled_again(config):
    """A PMU has two slots of 112 keys, so reading waits for them; of shorter blocks it has more."""
    work = softmax_product(144, 1537, 128, block=112)
    expected = SoftmaxCase(work, config).cycles
    assert next(softmax_sizes(work, named[config])).cycles == pytest.approx(expected, rel=0.05)
    one_buffer = {
        block: next(
            each
            for each in softmax_sizes(dataclasses.replace(work, block=block), named[config])
            if each.key_buffers == each.value_buffers == 1
        )
        for block in (48, 112)
    }
    assert one_buffer[48].cycles < 0.97 * one_buffer[112].cycles


def test_blocks_in_two_buffers_wait_for_no_slots():
    """Of 256 keys of 64 columns one PMU has two slots, two PMUs have four each."""
    work = softmax_product(2048, 2048, 64)
    best = next(softmax_sizes(work, named["large"]))
    assert (best.block, best.kept, best.key_buffers, best.value_buffers) == (256, False, 2, 2)
    one = dataclasses.replace(work, block=256)
    found = [each for each in softmax_sizes(one, named["large"]) if each.key_buffers == 1]
    assert best.cycles < 0.98 * min(each.cycles for each in found)


def test_a_group_leaves_out_blocks_that_none_of_its_queries_sees(seed):
    """Fewer cycles, and fewer bytes from memory where blocks are loaded for each group."""
    causal = softmax_product(256, 256, 32, offset=0, block=32)
    case = verify(causal, "small", seed)
    assert "1 to 8 blocks" in case.pipeline.summary
    every = verify(dataclasses.replace(causal, offset=None), "small", seed)
    assert case.cycles < 0.8 * every.cycles


def test_a_block_is_the_unit_of_the_running_maximum(seed):
    work = softmax_product(40, 200, 16)
    for block in (16, 48, 192):
        case = verify(dataclasses.replace(work, block=block), "small", seed)
        assert case.pipeline.block_keys == block
    case = SoftmaxCase(work, "small")
    assert case.pipeline.block_keys % case.chip.grid_rows == 0


@pytest.mark.few(1)
@pytest.mark.parametrize("width", [256, 400])
def test_more_columns_than_a_bank_has_rows_go_to_several_values_units(width, seed):
    """Each has the powers of a scores unit, and a part of the columns."""
    for config in ("small", "large"):
        case = verify(softmax_product(50, 70, 60, width, offset=30), config, seed)
        assert "sets of 3 of PCUs" in case.pipeline.summary


def test_rows_longer_than_a_box_are_loaded_in_pieces(seed):
    verify(softmax_product(20, 40, 320, 8), "small", seed)


REFUSED = {
    "block": (softmax_product(8, 64, 16, block=24), "small", "Keys of a block must be a multiple"),
    "width": (softmax_product(8, 8, 4, 256), "tiny", "of 256 columns needs 3 PCUs, .* has 2"),
    "keys": (softmax_product(8, 140_000, 16), "small", "Keys, and queries .* at most 131071"),
    "window": (softmax_product(8, 64, 16, window=3), "small", "Window of keys must be"),
    "bytes": (softmax_product(8, 2000, 8), "tiny", "Bytes of keys, .* at most 4096 where one AGCU"),
    "buffers": (softmax_product(8, 64, 700), "small", "3 buffers of keys, 1 of queries, 3 of"),
    "box": (softmax_product(8, 300, 4), "tiny", "whole blocks must be at most 256 where one AGCU"),
    "depth": (softmax_product(8, 64, 4000, 8), "small", "slots of 16 keys take 256000 bytes"),
}


@pytest.mark.parametrize("depth", [576, 960])
def test_a_row_of_keys_in_one_of_several_buffers_is_a_box(depth, seed):
    """On wide links as many tiles as a run of packets has are more than a box."""
    chip = dataclasses.replace(named["large"], width_bits=512)
    work = softmax_product(20, 80, depth, 32)
    tiles = depth // chip.grid_rows
    found = list(softmax_sizes(work, chip))
    assert any(each.key_buffers > 1 for each in found)
    for each in found:
        share = tiles // each.key_buffers
        assert each.key_buffers == 1 or share * chip.grid_rows <= MAX_BOX
    verify(work, chip, seed)


def test_an_odd_number_of_tiles_on_narrow_links_is_no_single_box(seed):
    """Pieces of a box lie a multiple of 16 bytes apart, which are two tiles there."""
    chip = dataclasses.replace(named["large"], width_bits=64, pmu=PmuConfig(1 << 18))
    verify(softmax_product(20, 20, 264, 4), chip, seed)
    with pytest.raises(RouteError, match="must be a rotation of at most"):
        SoftmaxCase(softmax_product(20, 20, 260, 4), chip)


@pytest.mark.parametrize("width", [300, 700])
def test_values_wider_than_a_box_go_to_several_units_also_with_large_banks(width, seed):
    pcu = PcuConfig(accumulator_rows=512)
    chip = dataclasses.replace(named["large"], pcu=pcu, pmu=PmuConfig(1 << 18))
    verify(softmax_product(20, 80, 64, width), chip, seed)


def test_parts_of_values_begin_at_whole_units_of_memory():
    chip = dataclasses.replace(
        named["large"], width_bits=64, pcu=PcuConfig(accumulator_rows=1024), pmu=PmuConfig(1 << 18)
    )
    with pytest.raises(BadInputError, match="Bytes before a column must be a multiple of 16, not"):
        SoftmaxCase(softmax_product(20, 80, 16, 260), chip)


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused_with_needs_and_haves(name):
    work, config, message = REFUSED[name]
    with pytest.raises(BadInputError, match=message) as caught:
        SoftmaxCase(work, config)
    assert caught.value.kind == "does-not-fit"


def test_a_chip_without_lanes_or_pairs_is_refused():
    work = softmax_product(8, 64, 16)
    for config, message in (
        (dataclasses.replace(named["small"], pcu=PcuConfig(lanes=0)), "Lanes of a PCU must"),
        (ChipConfig(rows=1, columns=2), "needs 2 PCUs, and the chip has 1"),
    ):
        with pytest.raises(BadInputError, match=message):
            next(softmax_pipelines(work, (), config, "product"))
