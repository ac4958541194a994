"""Emission of the Verilog of a component: one definition per distinct module."""

import dataclasses
import re
from collections.abc import Collection, Sequence

import amaranth.back.rtlil as rtlil
from amaranth.hdl import Elaboratable, ValueLike

from gen.design import Definition, Design, module_texts
from gen.header import About, header
from gen.rtlil import complete_switches, explicit_widths, take_checks
from gen.source import portable_marks
from gen.statements import add_checks, loop_over_zeros, start_every_block
from gen.yosys import require_writer, run_passes, write_verilog
from hw.emit.shared import Library, Shareable
from hw.few_collections import few_collections

__all__ = ["convert", "emit"]

#: Attributes with source locations, which would make the text depend on the machine.
_INTERNAL = ("generator", "top", "src", "amaranth.hierarchy", "amaranth.decoding")


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


def _verilog(
    rtlil_text: str, top: str, shared: Collection[str], *, source: bool = False
) -> tuple[str, dict[str, Definition]]:
    """Verilog of RTLIL text from Amaranth, and its module definitions: the shared ones."""
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
        # A private module becomes part of the one that contains it.
        f"setattr -mod -set keep_hierarchy 1 {' '.join(shared)}",
        f"setattr -mod -set top 1 {top}",
        "flatten -noscopeinfo -separator _",
        "attrmap -remove hdlname",
        "setattr -mod -unset keep_hierarchy -unset top",
        "sort",
    ]
    passed = run_passes(_SIGNED.sub(r"\1", rtlil_text), passes)
    passed, checks = take_checks(passed)
    written, definitions = write_verilog(complete_switches(explicit_widths(passed)))
    texts = {
        name: add_checks(loop_over_zeros(start_every_block(text)), checks.pop(name, ()))
        for name, text in module_texts(written).items()
    }
    if checks or definitions.keys() != texts.keys():
        missing = sorted((checks.keys() | definitions.keys()) - texts.keys())
        raise ValueError(f"Modules {missing} of the design must be in the Verilog")
    return "\n".join(texts.values()), {name: definitions[name] for name in texts}


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
    with few_collections():
        library.define(component)
    rtlil_text = portable_marks("\n".join(library.definitions.values()))
    text, definitions = _verilog(rtlil_text, name, library.definitions, source=source)
    for each, kind in library.kinds.items():
        definitions[each] = dataclasses.replace(definitions[each], kind=kind)
    head = header(component, ports=definitions[name].ports, about=about)
    return Design(name, text, definitions, head)


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
    text = rtlil.convert(component, name=name, ports=ports, emit_src=False)
    return _verilog(text, name, [name])[0]
