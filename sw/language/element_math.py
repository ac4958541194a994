"""Element-wise functions of tiles."""

from __future__ import annotations

from sw.ir import nodes as ir
from sw.language.hints import taking
from sw.language.tile_value import Tile, TileLike, emit

__all__ = [
    "exp",
    "exp2",
    "log",
    "maximum",
    "minimum",
    "reciprocal",
    "rsqrt",
    "sigmoid",
    "silu",
    "sqrt",
    "tanh",
    "where",
]


@taking
def exp(x: Tile) -> Tile:
    """Return e to the power x; that of minus infinity is +0."""
    return emit(ir.Map, x, op="exp")


@taking
def exp2(x: Tile) -> Tile:
    """Return 2 to the power x; that of minus infinity is +0."""
    return emit(ir.Map, x, op="exp2")


@taking
def log(x: Tile) -> Tile:
    """Return the natural logarithm."""
    return emit(ir.Map, x, op="log")


@taking
def sqrt(x: Tile) -> Tile:
    """Return the square root."""
    return emit(ir.Map, x, op="sqrt")


@taking
def rsqrt(x: Tile) -> Tile:
    """Return 1 / sqrt(x)."""
    return emit(ir.Map, x, op="rsqrt")


@taking
def reciprocal(x: Tile) -> Tile:
    """Return 1 / x."""
    return emit(ir.Map, x, op="reciprocal")


@taking
def sigmoid(x: Tile) -> Tile:
    """Return 1 / (1 + exp(-x))."""
    return emit(ir.Map, x, op="sigmoid")


@taking
def silu(x: Tile) -> Tile:
    """Return x / (1 + exp(-x))."""
    return emit(ir.Map, x, op="silu")


@taking
def tanh(x: Tile) -> Tile:
    """Return the hyperbolic tangent."""
    return emit(ir.Map, x, op="tanh")


@taking
def maximum(x: TileLike, y: TileLike) -> Tile:
    """Return the greater number of each pair; NaN if either is NaN."""
    return emit(ir.Map, x, y, op="max")


@taking
def minimum(x: TileLike, y: TileLike) -> Tile:
    """Return the lesser number of each pair; NaN if either is NaN."""
    return emit(ir.Map, x, y, op="min")


@taking
def where(condition: Tile, x: TileLike, y: TileLike) -> Tile:
    """Return x where a comparison holds, y where it does not."""
    return emit(ir.Map, condition, x, y, op="where")
