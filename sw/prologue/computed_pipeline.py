"""Pipelines of a product with computed operands: loads, lane programs, buffers, PCU grid.

The graph is that of the product of tensors. Each load of an operand that is in no memory is
replaced by loads of the inputs of its element math, in the same boxes, and by chains of lane
programs, whose results fill the slots that the load would have filled.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence

from hw.arch.config import ChipConfig
from hw.arch.descriptor import MAX_BOX
from sw.array_spec import ArraySpec
from sw.epilogue.collector import column_parts, result_writers
from sw.fabric.merges import MERGED
from sw.lane_codes.lane_code import LaneCode
from sw.language import Schedule
from sw.passes.choices import constraints_of
from sw.passes.field_limits import Unfit, require_fields, unfit
from sw.passes.fit import Fit, needed_buffers, pieces
from sw.passes.plan import Plan
from sw.prologue.computed_cycles import (
    cycles_as_parts,
    memory_cycles,
    operand_codes,
    operand_streams,
    overlaps,
)
from sw.prologue.computed_product import ComputedProduct, Operand
from sw.prologue.lane_chains import LaneChains, packet_elements
from sw.prologue.operand_inputs import OperandInputs
from sw.search.alone import START
from sw.search.candidates import plans_of, require_grid
from sw.search.constraints import Constraints
from sw.search.rough_cost import product_cycles
from sw.stages.operand_slot import OperandSlot
from sw.stages.pipeline import Pipeline, PipelineParts, fitting
from sw.stages.product_graph import product_graph
from sw.stages.stage_graph import Load, Socket

__all__ = ["computed_pipelines"]


def computed_pipelines(
    work: ComputedProduct,
    arrays: tuple[ArraySpec, ...],
    config: ChipConfig,
    name: str,
    constraints: Constraints | None,
) -> Iterator[Pipeline]:
    """Pipelines for a product with computed operands, those of fewest estimated cycles first.

    Parameters
    ----------
    work : ComputedProduct
    arrays : tuple of ArraySpec
        Arguments of the launch.
    config : ChipConfig
    name : str
        The kernel.
    constraints : Constraints or None
        On the product, by a schedule; None: only pipelines that are faster than parts would be, by
        the same estimate.

    Raises
    ------
    BadInputError
        If none fits, or none is faster than parts would be by the same estimate; and if no plan has
        the PCU grid of the constraints.
    ProgramError
        At a node that no lane program computes.
    """
    most = math.inf
    if not config.pcu.lanes:
        refused = unfit("`pcu.lanes`", "be at least 2 for a computed operand", 0)
        return fitting([refused], name)
    if constraints is None:
        most = cycles_as_parts(work, config)
        constraints = constraints_of(work.product, Schedule())
    return fitting(_candidates(work, arrays, config, constraints, most), name)


@dataclasses.dataclass(frozen=True)
class _Choice:
    """A plan of the product; parts of a slot, and copies of the chain that computes each."""

    plan: Plan
    parts: int
    copies: int
    cycles: float


def _candidates(
    work: ComputedProduct,
    arrays: tuple[ArraySpec, ...],
    config: ChipConfig,
    constraints: Constraints,
    most: float,
) -> Iterator[Pipeline | Unfit]:
    if constraints.row_par not in (None, 1):
        yield unfit("`row_par` of a product of computed tiles", "be 1", constraints.row_par or 1)
        return
    require_grid(work.product, config, constraints)
    codes = tuple(operand_codes(each, config) for each in work.operands)
    pcus = 1 + sum(map(len, codes))
    if pcus > config.pcu_count:
        rule = f"be at most {config.pcu_count}"
        yield unfit("PCUs of a product and of its operands", rule, pcus)
        return
    terms = config.width_bits // work.product.fmt.bits
    if work.product.k % terms:
        # Element math of padding is not zero.
        yield unfit("Terms of a product of computed tiles", f"be {terms} times a number", terms)
        return
    wide = (constraints.col_par or terms) * config.grid_columns
    if wide % terms:
        yield unfit("Columns of a pass over computed tiles", f"be {terms} times a number", wide)
        return
    problem: Unfit | None = None
    best: dict[tuple[int, int, int, bool], _Choice] = {}
    for plan in _plans(work, config, dataclasses.replace(constraints, row_par=1), most):
        try:
            require_fields(plan)
        except Unfit as error:
            problem = problem or error
            continue
        for choice in _choices(work, codes, _levelled(work, plan), most):
            key = (plan.col_par, choice.parts, choice.copies, plan.resident)
            if key not in best or choice.cycles < best[key].cycles:
                best[key] = choice
    for choice in sorted(best.values(), key=lambda each: each.cycles):
        try:
            yield _build(work, codes, choice, arrays, constraints)
        except Unfit as error:
            problem = problem or error
    if problem is None and most < math.inf:
        needs = "more cycles than its parts take one after the other"
        text = f"In one image its product and computed operands take {needs}, {round(most)}"
        problem = Unfit(text, value=round(most), rule=f"at most {round(most)} cycles")
    yield problem or unfit("Plans of a product of computed tiles", "be at least 1", 0)


def _plans(
    work: ComputedProduct, config: ChipConfig, constraints: Constraints, most: float
) -> Iterator[Plan]:
    """Plans of at most so many cycles with one row group and equal slabs, none of them padding."""
    # A slab is multiplied behind its element math, so short ones may be the best.
    for first, slabs in plans_of(work.product, config, constraints, slabs=MAX_BOX):
        if first.grid_cycles > most:
            continue
        for a_slab, b_slab in slabs:
            plan = dataclasses.replace(first, a_slab=a_slab, b_slab=b_slab)
            split = plan.b_split or plan.c_split or plan.halves > 1
            if a_slab != b_slab or split or plan.tiles * plan.lanes != work.product.k:
                continue
            for resident in (True, False):
                yield dataclasses.replace(plan, resident=resident)


def _same(work: ComputedProduct) -> bool:
    """Whether one computed tile is both operands."""
    return work.product.a == work.product.b


def _levelled(work: ComputedProduct, plan: Plan) -> Plan:
    """The plan in which slots of both operands are equal, if they hold the same tile and can."""
    if not _same(work) or plan.a_slot.along_k != plan.b_slot.along_k:
        return plan
    if plan.row_blocks == plan.col_blocks == 1 and plan.passes == plan.together:
        rows = plan.b_slot.lines
        if rows * plan.together <= plan.config.pcu.accumulator_rows:
            return dataclasses.replace(plan, rows=rows)
    return plan


def _choices(
    work: ComputedProduct, codes: tuple[tuple[LaneCode, ...], ...], plan: Plan, limit: float
) -> Iterator[_Choice]:
    """Numbers of chains with which a plan takes at most so many cycles, as estimated."""
    config = plan.config
    chains = [
        (operand, code, slot, boxes)
        for slot, boxes, name in operand_streams(work, plan)
        for operand, code in zip(work.operands, codes, strict=True)
        if operand.array.name == name
    ]
    pcus = sum(len(code) for _, code, _, _ in chains)
    # What is read again is multiplied behind the last box, as the last slab is.
    again = max(plan.passes // plan.together, plan.panel_reads if plan.resident else 1)
    passes, end = product_cycles(plan)
    block = passes / plan.row_blocks
    tail = block * (1 - 1 / again) + block / again / plan.a_slabs
    most = max(boxes * slot.elements for _, _, slot, boxes in chains) / config.pcu.lanes
    first = max(slot.elements for _, _, slot, _ in chains) / config.pcu.lanes
    for parts, copies in itertools.product((1, 2), range(1, MERGED + 1)):
        count = parts * copies
        if plan.col_par + pcus * count > config.pcu_count:
            continue
        loaded, memory = memory_cycles(work, plan, parts)
        lanes = most / count
        if overlaps(work, plan):
            begin = loaded + first / count
            cycles = max(begin + passes, lanes + tail, memory + tail) + end + START
        else:
            cycles = max(lanes, memory) + passes + end + START
        if cycles > limit:
            continue
        if all(_in_turn(parts, copies, plan, *chain[:3]) for chain in chains):
            yield _Choice(plan, parts, copies, cycles)


def _in_turn(
    parts: int,
    copies: int,
    plan: Plan,
    operand: Operand,
    code: tuple[LaneCode, ...],
    slot: OperandSlot,
) -> bool:
    """Whether copies of chains can take the packets of each part of a slot in turn."""
    if parts > 1 and (plan.config.agcu.count < parts or not _halves(slot, operand)):
        return False
    columns, rows = slot.box(parts)
    packet = packet_elements(code, plan.config)
    return not columns % packet and not rows * columns // packet % copies


def _halves(slot: OperandSlot, operand: Operand) -> bool:
    """Whether a slot has two parts with as many rows in memory."""
    rows, columns = operand.array.shape
    extents = (rows, columns) if slot.along_k else (columns, rows)
    return slot.halves(*extents) and not slot.box()[1] % 2


def _build(
    work: ComputedProduct,
    codes: tuple[tuple[LaneCode, ...], ...],
    choice: _Choice,
    arrays: tuple[ArraySpec, ...],
    constraints: Constraints,
) -> Pipeline:
    """The pipeline of a choice, with as many result writers as AGCUs store, or one."""
    problem: Unfit | None = None
    for writers in dict.fromkeys((column_parts(choice.plan, choice.plan.config.agcu.count), 1)):
        try:
            return _Builder(work, codes, choice, arrays, constraints, writers).pipeline()
        except Unfit as error:
            problem = problem or error
    assert problem is not None
    raise problem


class _Builder:
    def __init__(
        self,
        work: ComputedProduct,
        codes: tuple[tuple[LaneCode, ...], ...],
        choice: _Choice,
        arrays: tuple[ArraySpec, ...],
        constraints: Constraints,
        writers: int,
    ) -> None:
        self.work, self.codes, self.arrays = work, codes, arrays
        self.plan, self.copies = choice.plan, choice.copies
        self.cycles = choice.cycles - START
        self.parts = PipelineParts(self.plan.config)
        results = result_writers(self.plan, (1, writers))
        number = pieces(self.plan, constraints.slots)
        agcus = self.plan.config.agcu.count
        names = {each.array.name for each in work.operands}
        product = work.product
        a_parts, b_parts = (choice.parts if name in names else 1 for name in (product.a, product.b))
        shares = tuple((part, 0, 1) for part in range(a_parts))
        others = tuple(agcus - 1 - part for part in range(b_parts))
        self.places = Fit({}, shares, a_parts, others, results, number, 1.0)
        self.slots = constraints.slots
        self.chains = 0

    def pipeline(self) -> Pipeline:
        plan, parts = self.plan, self.parts
        arrays = (*self.arrays, *(each.array for each in self.work.operands))
        graph = product_graph(plan, self.places, arrays)
        loads = dict(graph.of(Load))
        parts.stages |= {name: each for name, each in graph.stages.items() if name not in loads}
        parts.streams += [each for each in graph.streams if each.name not in loads]
        computed: dict[object, tuple[Load, list[Socket]]] = {}
        for name, load in loads.items():
            tensor = load.descriptor, load.argument
            if load.argument < len(self.arrays):
                parts.load(name, load.agcu, tensor, load.loops, graph.sinks(name))
                continue
            steps = tuple(each for each in load.loops if each.count > 1)
            computed.setdefault((tensor, steps), (load, []))[1].extend(graph.sinks(name))
        filled = {each.stage for _, sinks in computed.values() for each in sinks}
        places = self.places
        shared = len(places.b_agcus), places.a_parts, places.pieces
        parts.buffers += [
            dataclasses.replace(each, tokens=each.tokens and each.name not in filled)
            for each in needed_buffers(plan, self.slots, places.collectors, *shared)
        ]
        for load, sinks in computed.values():
            self._chain(load, sinks)
        copies = f"{self.chains} x {self.copies} chains of lane programs, "
        done = parts.done(
            copies + plan.describe(), plan.block_rows, plan.columns, plan.a_slot.terms
        )
        return dataclasses.replace(done, macs_issued=plan.macs_issued, cycles=self.cycles)

    def _chain(self, load: Load, sinks: Sequence[Socket]) -> None:
        """Chains that compute the boxes of a load, and the inputs of their programs."""
        number = load.argument - len(self.arrays)
        operand, codes = self.work.operands[number], self.codes[number]
        line, region = self.chains, operand.region
        self.chains += 1
        chains = LaneChains(self.parts, codes, line, self.copies, region.inputs)
        packet = packet_elements(codes, self.plan.config)
        inputs = OperandInputs(self.parts, self.arrays, operand, load, packet, line)
        for value in region.inputs:
            inputs.add(value, chains.takers(value))
        chains.add()
        (value,) = region.outputs
        self.parts.join(f"{operand.array.name}{line}", chains.results(value), sinks)
