"""online: a softmax over blocks of keys becomes the form that the machine computes.

The machine keeps the running maximum m as a whole number in the domain of log2, and rounds it up,
so old sums are scaled by powers of two (docs/fused_softmax.md). The denominator is a product of
the rounded exponentials with a column of ones. So the results differ from those of the printed
form, within the bounds of both. The golden interpreter runs the program after this pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from hw.arch.errors import BadInputError
from hw.numeric.formats import bf16, fp32, int32
from hw.numeric.fused_softmax import LEAST_MAXIMUM, score_scale
from sw.ir import nodes as ir
from sw.ir.affine import Affine, Axis, Bound
from sw.ir.linear_conditions import seen_where
from sw.ir.program import Program
from sw.ir.rewrite import Names, rebuild, walk
from sw.ir.types import Span, TileType
from sw.ir.verify import verify
from sw.language.program_error import ProgramError
from sw.passes.simplify import simplify
from sw.softmax.key_windows import with_key_windows
from sw.softmax.running_softmax import RunningSoftmax, SoftmaxFinder
from sw.softmax.score_chain import Hidden, Missed
from sw.softmax.whole_rows import over_blocks

__all__ = ["is_exact", "missed_softmaxes", "online"]


def is_exact(options: Mapping[str, Any]) -> bool:
    """Whether the options of a kernel keep its printed form: `exact` is true."""
    return options.get("exact") is True


def online(program: Program) -> Program:
    """Rewrite each loop that carries m, l and o of a softmax, and each softmax of whole rows.

    Parameters
    ----------
    program : Program
        After `accumulate`.

    Raises
    ------
    ProgramError
        At a scale of scores that is not positive and finite.
    """
    lean = with_key_windows(over_blocks(simplify(program)))
    rewriter = _Rewriter(lean)
    nodes = rewriter.block(lean.nodes)
    if not rewriter.changed:
        return verify(program.after("online", program.nodes))
    return simplify(verify(lean.after("online", nodes)))


def missed_softmaxes(program: Program) -> Iterator[ProgramError]:
    """Why loops with a running maximum of exponentials keep their printed form.

    Parameters
    ----------
    program : Program
        After `simplify`.
    """
    finder = SoftmaxFinder(program)
    for node in walk(program.nodes):
        try:
            found = finder.find(node)
            if found is not None:
                _require_end(found, finder)
        except Missed as reason:
            yield ProgramError("unserved", str(reason), reason.node.span)


class _Rewriter:
    def __init__(self, program: Program) -> None:
        self._finder = SoftmaxFinder(program)
        self._names = Names(program)
        self.changed = False

    def block(self, nodes: tuple[ir.Node, ...]) -> tuple[ir.Node, ...]:
        found: list[ir.Node] = []
        for node in nodes:
            try:
                softmax = self._finder.find(node)
                if softmax is not None:
                    _require_end(softmax, self._finder)
            except Missed:
                softmax = None
            if softmax is not None:
                self.changed = True
                found.extend(self._rewritten(softmax))
            elif node.body:
                found.append(node.replace(nodes=self.block(node.body)))
            else:
                found.append(node)
        return tuple(found)

    def _rewritten(self, softmax: RunningSoftmax) -> tuple[ir.Node, ...]:
        """The start of m, and the loop; what it no longer needs is dead."""
        _require_scale(softmax)
        loop = softmax.loop
        old = loop.carries[softmax.maximum]
        assert isinstance(old.type, TileType)
        start = ir.Full(
            (),
            (self._names.fresh(old),),
            loop.span,
            ir.Constant(float(LEAST_MAXIMUM)),
            old.type.rows,
            old.type.cols,
            fp32,
        )
        operands = list(loop.operands)
        operands[softmax.maximum] = start.result
        body, nexts = self._body(softmax)
        new = loop.replace(operands=tuple(operands), nodes=(*loop.body, *body), nexts=tuple(nexts))
        return start, _whole_blocks(new).replace(until=self._until(softmax))

    def _until(self, softmax: RunningSoftmax) -> Bound | None:
        """End of the loop behind the last key that a whole tile of rows sees.

        All keys are met where the first row sees none: the count of blocks is then no line.
        """
        loop = softmax.loop
        ends = [each for each in loop.until.forms if not each.terms] if loop.until else []
        for each in softmax.chain.hidden:
            last = _last_seen(each, softmax, self._finder)
            if last is not None and last[1].constant >= 0:
                ends.append(last[0] + 1)
        return Bound.least(ends) if ends else None

    def _body(self, softmax: RunningSoftmax) -> tuple[list[ir.Node], list[ir.Value]]:
        """Nodes of a block in the machine's form, and the next carries."""
        loop, names, product = softmax.loop, self._names, softmax.product
        nodes: list[ir.Node] = []
        scores = softmax.chain.product.result
        for each in softmax.chain.hidden:
            kept = (ir.Constant(-np.inf), scores) if each.holds else (scores, ir.Constant(-np.inf))
            where = ir.Map(
                (each.condition, *kept), (names.fresh(scores),), each.node.span, op="where"
            )
            scores = where.result
            nodes.append(where)
        assert isinstance(scores.type, TileType)
        column = TileType(scores.type.rows, Axis(1), fp32)
        top = names.fresh(loop.nexts[softmax.maximum])
        rise = names.fresh(softmax.fade, column.to(int32))
        powers = names.fresh(softmax.powers, scores.type.to(bf16))
        old = loop.carries[softmax.maximum]
        span = self._span(loop.nexts[softmax.maximum], softmax.powers)
        nodes.append(ir.Powers((scores, old), (top, rise, powers), span, softmax.scale))
        ones = ir.Full(
            (),
            (names.fresh(ir.Value("1", TileType(scores.type.cols, Axis(1), bf16))),),
            loop.span,
            ir.Constant(1.0),
            scores.type.cols,
            Axis(1),
            bf16,
        )
        nodes.append(ones)
        nexts = list(loop.nexts)
        nexts[softmax.maximum] = top
        summed = self._span(loop.nexts[softmax.total])
        total = ir.Matmul((powers, ones.result), (nexts[softmax.total],), summed)
        for position, node in ((softmax.total, total), (softmax.sums, product)):
            carry, last = loop.carries[position], loop.nexts[position]
            scaled = ir.Rescale((carry, rise), (names.fresh(carry),), node.span)
            operands = (powers, node.operands[1], scaled.result)
            made = node.replace(operands=operands, results=(names.fresh(last),))
            nodes.extend((scaled, made))
            nexts[position] = made.result
        return nodes, nexts

    def _span(self, *values: ir.Value) -> Span | None:
        """From the first to the last of the lines that make some values."""
        found: Span | None = None
        for each in values:
            span = self._finder.makers[each.name].span
            found = found.joined(span) if found and span else found or span
        return found


