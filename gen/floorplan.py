"""SVG floorplan of a placed and routed chip: units, links by net, legend of nets."""

from __future__ import annotations

import dataclasses
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Mapping, Sequence
from xml.sax.saxutils import escape

from gen.floorplan_nets import Hops, NetEnds, Style, Way, net_ends, style_of, ways_of
from hw.arch.config import ChipConfig
from hw.arch.places import agcu_places
from hw.arch.ports import Direction
from hw.arch.unit_kind import AGCU, PCU, PMU, UnitKind

__all__ = ["floorplan", "stacked"]

#: Sizes: gap between tiles, depth of an AGCU's box, margin; pitch of links; legend.
_GAP, _PORTAL, _MARGIN, _LANE = 62, 70, 16, 16
_LEGEND, _LINE, _HEAD = 320, 18, 34
#: Left margin of a text of the legend, and width of a letter in it.
_ENTRY, _LETTER = 54, 7
_SMALLEST_TILE = 96
#: Unit vectors in (columns, rows): towards the neighbour, and to its right-hand side.
_STEPS = {
    Direction.NORTH: ((0, -1), (1, 0)),
    Direction.EAST: ((1, 0), (0, 1)),
    Direction.SOUTH: ((0, 1), (-1, 0)),
    Direction.WEST: ((-1, 0), (0, -1)),
}
#: Colour of a unit in use, by its kind; other kinds have the last.
_FILLS = {PCU: "#dbe9f6", PMU: "#fbe6cf", AGCU: "#e3efdc"}
_OTHER_FILL = "#ece3f4"
_OFF = "#f6f6f6"
_NOTES = (
    "number on an arrow: net of the legend",
    "in, out: nets that enter and leave the unit;",
    "other arrows pass its switch",
    "thick arrow: several sources take turns",
    "box without a name: not used; tokens are not drawn",
)


@dataclasses.dataclass(frozen=True)
class _Canvas:
    """Geometry of the floorplan."""

    config: ChipConfig

    @property
    def tile(self) -> int:
        """Side of a tile: room for the links of both directions on all tracks."""
        return max(_SMALLEST_TILE, 2 * self.config.tracks * _LANE)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of mesh and AGCUs, margins included."""
        config = self.config
        east = any(place.side == "east" for place in agcu_places(config))
        right = self.corner(0, config.columns)[0] + (_PORTAL if east else -_GAP)
        return right + 2 * _MARGIN, self.corner(config.rows, 0)[1] - _GAP + _MARGIN

    def corner(self, row: int, column: int) -> tuple[int, int]:
        """Top left corner of a tile, or of the cell beside the mesh for an AGCU's column."""
        pitch = self.tile + _GAP
        return _MARGIN + _PORTAL + _GAP + column * pitch, _MARGIN + _HEAD + row * pitch


