"""house-d: what hardware and software agree on is declared once, and everything follows it."""

import ast
import dataclasses
import enum
from importlib import import_module

import pytest

from docs.tools import contract_tables
from docs.tools.blocks import blocks
from hw.arch.checks import Domain
from tests.edited_copy import PACKAGES, ROOT, edited_copy, python_in

#: What the program of a case begins with.
HEAD = """
import dataclasses
import re
from gen.verilog import emit
from hw.agcu.unit import Agcu
from hw.arch.agcu import AgcuProgram
from hw.arch.config import ChipConfig, PmuConfig, named
from hw.arch.descriptor import Descriptor, ElementFormat
from hw.arch.launch import Argument, LaunchEntry, pack_arguments
from hw.arch.loops import ChainProgram, LoopProgram, chain_layout
from hw.arch.pcu import FilterProgram, PcuProgram
from hw.arch.pmu import EngineProgram, PmuProgram, SlotRing
from hw.arch.ports import Direction, Link, SwitchPorts, UnitPort
from hw.arch.switch import OutputProgram, SwitchProgram, Turn
from hw.numeric.formats import bf16
from sim.components import COMPONENTS
from sw.compiler import compile_kernel
from sw.fabric.netlist_check import check_netlist
from sw.kernels.matmul import matmul
from sw.language import Schedule
from sw.netlist import Pin, Net, Netlist

TINY = named["tiny"]

def width(name, wire):
    component = COMPONENTS[name].build(TINY, COMPONENTS[name].values(TINY, []))
    kinds = "wire|reg|input|output"
    found = re.findall(rf"(?:{kinds}) +(?:\\[(\\d+):0\\] +)?{wire}\\b", emit(component).text)
    return max(int(high or 0) + 1 for high in found)

def compiled(size=64, chip=named["small"], **choices):
    dims = dict.fromkeys("MNK", size)
    return compile_kernel(matmul, chip, dims=dims, dtype=bf16, schedule=Schedule(**choices))

def box(size):
    return Descriptor(base=0, format=ElementFormat.BF16, dims=(999,), box=(size,))

def filtered(modulus):
    program = PcuProgram(bf16, bf16, weight=FilterProgram(modulus, modulus - 1))
    return PcuProgram.unpack(program.pack(0), 0).weight.modulus

def chain(count):
    layout = chain_layout(loops=1, count_bits=COUNT_BITS, offset_bits=8)
    program = ChainProgram((LoopProgram(count),))
    return ChainProgram.unpack(layout, program.pack(layout)).loops[0].base

def turn(packets):
    ports = SwitchPorts(tracks=1, unit_outputs=1, unit_inputs=1)
    output = OutputProgram(Link(Direction.EAST, 0), (Turn(UnitPort(0), packets),))
    program = SwitchProgram(ports, [output])
    return SwitchProgram.unpack(ports, program.pack()).outputs[0].rotation[0].packets

def merged(packets):
    program = PcuProgram(bf16, bf16)
    net = Net("c", ((Pin("a", 0), packets),), (Pin("b", 0),))
    check_netlist(Netlist({"a": program, "b": program}, (net,), {}), named["small"])

def ring(slots):
    engine = EngineProgram(SlotRing(count=slots), ())
    words = dict(capacity_bytes=4096, slots=slots)
    word = PmuProgram((engine, None)).pack(width_bits=64, **words)
    return PmuProgram.unpack(word, **words).writers[0].ring.count

def most_slots():
    return dataclasses.replace(named["small"], pmu=PmuConfig(slots=PMU_SLOTS.high))

def refusal(make):
    try:
        make()
    except (ValueError, RuntimeError) as error:
        return str(error)
    return "nothing is refused"
"""


@dataclasses.dataclass
class Case:
    """A limit, its changed declaration, and what follows from it.

    Parameters
    ----------
    name : str
        Module of `hw.arch` and name of the limit.
    value : str
        The changed declaration.
    row : str
        Its value in docs/contract.md.
    hardware : str
        Python that gives the width of a port, register or wire.
    bits : int
        That width.
    takes : str
        Python that packs the greatest value and reads it back.
    refuses : tuple of (str, str)
        Python that goes beyond it, and the end of the refusal: of the packer, then of the compiler
        or of its check of a netlist.
    """

    name: str
    value: str
    row: str
    hardware: str
    bits: int
    takes: str
    refuses: tuple[tuple[str, str], ...]

    @property
    def program(self):
        """Python that prints the width and the refusals, a line each."""
        lines = [f"print({self.hardware})", f"assert {self.takes}"]
        lines += [f"print(refusal(lambda: {python}))" for python, _ in self.refuses]
        module, _, name = self.name.partition(".")
        return "\n".join([HEAD, f"from hw.arch.{module} import {name}", *lines])


