"""The picture of a chip: every unit, net and link is in it."""

import xml.etree.ElementTree as ElementTree

from gen.floorplan import floorplan
from hw.configs import named
from hw.mesh.ports import Link, UnitPort
from sw.passes.route import place_and_route
from tests.sw.passes.netlists import gemm_4x2

SVG = "{http://www.w3.org/2000/svg}"


def test_units_nets_and_links_are_drawn():
    config, program = named["small"], gemm_4x2()
    placement, routes = place_and_route(program, config, seed=1)
    nets = {
        name: [(hop.place, hop.program) for hop in hops] for name, hops in routes.vectors.items()
    }
    text = floorplan(
        config,
        {at: name for name, at in placement.tiles.items()},
        nets,
        agcus={number: name for name, number in program.fixed.items()},
    )
    root = ElementTree.fromstring(text)
    names = {each.text for each in root.iter(f"{SVG}text")}
    assert names >= program.units.keys()
    groups = {group.find(f"{SVG}title").text: group for group in root.iter(f"{SVG}g")}
    assert groups.keys() == nets.keys()
    for name, hops in nets.items():
        outputs = [each.output for _, each in hops]
        links = sum(isinstance(each, Link) for each in outputs)
        assert len(groups[name].findall(f"{SVG}line")) == links
        assert len(groups[name].findall(f"{SVG}circle")) == len(outputs) - links
        assert any(isinstance(each, UnitPort) for each in outputs) or name.startswith("store")


def test_names_are_escaped():
    text = floorplan(named["tiny"], {(0, 0): "a<b"}, {"x&y": []})
    assert "a&lt;b" in text and "<title>x&amp;y</title>" in text
    ElementTree.fromstring(text)