def floorplan(
    config: ChipConfig,
    units: Mapping[tuple[int, int], str],
    nets: Mapping[str, Hops],
    *,
    agcus: Mapping[int, str] | None = None,
    title: str = "",
) -> str:
    """SVG floorplan of a chip: units with the nets that enter and leave them, links, legend.

    Parameters
    ----------
    config : ChipConfig
    units : mapping of (row, column) to str
        Name of the unit on each tile in use.
    nets : mapping of str to iterable of ((row, column), OutputProgram)
        Switch outputs that each net uses.
    agcus : mapping of int to str, optional
        Names of the AGCUs in use.
    title : str
        Title of the figure.
    """
    canvas = _Canvas(config)
    names = dict(units)
    places = {
        number: (place.row, place.column(config) + (1 if place.side == "east" else -1))
        for number, place in enumerate(agcu_places(config))
    }
    names |= {places[number]: name for number, name in (agcus or {}).items()}
    hops = {name: list(each) for name, each in nets.items()}
    ends = {name: net_ends(config, each) for name, each in hops.items()}
    styles = {name: style_of(number) for number, name in enumerate(hops)}
    mesh_width, mesh_height = canvas.size
    entries = {
        net: f"{net}: {_listed(each.sources, names)} → {_listed(each.sinks, names)}"
        for net, each in ends.items()
    }
    longest = max(map(len, entries.values()), default=0)
    width = mesh_width + max(_LEGEND, _ENTRY + _LETTER * longest)
    height = max(mesh_height, _HEAD + (len(hops) + len(_NOTES) + 2) * _LINE + _MARGIN)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12" '
        'text-anchor="middle">',
        f"<title>{escape(title)}</title>" if title else "",
        _paper(width, height),
        f'<text x="{_MARGIN}" y="24" font-size="15" font-weight="bold" text-anchor="start">'
        f"{escape(title)}</text>",
    ]
    for row in range(config.rows):
        for column in range(config.columns):
            at = row, column
            kind = config.unit_at(row, column)
            lines += _tile(canvas, at, kind, names.get(at), ends, styles)
    for number, at in places.items():
        lines += _agcu(canvas, at, number, names.get(at))
    for name, each in hops.items():
        lines.append(f'<g class="net"><title>{escape(name)}</title>')
        lines += [_arrow(canvas, way, styles[name]) for way in ways_of(config, each)]
        lines.append("</g>")
    lines += _legend(mesh_width, entries, styles)
    return "\n".join([*filter(None, lines), "</svg>", ""])


def stacked(figures: Sequence[str]) -> str:
    """SVG of floorplans one above another; a single one is returned as it is."""
    if len(figures) == 1:
        return figures[0]
    width = height = 0
    inner = []
    for figure in figures:
        root = ElementTree.fromstring(figure)
        inner.append(figure.replace("<svg ", f'<svg y="{height}" ', 1))
        width = max(width, int(root.get("width", 0)))
        height += int(root.get("height", 0))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">\n'
    return f"{head}{_paper(width, height)}\n{''.join(inner)}</svg>\n"


def _paper(width: float, height: float) -> str:
    """White ground of a picture."""
    return f'<rect width="{width}" height="{height}" fill="white"/>'


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}"{more}>{escape(text)}</text>'


def _badge(x: float, y: float, style: Style) -> str:
    """Badge with the net's number in its colour, centred at (x, y)."""
    return (
        f'<rect x="{x - 7:g}" y="{y - 6:g}" width="14" height="12" rx="4" fill="{style.colour}"/>'
        f'<text x="{x:g}" y="{y + 3.2:g}" font-size="9" font-weight="bold" fill="{style.ink}">'
        f"{style.number}</text>"
    )


def _tile(
    canvas: _Canvas,
    at: tuple[int, int],
    kind: UnitKind,
    name: str | None,
    ends: Mapping[str, NetEnds],
    styles: Mapping[str, Style],
) -> list[str]:
    (x, y), side = canvas.corner(*at), canvas.tile
    middle = x + side / 2
    lines = [
        f'<rect x="{x}" y="{y}" width="{side}" height="{side}" rx="4" '
        f'fill="{_FILLS.get(kind, _OTHER_FILL) if name else _OFF}" stroke="#888"/>'
    ]
    place = f"{kind} {at[0]},{at[1]}"
    if name is None:
        return [*lines, _text(middle, y + side / 2, place, ' font-size="10" fill="#777"')]
    top = y + side / 2 - 46
    lines.append(_text(middle, top + 22, name, f' font-weight="bold"{_fitted(name, side)}'))
    lines.append(_text(middle, top + 36, place, ' font-size="10" fill="#444"'))
    rows = (("in", "sinks", 54), ("out", "sources", 74))
    for word, end, below in rows:
        numbers = [styles[net] for net, each in ends.items() if at in getattr(each, end)]
        if numbers:
            lines.append(_text(x + 18, top + below + 3, word, ' font-size="10" fill="#444"'))
        lines += [_badge(x + 38 + 17 * i, top + below, style) for i, style in enumerate(numbers)]
    return lines


