"""Type inference: result types of a node from its operands.

No other module knows these rules. The tracer calls `infer` for every operation, so that an error
has the user's line; the verifier
calls it again after every pass.
"""

from __future__ import annotations

from collections.abc import Mapping

from hw.numeric.product_formats import RESULT_FORMATS, result_formats
from sw.ir import nodes as ir
from sw.ir.affine import Axis
from sw.ir.element_operations import OPERATIONS, notation
from sw.ir.format_rules import (
    Format,
    bf16,
    castable,
    common,
    convertible,
    fp32,
    int8,
    int32,
    narrow,
    pred,
    widens,
)
from sw.ir.rewrite import map_operands
from sw.ir.types import Tensor, TileType, TokenType, Type, View

__all__ = ["REDUCTIONS", "RuleError", "exchanged", "fits_start", "infer"]

#: Operations of ``reduce``.
REDUCTIONS = ("sum", "max", "min")


class RuleError(ValueError):
    """Operands that violate the typing rules of a node.

    Parameters
    ----------
    kind : str
        Which rule: ``shape``, ``format``, ``contraction``, ``view`` or ``operation``.
    message : str
        What is wrong, with the values.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def _shape(tile: TileType) -> str:
    return f"{tile.rows} x {tile.cols}"


def _tiles(node: ir.Node) -> list[TileType]:
    """Types of the operands that are tiles."""
    return [each.type for each in node.values if isinstance(each.type, TileType)]


def _expect(node: ir.Node, *counts: int) -> list[TileType]:
    """Types of the operands, which must be exactly this many tiles, tokens not counted."""
    plain = [
        each
        for each in node.operands
        if isinstance(each, ir.Constant) or not isinstance(each.type, TokenType)
    ]
    tiles = _tiles(node)
    if len(tiles) not in counts or len(plain) != len(tiles):
        wanted = " or ".join(str(count) for count in counts)
        raise RuleError("operation", f"`{node.kind}` takes {wanted} tiles, not {len(plain)}")
    return tiles


def _view_tile(view: View, format_: Format) -> TileType:
    axes = view.axes
    if len(axes) > 2:
        raise RuleError("view", f"Tile must have rows and columns; `{view}` keeps {len(axes)} axes")
    rows, cols = (Axis(1),) * (2 - len(axes)) + axes
    return TileType(rows, cols, format_)


def _broadcast(op: str, tiles: list[TileType]) -> tuple[Axis, Axis]:
    axes = []
    for number in (0, 1):
        wide = {tile.axis(number) for tile in tiles if not tile.axis(number).one}
        if len(wide) > 1:
            shapes = " and ".join(_shape(tile) for tile in tiles)
            noun = ("rows", "columns")[number]
            raise RuleError(
                "shape", f"`{notation(op)}` takes tiles with the same {noun}, not {shapes}"
            )
        axes.append(wide.pop() if wide else Axis(1))
    return axes[0], axes[1]


def _math_format(op: str, operands: list[Format], *, real: bool, strict: bool) -> Format:
    """Format of element math: the narrowest of int32 and fp32 that holds every operand."""
    if pred in operands:
        raise RuleError("format", f"`{notation(op)}` takes numbers, not a condition")
    found = common(*operands, *((fp32,) if real else ()))
    if found is None and not strict:
        return fp32
    if found is None:
        names = " and ".join(dict.fromkeys(each.name for each in operands)) or "int32"
        operation = OPERATIONS.get(op)
        if (operation is None or operation.int32 is None) and len(operands) == 1:
            raise RuleError(
                "format",
                f"`{notation(op)}` takes an operand that fp32 holds exactly, not {names}",
            )
        beside = " and a float" if real and fp32 not in operands else ""
        raise RuleError(
            "format",
            f"`{notation(op)}` takes operands that one of int32 and fp32 holds exactly, "
            f"not {names}{beside}",
        )
    return found


def _map(node: ir.Map, strict: bool) -> TileType:
    operation = node.operation
    if operation is None:
        raise RuleError("operation", f"Operation of map must be a known one, not {node.op!r}")
    if len(node.operands) != operation.operands:
        raise RuleError(
            "operation", f"`map.{node.op}` takes {operation.operands}, not {len(node.operands)}"
        )
    tiles = _tiles(node)
    if not tiles or len(tiles) != len(node.values):
        raise RuleError("operation", f"`map.{node.op}` takes at least one tile, and only tiles")
    rows, cols = _broadcast(node.op, tiles)
    numbers = list(node.operands)
    if operation.chooses:
        condition = numbers.pop(0)
        kind = condition.type if isinstance(condition, ir.Value) else None
        if not isinstance(kind, TileType) or kind.format != pred:
            raise RuleError(
                "format", f"`{node.op}` takes a condition first, as a comparison gives it"
            )
    formats = [
        each.type.format
        for each in numbers
        if isinstance(each, ir.Value) and isinstance(each.type, TileType)
    ]
    real = operation.int32 is None or any(
        isinstance(each, ir.Constant) and isinstance(each.value, float) for each in numbers
    )
    found = _math_format(node.op, formats, real=real, strict=strict)
    return TileType(rows, cols, pred if operation.compares else found)


def _matmul(node: ir.Matmul, strict: bool) -> TileType:
    tiles = _expect(node, 2, 3)
    a, b = tiles[:2]
    for side, tile in (("left", a), ("right", b)):
        if strict and not narrow(tile.format):
            narrower = "tw.bf16" if tile.format.is_float else "tw.int8"
            raise RuleError(
                "format",
                f"`@` takes {', '.join(each.name for each in RESULT_FORMATS)}, and its {side} "
                f"operand is {tile.format.name}: write `.to({narrower})`",
            )
    if strict and not result_formats(a.format, b.format):
        raise RuleError(
            "format",
            "`@` takes operands of one format, or floats of one width, not "
            f"{a.format.name} and {b.format.name}",
        )
    rows, left = (a.cols, a.rows) if node.ta else (a.rows, a.cols)
    right, cols = (b.cols, b.rows) if node.tb else (b.rows, b.cols)
    if left != right:
        raise RuleError("contraction", f"`@` sums over {left} columns and {right} rows")
    result = TileType(rows, cols, fp32 if b.format.is_float else a.format.accumulator)
    if len(tiles) == 3 and tiles[2] != result:
        raise RuleError("shape", f"Sum of `@` must be {result}, not {tiles[2]}")
    return result


def _reduce(node: ir.Reduce, strict: bool) -> TileType:
    (tile,) = _expect(node, 1)
    if node.op not in REDUCTIONS or node.axis not in (0, 1):
        raise RuleError(
            "operation", f"Reduction must be sum, max or min of axis 0 or 1, not {node.op!r}"
        )
    format_ = _math_format(node.op, [tile.format], real=False, strict=strict)
    rows, cols = (Axis(1), tile.cols) if node.axis == 0 else (tile.rows, Axis(1))
    return TileType(rows, cols, format_)


def _store(node: ir.Store, tensor: Tensor, strict: bool) -> None:
    (tile,) = _expect(node, 1)
    target = _view_tile(node.view, tensor.type.format)
    if not tile.same_shape(target):
        raise RuleError(
            "shape", f"Tile stored to `{node.view}` must be {_shape(target)}, not {_shape(tile)}"
        )
    if tile.format == pred:
        raise RuleError("format", f"`{tensor.name}` cannot take a condition: use `tw.where`")
    if strict and not convertible(tile.format, target.format):
        raise RuleError(
            "format",
            f"`{tensor.name}` is {target.format.name} and cannot take a tile of {tile.format.name}",
        )


def _indexed(node: ir.Gather | ir.Scatter, tensor: Tensor) -> TileType:
    """Rows that a gather returns or a scatter takes."""
    tiles = _expect(node, 1 if isinstance(node, ir.Gather) else 2)
    axes = node.view.axes
    if len(axes) != 2:
        raise RuleError("view", f"Rows by number must be of two axes, not of `{node.view}`")
    rows = TileType(_row_numbers(tiles[0]), axes[1], tensor.type.format)
    if len(tiles) == 2 and not tiles[1].same_shape(rows):
        raise RuleError("shape", f"Tile scattered must be {_shape(rows)}, not {_shape(tiles[1])}")
    if isinstance(node, ir.Scatter) and node.op == "add":
        for noun, form in ((f"`{tensor.name}`", rows.format), ("tile", tiles[1].format)):
            if form != int32:
                raise RuleError(
                    "format",
                    f"Scatter that adds takes int32, not {noun} of {form.name}: hold table and "
                    "rows as int32 in memory, floats in fixed point",
                )
    return rows


def _take(node: ir.Take) -> TileType:
    tile, numbers = _expect(node, 2)
    return TileType(_row_numbers(numbers), tile.cols, tile.format)


def _row_numbers(numbers: TileType) -> Axis:
    """Axis of the rows that a row or column of numbers names."""
    if not (numbers.rows.one or numbers.cols.one):
        raise RuleError("shape", f"Row numbers must be a row or a column, not {_shape(numbers)}")
    if numbers.format != int32:
        raise RuleError("format", f"Row numbers must be int32, not {numbers.format.name}")
    return numbers.cols if numbers.rows.one else numbers.rows


def _cast(node: ir.Cast, strict: bool) -> TileType:
    (tile,) = _expect(node, 1)
    if strict and not castable(tile.format, node.format):
        raise RuleError("format", f"`.to` cannot take {tile.format.name} to {node.format.name}")
    return tile.to(node.format)


def _columns(tile: TileType, noun: str) -> int:
    if not isinstance(tile.cols.size, int) or not tile.cols.full:
        raise RuleError("shape", f"{noun} takes a fixed number of columns, not {tile.cols}")
    return tile.cols.size


def _some_columns(node: ir.Columns) -> TileType:
    (tile,) = _expect(node, 1)
    width = _columns(tile, "A slice")
    last = node.first + (node.count - 1)
    known = () if last.terms else (node.first.constant, last.constant)
    if node.count < 1 or any(not 0 <= each < width for each in known):
        found = f"{node.first} to {last}"
        raise RuleError("shape", f"A slice takes columns from 0 to {width - 1}, not {found}")
    return TileType(tile.rows, Axis(node.count), tile.format)


def _join(node: ir.Join) -> TileType:
    tiles = _expect(node, *range(1, len(node.operands) + 1))
    if any((tile.rows, tile.format) != (tiles[0].rows, tiles[0].format) for tile in tiles):
        shapes = " and ".join(str(tile) for tile in tiles)
        hint = ""
        formats = sorted({tile.format for tile in tiles}, key=lambda each: each.bits)
        if len(formats) > 1:
            # A number of full or zeros is an int8 beside floats, and rounds nothing as one of them.
            whole = formats[0] == int8 != formats[-1]
            hint = f": write `.to(tw.{formats[-whole].name})`"
        rule = "Join takes tiles with the same rows and format"
        raise RuleError("shape", f"{rule}, not {shapes}{hint}")
    total = sum(_columns(tile, "Join") for tile in tiles)
    return TileType(tiles[0].rows, Axis(total), tiles[0].format)


def _powers(node: ir.Powers) -> tuple[Type, ...]:
    scores, old = _expect(node, 2)
    column = TileType(scores.rows, Axis(1), fp32)
    if scores.format != fp32 or old != column:
        raise RuleError("shape", f"Maxima of the scores {scores} must be {column}, not {old}")
    return column, column.to(int32), scores.to(bf16)


def _rescale(node: ir.Rescale) -> TileType:
    sums, rises = _expect(node, 2)
    column = TileType(sums.rows, Axis(1), int32)
    if sums.format != fp32 or rises != column:
        raise RuleError("shape", f"Rises of the sums {sums} must be {column}, not {rises}")
    return sums


def infer(node: ir.Node, tensors: Mapping[str, Tensor], *, strict: bool = True) -> tuple[Type, ...]:
    """Return the result types of a node, tokens excluded.

    Parameters
    ----------
    node : Node
        Its results are not read.
    tensors : mapping of str to Tensor
        Tensors that views may name.
    strict : bool
        False in the first pass over a loop, where a carried tile may still have a narrower format
        than in the second: incompatible formats then give fp32, and the second pass decides.

    Raises
    ------
    RuleError
        If the operands violate a rule.
    """
    if isinstance(node, ir.Load | ir.Store | ir.Gather | ir.Scatter):
        tensor = tensors[node.view.tensor]
        if isinstance(node, ir.Load):
            _expect(node, 0)
            return (_view_tile(node.view, tensor.type.format),)
        if isinstance(node, ir.Store):
            _store(node, tensor, strict)
            return ()
        rows = _indexed(node, tensor)
        return (rows,) if isinstance(node, ir.Gather) else ()
    match node:
        case ir.Loop():
            return tuple(each.type for each in node.carries)
        case ir.Matmul():
            return (_matmul(node, strict),)
        case ir.Map():
            return (_map(node, strict),)
        case ir.Reduce():
            return (_reduce(node, strict),)
        case ir.Full():
            return (TileType(node.rows, node.cols, node.format),)
        case ir.Iota():
            return (TileType(node.rows, node.cols, int32),)
        case ir.Cast():
            return (_cast(node, strict),)
        case ir.Columns():
            return (_some_columns(node),)
        case ir.Join():
            return (_join(node),)
        case ir.Take():
            return (_take(node),)
        case ir.Transpose():
            (tile,) = _expect(node, 1)
            return (TileType(tile.cols, tile.rows, tile.format),)
        case ir.Mask() | ir.Buffer():
            return (_expect(node, 1)[0],)
        case ir.Powers():
            return _powers(node)
        case ir.Rescale():
            return (_rescale(node),)
    return ()


def fits_start(start: TileType, carried: TileType) -> bool:
    """Return whether ``start`` can start a carry: the same shape, and an exact widening."""
    return start.same_shape(carried) and widens(start.format, carried.format)


def exchanged(node: ir.Node, values: Mapping[str, ir.Operand]) -> ir.Node:
    """A node with others in the place of some values; as it is if its results would change type.

    Parameters
    ----------
    node : Node
    values : mapping of str to Value or Constant
        Those to take instead, by name.
    """

    def now(operand: ir.Operand) -> ir.Operand:
        return values.get(operand.name, operand) if isinstance(operand, ir.Value) else operand

    found = map_operands(node, now)
    try:
        kinds = infer(found, {})
    except RuleError:
        return node
    return found if kinds == tuple(each.type for each in node.results) else node
