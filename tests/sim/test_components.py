"""The table of components: what it lists is made, measured, tested, and refused in one line."""

import importlib
import re
from pathlib import Path

import pytest

import tilewright
from gen.header import About, header
from gen.lint import waived_rules
from gen.verilog import emit
from hw.arch.config import named
from hw.arch.errors import BadInputError
from hw.float.operations import OPERATIONS
from hw.float.special_functions import UNITS
from sim.cli.port_notes import matrix_notes
from sim.cli.unit_options import COMPONENTS as SYSTOLIC
from sim.cocotb.bench_runner import bench_names
from sim.components import ARRAYS, COMPONENTS
from tests.unelaborated import unelaborated
from tests.verilog_tools import faults_of_verilator, faults_of_yosys

TINY = named["tiny"]
PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "verilog.md"
CHEAP = ("barrier", "barrier_bank", "config_segment", "fp_fma", "fp_exp2")
#: Widths that the component limits otherwise: by what else it has, or not at all.
WIDTHS = [(name, "width_bits") for name in ("switch", "config_segment", "pmu")]
LIMITS = [
    (component.name, parameter)
    for component in COMPONENTS.values()
    for parameter in component.parameters
    # The component itself takes more than what is offered of these.
    if parameter.name not in ("capacity_bytes", "config_bits")
    and (component.name, parameter.name) not in WIDTHS
]


def test_the_table_has_every_unit():
    assert {"tma", "pmu", "pcu", "switch", "agcu", "barrier", "command"} <= set(COMPONENTS)
    assert {f"fp_{name}" for name in UNITS} <= set(COMPONENTS)
    casts = [name for name in OPERATIONS if re.match(r"(from|to)_(?!int32)|saturate", name)]
    assert {f"fp_{name}" for name in OPERATIONS if name not in casts} <= set(COMPONENTS)
    assert tuple(ARRAYS) == SYSTOLIC
    assert {component.bench for component in COMPONENTS.values()} <= set(bench_names())
    assert hasattr(importlib.import_module("sim.tb.fp"), "design")


@pytest.mark.few(2)
@pytest.mark.parametrize("name", CHEAP)
def test_a_component_is_read_by_the_tools_with_a_head(name, tmp_path):
    component = COMPONENTS[name]
    design = emit(component.build(TINY, component.values(TINY, [])))
    (tmp_path / "unit.v").write_text(design.file)
    assert design.head.startswith(f"// {design.top}: ")
    assert faults_of_verilator(tmp_path / "unit.v", design.top) == ""
    assert faults_of_yosys(tmp_path / "unit.v", design.top) == ""


@pytest.mark.parametrize(("name", "parameter"), LIMITS, ids=lambda x: getattr(x, "name", x))
def test_a_parameter_has_the_bounds_of_the_component(name, parameter):
    component = COMPONENTS[name]
    values = component.values(TINY, [])
    for value in (parameter.domain.low, parameter.domain.high):
        unelaborated(component.build(TINY, values | {parameter.name: parameter.checked(value)}))
    beyond = parameter.domain.high * (2 if parameter.domain.power else 1) + 1
    for value in (parameter.domain.low - 1, beyond):
        with pytest.raises(BadInputError):
            component.build(TINY, values | {parameter.name: value})
        with pytest.raises(BadInputError, match=f"{parameter.name} must be"):
            parameter.checked(value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("verilog --component tmaa", "did you mean 'tma'?"),
        ("area --component fp_rsqr", "did you mean 'fp_rsqrt'"),
        ("sim fp_rsqr", "did you mean 'fp_rsqrt'"),
        ("verilog --component tma --set outstandin=3", "did you mean 'outstanding'?"),
        ("verilog --component tma --set width_bits=100", "must be a power of two from 64 to 1024"),
        (
            "verilog --component barrier --set arrivals=3 --set arrivals=4",
            "Parameter arrivals must be set once, not to 3 and to 4",
        ),
        (
            "area --component pmu --data-bits 64 --set width_bits=128",
            "Parameter width_bits must be set once, not to 64 and to 128",
        ),
        ("verilog --component pcu --set slots=2", "it must be left out: it has none"),
        ("verilog --component fp_add --config tiny", "it is no part of a chip"),
        ("verilog --set slots=2", "--set must come with one of pcu"),
        ("area --component pcu --set slots=2", "it must be left out"),
        ("sim pmu --set slots=3", "--set must be for a floating-point unit"),
        ("sim barrier --component pmu", "--component must be left out where BLOCK is given"),
    ],
)
def test_what_there_is_not_is_refused_in_one_line(line, message, capsys):
    assert tilewright.main(line.split()) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_the_list_shows_components_with_ranges(capsys):
    assert tilewright.main(["list"]) == 0
    shown = capsys.readouterr().out
    for name, component in COMPONENTS.items():
        assert re.search(rf"^  {name} +\S", shown, re.MULTILINE), name
        assert all(f"{each.name}: {each.domain.rule}" in shown for each in component.parameters)


