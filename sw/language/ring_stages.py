"""Rings: a stage that loads tiles in its own loops, and a stage that takes them in loops alike.

::

    ring = tw.ring(slots=4)
    with tw.load():
        for k in tw.metapipe(K, 64):
            ring.put(tw.load_tile(A[i, k]), tw.load_tile(B[k, j]))
    with tw.compute():
        acc = tw.zeros(i, j)
        for k in tw.metapipe(K, 64):
            with ring.get() as (a, b):
                acc += a @ b
    with tw.finish():
        tw.store_tile(C[i, j], acc)

On the machine every load is a stage of its own, with buffers whose slots are filled and freed by
tokens. So the recorder moves what was put into the loops that take it: both forms are one program.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import TracebackType

from sw.ir import nodes as ir
from sw.ir.affine import Affine, Axis, Bound, size_symbol
from sw.ir.rewrite import rebuild, walk
from sw.ir.types import Span
from sw.language.loop_passes import OpenLoop, Recording
from sw.language.program_error import caller_span
from sw.language.tile_value import Tile, tile_argument, whole, wrap
from sw.language.trace import Recorder, current, refusal

__all__ = ["Ring", "compute", "finish", "load", "ring"]


@dataclasses.dataclass(frozen=True)
class _Put:
    """Tiles of a slot, the nodes that make them, and the loops around and in their stage."""

    body: Recording
    around: tuple[OpenLoop, ...]
    loops: tuple[OpenLoop, ...]
    nodes: tuple[ir.Node, ...]
    values: tuple[ir.Value, ...]
    span: Span


class _Stage:
    """Block of a kernel that is the part of one stage."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._recorder = current(name)

    def __enter__(self) -> None:
        recorder = self._recorder
        if recorder.stage is not None:
            raise refusal("operation", f"`tw.{self._name}` must stand in no other stage")
        recorder.stage = self._name
        self._outside = recorder.bodies
        self._start = len(recorder.bodies[-1].nodes)
        recorder.stage_start = len(self._outside), self._start

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            return
        recorder = self._recorder
        recorder.check_exit()
        recorder.stage = None
        if self._name != "load":
            return
        nodes = self._outside[-1].nodes
        for node in walk(tuple(nodes[self._start :])):
            if isinstance(node, ir.Store | ir.Scatter):
                tensor = node.view.tensor
                raise _refuse(f"`{tensor}` must not be stored in `with tw.load():`", tensor)
        # What was put is recorded again where it is taken.
        del nodes[self._start :]


def load() -> _Stage:
    """Context manager of the stage that fills a ring; it stores nothing."""
    return _Stage("load")


def compute() -> _Stage:
    """Context manager of the stage that takes the slots of a ring."""
    return _Stage("compute")


def finish() -> _Stage:
    """Context manager of the stage that stores the results."""
    return _Stage("finish")


def ring(slots: int | None = None) -> Ring:
    """Make a buffer between a stage that loads and one that computes.

    Parameters
    ----------
    slots : int or None
        Slots of each tile's buffer, which a schedule overrides; None leaves them to the compiler.

    Raises
    ------
    ProgramError
        If the slots are not a whole number of at least 1.
    """
    return Ring(current("ring"), slots)


