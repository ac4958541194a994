"""The passes over a part of a kernel, in the order of execution, down to its image."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Iterator, Sequence

from hw.arch.errors import BadInputError
from sw.chip_program import ChipProgram
from sw.fabric.assemble import assemble
from sw.fabric.fit_error import FitError
from sw.fabric.place import Placement, place
from sw.fabric.route import RouteError, placement_seeds, route, unroutable
from sw.gathers.row_gather import RowGather
from sw.gathers.row_scatter import RowScatter
from sw.ir.sizes import choose_sizes
from sw.language import Schedule
from sw.netlist import Netlist
from sw.parts.launch_checks import LaunchOrderError, require_order
from sw.passes.accumulate import require_whole_lanes
from sw.passes.choices import block_sizes, constraints_of, require_no_choices, with_block
from sw.passes.field_limits import Unfit
from sw.passes.fit import Fit
from sw.passes.mask import mask
from sw.passes.parallel import parallel
from sw.passes.part_compilation import PartCompilation
from sw.passes.pass_driver import Pass, program_text
from sw.passes.plan import Plan
from sw.passes.product_recognition import Product
from sw.prologue.computed_product import ComputedProduct
from sw.prove import LivenessError, require_live
from sw.search.constraints import Constraints
from sw.stages.chip_share import graph_of_all_points, homes_of_all_points, share_of
from sw.stages.lowering import lower
from sw.stages.product_graph import product_graph
from sw.stages.recognised import pipelines_of, recognised
from sw.stages.region import Region
from sw.stages.softmax.softmax_product import SoftmaxProduct
from sw.stages.stage_graph import StageGraph
from sw.timing.prediction import predict_cycles

__all__ = ["MOST_PLANS", "PART_PASSES"]

#: Most plans that are tried before a product is refused.
MOST_PLANS = 12
#: Most iterations of a launch whose plans are compared by runs with a clock.
_FEW_ITERATIONS = 4


@contextlib.contextmanager
def _own_fault(step: str) -> Iterator[None]:
    """Context manager that turns a refused encoding of compiler output into an internal error."""
    try:
        yield
    except BadInputError as error:
        raise RuntimeError(f"{step}: {error}") from error


def _stage(c: PartCompilation) -> None:
    c.product = c.softmax = c.region = None
    c.constraints = Constraints()
    match recognised(c.program, c.arrays, c.config):
        case SoftmaxProduct() as work:
            c.softmax = with_block(work, c.schedule)
        case Product() as work:
            c.product = work
            c.constraints = constraints_of(work, c.schedule)
        case ComputedProduct() as work:
            c.region, c.product = work, work.product
            c.constraints = constraints_of(work.product, c.schedule)
        case Region() | RowGather() | RowScatter() as work:
            c.region = work
            require_no_choices(c.schedule)


def _parallel(c: PartCompilation) -> Iterator[None]:
    c.plan = c.fit = c.pipeline = None
    work = c.softmax or c.region
    if work is not None:
        named = c.constraints if c.schedule != Schedule() else None
        choices = pipelines_of(work, c.arrays, c.config, c.program.name, constraints=named)
        for c.pipeline in itertools.islice(choices, MOST_PLANS):
            c.homes = c.pipeline.homes
            yield
        return
    assert c.product is not None
    share = share_of(c.config, c.part.points)
    # Of many iterations the estimate tells nearly as much as runs of several, which take long.
    timed = functools.partial(_timed, c) if c.part.repeat <= _FEW_ITERATIONS else None
    plans = parallel(c.product, share, c.constraints, timed, c.part.repeat)
    for c.plan, c.fit in itertools.islice(plans, MOST_PLANS):
        c.homes = homes_of_all_points(c.fit.homes, share, c.part.points)
        yield


def _timed(c: PartCompilation, plan: Plan, places: Fit) -> int | None:
    """Predicted cycles of a plan; None if it cannot be routed, or is not live."""
    try:
        homes = homes_of_all_points(places.homes, plan.config, c.part.points)
        netlist = lower(_product_graph(c, plan, places), homes, c.config)
        placement = _placed(c, netlist, c.place_seed)
        routes = route(netlist, placement, c.config, seed=c.place_seed)
        chip = assemble(netlist, placement, routes, c.config)
        c.timed.append((netlist, placement, routes, chip))
        return predict_cycles(chip, repeat=c.part.repeat).kernel
    except (BadInputError, Unfit):
        return None


def _product_graph(c: PartCompilation, plan: Plan, places: Fit) -> StageGraph:
    """Stages of a plan, for each point that an iteration takes."""
    graph = product_graph(plan, places, c.arrays)
    return graph_of_all_points(graph, plan.config, c.arrays, c.part.points)


def _no_plan(failures: Sequence[BadInputError]) -> BadInputError:
    first = failures[0]
    tried = f"none of {len(failures)} plans fits" if len(failures) > 1 else "the one plan does not"
    return BadInputError(
        f"Kernel must fit the chip, but {tried}; {first.message}",
        kind=first.kind,
        where=first.where,
        value=first.message if first.value is None else first.value,
        rule="fewer units (row_par, col_par), other tiles or slots, or a chip with more tracks, "
        "PMUs or AGCUs",
    )


def _tile(c: PartCompilation) -> None:
    c.sizes = block_sizes(c)
    tiled = choose_sizes(c.program, c.sizes)
    require_whole_lanes(tiled)
    c.tiled = tiled.after("tile", tiled.nodes)


def _mask(c: PartCompilation) -> None:
    c.masked = mask(c.tiled)


def _graph(c: PartCompilation) -> None:
    if c.pipeline is not None:
        c.graph = c.pipeline.graph
        return
    assert c.plan is not None and c.fit is not None
    try:
        with _own_fault("graph"):
            c.graph = _product_graph(c, c.plan, c.fit)
    except Unfit as problem:
        raise FitError(str(problem), value=problem.value, rule=problem.rule) from problem


def _units(c: PartCompilation) -> None:
    with _own_fault("units"):
        c.netlist = lower(c.graph, c.homes, c.config)


def _place(c: PartCompilation) -> Iterator[None]:
    for seed in placement_seeds(c.place_seed):
        c.placement = _placed(c, c.netlist, seed)
        yield


def _placed(c: PartCompilation, netlist: Netlist, seed: int) -> Placement:
    """Placement of a netlist; that of a timed plan is used again if the plan is chosen."""
    for known, its, placement in c.placed:
        if (known, its) == (netlist, seed):
            return placement
    placement = place(netlist, c.config, seed=seed)
    c.placed.append((netlist, seed, placement))
    return placement


def _route(c: PartCompilation) -> None:
    placed = (c.netlist, c.placement)
    known = (routes for *its, routes, _ in c.timed if (*its,) == placed)
    c.routes = next(known, None) or route(*placed, c.config, seed=c.place_seed)


def _assemble(c: PartCompilation) -> None:
    with _own_fault("assemble"):
        known = (chip for *_, routes, chip in c.timed if routes is c.routes)
        c.chip = next(known, None) or assemble(c.netlist, c.placement, c.routes, c.config)
        c.image = c.chip.pack()


def _prove(c: PartCompilation) -> None:
    program = ChipProgram.unpack(c.config, c.image)
    try:
        c.liveness = require_live(program, repeat=c.part.repeat)
    except LivenessError as failure:
        if c.part.repeat == 1:
            raise
        # Not every image can be repeated, but each can be launched several times.
        c.liveness = require_live(program)
        c.failures["prove"] = [failure]
        c.part = c.part.singly()
    require_order(c.part, program, c.memory)


def _stage_text(c: PartCompilation) -> str:
    if isinstance(c.region, ComputedProduct | RowGather | RowScatter):
        return c.region.text()
    if c.region is not None:
        loaded = (
            f"{name}: {each.part.value} of {each.tensor}" for name, each in c.region.inputs.items()
        )
        stored = (f"{tensor} = {value}" for value, tensor in c.region.outputs.items())
        return "\n".join(
            [f"element math of {c.region.rows} x {c.region.columns}", *loaded, *stored]
        )
    if c.softmax is not None:
        return c.softmax.text()
    product = c.product
    assert product is not None
    hints = {"row_par": product.row_par, "col_par": product.col_par, "slots": product.slots}
    named = {**product.tiles, **{key: value for key, value in hints.items() if value is not None}}
    return "\n".join(
        [
            f"{product.text}: M={product.m} N={product.n} K={product.k}, "
            f"{product.operands} to {product.out.name}",
            "loops: " + ", ".join(f"{role} {index}" for role, index in product.loops.items()),
            "hints: " + (", ".join(f"{key}={value}" for key, value in named.items()) or "none"),
        ]
    )


def _plan_text(c: PartCompilation) -> str:
    homes = (f"{name}: {home}" for name, home in c.homes.items())
    return "\n".join([c.choice, *homes])


def _netlist_text(netlist: Netlist) -> str:
    lines = [f"{name}: {program}" for name, program in netlist.units.items()]
    for net in netlist.nets:
        sources = ", ".join(f"{end.unit}.{end.port}" for end, _ in net.sources)
        sinks = ", ".join(f"{end.unit}.{end.port}" for end in net.sinks)
        lines.append(f"{'token' if net.tokens else 'net'} {net.name}: {sources} -> {sinks}")
    return "\n".join(lines)


def _place_text(c: PartCompilation) -> str:
    return "\n".join(f"{name}: {tile}" for name, tile in c.placement.tiles.items())


def _route_text(c: PartCompilation) -> str:
    nets = (*c.routes.vectors.items(), *c.routes.tokens.items())
    return "\n".join(f"{name}: {len(hops)} hops" for name, hops in nets)


#: Passes over one part.
PART_PASSES: tuple[Pass[PartCompilation], ...] = (
    Pass(
        "stage",
        "pattern recognition: a product of matrices or of computed tiles, two with a softmax "
        "between them, element math, or a gather or scatter of rows, or a refusal at the line",
        _stage,
        needs=("part",),
        leaves=("product", "softmax", "region", "constraints"),
        text=_stage_text,
    ),
    Pass(
        "parallel",
        "choose PCU grid, blocks, K-blocks and buffers: schedule, then program, then cost model",
        _parallel,
        needs=("product", "softmax", "region", "constraints"),
        leaves=("plan", "fit", "pipeline", "homes"),
        text=_plan_text,
        retries=(FitError, LaunchOrderError, LivenessError),
        give_up=_no_plan,
    ),
    Pass(
        "tile",
        "substitute the block sizes; the golden interpreter runs a program of these sizes",
        _tile,
        needs=("plan", "pipeline"),
        leaves=("sizes", "tiled"),
        text=program_text("tiled"),
    ),
    Pass(
        "mask",
        "insert masks on ragged axes; a product of loads needs none",
        _mask,
        needs=("tiled",),
        leaves=("masked",),
        text=program_text("masked"),
    ),
    Pass(
        "graph",
        "stage graph: loads, buffers, products and stores, and the streams between them",
        _graph,
        needs=("plan", "fit", "pipeline"),
        leaves=("graph",),
        text=lambda c: c.graph.text(),
    ),
    Pass(
        "units",
        "lowering of each stage to unit programs and nets",
        _units,
        needs=("graph", "homes"),
        leaves=("netlist",),
        text=lambda c: _netlist_text(c.netlist),
    ),
    Pass(
        "place",
        "placement of units on tiles",
        _place,
        needs=("netlist",),
        leaves=("placement",),
        text=_place_text,
        retries=(RouteError,),
        give_up=unroutable,
    ),
    Pass(
        "route",
        "routing of nets over the links of the switches",
        _route,
        needs=("netlist", "placement"),
        leaves=("routes",),
        text=_route_text,
    ),
    Pass(
        "assemble",
        "pack configuration words; check them against the netlist",
        _assemble,
        needs=("netlist", "placement", "routes"),
        leaves=("chip", "image"),
        text=lambda c: f"image of {len(c.image)} bytes",
    ),
    Pass(
        "prove",
        "prove that the decoded image is live for its iterations, and its accesses ordered",
        _prove,
        needs=("image",),
        leaves=("liveness",),
        text=lambda c: f"live: {c.liveness.moved} payloads in {c.liveness.steps} steps",
    ),
)
