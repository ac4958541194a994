"""Coverage of the emitted Verilog: which points of Verilator's file count, and how."""

from tests.rtl_coverage import Coverage, Point, points_of, totals

VERILOG = """\
module unit(clk);
  always @* begin
    if (\\$start ) begin end
    if (a) begin
      b = 1;
    end
  end
endmodule
"""


def entry(page, line, name, count):
    fields = {"f": "design.v", "l": str(line), "n": "5", "page": page, "o": name, "h": "top.u"}
    return "C '" + "".join(f"\x01{key}\x02{value}" for key, value in fields.items()) + f"' {count}"


FILE = "\n".join(
    [
        "# SystemC::Coverage-3",
        entry("v_line/unit", 2, "block", 7),
        entry("v_branch/unit", 4, "if", 0),
        entry("v_branch/unit", 4, "else", 7),
        # Statements that do nothing, intermediate values, and fields of whole signals.
        entry("v_branch/unit", 3, "if", 0),
        entry("v_toggle/unit", 1, "__0243[0]:0->1", 0),
        entry("v_toggle/unit", 1, "config__02erows[0]:0->1", 0),
        entry("v_toggle/unit", 1, "config[0]:0->1", 1),
        entry("v_toggle/unit", 1, "config[0]:1->0", 0),
    ]
)


def test_points_are_those_of_statements_and_of_whole_signals():
    assert dict(points_of(FILE, VERILOG)) == {
        Point("line", "unit", "1:5 block"): 7,
        Point("branch", "unit", "3:5 if"): 0,
        Point("branch", "unit", "3:5 else"): 7,
        Point("toggle", "unit", "config[0]:0->1"): 1,
        Point("toggle", "unit", "config[0]:1->0"): 0,
    }


def test_a_module_has_the_same_points_wherever_it_lies_in_a_design():
    moved = FILE.replace("\x01l\x024\x01", "\x01l\x026\x01").replace(
        "\x01l\x022\x01", "\x01l\x024\x01"
    )
    other = "module first();\nendmodule\n" + VERILOG
    found = dict(points_of(moved.replace("\x01l\x023\x01", "\x01l\x025\x01"), other))
    assert found == dict(points_of(FILE, VERILOG))


def test_a_point_that_one_testbench_reaches_is_reached():
    first, second = Coverage(), Coverage()
    first.add(points_of(FILE, VERILOG))
    second.add([(Point("branch", "unit", "3:5 if"), 2), (Point("line", "other", "9:1 block"), 0)])
    assert (first.share("line"), first.share("branch"), first.share("toggle")) == (1.0, 0.5, 0.5)
    together = totals({"first": first, "second": second})
    assert (together.share("line"), together.share("branch")) == (0.5, 1.0)
    assert together.missed("line") == [Point("line", "other", "9:1 block")]
