"""The picture of a chip: every unit, net and link is in it, and nothing lies on a label."""

import dataclasses
import itertools
import xml.etree.ElementTree as ElementTree

import pytest

from gen.floorplan import floorplan, stacked
from gen.floorplan_nets import net_ends, style_of, ways_of
from hw.arch.config import named
from hw.arch.places import agcu_places
from hw.arch.ports import Direction, Link, UnitPort
from hw.arch.switch import OutputProgram, Turn
from hw.numeric.formats import bf16
from sw.compiler import compile_kernel
from sw.kernels.matmul import matmul

SVG = "{http://www.w3.org/2000/svg}"
WEST, EAST = Direction.WEST, Direction.EAST

CHIPS = {
    "tiny": named["tiny"],
    "small": named["small"],
    "large": named["large"],
    "row": dataclasses.replace(named["tiny"], rows=1, columns=6, pattern="cmcmcm"),
    "tracks": dataclasses.replace(
        named["small"], tracks=7, agcu=dataclasses.replace(named["small"].agcu, count=6)
    ),
}


@dataclasses.dataclass(frozen=True)
class Drawn:
    """A compiled product, its picture, and what should be in it."""

    config: object
    units: dict
    nets: dict
    agcus: dict
    root: ElementTree.Element


@pytest.fixture(scope="module", params=CHIPS)
def drawn(request):
    config = CHIPS[request.param]
    compiled = compile_kernel(matmul, config, dims={"M": 70, "N": 65, "K": 64}, dtype=bf16)
    (part,) = compiled.parts
    units = {at: name for name, at in part.placement.tiles.items()}
    nets = {
        name: [(hop.place, hop.program) for hop in hops]
        for name, hops in part.routes.vectors.items()
    }
    agcus = {number: name for name, number in part.netlist.fixed.items()}
    text = floorplan(config, units, nets, agcus=agcus, title="the product")
    return Drawn(config, units, nets, agcus, ElementTree.fromstring(text))


def number(element, name):
    return float(element.get(name))


def groups(root):
    return {
        group.find(f"{SVG}title").text: group
        for group in root.iter(f"{SVG}g")
        if group.get("class") == "net"
    }


def legend(root):
    (found,) = (group for group in root.iter(f"{SVG}g") if group.get("class") == "legend")
    return found


def test_units_nets_and_links_are_drawn(drawn):
    texts = [each.text for each in drawn.root.iter(f"{SVG}text")]
    assert "the product" in texts
    assert {*drawn.units.values(), *drawn.agcus.values()} <= set(texts)
    found = groups(drawn.root)
    assert found.keys() == drawn.nets.keys()
    for name, hops in drawn.nets.items():
        ways = ways_of(drawn.config, hops)
        assert len(found[name].findall(f"{SVG}line")) == len(ways)
        # An arrow has the number of its net.
        (shown,) = {each.text for each in found[name].findall(f"{SVG}text")}
        assert shown == str(1 + list(drawn.nets).index(name))


def test_streams_between_agcus_and_the_mesh_are_drawn_both_ways(drawn):
    config = drawn.config
    for place, name in enumerate(drawn.agcus.values()):
        assert name == f"agcu{place}"
    places = {
        (place.row, -1 if place.side == "west" else config.columns) for place in agcu_places(config)
    }
    ends = {name: net_ends(config, hops) for name, hops in drawn.nets.items()}
    for name, each in ends.items():
        assert bool(places & set(each.sources)) == ("load" in name)
        assert bool(places & set(each.sinks)) == ("store" in name)
        begun = {way.at for way in ways_of(config, drawn.nets[name])}
        # An arrow leaves the AGCU of each load.
        assert begun & places == set(each.sources) & places
        assert each.sources and each.sinks


def test_the_legend_says_where_each_net_comes_from_and_leads_to(drawn):
    texts = [each.text for each in legend(drawn.root).iter(f"{SVG}text")]
    for name, hops in drawn.nets.items():
        (line,) = (text for text in texts if text and text.startswith(f"{name}: "))
        sources, _, sinks = line.partition(": ")[2].partition(" → ")
        ends = net_ends(drawn.config, hops)
        for said, places in ((sources, ends.sources), (sinks, ends.sinks)):
            shown = [drawn.units[at] for at in places if at in drawn.units]
            assert set(said.split(", ")) >= set(shown) or said == f"{len(places)} units"


