"""Random chip configurations: every field varies, half of the draws at a corner value."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping, Sequence
from typing import Any

from hw.arch import limits
from hw.arch.checks import Domain
from hw.arch.config import SECTIONS, AgcuConfig, ChipConfig, PcuConfig, PmuConfig, named
from hw.numeric.product_formats import CELL_SETS, DEFAULT_CELLS

__all__ = ["chip_fields", "chip_of", "random_chip"]

#: Fraction of chips whose mesh may have up to `most_tiles`; others stay within `_USUAL_SIDE`.
_LARGE_SHARE, _USUAL_SIDE = 0.04, 7


def _field(rng: random.Random, corners: Sequence[int], inner: Sequence[int]) -> int:
    """A corner value in half of the draws, otherwise any value between."""
    return rng.choice(corners if rng.random() < 0.5 else inner)


def _value(rng: random.Random, domain: Domain) -> int:
    return _field(rng, (domain.low, domain.high), domain.values())


def _mesh(rng: random.Random, most_tiles: int) -> tuple[int, int]:
    """Rows and columns: at least two tiles; often one side is 1."""
    most = limits.MESH_SIDE.high if rng.random() < _LARGE_SHARE else _USUAL_SIDE
    while True:
        rows, columns = (
            _field(rng, (1, 2, most), range(1, most + 1)),
            _field(rng, (1, 2, most), range(1, most + 1)),
        )
        if 2 <= rows * columns <= most_tiles:
            return rows, columns


def _pattern(rng: random.Random, rows: int, columns: int) -> str:
    """Tile pattern: checkerboard, one PCU, one PMU, or random; both kinds occur."""
    kind = rng.choice(["checkerboard", "checkerboard", "one pcu", "one pmu", "any", "any"])
    if kind == "checkerboard":
        return kind
    letters = [rng.choice("cm") for _ in range(rows * columns)]
    if kind != "any":
        letters = ["m" if kind == "one pcu" else "c"] * (rows * columns)
    first, second = rng.sample(range(rows * columns), 2)
    letters[first] = "c" if kind != "one pmu" else "m"
    letters[second] = "m" if kind != "one pmu" else "c"
    return "/".join("".join(letters[at : at + columns]) for at in range(0, len(letters), columns))


def random_chip(
    rng: random.Random, *, most_tiles: int = 256, most_cells: int | None = None
) -> ChipConfig:
    """A valid chip with at least one PCU and one PMU.

    Parameters
    ----------
    rng : random.Random
    most_tiles : int
        Most tiles of the mesh, 2 to 4,096.
    most_cells : int or None
        Most array cells over all PCUs, for chips whose RTL is to be simulated; scratchpads then
        have at most 64 KiB and links at most 128 bits. None sets no limit.
    """
    small = most_cells is not None
    while True:
        rows, columns = _mesh(rng, most_tiles)
        widths = dataclasses.replace(limits.LINK_BITS, high=128) if small else limits.LINK_BITS
        width = _value(rng, widths)
        most_agcus = min(limits.AGCU_COUNT.high, 2 * rows)
        capacities = limits.PMU_CAPACITY_BYTES
        if small:
            capacities = dataclasses.replace(capacities, high=1 << 16)
        chip = ChipConfig(
            rows=rows,
            columns=columns,
            width_bits=width,
            tracks=_value(rng, limits.TRACKS),
            token_tracks=_value(rng, limits.TRACKS),
            pattern=_pattern(rng, rows, columns),
            pcu=PcuConfig(
                accumulator_rows=_value(rng, limits.BANK_ROWS),
                cell_latency=_value(rng, limits.CELL_LATENCY),
                function_bits=_value(rng, limits.FUNCTION_BITS),
                lanes=_lanes(rng, width),
                formats=_formats(rng),
            ),
            pmu=PmuConfig(
                capacity_bytes=_value(rng, capacities),
                slots=_value(rng, limits.PMU_SLOTS),
            ),
            agcu=AgcuConfig(
                count=_value(rng, Domain(1, most_agcus)),
                axi_data_bits=width,
                axi_address_bits=_value(rng, limits.AXI_ADDRESS_BITS),
                landing_beats=_value(rng, limits.LANDING_BEATS),
                outstanding=_value(rng, limits.OUTSTANDING),
            ),
        )
        if most_cells is None or chip.peak_macs_per_cycle(16) <= most_cells:
            return chip


def _lanes(rng: random.Random, width: int) -> int:
    """Half of the chips have no lanes."""
    most = min(limits.LANES.high, width // 32)
    return rng.choice((0, _value(rng, dataclasses.replace(limits.LANES, high=most))))


def _formats(rng: random.Random) -> tuple[str, ...]:
    """Formats of the cells; half of the chips have those of the named ones."""
    return tuple(each.name for each in rng.choice((DEFAULT_CELLS, rng.choice(CELL_SETS))))


def chip_fields(config: ChipConfig) -> str | dict[str, Any]:
    """Plain data of a chip: the name of a named configuration, otherwise all fields."""
    for name, each in named.items():
        if each == config:
            return name
    return config.parameters()


def chip_of(fields: str | Mapping[str, Any]) -> ChipConfig:
    """Rebuild a chip from `chip_fields`.

    Raises
    ------
    KeyError, TypeError, ValueError
        If the fields are not those of a chip.
    """
    if isinstance(fields, str):
        return named[fields]
    sections = {name: kind(**fields[name]) for name, kind in SECTIONS.items() if name in fields}
    return ChipConfig(**{**fields, **sections})
