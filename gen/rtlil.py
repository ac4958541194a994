"""RTLIL rewriting into forms from which yosys writes plain and lint-clean Verilog.

Three forms are rewritten between the passes of yosys and its writer. Checks would become an
``assert`` of SystemVerilog, comparisons with zero a logical not of a vector, and switches that omit
values a ``case`` without a default.
"""

import dataclasses
import re

__all__ = ["Check", "complete_switches", "explicit_widths", "take_checks"]


@dataclasses.dataclass(frozen=True)
class Check:
    """Condition that a simulation checks at each rising edge of a clock.

    Members
    -------
    clock, enable, condition : str
        Bits as RTLIL writes them; the condition must hold while enable is 1.
    message : str
        Error message, as a string literal.
    """

    clock: str
    enable: str
    condition: str
    message: str


_MODULE = re.compile(r"^module \\(\S+)\n.*?^end$", re.MULTILINE | re.DOTALL)
_CHECK = re.compile(
    r"(?:^  attribute [^\n]*\n)*^  cell \$(?:check|print) \S+\n(.*?)^  end\n",
    re.MULTILINE | re.DOTALL,
)
_FIELD = re.compile(r"^    (?:parameter(?: signed)?|connect) \\(\w+) (.*)$", re.MULTILINE)


def _check(cell: str) -> Check:
    fields = dict(_FIELD.findall(cell))
    needed = {"FLAVOR": '"assert"', "ARGS_WIDTH": "0", "TRG_ENABLE": "1", "TRG_POLARITY": "1"}
    for name, value in needed.items():
        if fields.get(name) != value:
            raise ValueError(
                "Statement for simulation must be an assertion at a rising edge with a constant "
                f"message, not one with {name} {fields.get(name)} and message {fields['FORMAT']}"
            )
    return Check(fields["TRG"], fields["EN"], fields["A"], fields["FORMAT"])


def take_checks(rtlil: str) -> tuple[str, dict[str, list[Check]]]:
    """RTLIL without its checks, and the checks of each module that has any.

    Raises
    ------
    ValueError
        If one is not an assertion at a rising edge with a constant message (a print, for example).
    """
    taken: dict[str, list[Check]] = {}

    def without(module: re.Match[str]) -> str:
        checks = [_check(cell[1]) for cell in _CHECK.finditer(module[0])]
        if not checks:
            return module[0]
        taken[module[1]] = sorted(checks, key=dataclasses.astuple)
        return _CHECK.sub("", module[0])

    return _MODULE.sub(without, rtlil), taken


_CELL = re.compile(
    r"((?:^  attribute [^\n]*\n)*)^  cell (\$[a-z_]+) (\S+)\n(.*?)^  end\n",
    re.MULTILINE | re.DOTALL,
)
_SHIFTS = ("$shl", "$shr", "$sshl", "$sshr", "$shift", "$shiftx")
#: Cells whose result Verilog makes as wide as the widest operand.
_AS_WIDE = ("$add", "$sub", "$mul", "$neg", "$pos", "$not", "$and", "$or", "$xor", "$xnor", "$mod")


def explicit_widths(rtlil: str) -> str:
    """RTLIL in which every reduction and truncation of an operand is explicit.

    Yosys takes the logical not of a vector as its comparison with zero, and a cell of RTLIL may
    have a result narrower than its operands, whose low bits are meant.
    """

    def explicit(cell: re.Match[str]) -> str:
        attributes, kind, name, body = cell.groups()
        fields = dict(_FIELD.findall(body))
        if kind == "$logic_not" and fields["A_WIDTH"] != "1":
            width = fields["A_WIDTH"]
            zero = (
                "    parameter \\B_SIGNED 0\n"
                f"    parameter \\B_WIDTH {width}\n"
                f"    connect \\B {width}'{'0' * int(width)}\n"
            )
            return f"{attributes}  cell $eq {name}\n{body}{zero}  end\n"
        if kind not in _SHIFTS and kind not in _AS_WIDE:
            return cell[0]
        operands = ["A_WIDTH"] if kind in _SHIFTS else ["A_WIDTH", "B_WIDTH"]
        stated = max(int(fields.get(operand, 0)) for operand in operands)
        wanted = int(fields["Y_WIDTH"])
        if stated <= wanted:
            return cell[0]
        whole = f"$whole{name}"
        body = body.replace(f"\\Y_WIDTH {wanted}\n", f"\\Y_WIDTH {stated}\n")
        body = body.replace(f"connect \\Y {fields['Y']}\n", f"connect \\Y {whole}\n")
        return (
            f"  wire width {stated} {whole}\n"
            f"{attributes}  cell {kind} {name}\n{body}  end\n"
            f"  connect {fields['Y']} {whole} [{wanted - 1}:0]\n"
        )

    return _CELL.sub(explicit, rtlil)


def complete_switches(rtlil: str) -> str:
    """RTLIL in which a switch that omits some of its values has an empty default."""
    lines = rtlil.splitlines(keepends=True)
    out: list[str] = []
    # Values of each open switch, outermost first.
    open_switches: list[list[str]] = []
    in_process = False
    for line in lines:
        word, _, rest = line.strip().partition(" ")
        if word == "process":
            in_process = True
        elif in_process and word == "switch":
            open_switches.append([])
        elif in_process and word == "case":
            open_switches[-1].append(rest)
        elif in_process and word == "end" and open_switches:
            values = open_switches.pop()
            if _leaves_out(values):
                indent = line[: line.index("end")]
                out.append(f"{indent}  case\n")
        elif in_process and word == "end":
            in_process = False
        out.append(line)
    return "".join(out)


def _leaves_out(values: list[str]) -> bool:
    """Whether a switch becomes a case statement that does not name every value."""
    if not values or "" in values:
        return False
    bits = [bit.partition("'")[2] for value in values for bit in value.split(", ")]
    # For these yosys writes a chain of ifs.
    if all(set(pattern) <= {"1", "-"} and pattern.count("1") == 1 for pattern in bits):
        return False
    named = {pattern for pattern in bits if "-" not in pattern}
    return len(named) < 1 << len(bits[0])
