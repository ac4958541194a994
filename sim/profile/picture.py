"""Picture of a profile, as SVG: what every unit did over time, and the causes of its cycles."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape

__all__ = ["CAUSES", "STATES", "picture_of"]

#: Colour of each state of a unit, from the bottom of its strip up; those of the page.
STATES = {"busy": "#0072b2", "wait_input": "#e69f00", "wait_room": "#cc79a7", "idle": "#e3e7ed"}
#: Meaning and colour of each cause; those of the page.
CAUSES = {
    "busy": ("works", "#0072b2"),
    "memory": ("waits for memory", "#d55e00"),
    "port": ("waits for a full memory port", "#e69f00"),
    "unit": ("waits for another unit's work", "#9a7bd0"),
    "slots": ("waits for turns of slots", "#cc79a7"),
    "done": ("has ended", "#c9d1db"),
    "launch": ("no kernel runs", "#6b7583"),
    "off": ("not used", "#eef1f5"),
}
_INK, _SOFT = "#1d2430", "#5c6675"
#: Places in x: names, strips, bars, and the right margin; height of a row and of its strip.
_NAMES, _STRIPS, _BARS, _WIDTH = 14, 330, 850, 1120
_STRIP_WIDTH, _BAR_WIDTH = _BARS - _STRIPS - 24, _WIDTH - _BARS - 14
_ROW, _STRIP = 21, 16
#: Height of a line of text.
_LINE = 18
#: Columns of a strip, letters of a label that fit in front of it, and widths of a letter.
_COLUMNS, _LETTERS, _LETTER, _HEAD_LETTER = 166, 36, 6.2, 9.4
#: Order of the rows, by the kind of their unit.
_ORDER = {"pcu": 0, "pmu": 1, "agcu": 2}


def _text(x: float, y: float, words: str, more: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}"{more}>{escape(words)}</text>'


def _wrapped(words: str, letter: float) -> list[str]:
    """Lines of a text, each within the margins."""
    return textwrap.wrap(words, int((_WIDTH - 2 * _NAMES) / letter))


def _columns(edges: Sequence[int], counts: Sequence[int], cycles: int) -> list[float]:
    """Cycles of a state in equal columns of the run; an interval is spread over its columns."""
    found = [0.0] * _COLUMNS
    width = cycles / _COLUMNS
    for begin, end, count in zip(edges[:-1], edges[1:], counts, strict=True):
        for column in range(int(begin / width), min(_COLUMNS, int(end / width) + 1)):
            inside = min(end, (column + 1) * width) - max(begin, column * width)
            if inside > 0:
                found[column] += count * inside / (end - begin)
    return [each / width for each in found]


def _strip(unit: Mapping[str, Any], edges: Sequence[int], cycles: int, y: float) -> Iterator[str]:
    """States of a unit over time, stacked to the height of its row."""
    below = [0.0] * _COLUMNS
    step = _STRIP_WIDTH / _COLUMNS
    for state, colour in STATES.items():
        heights = _columns(edges, unit["states"][state], cycles)
        path, column = [], 0
        while column < _COLUMNS:
            # Neighbours of equal height are one rectangle.
            low, high = round(below[column] * _STRIP, 1), round(heights[column] * _STRIP, 1)
            last = column + 1
            while last < _COLUMNS and (
                (round(below[last] * _STRIP, 1), round(heights[last] * _STRIP, 1)) == (low, high)
            ):
                last += 1
            if high:
                left, wide = _STRIPS + column * step, (last - column) * step
                path.append(f"M{left:.1f} {y + _STRIP - low:.1f}v-{high:g}h{wide:.1f}v{high:g}z")
            column = last
        below = [one + other for one, other in zip(below, heights, strict=True)]
        if path:
            yield f'<path fill="{colour}" d="{"".join(path)}"/>'


def _bar(unit: Mapping[str, Any], cycles: int, y: float) -> Iterator[str]:
    """Causes of a unit's cycles, as shares of the run."""
    left = float(_BARS)
    for cause, (meaning, colour) in CAUSES.items():
        count = sum(each["cycles"] for each in unit["causes"] if each["cause"] == cause)
        wide = _BAR_WIDTH * count / cycles
        if wide >= 0.05:
            title = f"<title>{escape(f'{meaning}: {count:,} cycles')}</title>"
            yield (
                f'<rect x="{left:.1f}" y="{y:g}" width="{wide:.1f}" height="{_STRIP}" '
                f'fill="{colour}">{title}</rect>'
            )
        left += wide


