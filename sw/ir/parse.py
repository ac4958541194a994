"""Parser of the IR's text form."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from hw.arch.errors import BadInputError
from sw.ir.affine import Affine, Axis, Bound, Size
from sw.ir.format_rules import FORMATS, Format
from sw.ir.nodes import NODES, Constant, Loop, Node, Operand, Value
from sw.ir.program import Program
from sw.ir.text import attribute_fields
from sw.ir.types import (
    Dim,
    Entry,
    Role,
    Space,
    Span,
    Tensor,
    TensorType,
    TileType,
    TokenType,
    Type,
    View,
)

__all__ = ["parse_program"]

_T = TypeVar("_T")

_TOKEN = re.compile(
    r'\s*(?:(?P<string>"(?:[^"\\]|\\.)*")'
    r"|(?P<value>%[\w.]+)"
    r"|(?P<symbol>\|[\w.]+\|)"
    r"|(?P<number>\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+|\d+)"
    r"|(?P<word>[^\W\d][\w.]*)"
    r"|(?P<mark>\+:|[-+*=:;,@<>(){}\[\]]))"
)


def parse_program(text: str) -> Program:
    """Read a program from its text form.

    Raises
    ------
    BadInputError
        If the text is not a program; the message names the line.
    """
    return _Parser(text).program()


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str, int]] = []
        self._next = 0
        self._values: dict[str, Value] = {}
        self._files: dict[str, str] = {}
        for number, line in enumerate(text.splitlines(), 1):
            position = 0
            while line[position:].strip():
                match = _TOKEN.match(line, position)
                if match is None or match.lastgroup is None:
                    raise BadInputError(f"line {number}: cannot read {line[position:].strip()!r}")
                self._tokens.append((match.lastgroup, match[match.lastgroup], number))
                position = match.end()
            self._tokens.append(("end", "end of line", number))
        self._tokens.append(("end", "end of text", -1))

    # Tokens.

    @property
    def _text(self) -> str:
        return self._tokens[self._next][1]

    @property
    def _group(self) -> str:
        return self._tokens[self._next][0]

    def _fail(self, wanted: str) -> ValueError:
        _, text, number = self._tokens[self._next]
        return ValueError(f"line {number}: expected {wanted}, not {text!r}")

    def _take(self, group: str) -> str:
        if self._group != group:
            raise self._fail(group)
        self._next += 1
        return self._tokens[self._next - 1][1]

    def _accept(self, text: str) -> bool:
        if self._group in ("mark", "word") and self._text == text:
            self._next += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise self._fail(repr(text))

    def _list(self, item: Callable[[], _T], end: str) -> tuple[_T, ...]:
        """Comma-separated items up to a closing symbol, which is consumed."""
        items: list[_T] = []
        while not self._accept(end):
            if items:
                self._expect(",")
            items.append(item())
        return tuple(items)

    # Numbers and affine forms.

    def _int(self) -> int:
        sign = -1 if self._accept("-") else 1
        return sign * int(self._take("number"))

    def _constant(self) -> Constant:
        sign = -1 if self._accept("-") else 1
        text = self._take("word" if self._group == "word" else "number")
        return Constant(sign * (int(text) if text.isdigit() else float(text)))

    def _term(self) -> Affine:
        sign = -1 if self._accept("-") else 1
        if self._group == "number":
            factor = sign * int(self._take("number"))
            if not self._accept("*"):
                return Affine((), factor)
        else:
            factor = sign
        return Affine.of(self._take("symbol" if self._group == "symbol" else "word")) * factor

    def _affine(self) -> Affine:
        total = self._term()
        while self._group == "mark" and self._text in "+-":
            # A minus sign belongs to the following term.
            self._accept("+")
            total = total + self._term()
        return total

    def _bound(self) -> Bound:
        if self._text == "min" and self._tokens[self._next + 1][1] == "(":
            self._next += 2
            return Bound(self._list(self._affine, ")"))
        return Bound((self._affine(),))

    def _axis(self) -> Axis:
        size: Size = self._take("symbol") if self._group == "symbol" else self._int()
        rests = self._list(self._affine, "]") if self._accept("[") else ()
        return Axis(size, rests)

    # Types and views.

    def _format(self) -> Format:
        name = self._take("word")
        if name not in FORMATS:
            self._next -= 1
            raise self._fail("format")
        return FORMATS[name]

    def _tile_type(self) -> TileType:
        self._expect("tile")
        self._expect("<")
        rows = self._axis()
        self._expect("x")
        cols = self._axis()
        self._expect(",")
        found = TileType(rows, cols, self._format())
        self._expect(">")
        return found

    def _type(self) -> Type:
        if self._text == "tile":
            return self._tile_type()
        self._expect("token")
        self._expect("<")
        found = TokenType(self._take("word"))
        self._expect(">")
        return found

    def _entry(self) -> Entry:
        start = self._affine()
        return Entry(start, self._axis() if self._accept("+:") else None)

    def _view(self) -> View:
        tensor = self._take("word")
        self._expect("[")
        return View(tensor, self._list(self._entry, "]"))

    def _dim(self) -> Dim:
        name = self._take("word")
        self._expect("=")
        return Dim(name, self._int())

    def _tensor(self) -> Tensor:
        name = self._take("word")
        self._expect(":")
        space, role = Space(self._take("word")), Role(self._take("word"))
        self._expect("[")
        dims = self._list(self._dim, "]")
        return Tensor(name, TensorType(dims, self._format(), space, role))

    # Nodes.

    def _word(self) -> str:
        return self._take("word")

    def _bool(self) -> bool:
        return self._take("word") == "true"

    def _attribute(self, declared: str) -> Any:
        """The value of an attribute, parsed by its field's declared type."""
        readers: dict[str, Callable[[], Any]] = {
            "Affine": self._affine,
            "Axis": self._axis,
            "Constant": self._constant,
            "Format": self._format,
            "View": self._view,
            "bool": self._bool,
            "float": lambda: float(self._constant().value),
            "int": self._int,
            "int | None": self._int,
            "str": self._word,
        }
        if declared not in readers:
            # A function of a user, for one, has no text.
            raise self._fail("attribute that text can have")
        return readers[declared]()

    def _operand(self) -> Operand:
        return self._value() if self._group == "value" else self._constant()

    def _value(self) -> Value:
        name = self._text[1:]
        if self._group != "value" or name not in self._values:
            raise self._fail("a value defined above")
        self._next += 1
        return self._values[name]

    def _define(self, names: tuple[str, ...], types: tuple[Type, ...]) -> tuple[Value, ...]:
        if len(names) != len(types):
            raise self._fail(f"{len(names)} types")
        made = tuple(Value(name, kind) for name, kind in zip(names, types))
        self._values.update((each.name, each) for each in made)
        return made

    def _span(self) -> Span | None:
        span = None
        if self._accept("@"):
            file = self._files[self._word()]
            ends = []
            for mark in (":", ":", "-", ":"):
                self._expect(mark)
                ends.append(int(self._take("number")))
            span = Span(file, *ends)
        self._take("end")
        return span

    def _body(self) -> tuple[Node, ...]:
        self._expect("{")
        self._take("end")
        nodes = []
        while not self._accept("}"):
            nodes.append(self._node())
        return tuple(nodes)

    def _node(self) -> Node:
        names: list[str] = []
        while self._group == "value":
            names.append(self._take("value")[1:])
            self._expect("=" if self._text == "=" else ",")
        kind_name, _, suffix = self._take("word").partition(".")
        if kind_name not in NODES:
            self._next -= 1
            raise self._fail("kind of node")
        kind = NODES[kind_name]
        if kind is Loop:
            return self._loop(suffix, tuple(names))
        declared = {each.name: str(each.type) for each in attribute_fields(kind)}
        found: dict[str, Any] = {kind.SUFFIX: suffix} if kind.SUFFIX else {}
        if kind.HEAD:
            found[kind.HEAD] = self._attribute(declared[kind.HEAD])
            self._accept(",")
        operands: list[Operand] = []
        while self._group in ("value", "number") or self._text in ("-", "inf", "nan"):
            operands.append(self._operand())
            if not self._accept(","):
                break
        if self._accept("{"):
            while not self._accept("}"):
                name = self._word()
                self._expect("=")
                found[name] = self._attribute(declared[name])
                self._accept(",")
        types: list[Type] = []
        if self._accept(":"):
            types.append(self._type())
            while self._accept(","):
                types.append(self._type())
        results = self._define(tuple(names), tuple(types))
        return kind(tuple(operands), results, self._span(), **found)

    def _carry(self) -> tuple[str, Operand, Type]:
        name = self._take("value")[1:]
        self._expect("=")
        init = self._operand()
        self._expect(":")
        return name, init, self._type()

    def _loop(self, mode: str, names: tuple[str, ...]) -> Loop:
        index = self._word()
        self._expect("over")
        extent = self._int()
        tile = self._int() if self._accept("tile") else None
        until = self._bound() if self._accept("until") else None
        carried: list[tuple[str, Operand, Type]] = []
        if self._accept("with"):
            carried.append(self._carry())
            while self._accept(","):
                carried.append(self._carry())
        types = tuple(kind for _, _, kind in carried)
        carries = self._define(tuple(name for name, _, _ in carried), types)
        nodes = self._body()
        nexts: list[Value] = []
        if self._accept("next"):
            nexts.append(self._value())
            while self._accept(","):
                nexts.append(self._value())
        span = self._span()
        inits = tuple(init for _, init, _ in carried)
        results = self._define(names, types)
        return Loop(
            inits, results, span, mode, index, extent, tile, until, carries, nodes, tuple(nexts)
        )

    def program(self) -> Program:
        while self._group == "end":
            self._next += 1
        self._expect("program")
        name = self._word()
        self._expect("after")
        passes = []
        while self._group == "word":
            passes.append(self._word())
        self._take("end")
        tensors, nodes = [], []
        while self._text != "end of text":
            if self._group == "end":
                self._next += 1
            elif self._accept("file"):
                number = self._word()
                self._files[number] = re.sub(r"\\(.)", r"\1", self._take("string")[1:-1])
            elif self._accept("tensor"):
                tensors.append(self._tensor())
            else:
                nodes.append(self._node())
        return Program(name, tuple(tensors), tuple(nodes), tuple(passes))
