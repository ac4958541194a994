"""The pass list, in the order of execution, with the results each pass needs and sets."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter

from hw.arch.errors import BadInputError
from sw.array_spec import ArraySpec
from sw.chip_program import ChipProgram
from sw.fabric.errors import FitError
from sw.ir import nodes as ir
from sw.ir.program import Program
from sw.ir.rewrite import walk
from sw.ir.sizes import choose_sizes
from sw.ir.text import print_program
from sw.ir.types import Role
from sw.language.schedule import check_schedule
from sw.netlist import Netlist
from sw.passes.accumulate import accumulate, require_whole_lanes
from sw.passes.assemble import assemble
from sw.passes.check import check
from sw.passes.choices import block_sizes, constraints_of, require_no_choices
from sw.passes.compilation import Compilation
from sw.passes.mask import mask
from sw.passes.parallel import Constraints, parallel
from sw.passes.pass_driver import Pass
from sw.passes.place import place
from sw.passes.route import RouteError, placement_seeds, route, unroutable
from sw.passes.simplify import simplify
from sw.passes.stage import require_on_chips, stage
from sw.prove import LivenessError, require_live
from sw.stages.lowering import lower
from sw.stages.pipelines import pipelines
from sw.stages.product_graph import product_graph
from sw.stages.region import region_of

__all__ = ["MOST_PLANS", "PASSES"]

#: Most plans that are tried before a product is refused.
MOST_PLANS = 12


@contextlib.contextmanager
def _own_fault(step: str) -> Iterator[None]:
    """Context manager that turns a refused encoding of compiler output into an internal error."""
    try:
        yield
    except BadInputError as error:
        raise RuntimeError(f"{step}: {error}") from error


def _trace(c: Compilation) -> None:
    c.program = c.given or c.kernel.trace(dtype=c.dtype, out=c.out, **c.dims, **c.options)
    check_schedule(c.schedule, c.program)


def _check(c: Compilation) -> None:
    c.program = c.program if c.given else check(c.program)


def _accumulate(c: Compilation) -> None:
    c.summed = accumulate(c.program)


def _simplify(c: Compilation) -> None:
    c.lean = simplify(c.summed)


def _stage(c: Compilation) -> None:
    require_on_chips(c.lean)
    c.product = c.region = None
    if any(isinstance(node, ir.Matmul) for node in walk(c.lean.nodes)):
        c.product = stage(c.lean, c.config)
        c.constraints = constraints_of(c.product, c.schedule)
    else:
        c.region = region_of(c.lean)
        require_no_choices(c.schedule)
        c.constraints = Constraints()
    c.arrays = tuple(
        ArraySpec(each.name, each.type.shape, each.type.format, each.type.role is not Role.IN)
        for each in c.program.tensors
    )


def _parallel(c: Compilation) -> Iterator[None]:
    c.plan = c.fit = c.pipeline = None
    if c.product is None:
        assert c.region is not None
        choices = pipelines(c.region, c.arrays, c.config, c.program.name)
        for c.pipeline in itertools.islice(choices, MOST_PLANS):
            c.homes = c.pipeline.homes
            yield
        return
    plans = parallel(c.product, c.config, c.constraints)
    for c.plan, c.fit in itertools.islice(plans, MOST_PLANS):
        c.homes = c.fit.homes
        yield


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


def _tile(c: Compilation) -> None:
    c.sizes = block_sizes(c)
    c.golden_program = choose_sizes(c.summed, c.sizes)
    require_whole_lanes(c.golden_program)
    tiled = choose_sizes(c.lean, c.sizes)
    c.tiled = tiled.after("tile", tiled.nodes)


def _mask(c: Compilation) -> None:
    c.masked = mask(c.tiled)


def _graph(c: Compilation) -> None:
    with _own_fault("graph"):
        if c.pipeline is not None:
            c.graph = c.pipeline.graph
        else:
            assert c.plan is not None and c.fit is not None
            c.graph = product_graph(c.plan, c.fit, c.arrays)


def _units(c: Compilation) -> None:
    with _own_fault("units"):
        c.netlist = lower(c.graph, c.homes, c.config)


def _place(c: Compilation) -> Iterator[None]:
    for seed in placement_seeds(c.place_seed):
        c.placement = place(c.netlist, c.config, seed=seed)
        yield


def _route(c: Compilation) -> None:
    c.routes = route(c.netlist, c.placement, c.config, seed=c.place_seed)


def _assemble(c: Compilation) -> None:
    with _own_fault("assemble"):
        c.chip = assemble(c.netlist, c.placement, c.routes, c.config)
        c.image = c.chip.pack()


def _prove(c: Compilation) -> None:
    c.liveness = require_live(ChipProgram.unpack(c.config, c.image))


def _ir(name: str) -> Callable[[Compilation], str]:
    """Function to the text of a program, a member of the compilation."""
    program: Callable[[Compilation], Program] = attrgetter(name)
    return lambda c: print_program(program(c), spans=False)


def _stage_text(c: Compilation) -> str:
    if c.region is not None:
        loaded = (
            f"{name}: {each.part.value} of {each.tensor}" for name, each in c.region.inputs.items()
        )
        stored = (f"{tensor} = {value}" for value, tensor in c.region.outputs.items())
        return "\n".join(
            [f"element math of {c.region.rows} x {c.region.columns}", *loaded, *stored]
        )
    product = c.product
    assert product is not None
    hints = {"row_par": product.row_par, "col_par": product.col_par, "slots": product.slots}
    named = {**product.tiles, **{key: value for key, value in hints.items() if value is not None}}
    return "\n".join(
        [
            f"{product.c} = {product.a} @ {product.b}: M={product.m} N={product.n} K={product.k}, "
            f"{product.operands} to {product.out.name}",
            "loops: " + ", ".join(f"{role} {index}" for role, index in product.loops.items()),
            "hints: " + (", ".join(f"{key}={value}" for key, value in named.items()) or "none"),
        ]
    )


def _plan_text(c: Compilation) -> str:
    homes = (f"{name}: {home}" for name, home in c.homes.items())
    return "\n".join([c.choice, *homes])


def _netlist_text(netlist: Netlist) -> str:
    lines = [f"{name}: {program}" for name, program in netlist.units.items()]
    for net in netlist.nets:
        sources = ", ".join(f"{end.unit}.{end.port}" for end, _ in net.sources)
        sinks = ", ".join(f"{end.unit}.{end.port}" for end in net.sinks)
        lines.append(f"{'token' if net.tokens else 'net'} {net.name}: {sources} -> {sinks}")
    return "\n".join(lines)


def _place_text(c: Compilation) -> str:
    return "\n".join(f"{name}: {tile}" for name, tile in c.placement.tiles.items())


def _route_text(c: Compilation) -> str:
    nets = (*c.routes.vectors.items(), *c.routes.tokens.items())
    return "\n".join(f"{name}: {len(hops)} hops" for name, hops in nets)


#: Every pass, in the order in which it runs.
PASSES = (
    Pass(
        "trace",
        "record the program's operations; align the two recordings of each loop body",
        _trace,
        needs=(),
        leaves=("program",),
        text=_ir("program"),
    ),
    Pass(
        "check",
        "verify that each output element is written exactly once",
        _check,
        needs=("program",),
        leaves=("program",),
        text=_ir("program"),
    ),
    Pass(
        "accumulate",
        "fuse a product and its addend into one node, which fixes the order of sums",
        _accumulate,
        needs=("program",),
        leaves=("summed",),
        text=_ir("summed"),
    ),
    Pass(
        "simplify",
        "remove identity, duplicate and dead nodes; hoist loop-invariant loads",
        _simplify,
        needs=("summed",),
        leaves=("lean",),
        text=_ir("lean"),
    ),
    Pass(
        "stage",
        "pattern recognition: a product of matrices, or element math, or a refusal at the line",
        _stage,
        needs=("program", "lean"),
        leaves=("product", "region", "constraints", "arrays"),
        text=_stage_text,
    ),
    Pass(
        "parallel",
        "choose PCU grid, blocks, K-blocks and buffers: schedule, then program, then cost model",
        _parallel,
        needs=("product", "region", "constraints", "arrays"),
        leaves=("plan", "fit", "pipeline", "homes"),
        text=_plan_text,
        retries=(FitError, LivenessError),
        give_up=_no_plan,
    ),
    Pass(
        "tile",
        "substitute the block sizes; the golden interpreter runs this program",
        _tile,
        needs=("summed", "lean", "plan", "pipeline"),
        leaves=("sizes", "golden_program", "tiled"),
        text=_ir("tiled"),
    ),
    Pass(
        "mask",
        "insert masks on ragged axes; a product of loads needs none",
        _mask,
        needs=("tiled",),
        leaves=("masked",),
        text=_ir("masked"),
    ),
    Pass(
        "graph",
        "stage graph: loads, buffers, products and stores, and the streams between them",
        _graph,
        needs=("plan", "fit", "pipeline", "arrays"),
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
        "prove that the decoded image is live",
        _prove,
        needs=("image",),
        leaves=("liveness",),
        text=lambda c: f"live: {c.liveness.moved} payloads in {c.liveness.steps} steps",
    ),
)
