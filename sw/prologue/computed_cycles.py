"""Estimates of a product with computed operands: of its slots, and of the same work as parts."""

from __future__ import annotations

import math
from collections.abc import Iterator

from hw.arch.config import ChipConfig
from hw.arch.descriptor import MAX_BOX
from hw.numeric.division import ceil_div
from hw.numeric.formats import Format
from sw.cost import box_cycles
from sw.lane_codes.lane_code import LaneCode
from sw.lane_codes.lane_codes import lane_codes
from sw.passes.plan import Plan
from sw.prologue.computed_product import ComputedProduct, Operand
from sw.prologue.operand_inputs import SLOTS, TABLES
from sw.search.alone import START, elements_alone, product_alone
from sw.stages.operand_slot import OperandSlot
from sw.stages.region import TilePart
from sw.timing.prediction import LATENCY

__all__ = ["cycles_as_parts", "memory_cycles", "operand_codes", "operand_streams", "overlaps"]

#: Cycles of a row that is loaded by number, at least.
_ROW_CYCLES = 8


def operand_codes(operand: Operand, config: ChipConfig) -> tuple[LaneCode, ...]:
    """Chain of lane programs of one phase each, with columns on lanes."""
    region = operand.region
    # A packet has several vectors of 32-bit elements, so a vector along columns comes with each.
    along = [name for name, each in region.inputs.items() if each.part is TilePart.ROW]
    return lane_codes(
        region.nodes,
        {name: each.type for name, each in region.inputs.items()},
        dict.fromkeys(region.outputs, operand.array.format),
        lane_axis=1,
        phases=1,
        function_bits=config.pcu.function_bits,
        repeated=along,
    )


def operand_streams(work: ComputedProduct, plan: Plan) -> Iterator[tuple[OperandSlot, int, str]]:
    """Streams of operands to buffers: their slots, the number of boxes, and the tensor."""
    product = work.product
    blocks = plan.row_blocks * plan.a_slabs
    a = plan.a_slot, blocks * (1 if plan.resident else plan.panel_reads), product.a
    b = plan.b_slot, blocks * plan.col_blocks, product.b
    yield a
    if a != b:
        yield b


def memory_cycles(work: ComputedProduct, plan: Plan, parts: int) -> tuple[float, float]:
    """Cycles in which memory gives the first slots, and all loads or stores of the busier AGCU.

    Parameters
    ----------
    work : ComputedProduct
    plan : Plan
    parts : int
        AGCUs that load the inputs of a computed operand's slot.
    """
    config, product = plan.config, work.product
    first, loads = [], []
    for slot, boxes, name in operand_streams(work, plan):
        operand = next((each for each in work.operands if each.array.name == name), None)
        columns, rows = slot.box(parts if operand else 1)
        along = product.a_along_k if name == product.a else product.b_along_k
        length = product.adjacent if along else product.m if name == product.a else product.n
        formats = _loaded(operand) if operand else [product.fmt]
        cycles = sum(box_cycles(config, each, columns, rows, length) for each in formats)
        tables = _table_cycles(operand, slot, boxes, plan, columns) if operand else 0.0
        # While slots are read, another one waits for memory; an operand has those of two tiles.
        slots = SLOTS if operand else 2 * plan.tiles // slot.tiles
        first.append(cycles)
        loads.append(boxes * max(cycles, (cycles + LATENCY) / slots) + tables)
    stored = product.m * product.n * product.out.bits / (config.agcu.count * config.width_bits)
    busiest = max(loads) if config.agcu.count > 1 else sum(loads)
    return max(first), max(busiest, stored)


def _table_cycles(
    operand: Operand, slot: OperandSlot, boxes: int, plan: Plan, columns: int
) -> float:
    """Cycles in which tables are loaded, one for boxes in a row of the same columns."""
    slabs = plan.tiles // slot.tiles
    along = boxes if slabs > 1 else 1
    loads = along if slot.along_k else boxes // slabs
    config, form, total = plan.config, operand.array.format, 0.0
    for each in operand.gathered.values():
        box = box_cycles(config, form, columns, each.table_rows, operand.array.shape[1])
        total += loads * max(box, (box + LATENCY) / TABLES)
    return total


def overlaps(work: ComputedProduct, plan: Plan) -> bool:
    """Whether one slot of each operand can be filled while another one is read."""
    bits = work.product.fmt.bits
    slots = [slot for slot, _, _ in operand_streams(work, plan)]
    return 2 * max(slot.elements for slot in slots) * bits // 8 <= plan.config.pmu.capacity_bytes


def cycles_as_parts(work: ComputedProduct, config: ChipConfig) -> float:
    """Estimated cycles of the operands and of the product as parts, each on the whole chip."""
    product, agcus = work.product, config.agcu.count
    cycles = product_alone(product, config, product.out)
    if cycles is None:
        return math.inf
    total = float(cycles)
    for operand in work.operands:
        rows, columns = operand.array.shape
        bits, elements = operand.array.format.bits, rows * columns
        # Gathered rows are a part of their own, which stores them.
        gathers = len(operand.gathered)
        boxes = rows * ceil_div(columns, MAX_BOX)
        moved = elements * bits / config.width_bits
        total += gathers * (max(boxes * _ROW_CYCLES, moved) / agcus + START)
        loaded = sum(each.bits for each in _loaded(operand)) + bits * gathers
        programs = len(operand_codes(operand, config))
        total += elements_alone(config, elements, programs, loaded, bits) + START
    return total


def _loaded(operand: Operand) -> list[Format]:
    """Formats of the tensors of which an element is loaded; rows by number come from the chip."""
    return [
        source.type.format
        for source in operand.region.inputs.values()
        if source.part is TilePart.BLOCK and source.tensor not in operand.gathered
    ]
