"""Buffers, load streams and PCUs that the epilogue of a product needs beside its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from hw.arch.boxes.issuer_program import MAX_TOKENS
from hw.arch.config import ChipConfig
from hw.arch.descriptor import MAX_BOX
from hw.arch.errors import BadInputError
from hw.numeric.division import ceil_div
from hw.numeric.formats import Format
from sw.epilogue.collector import Collector
from sw.epilogue.epilogue import Epilogue
from sw.epilogue.result_walks import (
    ResultWalks,
    chain_vector_walk,
    latched_vector_walk,
    vector_walk,
)
from sw.passes.field_limits import Unfit
from sw.passes.pack import Buffer
from sw.passes.plan import Plan, load_streams, spread
from sw.passes.product_recognition import Product

__all__ = [
    "SideLoad",
    "latched_name",
    "require_chain",
    "require_epilogue",
    "require_streams",
    "row_vector_name",
    "row_vector_size",
    "side_buffers",
    "side_loads",
    "tile_columns",
    "tile_name",
    "vector_name",
]


@dataclasses.dataclass(frozen=True)
class SideLoad:
    """Load stream of an epilogue's input: a tile beside the sums, or a vector along an axis.

    Parameters
    ----------
    value : str
        The input.
    agcu, operand : int
        The AGCU, and the operand (0 for A, 1 for B) whose load stream there is free.
    holds : tuple of str
        The buffers that it fills: those of a vector along the columns all with each box, others
        one after the other.
    group : int
        Row group of the first buffer of a tile.
    columns : tuple of (int, int)
        First and number of its PCU columns.
    by_columns : bool
        Whether the next buffer is that of the next columns instead of the next row group.
    """

    value: str
    agcu: int
    operand: int
    holds: tuple[str, ...]
    group: int = 0
    columns: tuple[int, int] = (0, 1)
    by_columns: bool = False


def tile_columns(plan: Plan, form: Format, columns: int) -> int:
    """Columns of a box of a tile beside the sums of some PCU columns."""
    if columns == plan.col_par:
        return plan.box_columns(form)
    return plan.c_columns * columns // plan.col_par


def tile_name(value: str, group: int, column: int) -> str:
    """Name of the buffer of a tile beside the sums of a row group, from a PCU column on."""
    return f"{_clean(value)}{group}_{column}"


def vector_name(value: str, collector: Collector | None = None, port: int = 0) -> str:
    """Name of the buffer of a vector, for the PCUs of the product or for a chain behind them."""
    return _clean(value) + (f"{collector.name}_{port}" if collector else "sums")


def latched_name(value: str, collector: Collector, port: int) -> str:
    """Name of the buffer of a vector for the PCUs of the product whose results a port takes."""
    return f"{vector_name(value)}_{collector.name}_{port}"


def row_vector_name(value: str, group: int) -> str:
    """Name of the buffer of a vector along the rows, for the PCUs of a row group."""
    return f"{_clean(value)}rows{group}"


def row_vector_size(plan: Plan, form: Format) -> tuple[int, int]:
    """Blocks of a vector along the rows of a row group, and bytes of a slot of them.

    Each row is a vector of memory, and as many rows as it has elements are read as one. Of a
    product of the transposes a block is one vector.
    """
    lanes = plan.config.width_bits // form.bits
    blocks = ceil_div(plan.rows, lanes)
    return blocks, blocks * (1 if plan.product.turned else lanes) * plan.vector_bytes


def _clean(value: str) -> str:
    return f"side_{value}_".replace(".", "_")


def _column_parts(collectors: Sequence[Collector]) -> list[tuple[int, int]]:
    """First and number of the PCU columns of each port of the result writers."""
    ports = ((each, port) for each in collectors for port in range(len(each.ports)))
    return sorted({each.grid_columns(port) for each, port in ports})


def require_chain(product: Product, config: ChipConfig) -> None:
    """Refuse a chip with too few PCUs for a PCU of the product and the lane programs behind it.

    Raises
    ------
    BadInputError
        With what is needed and what there is.
    """
    chain = len(product.epilogue.chain) if product.epilogue else 0
    if chain >= config.pcu_count:
        raise BadInputError(
            f"`{product.kernel}` must fit the chip; A PCU of the product and {chain} of the lane "
            f"programs behind it must fit the chip's {config.pcu_count} PCUs",
            kind="does-not-fit",
            where=product.kernel,
            value=chain + 1,
            rule=f"at most {config.pcu_count} PCUs",
        )


def require_streams(product: Product, config: ChipConfig) -> None:
    """Refuse a chip with too few load streams for the operands and the inputs beside the sums.

    Raises
    ------
    BadInputError
        With what is needed and what there is.
    """
    epilogue = product.epilogue
    if epilogue is None or not epilogue.inputs:
        return
    streams = load_streams(config)
    # One stream each at least: A, B, and every input.
    needs = 2 + len(epilogue.inputs)
    if needs > streams:
        refused = _few_streams(epilogue, needs, streams)
        raise BadInputError(
            f"`{product.kernel}` must fit the chip; {refused}",
            kind="does-not-fit",
            where=product.kernel,
            value=needs,
            rule=refused.rule,
        )


def _few_streams(epilogue: Epilogue, needs: int, streams: int) -> Unfit:
    names = ", ".join(f"`{each.tensor}`" for each in epilogue.inputs.values())
    return Unfit(
        f"A product with {names} beside its sums needs {needs} load streams, and the AGCUs of "
        f"the chip have {streams}",
        value=needs,
        rule=f"at most {streams} load streams",
    )


def _require_results(
    plan: Plan, collectors: Sequence[Collector], pieces: int, form: Format
) -> None:
    """Refuse a plan whose results have an order that no walk has."""
    orders: dict[tuple[int, int, int, int], None] = {}
    for each in collectors:
        for port in range(len(each.ports)):
            (first, columns), (_, rows) = each.grid_columns(port), each.row_groups(port)
            # Where they begin is an offset alone, but for columns of two passes that share vectors.
            orders[each.groups, first if plan.c_split else 0, columns, rows] = None
    for groups, first, columns, rows in orders:
        ResultWalks(plan, pieces, form, groups).results((first, columns), (0, rows))


def require_epilogue(plan: Plan, collectors: Sequence[Collector], pieces: int) -> None:
    """Refuse a plan with too few PCUs for its chains, or an order of results that no walk has.

    Raises
    ------
    Unfit
    """
    epilogue, config = plan.product.epilogue, plan.config
    if epilogue is None:
        _require_results(plan, collectors, pieces, plan.product.out)
        return
    chains = sum(len(each.ports) for each in collectors) * len(epilogue.chain)
    needs = plan.row_par * plan.col_par + chains
    if needs > config.pcu_count:
        raise Unfit(
            f"A product on {plan.row_par * plan.col_par} PCUs and {chains} PCUs of the lane "
            f"programs behind it need {needs} PCUs, and the chip has {config.pcu_count}",
            value=needs,
            rule=f"at most {config.pcu_count} PCUs",
        )
    tiles = epilogue.formats(epilogue.tiles)
    parts = _column_parts(collectors)
    if tiles and len(parts) > 1 and not plan.one_pass:
        raise Unfit(
            "Columns of a tile beside the sums must be read at one port where a block has several "
            f"passes, not at {len(parts)}",
            value=len(parts),
            rule="column blocks of one pass",
        )
    start = parts[-1][0] * config.grid_columns
    if tiles and start >= plan.product.n:
        raise Unfit(
            f"PCUs at a port must have columns of the tile beside the sums, not from {start} on of "
            f"{plan.product.n}",
            value=start,
            rule="PCUs at every port that have columns of the result",
        )
    # Walks of formats that have as many bits are alike.
    for form in {each.bits: each for each in (plan.product.out, *tiles)}.values():
        _require_results(plan, collectors, pieces, form)
    if epilogue.columns and plan.rows > MAX_BOX:
        raise Unfit(
            f"Rows beside a vector along them must be at most {MAX_BOX} a group, not {plan.rows}",
            value=plan.rows,
            rule=f"at most {MAX_BOX} rows a group",
        )
    for value, form in zip(epilogue.vectors, epilogue.formats(epilogue.vectors), strict=True):
        first, chain = _uses(plan, value)
        if first and value != epilogue.latched:
            vector_walk(plan, form, (0, plan.col_par))
        for collector in collectors:
            for port in range(len(collector.ports)):
                if value == epilogue.latched:
                    latched_vector_walk(plan, collector, port, form)
                if chain:
                    chain_vector_walk(plan, collector, port, pieces, form)
    if epilogue.latched is not None:
        (form,) = epilogue.formats([epilogue.beside_sums[-1]])
        ResultWalks(plan, pieces, form, 1).whole_passes(parts[0][1])


def _uses(plan: Plan, value: str) -> tuple[bool, bool]:
    """Whether the PCUs of the product take an input, and whether those of a chain do."""
    epilogue = plan.product.epilogue
    assert epilogue is not None
    first = epilogue.first is not None and value in epilogue.first.formats
    return first, any(value in code.formats for code in epilogue.chain)


def _vector_holds(plan: Plan, collectors: Sequence[Collector], value: str) -> tuple[str, ...]:
    """Buffers of a vector: for the PCUs of the product, for those at each port, for each chain."""
    assert plan.product.epilogue is not None
    first, chain = _uses(plan, value)
    ports = [(each, port) for each in collectors for port in range(len(each.ports))]
    names = []
    if value == plan.product.epilogue.latched:
        names += [latched_name(value, *each) for each in ports]
    elif first:
        names.append(vector_name(value))
    if chain:
        names += [vector_name(value, *each) for each in ports]
    return tuple(names)


def side_buffers(plan: Plan, collectors: Sequence[Collector], pieces: int) -> Iterator[Buffer]:
    """Buffers of the inputs of an epilogue."""
    epilogue = plan.product.epilogue
    if epilogue is None:
        return
    cycles = plan.tile_cycles * plan.tiles

    def buffer(name: str, form: Format, size: int, wanted: int, rate: float) -> Buffer:
        return Buffer(
            name,
            size,
            least=1,
            wanted=wanted,
            writers=1,
            tokens=True,
            rate=rate / cycles,
            alignment=max(2, 32 // form.bits),
        )

    for value in epilogue.tiles:
        form = epilogue.inputs[value].type.format
        for column, count in _column_parts(collectors):
            size = plan.block_bytes(form, 1, count, pieces)
            rate = plan.rows * count * form.bits / 32
            for group in range(plan.row_par):
                whole = buffer(tile_name(value, group, column), form, size, 2 * pieces, rate)
                yield _in_blocks(whole, plan, form) if plan.product.turned else whole
    for value in epilogue.vectors:
        form = epilogue.inputs[value].type.format
        for name in _vector_holds(plan, collectors, value):
            yield buffer(name, form, 4 * plan.held_columns(form), 2, plan.col_par)
    for value in epilogue.columns:
        form = epilogue.inputs[value].type.format
        blocks, size = row_vector_size(plan, form)
        for group in range(plan.row_par):
            whole = buffer(row_vector_name(value, group), form, size, 2, blocks)
            yield whole if plan.product.turned else _in_blocks(whole, plan, form)


def _in_blocks(buffer: Buffer, plan: Plan, form: Format) -> Buffer:
    """A buffer of whole blocks, of which an engine takes columns."""
    return dataclasses.replace(buffer, alignment=plan.config.width_bits // form.bits)


def side_loads(
    plan: Plan, collectors: Sequence[Collector], a_agcus: set[int], b_agcus: set[int]
) -> tuple[SideLoad, ...]:
    """Load streams of the inputs of an epilogue, at AGCUs whose streams A and B leave free.

    Raises
    ------
    Unfit
        If there are too few streams.
    """
    epilogue, config = plan.product.epilogue, plan.config
    if epilogue is None or not epilogue.inputs:
        return ()
    operands = (0,) if plan.one_operand else (0, 1)
    used = {(each, 0) for each in a_agcus}
    used |= {(each, 0 if plan.one_operand else 1) for each in b_agcus}
    free = [
        (agcu, operand)
        for operand in operands
        for agcu in range(config.agcu.count)
        if (agcu, operand) not in used
    ]
    parts = _column_parts(collectors)
    alike = plan.row_par == 1 and len({count for _, count in parts}) == 1
    least = 1 if alike else len(parts)
    single = len(epilogue.vectors) + len(epilogue.columns)
    needs = len(used) + single + least * len(epilogue.tiles)
    if needs > len(used) + len(free):
        raise _few_streams(epilogue, needs, len(used) + len(free))
    loads = []
    for value in epilogue.vectors:
        holds = _vector_holds(plan, collectors, value)
        if len(holds) > MAX_TOKENS:
            raise Unfit(
                f"Buffers that take each box of `{epilogue.inputs[value].tensor}` must be at most "
                f"{MAX_TOKENS}, whose freed slots one command waits for, not {len(holds)}",
                value=len(holds),
                rule=f"at most {MAX_TOKENS} buffers a box",
            )
        loads.append(SideLoad(value, *free.pop(), holds))
    for value in epilogue.columns:
        groups = tuple(row_vector_name(value, group) for group in range(plan.row_par))
        loads.append(SideLoad(value, *free.pop(), groups))
    each_tile = len(free) // max(1, len(epilogue.tiles))
    for value in epilogue.tiles:
        for shared in _shared(plan, parts, value, each_tile):
            agcu, operand = free.pop(0)
            loads.append(dataclasses.replace(shared, agcu=agcu, operand=operand))
    return tuple(loads)


def _shared(
    plan: Plan, parts: list[tuple[int, int]], value: str, streams: int
) -> Iterator[SideLoad]:
    """Load streams of a tile, at most so many, without their AGCUs."""
    if len(parts) <= streams:
        for columns in parts:
            for first, count in spread(plan.row_par, streams // len(parts)):
                groups = range(first, first + count)
                holds = tuple(tile_name(value, group, columns[0]) for group in groups)
                yield SideLoad(value, 0, 0, holds, first, columns)
        return
    for first, count in spread(len(parts), streams):
        holds = tuple(tile_name(value, 0, column) for column, _ in parts[first : first + count])
        yield SideLoad(value, 0, 0, holds, 0, parts[first], by_columns=True)
