"""Generated blocks and computed figures: they are in the pages as the code makes them now."""

import re
from pathlib import Path

import pytest

from docs.tools.blocks import blocks, replaced, without_blocks
from docs.tools.figures import Figure, figures, tables
from docs.tools.generated import GENERATED
from docs.tools.numbers import unaccounted
from hw.arch.counters import counter_numbers
from hw.arch.registers.chip_registers import REGISTERS
from hw.arch.unit_kind import UNIT_KINDS

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"]
PAGES += sorted(str(file.relative_to(ROOT)) for file in (ROOT / "docs").rglob("*.md"))
_REPAIR = "run make figures"


def text_of(page):
    return (ROOT / page).read_text(encoding="utf-8")


def test_every_block_of_a_page_has_its_maker():
    # make durations writes the slowest tests, from the record of a run.
    found = {(page, name) for page in PAGES for name in blocks(text_of(page))}
    assert found - {("docs/testing.md", "durations")} == {
        (block.page, name) for name, block in GENERATED.items()
    }


@pytest.mark.parametrize("name", [name for name, block in GENERATED.items() if not block.slow])
def test_a_block_is_what_the_code_makes(name):
    block = GENERATED[name]
    assert blocks(text_of(block.page))[name] == block.make(), _REPAIR


def test_the_register_table_has_a_row_for_each_field():
    rows = blocks(text_of("docs/command.md"))["registers"].splitlines()[2:]
    cells = [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows]
    fields = [(each, field) for each in REGISTERS for field in each.fields]
    assert [row[3].strip("`") for row in cells] == [field.name for _, field in fields]
    assert [row[5] for row in cells] == [field.text for _, field in fields]
    assert [row[1].strip("`") for row in cells if row[1]] == [each.name for each in REGISTERS]
    assert [row[0] for row in cells if row[0]] == [f"0x{each.offset:02X}" for each in REGISTERS]


def test_the_table_of_counters_names_each():
    names = re.findall(r"\| `(\w+)` \|", blocks(text_of("docs/chip.md"))["counters"])
    assert set(names) == {name for kind in UNIT_KINDS.values() for name in counter_numbers(kind)}


@pytest.mark.parametrize("figure", figures(), ids=lambda figure: f"{figure.page}:{figure.text}")
def test_an_entry_of_the_table_stands_in_its_page(figure):
    stated = figure.stated(text_of(figure.page))
    assert stated, figure.text
    if figure.values and not figure.slow:
        assert set(stated) == {figure.expected}, _REPAIR


def test_a_table_that_is_not_generated_is_in_its_page():
    for table in tables():
        lines = without_blocks(text_of(table.page)).splitlines()
        assert sum(line.startswith(table.head) for line in lines) == 1, table.head


def test_a_test_that_holds_a_figure_is_there():
    for entry in (*figures(), *tables()):
        if entry.test is not None:
            file, _, name = entry.test.partition("::")
            assert f"\ndef {name}(" in (ROOT / file).read_text(), entry.test


@pytest.mark.parametrize("page", PAGES)
def test_every_number_with_a_unit_has_its_origin(page):
    own = [figure for figure in figures() if figure.page == page]
    listed = [table for table in tables() if table.page == page]
    assert list(unaccounted(text_of(page), own, listed)) == []


COSTS = Figure(page="x.md", text="It costs {:,} cells, a {:.1f}th.", values="1234, 0.5")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It costs 1,234 cells, a 0.5th.", []),
        ("It costs 1,234\ncells, a 9.5th.", []),
        ("It costs 1,234 cells.", [(1, "1,234 cells")]),
        ("a\n12 % of 3 cycles", [(2, "12 %"), (2, "3 cycles")]),
        ("`--latency 20 cycles` and release 0.70", []),
        ("```sh\nrun 20 cycles\n```\n5 MB", [(4, "5 MB")]),
        ("| a | b |\n|---|---|\n| x | 1,000 |\n", [(3, "1,000")]),
        ("<!-- generated: a -->\n7 cycles\n<!-- end of a -->\n7 cycles\n", [(4, "7 cycles")]),
    ],
)
def test_a_figure_without_an_origin_is_found(text, found):
    assert list(unaccounted(text, [COSTS])) == found


def test_a_wrong_figure_is_noticed_and_corrected():
    text = "First.\nIt costs 1,111\ncells, a 0.5th. Last."
    assert COSTS.stated(text) == [("1,111", "0.5")]
    assert COSTS.expected == ("1,234", "0.5")
    assert COSTS.corrected(text, COSTS.expected) == text.replace("1,111", "1,234")


def test_a_block_is_replaced_in_its_place():
    text = "a\n<!-- generated: x -->\nold\n<!-- end of x -->\nb\n"
    assert replaced(text, "x", "new\n") == text.replace("old", "new")
    with pytest.raises(ValueError, match="Blocks `y` of the page must be 1, not 0"):
        replaced(text, "y", "new\n")


def test_an_origin_is_one_of_four():
    with pytest.raises(ValueError, match="Origin of a figure must be one of"):
        Figure(page="x.md", text="5 MB")
    with pytest.raises(ValueError, match="Origin of a figure must be one of"):
        Figure(page="x.md", text="5 MB", measured="by hand", cited="somebody")