def _legend(title: str, entries: Iterable[tuple[str, str]], y: float) -> tuple[list[str], float]:
    """Colours and their meanings, in as many lines as they take; and the place of the next line."""
    drawn = [_text(_NAMES, y, title, f' fill="{_INK}"')]
    first = x = float(_NAMES + 150)
    for words, colour in entries:
        width = 30 + _LETTER * len(words)
        if x + width > _WIDTH:
            x, y = first, y + _LINE
        drawn += [
            f'<rect x="{x:g}" y="{y - 9:g}" width="10" height="10" rx="2" fill="{colour}"/>',
            _text(x + 15, y, words, f' fill="{_SOFT}"'),
        ]
        x += width
    return drawn, y + _LINE


def _shown(label: str) -> str:
    """What a unit does, without its number, as long as there is room."""
    words = label.partition(": ")[2] or label
    return words if len(words) <= _LETTERS else f"{words[: _LETTERS - 1]}…"


def picture_of(profile: Mapping[str, Any]) -> str:
    """SVG of the units in use: a strip of states over time, and a bar of causes.

    Parameters
    ----------
    profile : mapping
        In the form of `sim.profile.schema`.
    """
    # A launch that ended at once has neither cycles nor strips.
    cycles = max(profile["cycles"], 1)
    used = [unit for unit in profile["units"] if unit["used"]]
    used.sort(key=lambda unit: _ORDER.get(unit["kind"], len(_ORDER)))
    roofline = profile["roofline"]
    kind = "cycles predicted by the machine model" if profile["predicted"] else "cycles"
    head = f"{profile['kernel']} on {profile['config']}: {profile['cycles']:,} {kind}"
    if roofline["macs"]:
        share = roofline["macs"] / (roofline["peak_macs"] * cycles)
        head += f", {share:.4f} of the chip's multiply-accumulates"
    lines = []
    y = 26.0
    for words in _wrapped(head, _HEAD_LETTER):
        lines.append(_text(_NAMES, y, words, f' font-size="16" font-weight="600" fill="{_INK}"'))
        y += _LINE
    for finding in profile["findings"][:3]:
        for words in _wrapped(finding["text"], _LETTER):
            lines.append(_text(_NAMES, y + 4, words, f' fill="{_INK}"'))
            y += _LINE
    y += 16
    lines += [
        _text(_STRIPS, y, "over time", f' fill="{_SOFT}"'),
        _text(_BARS, y, "where the cycles went", f' fill="{_SOFT}"'),
    ]
    y += 8
    for unit in used:
        named = f'<tspan font-weight="600">{escape(unit["name"])}</tspan> '
        label = escape(_shown(unit["labels"][0])) if unit["labels"] else ""
        lines.append(
            f'<text x="{_NAMES}" y="{y + 12:g}" fill="{_INK}">{named}'
            f'<tspan fill="{_SOFT}">{label}</tspan></text>'
        )
        lines += _strip(unit, profile["edges"], cycles, y)
        lines += _bar(unit, cycles, y)
        y += _ROW
    states = [(state.replace("_", " "), colour) for state, colour in STATES.items()]
    found = {each["cause"] for unit in used for each in unit["causes"]}
    causes = [pair for cause, pair in CAUSES.items() if cause in found]
    y += 22
    for title, entries in (("over time, from below:", states), ("where they went:", causes)):
        drawn, y = _legend(title, entries, y)
        lines += drawn
    height = y
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height:g}" '
        f'viewBox="0 0 {_WIDTH} {height:g}" font-family="system-ui, sans-serif" font-size="12">'
    )
    paper = f'<rect width="{_WIDTH}" height="{height:g}" rx="8" fill="#ffffff"/>'
    return "\n".join([head, paper, *lines, "</svg>"]) + "\n"
