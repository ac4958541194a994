"""Parameters of a chip: the ends of every field's domain are accepted, what lies beyond is not."""

import dataclasses

import pytest

from hw.arch.config import AgcuConfig, ChipConfig, PcuConfig, PmuConfig, named
from hw.arch.limits import LINK_BITS

#: Least and greatest value of each field that is a number, and the next ones outside.
DOMAINS = {
    (PcuConfig, "accumulator_rows"): (16, 8192, 8, 16384),
    (PcuConfig, "cell_latency"): (1, 3, 0, 4),
    (PcuConfig, "function_bits"): (12, 24, 11, 25),
    (PcuConfig, "lanes"): (1, 8, -1, 16),
    (PmuConfig, "capacity_bytes"): (1 << 10, 4 << 20, 1 << 9, 8 << 20),
    (PmuConfig, "slots"): (2, 64, 1, 65),
    (AgcuConfig, "count"): (1, 16, 0, 17),
    (AgcuConfig, "axi_data_bits"): (64, 1024, 32, 2048),
    (AgcuConfig, "axi_address_bits"): (32, 64, 31, 65),
    (AgcuConfig, "landing_beats"): (16, 4096, 8, 8192),
    (AgcuConfig, "outstanding"): (1, 256, 0, 257),
    (ChipConfig, "rows"): (1, 64, 0, 65),
    (ChipConfig, "columns"): (1, 64, 0, 65),
    (ChipConfig, "width_bits"): (64, 1024, 32, 2048),
    (ChipConfig, "tracks"): (1, 8, 0, 9),
    (ChipConfig, "token_tracks"): (1, 8, 0, 9),
}
#: Fields that are no number.
OTHERS = {(ChipConfig, name) for name in ("pattern", "pcu", "pmu", "agcu")}
OTHERS.add((PcuConfig, "formats"))  # tests/hw/pcu/test_cells.py
OTHERS.add((PcuConfig, "functions"))  # tests/sim/test_function_units.py
#: The noun by which a message names a field, where it is not the field's own name.
NOUNS = {
    "capacity_bytes": "PMU capacity",
    "slots": "PMU slots",
    "count": "AGCU count",
    "rows": "Mesh rows",
    "columns": "Mesh columns",
    "width_bits": "Link width",
}


def made(kind, name, value):
    """Parameters with one field of this value, in a chip that fits them."""
    if kind is not ChipConfig:
        part = kind(**{name: value})
        width = value if name == "axi_data_bits" else 256
        section = {PcuConfig: "pcu", PmuConfig: "pmu", AgcuConfig: "agcu"}[kind]
        return ChipConfig(8, 8, width_bits=width, **{section: part})
    fields = {"rows": 2, "columns": 2, "width_bits": 64} | {name: value}
    agcu = AgcuConfig(axi_data_bits=min(max(fields["width_bits"], 64), 1024))
    return ChipConfig(**fields, agcu=agcu)


def test_every_field_has_its_domain_here():
    kinds = (PcuConfig, PmuConfig, AgcuConfig, ChipConfig)
    fields = {(kind, field.name) for kind in kinds for field in dataclasses.fields(kind)}
    assert fields == set(DOMAINS) | OTHERS


def test_a_chip_has_two_lanes_unless_said_otherwise():
    """The narrowest link has two words, so that no width needs another number."""
    chips = [*named.values(), *(ChipConfig(1, 2, width_bits=width) for width in LINK_BITS.values())]
    assert {chip.pcu.lanes for chip in chips} == {2}
    assert ChipConfig(1, 2, pcu=PcuConfig(lanes=0)).pcu.lanes == 0


@pytest.mark.parametrize(
    ("kind", "name"), DOMAINS, ids=[f"{kind.__name__}.{name}" for kind, name in DOMAINS]
)
def test_both_ends_of_a_domain_are_accepted_and_the_next_values_refused(kind, name):
    least, greatest, below, above = DOMAINS[kind, name]
    for value in (least, greatest):
        made(kind, name, value)
    for value in (below, above, -greatest):
        noun = NOUNS.get(name, name.replace("_", " ").split()[0])
        said = f"(?i)^{noun}.* must be .* from {least} to {greatest}, not {value}$"
        with pytest.raises((TypeError, ValueError), match=said):
            made(kind, name, value)
