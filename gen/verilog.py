"""Emission of Verilog for a component, identical modules defined once."""

import contextlib
import dataclasses
import gc
import hashlib
import re
from collections.abc import Iterator, Sequence

import amaranth.back.rtlil as rtlil
from amaranth.hdl import Elaboratable, ValueLike

from gen.header import About, header
from gen.rtlil import complete_switches, explicit_widths, take_checks
from gen.source import portable_marks
from gen.statements import add_checks, loop_over_zeros, start_every_block
from gen.yosys import require_writer, run_passes, write_verilog
from hw.emit.shared import Library, Shareable

__all__ = ["Design", "convert", "emit"]

#: Attributes with source locations, which would make the text depend on the machine.
_INTERNAL = ("generator", "top", "src", "amaranth.hierarchy", "amaranth.decoding")


@dataclasses.dataclass(frozen=True)
class Design:
    """Emitted Verilog with its hierarchy and header.

    Members
    -------
    top : str
        Name of the top module.
    text : str
        The Verilog, the same for the same parameters on every machine.
    instances : dict of str to int
        Instances of each module definition below the top; the top itself counts as one.
    head : str
        Header comment: description, command and ports. It is not part of the text, so that builds
        from the text are cached independently of it.
    """

    top: str
    text: str
    instances: dict[str, int]
    head: str = ""

    @property
    def file(self) -> str:
        """Content of a Verilog file: head and text."""
        return self.head + self.text

    @property
    def sha256(self) -> str:
        """Digest of the text, in hexadecimal."""
        return hashlib.sha256(self.text.encode()).hexdigest()


#: ``proc`` without multiplexers and ROMs, and without its search for latches, which takes most
#: of the time of a wide design: Amaranth writes no latches.
_PROCESSES = (
    *("proc_clean", "proc_rmdead", "proc_prune", "proc_init", "proc_arst", "proc_dff"),
    *("proc_memwr", "proc_clean", "opt_expr -keepdc"),
)

#: The attribute "signed" of a wire means nothing in RTLIL, where cells state the signedness of
#: their operands. Verilog compares or multiplies two signed wires as signed, whatever the cell
#: said, and yosys 0.70 declares them so.
_SIGNED = re.compile(r"^( *wire [^\\\\$\n]*)\bsigned ", re.MULTILINE)

_MODULE = re.compile(r"^module \\(\S+)\n(.*?)^end$", re.MULTILINE | re.DOTALL)
_CELL = re.compile(r"^\s*cell \\(\S+) \S+$", re.MULTILINE)


def _count_instances(rtlil_text: str, top: str) -> dict[str, int]:
    inside = {name: _CELL.findall(body) for name, body in _MODULE.findall(rtlil_text)}
    counts = dict.fromkeys(inside, 0)

    def visit(name: str, times: int) -> None:
        counts[name] += times
        below: dict[str, int] = {}
        for child in inside[name]:
            below[child] = below.get(child, 0) + 1
        for child, count in below.items():
            visit(child, times * count)

    visit(top, 1)
    return counts


@contextlib.contextmanager
def _few_collections() -> Iterator[None]:
    """Run the garbage collector rarely: elaboration makes millions of objects that stay."""
    former = gc.get_threshold()
    gc.set_threshold(1_000_000, *former[1:])
    try:
        yield
    finally:
        gc.set_threshold(*former)


def _verilog(rtlil_text: str, *, source: bool = False) -> str:
    """Verilog of RTLIL text from Amaranth."""
    removed = [name for name in _INTERNAL if not (source and name == "src")]
    passes = [
        *_PROCESSES,
        "memory_collect",
        # A stream without data has a payload of zero bits, which Verilog cannot express: it would
        # be written as [-1:0], two bits.
        "clean_zerowidth",
        "delete */s:0",
        "attrmap " + " ".join(f"-remove {attribute}" for attribute in removed),
        "attrmap -modattr " + " ".join(f"-remove {attribute}" for attribute in removed),
        "sort",
    ]
    passed = run_passes(_SIGNED.sub(r"\1", rtlil_text), passes)
    passed, checks = take_checks(passed)
    text = write_verilog(complete_switches(explicit_widths(passed)))
    return add_checks(loop_over_zeros(start_every_block(text)), checks)


def emit(component: Shareable, *, source: bool = False, about: About | None = None) -> Design:
    """Verilog of a component and of everything it contains.

    Parameters
    ----------
    component : Shareable
    source : bool
        Annotate wires and cells with their source location, ``(* src = "hw/lib/fifo.py:42" *)``.
    about : About, optional
        Contents of the header; by default from the component's class and parameters.

    Raises
    ------
    hw.arch.errors.MissingToolError
        If the yosys that writes Verilog is not installed.
    """
    require_writer()
    library = Library(source=source)
    name = component.definition_name
    with _few_collections():
        library.define(component)
    rtlil_text = portable_marks("\n".join(library.definitions.values()))
    text = _verilog(rtlil_text, source=source)
    head = header(component, text=text, about=about)
    return Design(name, text, _count_instances(rtlil_text, name), head)


def convert(
    component: Elaboratable, *, name: str = "top", ports: Sequence[ValueLike] | None = None
) -> str:
    """Verilog of a component without sharing, as Amaranth elaborates it.

    Parameters
    ----------
    component : Elaboratable
    name : str
        Name of the top module.
    ports : sequence of values, optional
        Its ports, if it has no signature.

    Raises
    ------
    hw.arch.errors.MissingToolError
        If the yosys that writes Verilog is not installed.
    """
    return _verilog(rtlil.convert(component, name=name, ports=ports, emit_src=False))