def _fitted(name: str, side: int) -> str:
    """Attributes that shrink a long name to its box."""
    room = side - 8
    return f' textLength="{room}" lengthAdjust="spacingAndGlyphs"' if 7 * len(name) > room else ""


def _agcu(canvas: _Canvas, at: tuple[int, int], number: int, name: str | None) -> list[str]:
    x, y = canvas.corner(*at)
    # The box touches the gap whose other side is the tile.
    x = x + canvas.tile - _PORTAL if at[1] < 0 else x
    middle, centre = x + _PORTAL / 2, y + canvas.tile / 2
    lines = [
        f'<rect x="{x}" y="{y}" width="{_PORTAL}" height="{canvas.tile}" rx="4" '
        f'fill="{_FILLS[AGCU] if name else _OFF}" stroke="#888"/>'
    ]
    if name is not None:
        more = f' font-weight="bold"{_fitted(name, _PORTAL)}'
        lines.append(_text(middle, centre - 3, name, more))
    return [*lines, _text(middle, centre + 12, f"AGCU {number}", ' font-size="10" fill="#444"')]


def _arrow(canvas: _Canvas, way: Way, style: Style) -> str:
    """Arrow of a link: the net's number at its start, then a line to the neighbour."""
    half = canvas.tile / 2
    left, top = canvas.corner(*way.at)
    (along, down), (right, below) = _STEPS[way.direction]
    # The two directions between neighbours lie on both sides of the line between them.
    off = _LANE * (way.track + 0.5)
    x = left + half + off * right + along * half
    y = top + half + off * below + down * half
    tail, tip = 9, _GAP - 2
    start = (x + along * (tail + 7), y + down * (tail + 7))
    stop = (x + along * (tip - 7), y + down * (tip - 7))
    point = (x + along * tip, y + down * tip)
    wings = [(stop[0] + 4 * turn * right, stop[1] + 4 * turn * below) for turn in (1, -1)]
    points = " ".join(f"{a:g},{b:g}" for a, b in (point, *wings))
    dashes = f' stroke-dasharray="{style.dashes}"' if style.dashes else ""
    return (
        f'<line x1="{start[0]:g}" y1="{start[1]:g}" x2="{stop[0]:g}" y2="{stop[1]:g}" '
        f'stroke="{style.colour}" stroke-width="{3.6 if way.merged else 1.8}"{dashes}/>'
        f'<polygon points="{points}" fill="{style.colour}"/>'
        + _badge(x + along * tail, y + down * tail, style)
    )


def _legend(left: int, entries: Mapping[str, str], styles: Mapping[str, Style]) -> list[str]:
    """Legend right of the mesh: a line per net."""
    y = _MARGIN + _HEAD + 10
    lines = ['<g class="legend" text-anchor="start">']
    for net, text in entries.items():
        style = styles[net]
        dashes = f' stroke-dasharray="{style.dashes}"' if style.dashes else ""
        lines.append(f'<g text-anchor="middle">{_badge(left + 7, y - 4, style)}</g>')
        lines.append(
            f'<line x1="{left + 18}" y1="{y - 4}" x2="{left + 46}" y2="{y - 4}" '
            f'stroke="{style.colour}" stroke-width="2.4"{dashes}/>'
        )
        lines.append(_text(left + _ENTRY, y, text))
        y += _LINE
    y += _LINE // 2
    for note in _NOTES:
        lines.append(_text(left, y, note, ' font-size="11" fill="#444"'))
        y += _LINE - 2
    return [*lines, "</g>"]


def _listed(places: Iterable[tuple[int, int]], names: Mapping[tuple[int, int], str]) -> str:
    """Names of some units, or their number if there are many."""
    found = [names.get(at, f"{at[0]},{at[1]}") for at in places]
    return ", ".join(found) if len(found) < 3 else f"{len(found)} units"