CASES = (
    Case(
        "limits.MAX_CREDITS",
        "3",
        "3",
        "width('agcu', 'tokens_0')",
        2,
        "AgcuProgram.unpack(AgcuProgram(credits=(3, 0)).pack(2), 2).credits == (3, 0)",
        (
            ("AgcuProgram(credits=(4,))", "AGCU credits must be from 0 to 3, not 4"),
            (
                "compiled(slots={'a_tile': 4}, row_par={'c': 1})",
                "Free slots of one stream must be at most 3, not 4",
            ),
        ),
    ),
    Case(
        "limits.MAX_MODULUS",
        "4",
        "4",
        "width('pcu', 'position')",
        2,
        "filtered(4) == 4",
        (
            ("filtered(5)", "Filter modulus must be from 1 to 4, not 5"),
            ("compiled(col_par={'c': 8})", "col_par of `c` must be one of 1, 2, 3, 4, not 8"),
        ),
    ),
    Case(
        "descriptor.MAX_BOX",
        "16",
        "16",
        "width('tma', 'index0')",
        4,
        "Descriptor.unpack(box(16).pack()).box == (16,)",
        (
            ("box(17)", "Box dimension 0 must be an integer from 1 to 16, not 17"),
            ("compiled(col_par={'c': 4})", "col_par of `c` must be one of 1, 2, not 4"),
        ),
    ),
    Case(
        "loops.COUNT_BITS",
        "5",
        "5",
        "width('pmu', 'index')",
        5,
        "chain(31) == 31",
        (
            ("chain(32)", "Count of loop 0 must be below 32, not 32 to 32"),
            ("compiled(2048, tile={'i': 32})", "must be at most 31"),
        ),
    ),
    Case(
        "switch.MAX_PACKETS",
        "7",
        "7",
        "width('switch', 'packets')",
        3,
        "turn(7) == 7",
        (
            ("turn(8)", "Turn packets must be an integer from 1 to 7, not 8"),
            ("merged(8)", "must take 1 to 7 packets of port 0 of `a`, not 8"),
        ),
    ),
    Case(
        "limits.PMU_SLOTS",
        "Domain(2, 24)",
        "2 to 24",
        "width('pmu', 'o_state')",
        44,
        "ring(24) == 24",
        (
            ("PmuConfig(slots=25)", "PMU slots must be an integer from 2 to 24, not 25"),
            (
                "compiled(chip=most_slots(), slots={'a_tile': 25})",
                "Buffer a0 needs 25 slots, and a buffer has at most 24",
            ),
        ),
    ),
    Case(
        "launch.MAX_ARGUMENTS",
        "2",
        "2",
        r"width('command', r'\w*arguments_left')",
        2,
        "len(pack_arguments([Argument(0)] * 2)) == 32",
        (
            ("pack_arguments([Argument(0)] * 3)", "Arguments must be at most 2, not 3"),
            ("compiled()", "Arrays of a part must be at most 2, not 3"),
        ),
    ),
)


@pytest.mark.slow
@pytest.mark.must("house-d", goal="width, packer, refusals and docs follow >= 6 limits")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_everything_follows_the_declaration(case, tmp_path, figure):
    module, _, name = case.name.partition(".")
    edited_copy(tmp_path, f"hw/arch/{module}.py", f"^{name} = .*$", f"{name} = {case.value}")
    bits, *refusals = python_in(tmp_path, "-c", case.program)
    assert int(bits) == case.bits
    for said, (_, end) in zip(refusals, case.refuses, strict=True):
        assert end in said
    python_in(tmp_path, "-m", "docs.tools.update", "docs/contract.md", "--quick")
    page = (tmp_path / "docs" / "contract.md").read_text(encoding="utf-8")
    assert f"| `{case.name}` | {case.row} |" in page
    assert f"| `{case.name}` | {case.row} |" not in (ROOT / "docs/contract.md").read_text()
    figure(f"{case.name} = {case.value}: {bits} bits")