def test_the_page_has_the_table_and_the_waivers():
    text = PAGE.read_text()
    for component in COMPONENTS.values():
        parameters = ", ".join(f"`{each.name}`" for each in component.parameters)
        row = f"| `{component.name}` | {component.summary} | {parameters} | `{component.bench}` |"
        assert row in text
    assert re.findall(r"^\| `([A-Z]+)` \|", text, re.MULTILINE) == list(waived_rules())


@pytest.mark.parametrize("name", COMPONENTS)
def test_every_port_has_a_note_in_the_header(name):
    entry = COMPONENTS[name]
    unit = unelaborated(entry.build(TINY, entry.values(TINY, [])))
    notes = matrix_notes(4, 2) if name == "matrix_unit" else {}
    about = About("summary", "command", {}, notes)
    text = header(unit, ports=(), about=about)
    # A stream of several fields may have a note on each of them instead.
    bare = re.findall(r"^//   (\S+)  (?!.*:)(?!stream .*\n//     \[.*:)", text, re.MULTILINE)
    assert bare == []


def head_of(name, **values):
    entry = COMPONENTS[name]
    unit = unelaborated(entry.build(TINY, entry.values(TINY, list(values.items()))))
    return header(unit, ports=(), about=About("summary", "command", {}))


def test_ports_of_an_array_have_their_number_in_the_header():
    text = head_of("barrier_bank", ports=3, waiters=1)
    assert re.search(r"^//   i_operations__N  stream in, 53 bits, N = 0\.\.2: ", text, re.MULTILINE)
    assert re.search(r"^//   i_waits__N  stream in, 41 bits, N = 0\.\.0: ", text, re.MULTILINE)
    # The ports of a group, with the places of the fields; bytes are signed.
    answers = text.partition("o_answers__N__*  2 ports, N = 0..2")[2].partition("i_waits")[0]
    assert "//     out: valid\n//     out payload, 71 bits\n//       [0] phase\n" in answers
    assert "//       [40:21] pending\n//       [61:41] tx, signed\n" in answers


def test_an_axi_port_has_all_its_signals_in_the_header():
    text = " ".join(head_of("tma_top").replace("//", "").split())
    assert "in: awvalid, awaddr[11:0], awprot[2:0], wvalid, wdata[31:0], wstrb[3:0]," in text
    assert "out: awready, wready, bvalid, bresp[1:0], arready, rvalid, rdata[31:0]," in text


def test_a_note_on_several_ports_stands_at_the_first():
    text = head_of("switch")
    assert text.count("Links from the neighbour in that direction") == 1
    assert re.search(r"^//   i_west__N  stream in, .*: see i_north$", text, re.MULTILINE)


def test_fields_and_payloads_without_bits_are_not_in_the_header():
    text = head_of("barrier_bank", tx_bytes=0)
    pairs = re.findall(r"^// +\[(\d+|-1):(\d+)\]", text, re.MULTILINE)
    assert pairs and all(int(high) > int(low) for high, low in pairs) and "] bytes" not in text
    assert re.search(r"i_token__N  stream in, no payload, N = 0\.\.1", head_of("agcu"))
