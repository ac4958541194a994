"""Notes on the choices of a part of a kernel, for its report."""

from __future__ import annotations

from collections.abc import Iterator

from hw.numeric.formats import bf16
from sw.passes.choices import planned_blocks
from sw.passes.part_compilation import PartCompilation
from sw.stages.region import Region, TilePart

__all__ = ["part_notes"]

#: Why a choice that the program suggests is not kept.
_OVERRULED = "a hint, and the fastest plan found has this"
#: Why a block is larger than the one that a schedule requires.
_LEAST = "the least that whole vectors, and rows for each AGCU, allow"
#: Share of the lanes' rows of which a part has at most one in so many, and elements of a long row.
_FEW, _LONG = 8, 512


def part_notes(c: PartCompilation) -> tuple[str, ...]:
    """Lines on overruled hints, on plans that were given up, and on what limits the speed."""
    notes, plan, product = [], c.plan, c.product
    named = (c.schedule.row_par, c.schedule.col_par)
    failures = c.failures["parallel"]
    if failures:
        count = len(failures)
        better = "1 better plan was" if count == 1 else f"{count} better plans were"
        notes.append(f"{better} given up: {failures[0].message}")
    for failure in c.failures.get("prove", ()):
        count = len(c.part.launches)
        causes = failure.value if isinstance(failure.value, list) else [failure.message]
        more = f", and {len(causes) - 1} more like it" if len(causes) > 1 else ""
        notes.append(f"{count} launches instead of one of {count} iterations: {causes[0]}{more}")
    notes += _few_lines(c)
    if plan is None or product is None:
        return tuple(notes)
    for noun, choices, hint, had in (
        ("row_par", named[0], product.row_par, plan.grid[0]),
        ("col_par", named[1], product.col_par, plan.grid[1]),
    ):
        asked = choices.get(product.product, hint)
        if asked is not None and asked != had:
            strict = product.product in choices
            why = "more units would find no rows" if strict else _OVERRULED
            notes.append(f"{noun}={asked} became {had}: {why}")
    blocks = planned_blocks(plan)
    lengths = {"row": product.m, "column": product.n, "sum": product.k}
    for role, index in product.loops.items():
        asked = c.schedule.tile.get(index, product.tiles.get(role))
        # A smaller block divides what is named; one that is longer than its axis is all of it.
        if asked is not None and min(blocks[role], lengths[role]) > asked:
            why = _LEAST if index in c.schedule.tile else _OVERRULED
            notes.append(f"tile of {index}={asked} became {blocks[role]}: {why}")
    if plan.rows < plan.pass_columns:
        notes.append(
            f"loading weights limits the speed: a block of C {plan.rows} high is multiplied by "
            f"{plan.pass_columns} columns of weights, which take longer to load"
        )
    return tuple(notes)


def _few_lines(c: PartCompilation) -> Iterator[str]:
    """A line where statistics of few long rows, or columns, leave most lanes of the chip idle."""
    region, config = c.region, c.config
    if not isinstance(region, Region) or len(region.reduces) != 1:
        return
    (axis,) = region.reduces
    noun, lines, length = "row", region.rows, region.columns
    if axis == 0:
        noun, lines, length = "column", length, lines
    tiles = (each for each in region.inputs.values() if each.part is TilePart.BLOCK)
    widest = max((each.type.format.bits for each in tiles), default=bf16.bits)
    at_once = config.pcu_count * config.width_bits // widest
    if lines * _FEW <= at_once and length >= _LONG:
        yield (
            f"few {noun}s limit the speed: statistics are made element by element, of {lines} "
            f"{noun}{'s' * (lines > 1)} here, where the lanes serve {at_once} at once: split long "
            f"{noun}s (docs/guide/howto/split_a_long_row.md)"
        )
