"""Cutting a design into parts: nothing lost, nothing twice."""

import pytest

from sim.native.parts import cut
from sim.run.verilog_file import parsed

TEXT = """\
module leaf(i, o);
  input [3:0] i;
  wire [3:0] i;
  output o;
  wire o;
  assign o = ^i;
endmodule

module \\leaf.two (i, o);
  input [3:0] i;
  output o;
  assign o = |i;
endmodule

module tile(clk, i_a, i_b, o_c);
  input clk;
  input [3:0] i_a;
  input i_b;
  output o_c;
  leaf leaf (
    .i(i_a),
    .o(o_c)
  );
endmodule

module top(clk, i, o);
  input clk;
  input [3:0] i;
  output [1:0] o;
  \\leaf.two  keep (
    .i(i),
    .o()
  );
  tile tile_0 (
    .clk(clk),
    .i_a({ i[1:0], i[3:2] }),
    .i_b(1'h0),
    .o_c(o[0])
  );
  tile tile_1 (
    .clk(clk),
    .i_a(i),
    .i_b(),
    .o_c(o[1])
  );
endmodule
"""


def test_instances_become_ports_of_the_rest():
    design = cut(parsed("top", TEXT), ["tile"])
    rest, tile = design.parts
    assert rest.top == "top"
    assert "module top(clk, i, o, cut_0_0, cut_0_1, cut_0_2, cut_1_0, cut_1_1);" in rest.text
    assert "output [3:0] cut_0_0;\n  assign cut_0_0 = { i[1:0], i[3:2] };" in rest.text
    assert "input [0:0] cut_0_2;\n  assign o[0] = cut_0_2;" in rest.text
    assert "tile tile_0" not in rest.text
    # Each part has what it contains and nothing else.
    assert "\\leaf.two (i, o)" in rest.text and "module leaf(" not in rest.text
    assert "module leaf(" in tile.text and "leaf.two" not in tile.text
    assert [instance.name for instance in design.instances] == ["tile_0", "tile_1"]
    ports = design.instances[1].ports
    assert [(port.name, port.outer, port.is_output) for port in ports] == [
        ("i_a", "cut_1_0", False),
        ("o_c", "cut_1_1", True),
    ]


def test_a_design_without_parts_stays_whole():
    design = cut(parsed("top", TEXT), [])
    assert [part.top for part in design.parts] == ["top"]
    assert design.parts[0].text.count("endmodule") == 4


def test_a_design_without_its_top_is_refused():
    with pytest.raises(ValueError, match="Verilog must have the module 'other'"):
        cut(parsed("other", TEXT), [])


def test_a_part_does_not_depend_on_the_rest_of_its_design():
    before, after = "assign o_c = 1'h0", "assign o_d = 1'h1"
    one, other = (
        TEXT.replace(
            "  input i_b;\n", f"  reg \\$auto$x.cc:1:f${number}  = 0;\n{lines}  input i_b;\n"
        )
        for number, lines in (
            (7, f"  {before};\n  {after};\n"),
            (12, f"  {after};\n  {before};\n"),
        )
    )
    assert one != other
    parts = [cut(parsed("top", text), ["tile"]).parts[1] for text in (one, other)]
    assert parts[0] == parts[1]
    assert "$auto$x.cc:1:f$0 " in parts[0].text


def test_a_part_knows_its_modules():
    rest, tile = cut(parsed("top", TEXT), ["tile"]).parts
    assert list(rest.definitions) == ["leaf.two", "top"]
    assert list(tile.definitions) == ["leaf", "tile"]
