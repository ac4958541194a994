"""Standard-cell library (liberty file): reading, trial mapping, and technology mapping by yosys."""

import dataclasses
import re
import tempfile
from pathlib import Path

from gen.yosys import run_script
from hw.arch.errors import BadInputError

__all__ = ["FILE_NAME", "MAP", "Liberty", "load_liberty", "run_mapping"]

#: Name of the library file in a script's working folder.
FILE_NAME = "cells.lib"

#: Commands that map gates and flip-flops to the library's cells.
MAP = f"""\
dfflibmap -liberty {FILE_NAME}
abc -liberty {FILE_NAME}
opt_clean
"""

_TRIAL = """\
module trial(input clk, input a, input b, output reg q);
always @(posedge clk) q <= ~a ^ b;
endmodule
"""
_SCRIPT = f"read_verilog trial.v\nsynth -top trial\n{MAP}"
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_HEAD = re.compile(r'\s*library\s*\(\s*"?([^\s")]+)"?\s*\)\s*\{')
# Messages of yosys: not a liberty file; dfflibmap has no cell; abc gave up or crashed.
_SYNTAX = re.compile(r"Syntax error in liberty file on line \d+|No entries found in liberty file")
_REGISTER = re.compile(r"\(type \$_(\w+?)_\) cannot be legalized")
_GATES = re.compile(r"Can't open ABC output file|wasm trap")


@dataclasses.dataclass(frozen=True)
class Liberty:
    """Standard-cell library.

    Members
    -------
    file : str
        Name of its file, without folders.
    name : str
        Its own name.
    text : str
        Content of the file.
    """

    file: str
    name: str
    text: str


def run_mapping(folder: Path, script: str, file: str) -> None:
    """Run a script that contains `MAP`, in a folder that has the library under its fixed name.

    Raises
    ------
    BadInputError
        If the library is not a liberty file, or lacks a cell that the script needs.
    RuntimeError
        If yosys fails for another reason.
    """
    try:
        run_script(folder, script)
    except RuntimeError as error:
        said, detail = str(error), ""
        if found := _SYNTAX.search(said):
            rule, detail = "be one that yosys can read", f": {found[0]}"
        elif found := _REGISTER.search(said):
            rule = f"have a cell that can hold what yosys calls {found[1]}"
            if found[1].startswith(("DFF", "SDFF")):
                rule = "have a D flip-flop clocked by an edge"
        elif _GATES.search(said):
            rule = "have a buffer, an inverter and a NAND or NOR of two inputs"
        else:
            raise
        raise _refusal(file, rule, detail) from error


def _refusal(file: str, rule: str, detail: str = "") -> BadInputError:
    return BadInputError(
        f"Liberty must {rule}, not be {file}{detail}",
        kind="bad-liberty",
        where="--liberty",
        value=file,
        rule=rule,
    )


def load_liberty(path: Path) -> Liberty:
    """Read a liberty file and map a few gates to it as a trial, which takes about a second.

    Raises
    ------
    OSError
        If there is no such file.
    BadInputError
        If it is not a liberty file, or lacks a flip-flop or basic gates.
    """
    text = path.read_text(encoding="utf-8", errors="replace")
    head = _HEAD.match(_COMMENT.sub("", text))
    if head is None:
        raise _refusal(path.name, "begin with `library (NAME) {`")
    with tempfile.TemporaryDirectory(prefix="tilewright-liberty.") as name:
        folder = Path(name)
        (folder / FILE_NAME).write_text(text)
        (folder / "trial.v").write_text(_TRIAL)
        run_mapping(folder, _SCRIPT, path.name)
    return Liberty(path.name, head[1], text)
