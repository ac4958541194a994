"""Result writers of a product: which PCUs send their results to which buffer of C."""

from __future__ import annotations

import dataclasses
import itertools

from hw.arch.agcu import AGCU_STREAMS
from hw.arch.config import ChipConfig
from hw.arch.descriptor import BASE_ALIGNMENT
from hw.numeric.division import ceil_div
from sw.fabric.merges import MERGED, MOST_COLLECTED
from sw.passes.field_limits import Unfit
from sw.passes.plan import Plan, spread

__all__ = [
    "Collector",
    "column_parts",
    "result_writers",
    "stored_columns",
    "store_streams",
    "writer_choices",
]


@dataclasses.dataclass(frozen=True)
class Collector:
    """A result writer: the buffer of C for a part of the PCU grid, and the AGCU that stores it.

    Parameters
    ----------
    name : str
        Name of its buffer.
    agcu, stream : int
        The AGCU that stores it, and its store stream.
    first, groups : int
        First row group, and number of row groups.
    column, columns : int
        First PCU column, and number of PCU columns.
    ports : tuple of (int, int)
        First and number of the PCU columns that each write engine serves, counted from ``column``;
        with ``by_rows``, of the row groups, counted from ``first``.
    by_rows : bool
        Whether write engines divide row groups instead of PCU columns.
    step : int
        Distance between the PCU columns of a write engine.
    """

    name: str
    agcu: int
    stream: int
    first: int
    groups: int
    column: int
    columns: int
    ports: tuple[tuple[int, int], ...]
    by_rows: bool
    step: int = 1

    def grid_columns(self, port: int) -> tuple[int, int]:
        """First and number of the PCU columns whose results come to a write engine."""
        start, count = self.ports[port]
        return (self.column, self.columns) if self.by_rows else (self.column + start, count)

    def row_groups(self, port: int) -> tuple[int, int]:
        """First and number of the row groups whose results come to a write engine."""
        start, count = self.ports[port]
        return (self.first + start, count) if self.by_rows else (self.first, self.groups)

    def pcus(self, port: int) -> tuple[tuple[int, int], ...]:
        """Row groups and columns of the PCUs whose results come to a write engine, in turn."""
        (column, columns), (group, groups) = self.grid_columns(port), self.row_groups(port)
        return tuple(
            (row, across)
            for across in range(column, column + columns * self.step, self.step)
            for row in range(group, group + groups)
        )


def stored_columns(plan: Plan, columns: int) -> int:
    """Columns of memory per box of C that a result writer of so many PCU columns stores."""
    parts = plan.col_par // columns
    return plan.box_columns(plan.product.out) if parts == 1 else plan.c_columns // parts


def result_writers(plan: Plan, over: tuple[int, int]) -> tuple[Collector, ...]:
    """The result writers of a plan.

    Parameters
    ----------
    plan : Plan
    over : tuple of (int, int)
        Result writers over which row groups and PCU columns are spread.

    Raises
    ------
    Unfit
        If one takes the results of more PCUs than it has inputs for.
    """
    found = []
    parts = itertools.product(spread(plan.row_par, over[0]), spread(plan.col_par, over[1]))
    for number, ((first, groups), (column, columns)) in enumerate(parts):
        sources = groups * columns
        by_rows = False
        if plan.c_split:
            # The results of every other PCU column lie in one half of vectors in the first pass,
            # and in the other one in the second.
            ports: tuple[tuple[int, int], ...] = ((0, ceil_div(columns, 2)), (1, columns // 2))
        elif sources <= MERGED:
            ports = ((0, columns),)
        elif sources <= MOST_COLLECTED and groups > 1:
            by_rows = True
            ports = tuple(spread(groups, 2))
        elif sources <= MOST_COLLECTED:
            # Each writes whole vectors of columns.
            whole = max(1, plan.result_lanes // plan.config.grid_columns)
            if columns % whole:
                raise Unfit(
                    f"Columns of PCUs at two inputs must be a multiple of {whole}, whole vectors "
                    f"of the result and of tiles beside it, not {columns}",
                    value=columns,
                    rule=f"a multiple of {whole} columns of PCUs",
                )
            ports = tuple(
                (start * whole, count * whole) for start, count in spread(columns // whole, 2)
            )
        else:
            raise Unfit(
                f"Results of {sources} PCUs must be collected by one PMU, which takes "
                f"{MOST_COLLECTED}",
                value=sources,
                rule=f"at most {MOST_COLLECTED} PCUs a PMU",
            )
        most = max(count for _, count in ports) * (columns if by_rows else groups)
        if most > MERGED:
            raise Unfit(
                f"Results of {most} PCUs must be merged at one input, which takes {MERGED}",
                value=most,
                rule=f"at most {MERGED} PCUs an input",
            )
        found.append(
            Collector(
                f"c{number}",
                number % plan.config.agcu.count,
                number // plan.config.agcu.count,
                first,
                groups,
                column,
                columns,
                ports,
                by_rows,
                step=2 if plan.c_split else 1,
            )
        )
    return tuple(found)


def store_streams(config: ChipConfig) -> int:
    """Store streams of all AGCUs: one a track at each."""
    return config.agcu.count * min(AGCU_STREAMS, config.tracks)


def writer_choices(plan: Plan) -> tuple[tuple[int, int], ...]:
    """Result writers over row groups and over PCU columns, best first.

    An AGCU has one, or where these take the results of too few PCUs one for each store stream.
    """
    found: list[tuple[int, int]] = []
    for writers in (plan.config.agcu.count, store_streams(plan.config)):
        rows, parts = min(writers, plan.row_par), column_parts(plan, writers)
        found += [(rows, parts), (rows, 1)]
        if ceil_div(plan.row_par, rows) * ceil_div(plan.col_par, parts) <= MOST_COLLECTED:
            break
    return (*dict.fromkeys((*found, (1, 1))),)


def column_parts(plan: Plan, writers: int) -> int:
    """How many of so many result writers share the columns of a pass, whole vectors each."""
    if not plan.one_pass or plan.c_columns != plan.pass_columns:
        return 1
    for parts in range(writers // plan.row_par, 1, -1):
        columns = plan.c_columns // parts
        offset = columns * plan.product.out.bits // 8
        aligned = plan.product.turned or not offset % BASE_ALIGNMENT
        whole = not plan.col_par % parts and not columns % plan.result_lanes
        if whole and aligned and (parts - 1) * columns < plan.product.n:
            return parts
    return 1
