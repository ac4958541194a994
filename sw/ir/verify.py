"""Verifier of the tile IR, run between passes.

Rules, by the number that errors name:

1. a value is used after its definition and inside its region, and so is the index of a loop
2. the stated types equal the inferred ones
3. starts, carries, nexts and results of a loop agree in type
4. views stay inside their tensors in every iteration
5. after masking, no reduction or product covers a tail other than its identity element
6. every output element is written once; after ordering, in-place updates have tokens
7. names are unique, and every node has a source position
"""

from __future__ import annotations

from sw.ir import nodes as ir
from sw.ir.affine import Affine, Axis
from sw.ir.cover import CoverError, check_cover
from sw.ir.infer import RuleError, infer
from sw.ir.program import Program
from sw.ir.rewrite import rebuild, walk
from sw.ir.sizes import index_ranges
from sw.ir.tails import Tails
from sw.ir.types import Role, TokenType, View

__all__ = ["VerifyError", "verify"]


class VerifyError(ValueError):
    """A program that breaks a rule of the IR.

    Parameters
    ----------
    rule : int
        Number of the rule.
    node : Node or None
        The node at fault.
    message : str
        What is wrong.
    """

    def __init__(self, rule: int, node: ir.Node | None, message: str) -> None:
        self.rule = rule
        self.node = node
        place = ""
        if node is not None:
            given = ", ".join(str(each) for each in node.results)
            place = f" in `{f'{given} = ' if given else ''}{node.kind}`"
            place += f" ({node.span})" if node.span is not None else ""
        super().__init__(f"rule {rule}{place}: {message}")


def verify(program: Program) -> Program:
    """Check a program, and return it unchanged.

    Raises
    ------
    VerifyError
        At the first broken rule.
    """
    _Verifier(program).run()
    return program


class _Verifier:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._tensors = {each.name: each for each in program.tensors}
        self._ranges = index_ranges(program.nodes)
        self._tails = Tails(self._tensors)
        self._names: set[str] = set()
        self._indices: set[str] = set()

    def run(self) -> None:
        if len(self._tensors) != len(self._program.tensors):
            raise VerifyError(7, None, "names of tensors must differ")
        self._region(self._program.nodes, {}, frozenset())
        try:
            check_cover(self._program)
        except CoverError as error:
            raise VerifyError(6, error.node, str(error)) from error
        if "order" in self._program.passes:
            self._check_tokens()

    def _region(
        self, nodes: tuple[ir.Node, ...], outer: dict[str, ir.Value], symbols: frozenset[str]
    ) -> dict[str, ir.Value]:
        values = dict(outer)
        for node in nodes:
            if node.span is None:
                raise VerifyError(7, node, "node has no place in the program")
            for operand in node.values:
                self._check_use(node, operand, values)
            self._check_symbols(node, symbols)
            if isinstance(node, ir.Loop):
                self._loop(node, values, symbols)
            self._check_types(node)
            self._check_view(node)
            self._check_tails(node)
            for result in node.results:
                self._define(node, result, values)
        return values

    def _define(self, node: ir.Node, value: ir.Value, values: dict[str, ir.Value]) -> None:
        if value.name in self._names:
            raise VerifyError(7, node, f"name {value} is taken")
        self._names.add(value.name)
        values[value.name] = value

    def _check_use(self, node: ir.Node, value: ir.Value, values: dict[str, ir.Value]) -> None:
        found = values.get(value.name)
        if found is None:
            where = "outside its region" if value.name in self._names else "before its definition"
            raise VerifyError(1, node, f"{value} is used {where}")
        if found != value:
            raise VerifyError(2, node, f"{value} is {found.type}, and used as {value.type}")

    def _check_symbols(self, node: ir.Node, symbols: frozenset[str]) -> None:
        if isinstance(node, ir.Loop):
            if node.index in self._indices:
                raise VerifyError(7, node, f"index {node.index} is taken")
            self._indices.add(node.index)
        # The body and the nexts of a loop have other symbols in scope.
        own = node.replace(nodes=(), nexts=()) if isinstance(node, ir.Loop) else node
        if own.symbols <= symbols:
            return
        used: list[str] = []

        def note(item: object) -> object:
            if isinstance(item, Affine | Axis):
                used.extend(item.symbols)
            return item

        rebuild(own, note)
        first = next(each for each in used if each.strip("|") not in symbols)
        raise VerifyError(1, node, f"{first} is used outside its loop")

    def _loop(self, loop: ir.Loop, values: dict[str, ir.Value], symbols: frozenset[str]) -> None:
        if loop.extent < 1 or (loop.tile is not None and loop.tile < 1):
            raise VerifyError(2, loop, "extent and block size must be 1 or more")
        counts = {len(loop.operands), len(loop.carries), len(loop.nexts), len(loop.results)}
        if len(counts) > 1:
            raise VerifyError(3, loop, "starts, carries, nexts and results differ in number")
        inside = dict(values)
        for carry in loop.carries:
            self._define(loop, carry, inside)
        inside = self._region(loop.body, inside, symbols | {loop.index})
        for carry, init, last in zip(loop.carries, loop.values, loop.nexts):
            self._check_use(loop, last, inside)
            for role, each in (("start", init), ("next", last)):
                if each.type != carry.type:
                    raise VerifyError(
                        3, loop, f"{role} {each} is {each.type}, its carry {carry} {carry.type}"
                    )

    def _check_types(self, node: ir.Node) -> None:
        if (view := getattr(node, "view", None)) is not None and view.tensor not in self._tensors:
            raise VerifyError(1, node, f"there is no tensor `{view.tensor}`")
        try:
            types = infer(node, self._tensors)
        except RuleError as error:
            raise VerifyError(2, node, str(error)) from error
        found = tuple(each.type for each in node.results)
        if found[len(types) :] and isinstance(found[-1], TokenType):
            found = found[:-1]
        if found != types:
            listed = " and ".join(str(each) for each in types) or "nothing"
            raise VerifyError(3 if isinstance(node, ir.Loop) else 2, node, f"must give {listed}")

    def _check_view(self, node: ir.Node) -> None:
        view = getattr(node, "view", None)
        if not isinstance(view, View):
            return
        dims = self._tensors[view.tensor].type.dims
        if len(view.entries) != len(dims):
            raise VerifyError(4, node, f"`{view}` must have {len(dims)} entries")
        for entry, dim in zip(view.entries, dims):
            ends = [1] if entry.axis is None else [entry.axis.size, *entry.axis.rests]
            low = entry.start.bounds(self._ranges)
            highs = [(entry.start + Affine.of(end)).bounds(self._ranges) for end in ends]
            inside = any(high is not None and high[1] <= dim.size for high in highs)
            if low is None or low[0] < 0 or not inside:
                raise VerifyError(4, node, f"`{entry}` may leave {dim} of `{view.tensor}`")

    def _check_tails(self, node: ir.Node) -> None:
        if "mask" in self._program.passes:
            for operand, axis, number in self._tails.missing(node):
                noun = ("rows", "columns")[axis]
                raise VerifyError(
                    5, node, f"tail {noun} of {node.operands[operand]} must be {number}"
                )
        self._tails.note(node)

    def _check_tokens(self) -> None:
        for node in walk(self._program.nodes):
            view = getattr(node, "view", None)
            if view is None or self._tensors[view.tensor].type.role is not Role.INOUT:
                continue
            if TokenType(view.tensor) not in [each.type for each in node.values]:
                raise VerifyError(6, node, f"access to `{view.tensor}` must take its token")
