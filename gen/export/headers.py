"""C header and SystemVerilog package of an exported core's constants."""

from amaranth.lib import data

from gen.export.definitions import Constant, Definitions
from hw.arch.descriptor import DESCRIPTOR_BYTES, descriptor_layout

__all__ = ["c_header", "verilog_package"]

_MAX_INT = 1 << 31


def _plain(text: str) -> str:
    return text.encode("ascii", "replace").decode()


def c_header(name: str, found: Definitions) -> str:
    """Text of a C header: each constant as a macro, and the descriptor as a structure.

    Parameters
    ----------
    name : str
        Name of the core, which begins every macro.
    found : Definitions
    """
    guard = f"{name.upper()}_H"
    lines = [
        f"/* Constants of {name}: ports, registers, descriptors and codes. */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        "#include <stddef.h>",
        "#include <stdint.h>",
    ]
    for title, constants in found.sections():
        lines += ["", f"/* {_plain(title)} */"]
        lines += [_macro(name.upper(), each) for each in constants]
    if found.descriptor:
        lines += ["", *_structure(name)]
    return "\n".join([*lines, "", f"#endif /* {guard} */", ""])


def _macro(prefix: str, each: Constant) -> str:
    note = f" /* {_plain(each.text)} */" if each.text else ""
    return f"#define {prefix}_{each.name} {each.value:#x}u{note}"


def _structure(name: str) -> list[str]:
    """The descriptor as a structure whose offsets the compiler checks."""
    lines = ["/* Tensor descriptor in memory, little-endian. */", "typedef struct {"]
    checks = []
    for key, field in descriptor_layout:
        shape = field.shape
        count, element = 1, shape
        if isinstance(shape, data.ArrayLayout):
            count, element = shape.length, shape.elem_shape
        bits, signed = field.width // count, getattr(element, "signed", False)
        if bits not in (8, 16, 32, 64):
            count, bits, signed = field.width // 8, 8, False
        kind = f"{'' if signed else 'u'}int{bits}_t"
        lines.append(f"  {kind} {key}{f'[{count}]' if count > 1 else ''};")
        checks.append((str(key), field.offset // 8))
    kind = f"{name}_descriptor"
    lines.append(f"}} {kind};")
    check = f"{name.upper()}_CHECK"
    message = '"layout of the descriptor"'
    # C++ does not know _Static_assert, nor C before 2023 static_assert without a header.
    lines += ["#ifdef __cplusplus", f"#define {check} static_assert"]
    lines += ["#else", f"#define {check} _Static_assert", "#endif"]
    lines += [f"{check}(offsetof({kind}, {key}) == {offset}, {message});" for key, offset in checks]
    lines += [f"{check}(sizeof({kind}) == {DESCRIPTOR_BYTES}, {message});", f"#undef {check}"]
    return lines


def verilog_package(name: str, found: Definitions) -> str:
    """Text of a SystemVerilog package: each constant as a parameter.

    Parameters
    ----------
    name : str
        Name of the core; the package is ``NAME_pkg``.
    found : Definitions
    """
    lines = [
        f"// Constants of {name}: ports, registers, descriptors and codes.",
        f"package {name}_pkg;",
    ]
    for title, constants in found.sections():
        lines += ["", f"  // {_plain(title)}"]
        for each in constants:
            note = f"  // {_plain(each.text)}" if each.text else ""
            # Icarus 11 does not know ``int unsigned``.
            bits = 32 if each.value < _MAX_INT else 64
            literal = f"{bits}'d{each.value}"
            lines.append(f"  localparam logic [{bits - 1}:0] {each.name} = {literal};{note}")
    return "\n".join([*lines, "", f"endpackage : {name}_pkg", ""])
