"""The compile driver: from a kernel to the image of a chip, pass by pass."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from hw.arch.config import ChipConfig
from hw.arch.errors import BadInputError, did_you_mean
from hw.numeric.formats import Format
from sw.arrays import ArraySpec
from sw.cost import predict, predict_launch
from sw.image import ChipProgram
from sw.ir.program import Program
from sw.ir.sizes import choose_sizes
from sw.ir.text import print_program
from sw.ir.types import Role
from sw.ir.verify import verify
from sw.language import Kernel, Schedule
from sw.language.errors import ProgramError
from sw.language.schedule import check_schedule
from sw.netlist import Netlist
from sw.passes.accumulate import accumulate
from sw.passes.check import check
from sw.passes.fit import Fit
from sw.passes.mask import mask
from sw.passes.parallel import Wishes, parallel
from sw.passes.place import Placement
from sw.passes.plan import Plan
from sw.passes.realize import Realized, realize
from sw.passes.route import Routes
from sw.passes.simplify import simplify
from sw.passes.stage import Product, stage

__all__ = ["PASSES", "Compiled", "compile_kernel"]

#: Every pass in order, with a summary.
PASSES: Mapping[str, str] = MappingProxyType(
    {
        "trace": "record the program's operations; align the two recordings of each loop body",
        "check": "verify that each output element is written exactly once",
        "accumulate": "fuse a product and its addend into one node, which fixes the order of sums",
        "simplify": "remove identity, duplicate and dead nodes; hoist loop-invariant loads",
        "stage": "pattern recognition: loads, product and store, or a refusal at the line",
        "parallel": "choose PCU grid, blocks and K-blocks: schedule, then program, then cost model",
        "tile": "substitute the block sizes; the golden interpreter runs this program",
        "mask": "insert masks on ragged axes; a product of loads needs none",
        "fit": "buffer allocation: buffers to PMUs, streams to AGCUs",
        "units": "lowering to unit programs and nets",
        "place": "placement of units on tiles",
        "route": "routing of nets over the links of the switches",
        "assemble": "pack configuration words; check them against the netlist",
        "prove": "prove that the decoded image is live",
    }
)


@dataclasses.dataclass(frozen=True)
class Compiled:
    """A kernel lowered to the image of a chip.

    Parameters
    ----------
    kernel : str
    config : ChipConfig
    dims : mapping of str to int
    options : mapping of str to value
        Every option of the kernel, defaults too.
    dtype, out : Format
        Formats of operands and result.
    arrays : tuple of ArraySpec
        Arguments of the launch, in order.
    golden_program : Program
        The program after `accumulate`, which fixes the order of sums.
    schedule : Schedule
        Every choice, the compiler's included.
    plan : Plan
    fit : Fit
    netlist : Netlist
    placement : Placement
    routes : Routes
    chip : ChipProgram
    image : bytes
    units_used : mapping of str to int
        Units in use, by kind.
    predicted_cycles, predicted_warm_cycles : int
        Prediction of the cost model at a memory latency of 100 cycles: of a cold launch, and of
        a warm launch, which follows another of the same image.
    macs, macs_issued : int
        Multiply-accumulates without and with those on padding.
    peak_macs_per_cycle : int
        Of the whole chip.
    notes : tuple of str
        Hints of the program that were reduced, and better plans that were given up.
    texts : mapping of str to str
        Text form after each pass.
    """

    kernel: str
    config: ChipConfig
    dims: Mapping[str, int]
    options: Mapping[str, Any]
    dtype: Format
    out: Format
    arrays: tuple[ArraySpec, ...]
    golden_program: Program
    schedule: Schedule
    plan: Plan
    fit: Fit
    netlist: Netlist
    placement: Placement
    routes: Routes
    chip: ChipProgram
    image: bytes
    units_used: Mapping[str, int]
    predicted_cycles: int
    predicted_warm_cycles: int
    macs: int
    macs_issued: int
    peak_macs_per_cycle: int
    notes: tuple[str, ...]
    texts: Mapping[str, str]

    def ir(self, after: str) -> str:
        """Text form after a pass.

        Raises
        ------
        BadInputError
            If there is no such pass.
        """
        if not isinstance(after, str) or after not in self.texts:
            rule = f"one of {', '.join(self.texts)}"
            raise BadInputError(
                f"Pass must be {rule}, not {after!r}{did_you_mean(str(after), self.texts)}",
                where="after",
                value=str(after),
                rule=rule,
            )
        return self.texts[after]

    def report(self) -> str:
        """Return the choices and the predicted cost as text."""
        share = self.macs / (self.predicted_cycles * self.peak_macs_per_cycle)
        used = ", ".join(f"{count} {kind.upper()}" for kind, count in self.units_used.items())
        slots = ", ".join(
            f"{name} {home.slots} in PMU {home.pmu}" for name, home in self.fit.homes.items()
        )
        lines = [
            f"{self.kernel}: {' '.join(f'{name}={size}' for name, size in self.dims.items())}, "
            f"{self.dtype.name} to {self.out.name}",
            self.plan.describe(),
            f"slots: {slots}",
            f"units: {used}; image {len(self.image)} bytes",
            f"predicted: {self.predicted_cycles} cycles, {share:.3f} of peak; "
            f"{self.macs / self.macs_issued:.3f} of the products issued are useful",
            *self.notes,
        ]
        return "\n".join(lines)


def compile_kernel(
    kernel: Kernel,
    config: ChipConfig,
    *,
    dims: Mapping[str, int],
    dtype: Format | Mapping[str, Format] | None,
    out: Format | Mapping[str, Format] | None = None,
    options: Mapping[str, Any] | None = None,
    schedule: Schedule | None = None,
    place_seed: int = 1,
) -> Compiled:
    """Lower a kernel to the image of a chip.

    Parameters
    ----------
    kernel : Kernel
    config : ChipConfig
    dims : mapping of str to int
        Size of each dimension of the signature.
    dtype : Format, or mapping of str to Format, or None
        Format of the inputs that declare none, or of each by name.
    out : Format, or mapping of str to Format, or None
        Format of the outputs that declare none; None applies the language's rule.
    options : mapping of str to value
        Options of the kernel that differ from their defaults.
    schedule : Schedule or None
        Choices that override the program's.
    place_seed : int
        Seed of the placement.

    Raises
    ------
    BadInputError
        If the program breaks a rule, needs what hardware does not support yet, or does not fit.
    """
    schedule = schedule or Schedule()
    texts: dict[str, str] = {}
    given = dict(options or {})
    program = _noted(texts, kernel.trace(dtype=dtype, out=out, **dims, **given))
    check_schedule(schedule, program)
    program = _noted(texts, check(program))
    summed = _noted(texts, accumulate(program))
    lean = _noted(texts, simplify(summed))
    product = stage(lean)
    texts["stage"] = str(product)

    wishes = _wishes(product, schedule)
    arrays = tuple(
        ArraySpec(each.name, each.type.shape, each.type.format, each.type.role is not Role.IN)
        for each in program.tensors
    )
    real = realize(parallel(product, config, wishes), arrays, config, seed=place_seed)
    plan, places, placement, routes = real.plan, real.fit, real.placement, real.routes
    texts["parallel"] = plan.describe()
    sizes = _sizes(product, plan, wishes)
    golden_program = choose_sizes(summed, sizes)
    tiled = choose_sizes(lean, sizes)
    _noted(texts, verify(tiled.after("tile", tiled.nodes)))
    _noted(texts, mask(tiled))
    texts["fit"] = "\n".join(f"{name}: {home}" for name, home in places.homes.items())
    texts["units"] = _netlist_text(real.netlist)
    texts["place"] = "\n".join(f"{name}: {place}" for name, place in placement.tiles.items())
    texts["route"] = "\n".join(
        f"{name}: {len(hops)} hops"
        for name, hops in (*routes.vectors.items(), *routes.tokens.items())
    )
    image = real.image
    texts["assemble"] = f"image of {len(image)} bytes"
    texts["prove"] = f"live: {real.liveness.moved} payloads in {real.liveness.steps} steps"
    kernel_cycles = predict(plan, places)
    return Compiled(
        kernel=kernel.name,
        config=config,
        dims=MappingProxyType(dict(dims)),
        options=MappingProxyType({**kernel.options, **given}),
        dtype=product.fmt,
        out=product.out,
        arrays=arrays,
        golden_program=golden_program,
        schedule=_complete(product, plan, places, sizes) | schedule,
        plan=plan,
        fit=places,
        netlist=real.netlist,
        placement=placement,
        routes=routes,
        chip=real.chip,
        image=image,
        units_used=MappingProxyType(
            {
                "pcu": plan.row_par * plan.col_par,
                "pmu": places.pmus,
                "agcu": len(places.agcus),
            }
        ),
        predicted_cycles=kernel_cycles + predict_launch(config, len(image), len(arrays)),
        predicted_warm_cycles=kernel_cycles
        + predict_launch(config, len(image), len(arrays), behind=kernel_cycles),
        macs=product.m * product.n * product.k,
        macs_issued=plan.macs_issued,
        peak_macs_per_cycle=config.peak_macs_per_cycle(product.fmt.bits),
        notes=_notes(wishes, real),
        texts=MappingProxyType(texts),
    )


def _noted(texts: dict[str, str], program: Program) -> Program:
    texts[program.passes[-1]] = print_program(program, spans=False)
    return program


def _first(mapping: Mapping[str, int], names: tuple[str, ...]) -> int | None:
    return next((mapping[name] for name in names if name in mapping), None)


def _wishes(product: Product, schedule: Schedule) -> Wishes:
    """Choices named by the schedule or, failing that, by the program."""
    for field, choices in (("place", schedule.place), ("sum_par", schedule.sum_par)):
        for name, choice in choices.items():
            if field == "place" or choice != 1:
                raise ProgramError(
                    "unserved",
                    f"Schedule.{field} of `{name}` is not served by hardware yet",
                    schedule.span_of(name),
                    value=str(choice),
                )
    tiles = {
        role: schedule.tile.get(index, product.tiles.get(role))
        for role, index in product.loops.items()
    }
    rows, columns = (
        choices.get(product.product) for choices in (schedule.row_par, schedule.col_par)
    )
    slots = {
        "a": _first(schedule.slots, (product.a_tile,)),
        "b": _first(schedule.slots, (product.b_tile,)),
        "c": _first(schedule.slots, product.c_tiles) or product.slots,
    }
    return Wishes(
        row_tile=tiles.get("row"),
        column_tile=tiles.get("column"),
        sum_tile=tiles.get("sum"),
        row_par=rows or product.row_par,
        col_par=columns or product.col_par,
        strict=frozenset(
            field
            for field, choice in (("row_par", rows), ("col_par", columns))
            if choice is not None
        ),
        slots={key: count for key, count in slots.items() if count is not None},
    )


def _sizes(product: Product, plan: Plan, wishes: Wishes) -> dict[str, int]:
    """Block size of each loop: as named, otherwise the plan's."""
    chosen = {
        "row": wishes.row_tile or plan.block_rows,
        "column": wishes.column_tile or plan.columns,
        "sum": wishes.sum_tile or plan.a_slab * plan.lanes,
    }
    return {index: chosen[role] for role, index in product.loops.items()}