def test_no_arrow_crosses_a_label_or_another_arrow(drawn):
    """Arrows lie between boxes, and each on a line of its own."""
    root = drawn.root
    boxes = [
        tuple(number(box, key) for key in ("x", "y", "width", "height"))
        for box in root.findall(f"{SVG}rect")
        if box.get("stroke")
    ]
    assert len(boxes) == drawn.config.rows * drawn.config.columns + len(agcu_places(drawn.config))
    arrows = [
        tuple(number(line, key) for key in ("x1", "y1", "x2", "y2"))
        for group in groups(root).values()
        for line in group.findall(f"{SVG}line")
    ]
    for (x1, y1, x2, y2), (x, y, width, height) in itertools.product(arrows, boxes):
        left, right = sorted((x1, x2))
        top, bottom = sorted((y1, y2))
        assert right <= x or left >= x + width or bottom <= y or top >= y + height
    numbers = [
        (number(box, "x"), number(box, "y"))
        for group in groups(root).values()
        for box in group.findall(f"{SVG}rect")
    ]
    for (x, y), (u, v) in itertools.combinations(numbers, 2):
        assert abs(x - u) >= 14 or abs(y - v) >= 12
    within = legend(root)
    edge = min(number(line, "x1") for line in within.iter(f"{SVG}line"))
    assert all(max(x1, x2) < edge for x1, _, x2, _ in arrows)


def test_styles_differ_also_without_colour():
    styles = [style_of(index) for index in range(28)]
    assert len({(style.colour, style.dashes) for style in styles}) == 28
    assert [style.number for style in styles] == list(range(1, 29))

    def luminance(colour):
        red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
        return 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2

    for style in styles:
        # The number can be read on its colour, and the line on white (WCAG 2: 3 to 1).
        ink = 1.0 if style.ink == "white" else 0.0
        pair = sorted((luminance(style.colour), ink))
        assert (pair[1] + 0.05) / (pair[0] + 0.05) >= 3


def test_names_are_escaped_and_long_ones_fitted():
    long = "a<b" * 20
    text = floorplan(named["tiny"], {(0, 0): long}, {"x&y": []}, title="<p>")
    assert "a&lt;b" in text and "x&amp;y" in text and "&lt;p&gt;" in text
    (label,) = (
        each for each in ElementTree.fromstring(text).iter(f"{SVG}text") if each.text == long
    )
    assert number(label, "textLength") < 96


def test_a_net_from_one_agcu_to_another_enters_and_leaves():
    hops = [
        ((0, 0), OutputProgram(Link(EAST, 0), (Turn(Link(WEST, 0)),))),
        ((0, 1), OutputProgram(UnitPort(0), (Turn(Link(WEST, 0)),))),
        ((0, 1), OutputProgram(Link(EAST, 0), (Turn(Link(WEST, 0)), Turn(UnitPort(0))))),
    ]
    ways = ways_of(named["tiny"], hops)
    assert [(way.at, way.direction, way.track, way.merged) for way in ways] == [
        ((0, -1), EAST, 0, False),
        ((0, 0), EAST, 0, False),
        ((0, 1), EAST, 0, True),
    ]
    ends = net_ends(named["tiny"], hops)
    assert ends.sources == ((0, -1), (0, 1)) and ends.sinks == ((0, 1), (0, 2))


def test_pictures_of_several_parts_stand_one_above_another():
    first, second = (
        floorplan(CHIPS[name], {}, {}, title=f"part {name}") for name in ("tiny", "small")
    )
    assert stacked([first]) == first
    root = ElementTree.fromstring(stacked([first, second]))
    inner = root.findall(f"{SVG}svg")
    assert [each.find(f"{SVG}title").text for each in inner] == ["part tiny", "part small"]
    assert [each.get("y") for each in inner] == ["0", inner[0].get("height")]
    assert number(root, "height") == sum(number(each, "height") for each in inner)
    assert number(root, "width") == max(number(each, "width") for each in inner)
    ground = root.find(f"{SVG}rect")
    assert all(ground.get(side) == root.get(side) for side in ("width", "height"))