def _require_scale(softmax: RunningSoftmax) -> None:
    try:
        score_scale(softmax.scale)
    except BadInputError as error:
        raise ProgramError(
            "operation",
            f"Scores of a softmax over blocks must be scaled by a positive number, not "
            f"{softmax.scale:g}: the maximum is taken before the scale. Negate an operand of the "
            "product, or keep the printed form by `exact=True`",
            softmax.chain.scaling.span,
            value=f"{softmax.scale:g}",
        ) from error


def _require_end(softmax: RunningSoftmax, finder: SoftmaxFinder) -> None:
    """Require that the loop ends early only before keys that no row sees.

    Then whole blocks may be computed: what is beyond the end is hidden.
    """
    for form in _moving_ends(softmax.loop):
        if not any(_hides(each, form, softmax, finder) for each in softmax.chain.hidden):
            raise Missed(
                softmax.loop,
                f"`until` must hide no key that the scores show: {form} is less than a row sees",
            )


def _moving_ends(loop: ir.Loop) -> tuple[Affine, ...]:
    """Ends of a loop that depend on other loops."""
    forms = loop.until.forms if loop.until else ()
    return tuple(each for each in forms if each.terms)


def _hides(hidden: Hidden, end: Affine, softmax: RunningSoftmax, finder: SoftmaxFinder) -> bool:
    """Whether a condition hides each key from ``end`` on."""
    last = _last_seen(hidden, softmax, finder)
    gap = None if last is None else end - last[0] - 1
    return gap is not None and not gap.terms and gap.constant >= 0


def _last_seen(
    hidden: Hidden, softmax: RunningSoftmax, finder: SoftmaxFinder
) -> tuple[Affine, Affine] | None:
    """Last key that a condition shows, in the last row of a whole tile and in its first row."""
    seen = seen_where(hidden.condition, finder.makers, holds=not hidden.holds)
    scores = softmax.chain.product.result.type
    assert isinstance(scores, TileType)
    for each in seen:
        if each.columns == -1 and each.rows in (0, 1):
            first = each.base + Affine.of(softmax.loop.index)
            return first + (Affine.of(scores.rows.size) - 1) * each.rows, first
    return None


def _whole_blocks(loop: ir.Loop) -> ir.Loop:
    """The loop with whole blocks of keys: an end that depends on other loops clips none."""
    ends = {form - Affine.of(loop.index) for form in _moving_ends(loop)}

    def whole(item: Any) -> Any:
        if isinstance(item, Axis):
            return Axis(item.size, tuple(each for each in item.rests if each not in ends))
        return item

    return loop.replace(nodes=rebuild(loop.nodes, whole), nexts=rebuild(loop.nexts, whole))
