"""Area in a liberty's cells: sums that a hand can count, and files that are refused at once."""

import re
from pathlib import Path

import pytest

from gen.area import measure, shares, totals
from gen.liberty import load_liberty
from gen.unit_designs import UnitDesign
from hw.arch.errors import BadInputError
from sim.run.verilog_file import parsed
from tests.slow_cases import quick_first

HAND = Path(__file__).with_name("hand.lib")
TEXT = HAND.read_text()

LEAF = """\
module leaf(input clk, input a, input b, output reg q);
always @(posedge clk) q <= ~(a & b);
endmodule
"""
TOP = """\
module top(input clk, input a, output x, output y, output z);
wire q;
leaf one(.clk(clk), .a(a), .b(q), .q(x));
leaf two(.clk(clk), .a(x), .b(a), .q(y));
leaf three(.clk(clk), .a(y), .b(x), .q(q));
assign z = ~q;
endmodule
"""
MEMORY = """\
module top(input clk, input w, input [3:0] a, input [3:0] r, input [7:0] d, output reg [7:0] q,
           output n);
assign n = ~w;
reg [7:0] rows [0:15];
always @(posedge clk) begin
  if (w) rows[a] <= d;
  q <= rows[r];
end
endmodule
"""


def without(*cells):
    """The library less some of its cells."""
    text = TEXT
    for cell in cells:
        text, cut = re.subn(rf"  cell \({cell}\) \{{.*?\n  \}}\n", "", text, flags=re.DOTALL)
        assert cut == 1
    return text


@pytest.fixture
def library(tmp_path):
    def load(text):
        path = tmp_path / "some.lib"
        path.write_text(text)
        return load_liberty(path)

    return load


def unit(body, liberty, count=1):
    ports = "input clk, input e, input [3:0] a, input [3:0] b, output [3:0] y"
    text = f"module top({ports});\n{body}\nendmodule\n"
    return measure(UnitDesign("unit", count, parsed("top", text)), liberty=liberty)


@pytest.mark.parametrize(
    ("body", "area"),
    quick_first(
        [
            ("assign y = a ^ b;", 4 * 100.25),
            ("assign y = a & b;", 4 * (10 + 1)),
            ("reg [3:0] q; always @(posedge clk) if (e) q <= a; assign y = q;", 4 * 1500),
            # Cleared by what is and-ed to the flip-flop.
            (
                "reg [3:0] q; always @(posedge clk) q <= ~(a & {4{b[0]}}); assign y = q;",
                4 * (1000 + 10),
            ),
            ("assign y = ~a;", 4 * 1),
            ("assign y = ~(a & b);", 4 * 10),
            ("reg [3:0] q; always @(posedge clk) q <= a; assign y = q;", 4 * 1000),
            ("assign y = a;", 0),
        ],
        4,
    ),
)
def test_areas_are_those_of_cells_counted_by_hand(body, area):
    liberty = load_liberty(HAND)
    assert (liberty.name, liberty.file) == ("hand", "hand.lib")
    assert unit(body, liberty).square_um == area


def test_a_flip_flop_without_an_enable_gets_a_multiplexer(library):
    # Of three NAND and an inverter.
    body = "reg q; always @(posedge clk) if (e) q <= a[0]; assign y = q;"
    assert unit(body, library(without("DFFE", "XOR2"))).square_um == 1000 + 3 * 10 + 1


def test_a_definition_is_its_own_cells_and_instances_multiply():
    liberty = load_liberty(HAND)
    design = parsed("top", LEAF + TOP)
    area = measure(UnitDesign("unit", 5, design), liberty=liberty)
    assert {part.name: part.square_um for part in area.definitions} == {"leaf": 1010, "top": 1}
    assert area.square_um == 3 * 1010 + 1
    other = unit("assign y = a ^ b;", liberty, count=2)
    assert totals([area, other])["square_um"] == 5 * 3031 + 2 * 401
    assert totals([area])["square_um"] == 5 * area.record()["square_um"]
    assert shares([area])["unit"]["square_um"] == 1


def test_generic_figures_are_the_same_with_a_liberty_and_without():
    component = UnitDesign("unit", 1, parsed("top", LEAF + TOP))
    plain, mapped = measure(component), measure(component, liberty=load_liberty(HAND))
    assert plain.square_um is None
    assert totals([plain]).keys() == {"cells", "flip_flops", "memory_bits"}
    assert "square_um" not in {*plain.record(), *plain.record()["definitions"][0]}
    for figure in ("cells", "flip_flops", "memory_bits", "depth"):
        assert getattr(plain, figure) == getattr(mapped, figure)


def test_memories_have_no_area():
    component = UnitDesign("unit", 1, parsed("top", MEMORY))
    area = measure(component, liberty=load_liberty(HAND))
    assert (area.memory_bits, area.square_um) == (128, 1)


def test_another_liberty_is_measured_anew(tmp_path, library):
    component = UnitDesign("unit", 1, parsed("leaf", LEAF))
    small, large = load_liberty(HAND), library(TEXT.replace("area : 10;", "area : 20;"))
    for _ in range(2):
        found = [
            measure(component, liberty=each, cache=tmp_path / "cache").square_um
            for each in (small, large, None)
        ]
        assert found == [1010, 1020, None]
    assert len(list((tmp_path / "cache").iterdir())) == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "begin with `library"),
        ("module cells(input a); endmodule\n", "begin with `library"),
        (
            TEXT[:-3],
            "one that yosys can read, not be some.lib: Syntax error in",
        ),
        (without("DFF", "DFFE"), "have a D flip-flop"),
        (without("INV"), "have a buffer, an inverter and a NAND or NOR"),
        (without("BUF"), "have a buffer, an inverter and a NAND or NOR"),
        (without("NAND2"), "have a buffer, an inverter and a NAND or NOR"),
        (without("INV", "NAND2", "XOR2"), "have a buffer, an inverter and a NAND or NOR"),
        ("library (none) {\n}\n", "have a D flip-flop"),
    ],
)
def test_what_nothing_can_be_mapped_to_is_refused_at_once(text, message, library):
    with pytest.raises(BadInputError, match="^Liberty must ") as caught:
        library(text)
    assert message in caught.value.message
    assert (caught.value.kind, caught.value.where) == ("bad-liberty", "--liberty")


def test_a_register_that_no_cell_can_hold_is_an_error(library):
    latch = "reg [3:0] q; always @* if (e) q = a; assign y = q;"
    with pytest.raises(BadInputError, match="hold what yosys calls DLATCH_P, not be some.lib"):
        unit(latch, library(TEXT))
