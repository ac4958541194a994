"""The declaration of the counters: places, names, the tables of the documents."""

from pathlib import Path

from hw.arch.config import ChipConfig, named
from hw.arch.counters import (
    ACTIVITIES,
    COUNTER_BITS,
    counter_index,
    counter_numbers,
    counter_table,
    engine_states,
    named_counters,
    pmu_state_layout,
    unit_kinds,
)
from hw.arch.error_codes import error_unit
from hw.arch.limits import COUNTER_WORDS
from hw.arch.unit_kind import AGCU, UNIT_KINDS

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "chip.md"


def test_table_is_the_one_in_the_document():
    assert counter_table() in DOCUMENT.read_text(encoding="utf-8")


def test_units_are_the_tiles_by_row_and_then_the_agcus():
    kinds = unit_kinds(named["tiny"])
    assert list(kinds) == ["pcu_0_0", "pmu_0_1", "pmu_1_0", "pcu_1_1", "agcu_0"]
    assert all(name.startswith(kind.name) for name, kind in kinds.items())
    for chip in named.values():
        kinds = unit_kinds(chip)
        assert len(kinds) == chip.rows * chip.columns + chip.agcu.count
        assert counter_index(len(kinds), 0) < 1 << 16


def test_the_unit_of_an_error_is_named_by_the_low_bits_of_its_number():
    tiny, wide = named["tiny"], ChipConfig(rows=16, columns=17)
    assert error_unit(tiny, 4) == "agcu_0"
    assert error_unit(tiny, 5) is None
    assert error_unit(wide, 0) == "pcu_0_0 or pcu_15_1"
    assert error_unit(wide, 255) == "pmu_15_0"


def test_counters_are_named_by_kind():
    for kind in UNIT_KINDS.values():
        counters = counter_numbers(kind)
        assert list(counters)[:4] == list(ACTIVITIES)
        assert (
            len(set(counters.values())) == len(counters) and max(counters.values()) < COUNTER_WORDS
        )
        words = [100 + word for word in range(COUNTER_WORDS)]
        assert named_counters(kind, words) == {n: 100 + word for n, word in counters.items()}
    assert named_counters(AGCU, range(COUNTER_WORDS))["bytes"] == 6


def test_state_of_a_pmu_fills_a_counter():
    assert pmu_state_layout().size == COUNTER_BITS
    states = engine_states(0b000_1_111110_0_1 << 12 | 1 << 47)
    assert states["w1"] == {
        "enabled": 1,
        "done": 0,
        "slot": 62,
        "lap": 1,
        "entered": 0,
        "port": 0,
        "reported": 0,
    }
    assert states["r1"]["reported"] == 1 and not any(states["w0"].values())
