"""Random chips: legal, all fields at their corners, plain data and back."""

import dataclasses
import json
import random

from hw.arch.config import ChipConfig, named
from hw.numeric.product_formats import CELL_SETS, RESULT_FORMATS
from sim.campaign.generators.chips import chip_fields, chip_of, random_chip
from sim.campaign.generators.programs import random_program

CORNERS = {
    "width_bits": (64, 1024),
    "tracks": (1, 8),
    "token_tracks": (1, 8),
    "pcu.accumulator_rows": (16, 8192),
    "pcu.cell_latency": (1, 3),
    "pcu.function_bits": (12, 24),
    "pcu.lanes": (0, 8),
    "pmu.capacity_bytes": (1024, 4 << 20),
    "pmu.slots": (2, 64),
    "agcu.axi_address_bits": (32, 64),
    "agcu.landing_beats": (16, 4096),
    "agcu.outstanding": (1, 256),
}


def field(config, name):
    for part in name.split("."):
        config = getattr(config, part)
    return config


def test_every_field_is_drawn_and_half_of_it_at_corners(seed):
    rng = random.Random(seed)
    chips = [random_chip(rng) for _ in range(400)]
    for name, corners in CORNERS.items():
        values = [field(chip, name) for chip in chips]
        share = sum(value in corners for value in values) / len(values)
        assert share > 0.4, (name, share)
        assert set(corners) <= set(values)
        if len({*corners}) < 3 and name != "width_bits":
            assert len(set(values)) > 2 or name == "pcu.cell_latency"
    assert {1, 2} <= {chip.rows for chip in chips} and {1, 2} <= {chip.columns for chip in chips}
    assert any(chip.agcu.count == 2 * chip.rows for chip in chips)
    assert any(chip.pcu_count == 1 and chip.pmu_count > 1 for chip in chips)
    assert any(chip.pmu_count == 1 and chip.pcu_count > 1 for chip in chips)
    assert all(chip.pcu_count and chip.pmu_count for chip in chips)
    assert max(chip.rows * chip.columns for chip in chips) <= 256
    assert {chip.pcu.operands for chip in chips} == {*CELL_SETS}


def test_products_have_the_formats_of_the_cells(seed):
    rng = random.Random(seed)
    drawn = set()
    for _ in range(60):
        chip = random_chip(rng, most_tiles=9)
        fields = random_program(rng, chip, most=20)
        assert fields["dtype"] in chip.pcu.formats
        drawn.add(fields["dtype"])
    assert drawn == {each.name for each in RESULT_FORMATS}


def test_the_names_of_the_fields_are_those_of_the_configuration():
    """A field that is added to the configuration must be drawn too; circuits are not plain data."""
    drawn = {
        "rows",
        "columns",
        "pattern",
        "agcu.count",
        "agcu.axi_data_bits",
        "pcu.formats",
        *CORNERS,
    }
    fields = set()
    for each in dataclasses.fields(ChipConfig):
        section = getattr(named["tiny"], each.name)
        if dataclasses.is_dataclass(section):
            fields |= {f"{each.name}.{inner.name}" for inner in dataclasses.fields(section)}
        else:
            fields.add(each.name)
    assert fields == drawn | {"pcu.functions"}


def test_a_chip_for_rtl_is_small(seed):
    rng = random.Random(seed)
    for _ in range(200):
        chip = random_chip(rng, most_tiles=9, most_cells=512)
        assert chip.peak_macs_per_cycle(16) <= 512 and chip.rows * chip.columns <= 9
        assert chip.width_bits <= 128 and chip.pmu.capacity_bytes <= 65536


def test_a_chip_is_plain_data_and_back(seed):
    rng = random.Random(seed)
    for chip in (*named.values(), *(random_chip(rng) for _ in range(50))):
        assert chip_of(json.loads(json.dumps(chip_fields(chip)))) == chip
    assert chip_fields(named["tiny"]) == "tiny"
