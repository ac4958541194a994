"""Rewrites of the Verilog that yosys prints: start of blocks, clearing of memories, checks."""

import re
from collections.abc import Sequence

from gen.rtlil import Check

__all__ = ["add_checks", "loop_over_zeros", "start_every_block"]

_TRIGGER = re.compile(r"\\\$auto\$verilog_backend\S+ ")
_BARE_BLOCK = re.compile(r"always @\*\n(    [^;]*;\n)")
_START = "\\$start "


def start_every_block(module: str) -> str:
    """Text of a module in which every ``always @*`` runs at time zero, changed inputs or not.

    Yosys lets a block read a register that is declared with the initial value 0. In SystemVerilog
    such a value is set before any process runs and is no event, but one that an initial block sets
    is an event. A block of one assignment has no such register.
    """

    module = _TRIGGER.sub(lambda _: _START, module).replace(f"  reg {_START} = 0;\n", "")
    module = _BARE_BLOCK.sub(rf"always @* begin\n    if (\{_START}) begin end\n\1  end\n", module)
    if _START not in module:
        return module
    head, end, body = module.partition(";\n")
    return f"{head}{end}  reg {_START};\n  initial {_START}= 0;\n{body}"


_MEMORY = re.compile(
    r"^  reg \[(?P<high>\d+):0\] (?P<name>\S+) \[(?P<last>\d+):0\];\n"
    r"  initial begin\n(?P<words>(?:    (?P=name) ?\[\d+\] = \d+'[hd]0+;\n)+)  end\n",
    re.MULTILINE,
)


def loop_over_zeros(module: str) -> str:
    """Text of a module with a loop in place of one statement per word that clears a memory."""

    def looped(match: re.Match[str]) -> str:
        high, name, last = int(match["high"]), match["name"], int(match["last"])
        if match["words"].count("\n") != last + 1:
            return match[0]
        block = f"\\{name.removeprefix(chr(92))}$zeros "
        word = "\\$word "
        return (
            f"  reg [{high}:0] {name} [{last}:0];\n"
            f"  initial begin : {block}\n"
            f"    integer {word};\n"
            f"    for ({word}= 0; {word}< {last + 1}; {word}= {word}+ 1)\n"
            f"      {name} [{word}] = {high + 1}'d0;\n"
            "  end\n"
        )

    return _MEMORY.sub(looped, module)


def _bit(sigspec: str) -> str:
    """Verilog of an RTLIL bit: a constant, a wire, or a bit of one."""
    name, _, index = sigspec.partition(" ")
    if "'" in name:
        return name.replace("'", "'b")
    # Every escaped name is an identifier, and a plain name escaped is the same identifier.
    return f"\\{name.removeprefix(chr(92))} {index}"


def _check(check: Check) -> list[str]:
    return [
        f"  always @(posedge {_bit(check.clock)})",
        f"    if ({_bit(check.enable)} && !{_bit(check.condition)}) begin",
        f'      $display("%m: {check.message[1:-1]}");',
        "      $stop;",
        "    end",
    ]


def add_checks(module: str, checks: Sequence[Check]) -> str:
    """Text of a module with checks at its end, for simulation only.

    A check that fails prints the instance and its message, and stops the simulation.
    """
    if not checks:
        return module
    statements = [line for check in checks for line in _check(check)]
    lines = ["`ifndef SYNTHESIS", *statements, "`endif", "endmodule", ""]
    return module.removesuffix("endmodule\n") + "\n".join(lines)
