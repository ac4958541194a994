"""edge-a: a kernel of one's own runs, is typed and completes where the wheel alone is installed."""

import os
import subprocess
import sys

import pytest

import sw.language
from tests.docs.fences import fences
from tilewright import KernelProgram, RunResult

(KERNEL,) = (
    fence.text
    for fence in fences("python")
    if fence.page.name == "README.md" and "def matmul" in fence.text
)
_RUNS = "README's kernel pasted into a file runs by .run and by command, from the wheel"

#: What a user writes below the kernel to run it.
RUN = """

import sys

import ml_dtypes
import numpy as np

rng = np.random.default_rng(3)
a = rng.normal(size=(40, 30)).astype(ml_dtypes.bfloat16)
b = rng.normal(size=(30, 20)).astype(ml_dtypes.bfloat16)
result = matmul.run(a, b, config="tiny", backend=sys.argv[1], latency=100)
assert result.verified and result.C.tobytes() == matmul(a, b).tobytes()
print(result)
"""

#: A user's file, typed as strictly as mypy can ask for; one operation is misspelt.
TYPED = '''"""A product of matrices with a rectifier."""

import numpy as np
import numpy.typing as npt

import tilewright as tw


@tw.kernel("A[M, K], B[K, N] -> C[M, N]")
def product(A: tw.TensorView, B: tw.TensorView, C: tw.TensorView, MM: int = 64) -> None:
    for i in tw.metapipe(C.shape[0], MM):
        a = tw.load_tile(A[i, :])
        c = tw.maximun(a @ tw.load_tile(B), 0.0)
        tw.store_tile(C[i, :], c)


result = product.run(np.ones((4, 4), np.int8), np.ones((4, 4), np.int8), config="tiny")
cycles: int = result.cycles or 0
answer: npt.NDArray[np.int32] = result.C + 1
chosen: tw.Schedule = product.compile("tiny", M=4, K=4, N=4, dtype=tw.int8).schedule
'''

COMPLETE = """
import rlcompleter, sys
import numpy as np
import tilewright as tw
from mine import matmul

one = np.ones((4, 4), np.int8)
r = matmul.run(one, one, config="tiny", backend="golden")
p = matmul.compile("tiny", M=4, K=4, N=4, dtype=tw.int8)
complete = rlcompleter.Completer(globals()).complete
for head in ("tw.", "r.", "p."):
    number = 0
    while (text := complete(head, number)) is not None:
        print(text.rstrip("()"))
        number += 1
"""


def run(folder, *words):
    # Not that of the clone: of what is installed.
    kept = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH",)}
    done = subprocess.run(words, cwd=folder, env=kept, capture_output=True, text=True, timeout=600)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def user(wheel_environment, tmp_path):
    """Folder with the README's kernel in a file, and the commands of the fresh environment."""
    (tmp_path / "mine.py").write_text(KERNEL)
    return tmp_path, wheel_environment / "venv" / "bin"


def runs(user, backend, ways=3):
    """Run as a program, and by the command in `ways` less one."""
    folder, commands = user
    (folder / "runs.py").write_text(KERNEL + RUN)
    sizes = "--set M=40 --set K=30 --set N=20 --config tiny --backend".split()
    for words in (
        (commands / "python", "runs.py", backend),
        (commands / "tilewright", "run", "mine.py:matmul", *sizes, backend),
        (commands / "tilewright", "run", "mine.py", *sizes, backend),
    )[:ways]:
        code, out, error = run(folder, *words)
        assert (code, out.splitlines()[-1]) == (0, "VERIFIED"), out + error
        assert "note: no reference: float64 error not checked" in out
        assert "matmul of M = 40, K = 30, N = 20, MM = 4096, NN = 256" in out


@pytest.mark.must("edge-a", goal=_RUNS)
def test_the_kernel_of_the_readme_runs_without_rtl(user, figure, draws):
    backends = ("emulator", "golden")[: draws(1, 2)]
    for backend in backends:
        runs(user, backend, draws(2, 3))
    figure(", ".join(backends))


@pytest.mark.slow
@pytest.mark.must("edge-a", goal=_RUNS)
def test_the_kernel_of_the_readme_runs_on_rtl(user, heavy, figure):
    runs(user, "rtl")
    figure("RTL")


@pytest.mark.slow
@pytest.mark.must("edge-a", goal="mypy strict finds a misspelt operation, and nothing else")
def test_types_find_a_misspelt_operation_and_nothing_else(user, figure):
    folder, commands = user
    (folder / "typed.py").write_text(TYPED)
    mypy = (sys.executable, "-m", "mypy", "--strict", "--cache-dir", folder / "cache")
    words = (*mypy, "--python-executable", commands / "python", "typed.py")
    code, out, error = run(folder, *words)
    line = TYPED[: TYPED.index("maximun")].count("\n") + 1
    first, *rest = out.splitlines()
    assert first.startswith(f"typed.py:{line}: error: Module has no attribute") and code == 1, out
    assert rest == ["Found 1 error in 1 file (checked 1 source file)"], out + error
    (folder / "typed.py").write_text(TYPED.replace("maximun", "maximum"))
    code, out, error = run(folder, *words)
    assert (code, out) == (0, "Success: no issues found in 1 source file\n"), out + error
    figure(f"{len(TYPED.splitlines())} lines, 1 error")


@pytest.mark.must("edge-a", goal="completion lists every name of the language")
def test_completion_lists_every_name(user, figure):
    folder, commands = user
    code, out, error = run(folder, commands / "python", "-c", COMPLETE)
    assert code == 0, error
    offered = set(out.split())
    wanted = {f"tw.{name}" for name in sw.language.__all__}
    wanted |= {f"r.{name}" for name in (*RunResult.__annotations__, "C", "json", "problems")}
    wanted |= {f"p.{name}" for name in ("schedule", "ir", "report", "image", "map", "run")}
    assert wanted <= offered, wanted - offered
    assert KernelProgram.__abstractmethods__ <= {each.partition(".")[2] for each in offered}
    figure(f"{len(sw.language.__all__)} names of the language")
