"""Element-wise functions of tiles: one for each entry of `sw.ir.element_operations.FUNCTIONS`."""

from __future__ import annotations

import functools
from collections.abc import Callable

from hw.arch.lanes.lane_function import LaneFunction
from sw.ir import nodes as ir
from sw.ir.element_operations import FUNCTIONS
from sw.language.idioms import taking
from sw.language.tile_value import Tile, TileLike, emit

__all__ = ["TileFunction", "element_function"]


class TileFunction(LaneFunction):
    """Function of a user on the elements of a tile, computed by a unit of its own in the lanes."""

    def __call__(self, x: Tile) -> Tile:
        """Record the function of a tile; a result is fp32.

        Parameters
        ----------
        x : Tile
        """
        return emit(ir.Map, x, op=self.name, function=self)


def _of_one(op: str) -> Callable[..., Tile]:
    def function(x: Tile) -> Tile:
        return emit(ir.Map, x, op=op)

    return function


def _of_two(op: str) -> Callable[..., Tile]:
    def function(x: TileLike, y: TileLike) -> Tile:
        return emit(ir.Map, x, y, op=op)

    return function


def _of_three(op: str) -> Callable[..., Tile]:
    def function(x: TileLike, y: TileLike, z: TileLike) -> Tile:
        return emit(ir.Map, x, y, z, op=op)

    return function


def _choice(op: str) -> Callable[..., Tile]:
    def function(condition: Tile, x: TileLike, y: TileLike) -> Tile:
        return emit(ir.Map, condition, x, y, op=op)

    return function


@functools.cache
def element_function(name: str) -> Callable[..., Tile]:
    """Function of the language that records an element operation.

    Raises
    ------
    KeyError
        If no operation has such a function.
    """
    operation = FUNCTIONS[name]
    kinds = (_of_one, _of_two, _of_three)
    make = _choice if operation.chooses else kinds[operation.operands - 1]
    function = make(operation.name)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return {operation.text}."
    return taking(function)
