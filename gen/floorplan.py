"""A placed and routed chip as a picture (SVG): tiles with their units, links by net."""

from __future__ import annotations

import colorsys
from collections.abc import Iterable, Mapping
from xml.sax.saxutils import escape

from hw.config import ChipConfig
from hw.mesh.config import OutputProgram
from hw.mesh.ports import Direction, Link, UnitPort
from hw.places import agcu_places

__all__ = ["floorplan"]

_TILE, _GAP, _EDGE = 84, 56, 70
_PITCH = _TILE + _GAP
#: Width of an AGCU, and its distance from its tile.
_PORTAL, _REACH = 46, 20
#: Towards the neighbour, and to the right of that way: columns, rows.
_WAYS = {
    Direction.NORTH: ((0, -1), (1, 0)),
    Direction.EAST: ((1, 0), (0, 1)),
    Direction.SOUTH: ((0, 1), (-1, 0)),
    Direction.WEST: ((-1, 0), (0, -1)),
}
_FILLS = {"pcu": "#dbe9f6", "pmu": "#fbe6cf", "agcu": "#dff0d8"}

Hops = Iterable[tuple[tuple[int, int], OutputProgram]]


def floorplan(
    config: ChipConfig,
    units: Mapping[tuple[int, int], str],
    nets: Mapping[str, Hops],
    *,
    agcus: Mapping[int, str] | None = None,
) -> str:
    """SVG of a chip: each link that a net uses in the net's colour, its name on pointing at it.

    Parameters
    ----------
    config : ChipConfig
    units : mapping of (row, column) to str
        Name of the unit on each tile that is on.
    nets : mapping of str to iterable of ((row, column), OutputProgram)
        Outputs of the switches that each net uses.
    agcus : mapping of int to str, optional
        Names of the AGCUs that are on.
    """
    width = 2 * _EDGE + config.columns * _PITCH - _GAP
    height = 2 * _EDGE + config.rows * _PITCH - _GAP
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12" '
        'text-anchor="middle">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for row in range(config.rows):
        for column in range(config.columns):
            kind = config.unit_at(row, column)
            name = units.get((row, column))
            lines += _box(_corner(row, column), _TILE, kind, name, f"{kind.upper()} {row},{column}")
    for number, place in enumerate(agcu_places(config)):
        x, y = _corner(place.row, place.column(config))
        x += _TILE + _REACH if place.side == "east" else -_REACH - _PORTAL
        name = (agcus or {}).get(number)
        lines += _box((x, y + 14), _PORTAL, "agcu", name, str(number), height=_TILE - 28)
    for index, (name, hops) in enumerate(sorted(nets.items())):
        colour = _colour(index)
        lines.append(f'<g stroke="{colour}" fill="{colour}"><title>{escape(name)}</title>')
        for at, program in hops:
            lines.append(_hop(config, at, program))
        lines.append("</g>")
    return "\n".join([*lines, "</svg>", ""])


def _corner(row: int, column: int) -> tuple[int, int]:
    return _EDGE + column * _PITCH, _EDGE + row * _PITCH


def _box(
    corner: tuple[int, int],
    width: int,
    kind: str,
    name: str | None,
    place: str,
    *,
    height: int = _TILE,
) -> list[str]:
    (x, y), fill = corner, _FILLS[kind] if name else "#f4f4f4"
    middle = x + width / 2
    return [
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="4" fill="{fill}" '
        'stroke="#888"/>',
        f'<text x="{middle:g}" y="{y + 30}" font-weight="bold">{escape(name or "")}</text>',
        f'<text x="{middle:g}" y="{y + 46}" font-size="9" fill="#666">{place}</text>',
    ]


def _colour(index: int) -> str:
    # Neighbours in the list get hues far apart.
    hue = (index * 0.618034) % 1.0
    parts = colorsys.hls_to_rgb(hue, 0.33 + 0.14 * (index % 3), 0.75)
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)


def _hop(config: ChipConfig, at: tuple[int, int], program: OutputProgram) -> str:
    x, y = (each + _TILE / 2 for each in _corner(*at))
    match program.output:
        case Link(direction, track):
            (along, down), (right, below) = _WAYS[direction]
            # The ways of a pair of neighbours lie on both sides of the line between them.
            off = 4 + (_TILE / 2 - 8) * (track + 0.5) / config.tracks
            x, y = x + off * right + along * _TILE / 2, y + off * below + down * _TILE / 2
            to = (x + along * _GAP * 0.86, y + down * _GAP * 0.86)
            width = 1.5 + 0.8 * (len(program.rotation) > 1)
            tip = (to[0] + along * 6, to[1] + down * 6)
            wing = [(to[0] + 3.5 * side * right, to[1] + 3.5 * side * below) for side in (1, -1)]
            points = " ".join(f"{a:g},{b:g}" for a, b in (tip, *wing))
            return (
                f'<line x1="{x:g}" y1="{y:g}" x2="{to[0]:g}" y2="{to[1]:g}" '
                f'stroke-width="{width:g}"/><polygon points="{points}" stroke="none"/>'
            )
        case UnitPort(index):
            left = x - _TILE / 2 + 14 + 14 * index
            radius = 3 + len(program.rotation) / 2
            return f'<circle cx="{left:g}" cy="{y + _TILE / 2 - 10:g}" r="{radius:g}"/>'
