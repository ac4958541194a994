"""C header and SystemVerilog package: they compile, and have the offsets of the contract."""

import re
import subprocess

import pytest

from gen.export.bus_ports import bus_groups
from gen.export.definitions import definitions
from gen.export.headers import c_header, verilog_package
from hw.arch.descriptor import DESCRIPTOR_BYTES, Descriptor, ElementFormat, descriptor_layout
from hw.arch.registers.register_fields import RegisterAccess
from hw.arch.registers.tma_registers import TMA_REGISTERS
from hw.arch.tma_sizes import TmaSizes
from hw.lib.barrier import Barrier
from hw.tma.host_port.tma_top import TmaTop
from tests.unelaborated import unelaborated

SIZES = TmaSizes(width_bits=64, address_bits=32, landing_beats=32, outstanding=4, descriptors=4)


def found(component, ports=None):
    signature = component.signature
    names = ports or {"__".join(map(str, path)) for path, *_ in signature.flatten(component)}
    return definitions(component, bus_groups(signature, names))


@pytest.fixture(scope="module")
def unit():
    return found(unelaborated(TmaTop(SIZES, commands=8)))


def program(tmp_path, header, body):
    """Output of a C program that includes the header."""
    (tmp_path / "core.h").write_text(header)
    (tmp_path / "main.c").write_text(
        f'#include "core.h"\n#include <stdio.h>\n#include <string.h>\n'
        f"int main(void) {{ {body} return 0; }}\n"
    )
    command = ["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "main.c", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    return subprocess.run(
        [tmp_path / "main"], check=True, capture_output=True, text=True
    ).stdout.split()


def test_offsets_and_fields_of_the_registers_are_those_of_the_contract(unit, tmp_path):
    words, expected = [], []
    for register in TMA_REGISTERS:
        words.append(f"CORE_REG_{register.name}_OFFSET")
        expected.append(register.offset)
        for field in register.fields:
            label = f"CORE_REG_{register.name}_{field.name.upper()}"
            words += [f"{label}_LSB", f"{label}_WIDTH"]
            expected += [field.low, field.bits]
    body = "".join(f'printf("%u\\n", {word});' for word in words)
    assert list(map(int, program(tmp_path, c_header("core", unit), body))) == expected


def test_a_descriptor_of_c_has_the_bytes_of_one_of_python(unit, tmp_path):
    packed = Descriptor(
        base=0x1230, format=ElementFormat.FP16, dims=(64, 5), strides=(128,), box=(32, 4)
    ).pack()
    body = (
        "core_descriptor d; memset(&d, 0, sizeof d); d.base = 0x1230; d.rank = 2;"
        "d.format = CORE_ELEMENT_FORMAT_FP16; d.dims[0] = 64; d.dims[1] = 5;"
        "d.strides[0] = 128; d.box[0] = 32; d.box[1] = 4;"
        "d.element_strides[0] = 1; d.element_strides[1] = 1;"
        'for (size_t i = 0; i < sizeof d; i++) printf("%u\\n", ((uint8_t *)&d)[i]);'
    )
    written = bytes(map(int, program(tmp_path, c_header("core", unit), body)))
    assert len(written) == DESCRIPTOR_BYTES and written[:16] == packed[:16]
    assert written[16 : 16 + 8] == packed[16 : 16 + 8]
    for name, size in (("box", 4), ("element_strides", 2), ("strides", 8)):
        first = descriptor_layout[name].offset // 8
        assert written[first : first + size] == packed[first : first + size], name
    assert descriptor_layout["shortfall"].offset // 8 == 51


@pytest.mark.parametrize("standard", ["c11", "c17", "c++11", "c++17"])
def test_the_header_compiles_as_c_and_as_cpp(unit, standard, tmp_path):
    (tmp_path / "core.h").write_text(c_header("core", unit))
    kind = standard.rstrip("0123456789")
    source = tmp_path / "main.cc"
    source.write_text('#include "core.h"\n#include "core.h"\n')
    command = ["gcc", f"-std={standard}", "-fsyntax-only", "-Wall", "-Wextra", "-pedantic"]
    done = subprocess.run(
        [*command, "-Werror", "-x", kind, source], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_both_files_have_the_same_constants(unit):
    header, package = c_header("core", unit), verilog_package("core", unit)
    macros = dict(re.findall(r"^#define CORE_(\w+) (0x[0-9a-f]+)u", header, re.MULTILINE))
    parameters = dict(re.findall(r"localparam logic \[\d+:0\] (\w+) = \d+'d(\d+);", package))
    assert {name: int(text, 16) for name, text in macros.items()} == {
        name: int(text) for name, text in parameters.items()
    }
    assert len(macros) > len(TMA_REGISTERS) and header.isascii() and package.isascii()
    assert {"BARRIER_OPERATION_DROP", "TMA_ERROR_POINTER", "SWIZZLE_B128"} <= macros.keys()


def test_the_meaning_of_a_field_stands_beside_it(unit):
    header = c_header("core", unit)
    for register in TMA_REGISTERS:
        for field in register.fields:
            line = f"#define CORE_REG_{register.name}_{field.name.upper()}_LSB {field.low:#x}u /* "
            (found_line,) = (each for each in header.splitlines() if each.startswith(line))
            assert f"/* {RegisterAccess(field.access).value}: " in found_line


def test_a_core_without_registers_has_its_ports_alone():
    header = c_header("core", found(unelaborated(Barrier(arrivals=7, tx_bytes=200))))
    assert "REG_" not in header and "descriptor" not in header.lower().replace("descriptors", "")
    assert "#define CORE_I_ARRIVE_BITS 0x3u" in header