def _complete(product: Product, plan: Plan, places: Fit, sizes: Mapping[str, int]) -> Schedule:
    """The complete schedule that reproduces a plan."""
    a_tile, b_tile = (1, 1) if "sum" in product.loops else (plan.a_slabs, plan.b_slabs)
    tiles = {
        product.a_tile: places.homes["a0"].slots // a_tile,
        product.b_tile: places.homes["b"].slots // b_tile,
        (product.c_tiles or ("",))[0]: places.homes["c0"].slots,
    }
    par = product.product
    return Schedule(
        tile=sizes,
        row_par={par: plan.row_par} if par else {},
        col_par={par: plan.col_par} if par else {},
        slots={name: max(1, slots) for name, slots in tiles.items() if name},
    )


def _notes(wishes: Wishes, real: Realized) -> tuple[str, ...]:
    """Notes on reduced hints and on plans that were given up."""
    notes, plan = [], real.plan
    if real.given_up:
        count = len(real.given_up)
        better = "1 better plan was" if count == 1 else f"{count} better plans were"
        notes.append(f"{better} given up: {real.given_up[0].message}")
    for noun, wish, had in (
        ("row_par", wishes.row_par, plan.row_par),
        ("col_par", wishes.col_par, plan.col_par),
    ):
        if wish is not None and wish != had:
            notes.append(f"{noun}={wish} became {had}: more units would find no rows or no room")
    if plan.rows < plan.pass_columns:
        notes.append(
            f"loading weights limits the speed: a block of C {plan.rows} high is multiplied by "
            f"{plan.pass_columns} columns of weights, which take longer to load"
        )
    return tuple(notes)


def _netlist_text(netlist: Netlist) -> str:
    lines = [f"{name}: {program}" for name, program in netlist.units.items()]
    for net in netlist.nets:
        sources = ", ".join(f"{end.unit}.{end.port}" for end, _ in net.sources)
        sinks = ", ".join(f"{end.unit}.{end.port}" for end in net.sinks)
        lines.append(f"{'token' if net.tokens else 'net'} {net.name}: {sources} -> {sinks}")
    return "\n".join(lines)
