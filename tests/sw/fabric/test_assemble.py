"""Assembly: the program holds what was placed and routed, and extraction finds any deviation."""

import dataclasses

import pytest

from hw.arch.config import named
from hw.arch.ports import Direction, Link, UnitPort
from hw.arch.switch import OutputProgram, SwitchProgram, Turn
from sw.fabric.assemble import assemble
from sw.fabric.netlist_comparison import NetlistMismatchError, require_netlist
from sw.fabric.route import place_and_route
from tests.sw.chips import empty_tile
from tests.sw.fabric.netlists import gemm_1x8, gemm_4x2, net, netlist

SMALL, TINY = named["small"], named["tiny"]


def built(program, config, *, seed=1):
    placement, routes = place_and_route(program, config, seed=seed)
    return placement, assemble(program, placement, routes, config)


def test_units_agcus_and_switches_are_in_the_program(seed):
    program = gemm_4x2()
    placement, chip = built(program, SMALL, seed=seed)
    for name, at in placement.tiles.items():
        assert chip.tiles[at].unit is program.units[name]
    assert chip.agcus == {number: program.units[name] for name, number in program.fixed.items()}
    assert len(chip.pack()) > 1000


def test_a_tile_that_only_passes_on_has_no_unit():
    program = netlist([net("x", ["c0.0"], ["c1.0"])], agcus=2)
    placement, routes = place_and_route(program, SMALL, seed=1, pins={"c0": (0, 0), "c1": (3, 3)})
    chip = assemble(program, placement, routes, SMALL)
    assert [tile.unit is None for tile in chip.tiles.values()].count(True) == 5
    assert chip.pack()


def with_rotation(chip, at, output, turns):
    """The program with another rotation of one output, or none."""
    tile = chip.tiles.get(at) or empty_tile(chip.config, chip.config.unit_at(*at))
    outputs = [each for each in tile.vectors.outputs if each.output != output]
    if turns:
        outputs.append(OutputProgram(output, turns))
    vectors = SwitchProgram(tile.vectors.ports, outputs)
    return dataclasses.replace(
        chip, tiles={**chip.tiles, at: dataclasses.replace(tile, vectors=vectors)}
    )


def merges(chip):
    return [
        (at, each)
        for at, tile in chip.tiles.items()
        for each in tile.vectors.outputs
        if len(each.rotation) > 1
    ]


def test_extraction_finds_a_rotation_in_another_order(seed):
    program = gemm_1x8()
    placement, chip = built(program, SMALL, seed=seed)
    assert merges(chip)
    for at, each in merges(chip):
        first, *others = each.rotation
        wrong = with_rotation(chip, at, each.output, (*others, first))
        with pytest.raises(NetlistMismatchError, match="must see"):
            require_netlist(program, placement.tiles, wrong)


def test_extraction_finds_a_wrong_number_of_packets(seed):
    program = gemm_1x8()
    placement, chip = built(program, SMALL, seed=seed)
    for at, each in merges(chip):
        first, *others = each.rotation
        turns = (Turn(first.source, first.packets % 15 + 1), *others)
        with pytest.raises(NetlistMismatchError, match="must see"):
            require_netlist(program, placement.tiles, with_rotation(chip, at, each.output, turns))


def test_extraction_finds_every_output_that_is_missing(seed):
    program = gemm_4x2()
    placement, chip = built(program, SMALL, seed=seed)
    for at, tile in chip.tiles.items():
        for each in tile.vectors.outputs:
            with pytest.raises(NetlistMismatchError):
                require_netlist(program, placement.tiles, with_rotation(chip, at, each.output, ()))


def test_extraction_finds_packets_that_nobody_takes():
    program = netlist([net("x", ["c0.0"], ["m0.0"])], agcus=1)
    placement, chip = built(program, TINY)
    at = placement.tiles["c0"]
    used = {each.output for each in chip.tiles[at].vectors.outputs}
    sides = {
        (0, 0): (Direction.EAST, Direction.SOUTH),
        (1, 1): (Direction.NORTH, Direction.WEST),
    }[at]
    free = next(
        Link(side, track) for side in sides for track in range(3) if Link(side, track) not in used
    )
    stray = with_rotation(chip, at, free, (Turn(UnitPort(0)),))
    with pytest.raises(NetlistMismatchError, match="must have a taker"):
        require_netlist(program, placement.tiles, stray)
    edge = next(side for side in Direction if side not in sides)
    stray = with_rotation(chip, at, Link(edge, 2), (Turn(UnitPort(0)),))
    with pytest.raises(NetlistMismatchError, match="must have a taker"):
        require_netlist(program, placement.tiles, stray)


def test_extraction_finds_an_input_that_no_net_has():
    program = netlist([net("x", ["c0.0"], ["m0.0"])], agcus=1)
    placement, chip = built(program, TINY)
    at = placement.tiles["m0"]
    port = next(each for each in chip.tiles[at].vectors.outputs if each.output == UnitPort(0))
    stray = with_rotation(chip, at, UnitPort(1), port.rotation)
    with pytest.raises(NetlistMismatchError, match=r"must lead to a sink, not to PMU .* W1"):
        require_netlist(program, placement.tiles, stray)


CIRCLE = [
    ((0, 0), Direction.EAST, Direction.SOUTH),
    ((0, 1), Direction.SOUTH, Direction.WEST),
    ((1, 1), Direction.WEST, Direction.NORTH),
    ((1, 0), Direction.NORTH, Direction.EAST),
]


def test_extraction_finds_a_circle():
    program = netlist([net("x", ["c0.0"], ["m0.0"])], agcus=1)
    placement, chip = built(program, TINY)
    circle = dataclasses.replace(chip, tiles={})
    for at, output, source in CIRCLE:
        turns = (Turn(Link(source, 2)),)
        if at == placement.tiles["c0"]:
            turns += (Turn(UnitPort(0)),)
        elif at == placement.tiles["m0"]:
            circle = with_rotation(circle, at, UnitPort(0), turns)
        circle = with_rotation(circle, at, Link(output, 2), turns)
    with pytest.raises(NetlistMismatchError, match="must not run in a circle"):
        require_netlist(program, placement.tiles, circle)


def test_extraction_finds_outputs_that_no_net_drives():
    program = netlist([net("x", ["c0.0"], ["m0.0"])], agcus=1)
    placement, circle = built(program, TINY)
    first = circle.tiles[placement.tiles["c0"]].vectors.outputs[0].output
    track = (first.track + 1) % 3
    for at, output, source in CIRCLE:
        circle = with_rotation(circle, at, Link(output, track), (Turn(Link(source, track)),))
    with pytest.raises(NetlistMismatchError, match="must be off, for no net drives it"):
        require_netlist(program, placement.tiles, circle)


def test_extraction_finds_a_net_that_another_source_feeds():
    nets = [net("x", ["m0.0"], ["c0.0"]), net("y", ["m0.1"], ["c0.1"])]
    program = netlist(nets, agcus=1)
    placement, chip = built(program, TINY)
    crossed = dataclasses.replace(
        program,
        nets=(
            dataclasses.replace(nets[0], sinks=nets[1].sinks),
            dataclasses.replace(nets[1], sinks=nets[0].sinks),
        ),
    )
    with pytest.raises(NetlistMismatchError, match=r"must see packets of PMU .* R\d, not of PMU"):
        require_netlist(crossed, placement.tiles, chip)
