"""place: placement of units on tiles of their kind by simulated annealing.

The cost is the expected wirelength: per net, half the perimeter of the bounding box of its pins,
weighted by the number of pins, because a routing tree is longer than that of a net of few pins.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
import random
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from hw.arch.config import ChipConfig
from hw.arch.errors import did_you_mean
from hw.arch.places import agcu_places
from hw.arch.unit_kind import UnitKind, kind_of
from sw.fabric.fit_error import FitError
from sw.fabric.graph import Place
from sw.fabric.netlist_check import check_netlist
from sw.netlist import Netlist

__all__ = ["Placement", "place"]

#: Temperatures of the annealing, and moves per unit at each.
_STEPS = 40
_MOVES = 24
#: Ratio of the last temperature to the first.
_COOLEST = 0.03
#: Weight of token nets, whose network is hardly loaded.
_TOKEN_WEIGHT = 0.5
#: Placements that are remembered.
_REMEMBERED = 256


@dataclasses.dataclass(frozen=True)
class Placement:
    """Tiles of the units.

    Parameters
    ----------
    tiles : mapping of str to (row, column)
        Tile of each unit but AGCUs.
    estimate : float
        Expected wirelength.
    """

    tiles: Mapping[str, Place]
    estimate: float


def place(
    netlist: Netlist,
    config: ChipConfig,
    *,
    seed: int,
    pins: Mapping[str, Place] | None = None,
) -> Placement:
    """Place a netlist.

    Parameters
    ----------
    netlist : Netlist
    config : ChipConfig
    seed : int
        Equal seeds give equal placements.
    pins : mapping of str to (row, column), optional
        Fixed tiles of some units.

    Raises
    ------
    FitError
        If the chip has too few units, or a fixed tile is of an unknown unit, does not exist, is of
        another kind, or is given twice.
    """
    check_netlist(netlist, config)
    pins = dict(pins or {})
    _check_pins(netlist, config, pins)
    return _annealed(_Problem.of(netlist, config, pins), seed)


@dataclasses.dataclass(frozen=True)
class _Problem:
    """All that a placement depends on: units by name, and per net the numbers of its units."""

    config: ChipConfig
    units: tuple[tuple[str, UnitKind], ...]
    nets: tuple[tuple[tuple[int, ...], float], ...]
    fixed: tuple[tuple[int, int], ...]
    pins: tuple[tuple[int, Place], ...]

    @classmethod
    def of(cls, netlist: Netlist, config: ChipConfig, pins: Mapping[str, Place]) -> _Problem:
        names = sorted(netlist.units)
        number = {name: index for index, name in enumerate(names)}
        nets = []
        for net in netlist.nets:
            ends = {number[end.unit] for end, _ in net.sources}
            ends |= {number[end.unit] for end in net.sinks}
            # A net within one unit costs nothing.
            if len(ends) > 1:
                weight = _tree_weight(len(ends)) * (_TOKEN_WEIGHT if net.tokens else 1.0)
                nets.append((tuple(sorted(ends)), weight))
        return cls(
            config=config,
            units=tuple((name, kind_of(netlist.units[name])) for name in names),
            nets=tuple(nets),
            fixed=tuple((number[name], agcu) for name, agcu in netlist.fixed.items()),
            pins=tuple((number[name], at) for name, at in pins.items()),
        )


@functools.lru_cache(maxsize=_REMEMBERED)
def _annealed(problem: _Problem, seed: int) -> Placement:
    """The placement of a problem: programs that differ in sizes alone share it."""
    annealing = _Annealing(problem, random.Random(seed))
    annealing.run()
    tiles = MappingProxyType(dict(sorted(annealing.tiles().items())))
    return Placement(tiles, annealing.total())


def _check_pins(netlist: Netlist, config: ChipConfig, pins: Mapping[str, Place]) -> None:
    taken: dict[Place, str] = {}
    for name, (row, column) in pins.items():
        if name not in netlist.units or name in netlist.fixed:
            movable = set(netlist.units) - set(netlist.fixed)
            raise FitError(
                f"Pin must be of a PCU or PMU of the netlist, not of `{name}`"
                f"{did_you_mean(name, movable)}"
            )
        if not (0 <= row < config.rows and 0 <= column < config.columns):
            raise FitError(
                f"Pin of `{name}` must be on the fabric of {config.rows} × {config.columns}, "
                f"not ({row}, {column})"
            )
        kind = kind_of(netlist.units[name])
        if config.unit_at(row, column) is not kind:
            raise FitError(
                f"Pin of `{name}` must be a {kind}, not ({row}, {column}), "
                f"a {config.unit_at(row, column)}"
            )
        if taken.setdefault((row, column), name) != name:
            raise FitError(
                f"Pins must be apart, not `{taken[row, column]}` and `{name}` at ({row}, {column})"
            )


class _Net(NamedTuple):
    """Net of an annealing.

    Parameters
    ----------
    number : int
    weight : float
    one, two : int
        Its units, if there are two.
    ends : callable or None
        Function from a list to what more units have there, as a tuple.
    """

    number: int
    weight: float
    one: int
    two: int
    ends: Callable[[list[int]], tuple[int, ...]] | None

    @classmethod
    def of(cls, number: int, units: tuple[int, ...], weight: float) -> _Net:
        """Net of some units."""
        one, two, *more = units
        return cls(number, weight, one, two, operator.itemgetter(*units) if more else None)

    def cost(self, rows: list[int], columns: list[int]) -> float:
        """Cost where its units are in such rows and columns."""
        ys, xs = (
            self.ends(each) if self.ends else (each[self.one], each[self.two])
            for each in (rows, columns)
        )
        return (max(ys) - min(ys) + max(xs) - min(xs)) * self.weight


class _Annealing:
    """Annealing by swaps of two tiles of a kind with the Metropolis criterion."""

    def __init__(self, problem: _Problem, rng: random.Random) -> None:
        config = problem.config
        self._rng = rng
        self._names = [name for name, _ in problem.units]
        self._kinds = [kind for _, kind in problem.units]
        self._at: list[Place] = [(0, 0)] * len(problem.units)
        for unit, agcu in problem.fixed:
            place = agcu_places(config)[agcu]
            self._at[unit] = (place.row, place.column(config))
        self._fixed = dict(problem.fixed)
        self._there: dict[Place, int | None] = {}
        self._free: dict[UnitKind, list[Place]] = {}
        pins = dict(problem.pins)
        self._start(config, pins)
        self._movable = [
            unit
            for unit, kind in enumerate(self._kinds)
            if unit not in self._fixed and unit not in pins and len(self._free[kind]) > 1
        ]
        #: Per net its number, weight and units: two of them, or what they have of a list.
        self._nets = [_Net.of(number, *each) for number, each in enumerate(problem.nets)]
        self._of: list[list[_Net]] = [[] for _ in problem.units]
        for net, (ends, _) in zip(self._nets, problem.nets, strict=True):
            for unit in ends:
                self._of[unit].append(net)
        self._of_both: dict[tuple[int, int], list[_Net]] = {}
        self._rows = [row for row, _ in self._at]
        self._columns = [column for _, column in self._at]
        self._costs = [net.cost(self._rows, self._columns) for net in self._nets]

    def _start(self, config: ChipConfig, pins: Mapping[int, Place]) -> None:
        for row in range(config.rows):
            for column in range(config.columns):
                if (row, column) not in pins.values():
                    kind = config.unit_at(row, column)
                    self._free.setdefault(kind, []).append((row, column))
        for unit, at in pins.items():
            self._at[unit] = at
        for kind, tiles in self._free.items():
            self._rng.shuffle(tiles)
            units = [
                unit
                for unit, its in enumerate(self._kinds)
                if its is kind and unit not in self._fixed and unit not in pins
            ]
            for tile in tiles:
                self._there[tile] = None
            for unit, tile in zip(units, tiles):
                self._at[unit] = tile
                self._there[tile] = unit

    def total(self) -> float:
        """Cost of the current placement."""
        return sum(self._costs)

    def tiles(self) -> dict[str, Place]:
        """Tiles of the units other than AGCUs."""
        return {
            name: self._at[unit] for unit, name in enumerate(self._names) if unit not in self._fixed
        }

    def run(self) -> None:
        """Anneal, then accept only swaps that are no worse."""
        if not self._movable:
            return
        moves = _MOVES * len(self._movable)
        # The initial temperature is the mean change of cost of random swaps.
        tried = 4 * len(self._movable)
        heat = max(self._move(tried, math.inf) / tried, 1e-6)
        cooling = _COOLEST ** (1 / (_STEPS - 1))
        for _ in range(_STEPS):
            self._move(moves, heat)
            heat *= cooling
        self._move(4 * moves, 0.0)

    def _move(self, count: int, heat: float) -> float:
        """Try so many swaps at a temperature; returns the sum of the changes, without signs.

        It is the innermost loop of a compilation's longest pass: it calls little.
        """
        bits, random, exp = self._rng.getrandbits, self._rng.random, math.exp
        movable, units = self._movable, len(self._movable)
        unit_bits = units.bit_length()
        tiles_of = (self._free.get(kind, []) for kind in self._kinds)
        choices = [(tiles, len(tiles), len(tiles).bit_length()) for tiles in tiles_of]
        at, where, known = self._at, self._there, self._costs
        rows, columns, of, of_both = self._rows, self._columns, self._of, self._of_both
        total = 0.0
        for _ in range(count):
            # What `random.choice` draws, without its calls.
            while (drawn := bits(unit_bits)) >= units:
                pass
            unit = movable[drawn]
            tiles, several, tile_bits = choices[unit]
            while (drawn := bits(tile_bits)) >= several:
                pass
            here, there = at[unit], tiles[drawn]
            if here == there:
                continue
            other = where[there]
            nets = of[unit]
            rows[unit], columns[unit] = there
            if other is not None:
                nets = of_both.get((unit, other)) or self._of_two(unit, other)
                rows[other], columns[other] = here
            costs, new, old = [], 0.0, 0.0
            for number, weight, one, two, ends in nets:
                if ends is None:
                    high, wide = rows[one] - rows[two], columns[one] - columns[two]
                    cost = (abs(high) + abs(wide)) * weight
                else:
                    ys, xs = ends(rows), ends(columns)
                    cost = (max(ys) - min(ys) + max(xs) - min(xs)) * weight
                costs.append(cost)
                new += cost
                old += known[number]
            change = new - old
            total += abs(change)
            if change <= 0 or (heat > 0 and random() < exp(-change / heat)):
                for net, cost in zip(nets, costs):
                    known[net[0]] = cost
                at[unit], where[there], where[here] = there, unit, other
                if other is not None:
                    at[other] = here
                continue
            rows[unit], columns[unit] = here
            if other is not None:
                rows[other], columns[other] = there
        return total

    def _of_two(self, unit: int, other: int) -> list[_Net]:
        """Nets of one unit or of another, in order."""
        nets = {net.number: net for net in (*self._of[unit], *self._of[other])}
        found = self._of_both[unit, other] = [nets[number] for number in sorted(nets)]
        return found


def _tree_weight(ends: int) -> float:
    """Ratio of tree length to half the bounding box's perimeter, for random pins."""
    return 1.0 if ends <= 3 else 1.0 + 0.1 * (ends - 3)