def contract():
    """Limits by name, and classes of codes by name, that `hw.arch` declares; a name twice fails."""
    limits, codes = {}, {}
    for path in sorted((ROOT / "hw" / "arch").glob("[!_]*.py")):
        module = import_module(f"hw.arch.{path.stem}")
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            for name in assigned(node):
                if name.isupper() and isinstance(getattr(module, name), int | Domain):
                    assert name not in limits, f"{name} is declared twice"
                    limits[name] = getattr(module, name)
            if isinstance(node, ast.ClassDef):
                kind = getattr(module, node.name)
                if issubclass(kind, enum.Enum):
                    assert node.name not in codes, f"{node.name} is declared twice"
                    codes[node.name] = {(str(each.name), each.value) for each in kind}
    return limits, codes


def assigned(node):
    """Names that a statement assigns."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    for target in targets:
        for each in target.elts if isinstance(target, ast.Tuple) else [target]:
            if isinstance(each, ast.Name):
                yield each.id


def twins(limits, codes, text, module):
    """What a module outside the contract declares again.

    A second assignment of a limit's name; an upper-case integer of the value of a limit with which
    it shares a word (``MOST_BOX = 256``); a class of a code's name, or an enumeration or a
    dictionary with two of its members and their codes.
    """
    words = {
        (word, value): name
        for name, value in limits.items()
        if isinstance(value, int) and value > 2
        for word in name.split("_")
        if word not in GENERAL
    }
    for node in ast.walk(ast.parse(text)):
        for name in assigned(node) if isinstance(node, ast.Assign | ast.AnnAssign) else ():
            plain = name.lstrip("_")
            value = node.value.value if isinstance(node.value, ast.Constant) else None
            if plain in limits and plain.isupper():
                yield f"{module}:{node.lineno}: {name} is declared in hw.arch"
            for word in plain.split("_") if plain.isupper() else ():
                if (word, value) in words:
                    yield f"{module}:{node.lineno}: {name} is {words[word, value]} of hw.arch"
        members = set()
        if isinstance(node, ast.ClassDef):
            if node.name in codes:
                yield f"{module}:{node.lineno}: {node.name} is declared in hw.arch"
            members = {
                (name, each.value.value)
                for each in node.body
                if isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant)
                for name in assigned(each)
            }
        elif isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            members = {
                (key.value, value.value)
                for key, value in pairs
                if isinstance(key, ast.Constant) and isinstance(value, ast.Constant)
            }
        for name, names in codes.items():
            if len(members & names) > 1:
                yield f"{module}:{node.lineno}: members of {name} of hw.arch"


#: Words of limits that say nothing of what is limited.
GENERAL = {"MAX", "MOST", "BITS", "BYTES", "COUNT", "WORDS", "VERSION"}


@pytest.mark.must("house-d", goal="no second assignment of a limit, code or port name")
def test_nothing_of_the_contract_is_declared_twice(figure):
    limits, codes = contract()
    found = [
        twin
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        if path.parent != ROOT / "hw" / "arch"
        for twin in twins(limits, codes, path.read_text(encoding="utf-8"), path.relative_to(ROOT))
    ]
    assert found == []
    figure(f"{len(limits)} limits, {len(codes)} enumerations")


@pytest.mark.parametrize(
    "text",
    [
        "MAX_CREDITS = 100",
        "_MAX_CREDITS: int = 100",
        "_MOST_BOX = 256",
        "class TmaError: pass",
        "class Side(Enum):\n    NORTH = 0\n    EAST = 1",
        "SIDES = {'NORTH': 0, 'WEST': 3}",
    ],
)
def test_a_twin_is_found(text):
    limits, codes = contract()
    assert list(twins(limits, codes, text, "somewhere"))


@pytest.mark.must("house-d", goal="docs/contract.md equals what is generated")
def test_the_page_is_what_the_code_makes(figure):
    page = blocks((ROOT / "docs" / "contract.md").read_text(encoding="utf-8"))
    made = {
        f"contract-{name}": getattr(contract_tables, name)()
        for name in ("modules", "limits", "codes")
    }
    assert {name: page[name] for name in made} == made
    figure(f"{sum(text.count(chr(10)) - 2 for text in made.values())} rows")
