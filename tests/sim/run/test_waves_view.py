"""The save file for a viewer of waves: groups by part, handshakes of ports alone."""

from sim.run.waves_view import write_waves_view

HEADER = """$timescale 1ps $end
 $scope module TOP $end
  $var wire 1 a clk $end
  $var wire 1 b host__awvalid $end
  $var wire 12 c host__awaddr [11:0] $end
  $var wire 1 d host__awready $end
  $scope module chip $end
   $var wire 1 e inner__valid $end
  $upscope $end
 $upscope $end
 $scope module tile_0_0 $end
  $var wire 1 f west__last $end
 $upscope $end
$enddefinitions $end
#0
$var wire 1 g late__valid $end
"""


def test_ports_of_each_part_are_a_group(tmp_path):
    waves = tmp_path / "run.vcd"
    waves.write_text(HEADER)
    view = write_waves_view(waves)
    assert view == tmp_path / "run.vcd.gtkw"
    assert view.read_text().splitlines() == [
        f'[dumpfile] "{waves}"',
        "[timestart] 0",
        *("@200", "-TOP", "@28", "TOP.host__awvalid", "TOP.host__awready"),
        *("@200", "-tile_0_0", "@28", "tile_0_0.west__last"),
    ]


def test_without_waves_there_is_no_view(tmp_path):
    assert write_waves_view(tmp_path / "none.vcd") is None
    assert list(tmp_path.iterdir()) == []