class Ring:
    """Slots of tiles, put by one stage and taken by another in the same order."""

    def __init__(self, recorder: Recorder, slots: int | None) -> None:
        if slots is not None and (whole(slots) or 0) < 1:
            raise _refuse(f"slots must be a whole number of 1 or more, not {slots!r}", repr(slots))
        self._recorder, self._slots = recorder, slots
        self._put: _Put | None = None
        self._got: Recording | None = None
        #: The loops where the last slots were taken; None before.
        self._taken: list[str] | None = None
        recorder.at_end.append(self._require_taken)

    def put(self, *tiles: Tile) -> None:
        """Fill a slot with tiles that are loaded, or computed from loads.

        Raises
        ------
        ProgramError
            Outside `load`, a second time in an iteration or elsewhere before the slots are taken,
            or for tiles that a loop carries.
        """
        recorder = self._recorder
        self._require("put", "load")
        span = caller_span()
        values = tuple(recorder.use(tile_argument("put", each).value, span) for each in tiles)
        if not values:
            raise _refuse("`ring.put` takes at least one tile", "")
        bodies = recorder.bodies
        if self._put is not None and self._put.body is bodies[-1]:
            raise _refuse("`ring.put` must fill one slot in an iteration, not two", "put")
        depth, start = recorder.stage_start
        around, loops = _loops(bodies[:depth]), _loops(bodies[depth:])
        if self._put is not None and self._taken is None:
            # A body is recorded twice, at the same symbols.
            if _symbols(self._put.around + self._put.loops) != _symbols(around + loops):
                raise _refuse(
                    "`ring.put` must follow the `ring.get` that takes what is in the ring, "
                    f"not fill it again after line {self._put.span.line}",
                    "put",
                )
        made = [
            *bodies[depth - 1].nodes[start:],
            *(x for each in bodies[depth:] for x in each.nodes),
        ]
        needed, nodes = set(values), list[ir.Node]()
        for node in reversed(made):
            if not needed.isdisjoint(node.results):
                if node.body:
                    raise _refuse("`ring.put` takes what loads make, not what loops carry", "put")
                nodes.insert(0, node)
                needed.update(each for each in node.operands if isinstance(each, ir.Value))
        self._put = _Put(bodies[-1], around, loops, tuple(nodes), values, span)
        self._taken = None

    def get(self) -> _Slot:
        """Context manager of the tiles of the next slot, which is free at its end.

        Raises
        ------
        ProgramError
            Outside `compute`, before `put`, a second time in an iteration or elsewhere before the
            next `put`, or in other loops.
        """
        return _Slot(self)

    def taken(self) -> tuple[Tile, ...]:
        """Record again, in the loops around, what was put."""
        recorder = self._recorder
        self._require("get", "compute")
        if self._put is None:
            raise _refuse("`ring.get` must follow a `ring.put`", "get")
        bodies = recorder.bodies
        if self._got is bodies[-1]:
            raise _refuse("`ring.get` must take one slot in an iteration, not two", "get")
        self._got = bodies[-1]
        symbols: dict[str, Affine] = {}
        depth = recorder.stage_start[0]
        around, loops = _loops(bodies[:depth]), _loops(bodies[depth:])
        if _symbols(around) != _symbols(self._put.around):
            raise _refuse(
                "`ring.get` must stand in the same loops around its stage as the `ring.put` of "
                f"line {self._put.span.line}",
                "get",
            )
        place = _symbols(around + loops)
        if self._taken not in (None, place):
            raise _refuse("`ring.get` must follow a `ring.put`, not another `ring.get`", "get")
        self._taken = place
        for there, here in zip(self._put.loops, loops):
            until = there.until and there.until.substitute(symbols)
            if (there.mode, there.extent, there.tile, until) != (
                here.mode,
                here.extent,
                here.tile,
                here.until,
            ):
                raise _other_loops(self._put.loops, loops)
            symbols[there.symbol] = Affine.of(here.symbol)
            symbols[size_symbol(there.symbol)] = Affine.of(size_symbol(here.symbol))
        if len(loops) != len(self._put.loops):
            raise _other_loops(self._put.loops, loops)
        values: dict[ir.Value, ir.Value] = {}
        for node in self._put.nodes:
            values[node.results[0]] = _again(recorder, node, values, symbols)
        tiles = [values.get(each, each) for each in self._put.values]
        if self._slots is not None:
            tiles = [recorder.record(ir.Buffer, each, slots=self._slots)[0] for each in tiles]
        return tuple(wrap(recorder, each) for each in tiles)

    def _require(self, name: str, stage: str) -> None:
        if self._recorder is not current(name):
            raise _refuse(f"`ring.{name}` must be of a ring of this trace", name)
        if self._recorder.stage != stage:
            raise _refuse(f"`ring.{name}` must stand in `with tw.{stage}():`", name)

    def _require_taken(self) -> None:
        if self._put is not None and self._taken is None:
            message = "A ring that is filled must be taken by `ring.get`"
            raise self._recorder.error("operation", message, self._put.span, value="put")


class _Slot:
    def __init__(self, of: Ring) -> None:
        self._ring = of

    def __enter__(self) -> Tile | tuple[Tile, ...]:
        tiles = self._ring.taken()
        return tiles if len(tiles) > 1 else tiles[0]

    def __exit__(self, *_: object) -> None:
        """The slot is free."""


def _refuse(message: str, value: str) -> Exception:
    return refusal("operation", message, value=value)


def _loops(bodies: tuple[Recording, ...]) -> tuple[OpenLoop, ...]:
    return tuple(each.loop for each in bodies if each.loop is not None)


def _symbols(loops: tuple[OpenLoop, ...]) -> list[str]:
    return [each.symbol for each in loops]


def _other_loops(there: tuple[OpenLoop, ...], here: tuple[OpenLoop, ...]) -> Exception:
    def text(loops: tuple[OpenLoop, ...]) -> str:
        each = (f"{x.mode} over {x.extent} in {x.tile or 'any'}" for x in loops)
        return ", ".join(each) or "no loop"

    return _refuse(
        f"`ring.get` must stand in the loops of `ring.put`: {text(there)}, not {text(here)}", "get"
    )


def _again(
    recorder: Recorder,
    node: ir.Node,
    values: Mapping[ir.Value, ir.Value],
    symbols: Mapping[str, Affine],
) -> ir.Value:
    """Record a node with other operands and indices."""

    def change(item: object) -> object:
        if isinstance(item, Affine | Axis | Bound):
            return item.substitute(symbols)
        return item

    fields = {each.name for each in dataclasses.fields(node)} - {"operands", "results", "span"}
    attributes = {name: rebuild(getattr(node, name), change) for name in fields}
    operands = (
        values.get(each, each) if isinstance(each, ir.Value) else each for each in node.operands
    )
    (result,) = recorder.record(type(node), *operands, **attributes)
    return result
