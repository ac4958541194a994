"""What the must-show tests share: a product of matrices, run and judged."""

import dataclasses
import functools
import math
import shlex
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import numpy as np
import pytest

from gen.verilog import emit
from hw.arch.config import ChipConfig
from hw.arch.config import named as configurations
from hw.numeric.formats import named as formats
from hw.pcu.unit import Pcu
from sim.native.bundle import Bundle
from sim.native.conditions import MemoryConditions
from sim.operands import random_inputs
from sim.oracle import product as oracle
from sim.run.driver import compile_job, run
from sim.run.job import Job, Problem
from sim.run.report import Outcome
from sw.kernels.matmul import matmul
from sw.language import Schedule
from tests.hw.tma.reduction.reduction_stand import ReductionStand
from tests.hw.units import LANE_SETS, lane_chip
from tests.must.mutants import copy_of_tree
from tests.native.heavy_model import heavy_model

ROOT = Path(__file__).resolve().parents[2]


@dataclasses.dataclass(frozen=True)
class Product:
    """A product of matrices on a chip, and the conditions it runs under."""

    config: str | ChipConfig
    m: int
    n: int
    k: int
    dtype: str = "bf16"
    out: str | None = None
    seed: int = 1
    latency: int = 100
    jitter: int = 0
    stall: float = 0.0
    place_seed: int = 1
    options: tuple[tuple[str, int], ...] = ()
    schedule: tuple[tuple[str, int], ...] = ()

    @property
    def command(self) -> str:
        """The one command that repeats it."""
        settings = {"M": self.m, "N": self.n, "K": self.k, "place_seed": self.place_seed}
        settings |= {"out": self.out} if self.out else {}
        settings |= dict(self.options) | dict(self.schedule)
        given = " ".join(f"--set {key}={value}" for key, value in settings.items())
        return (
            f"tilewright run matmul --config {self.config} --dtype {self.dtype} {given} "
            f"--seed {self.seed} --latency {self.latency} --jitter {self.jitter} "
            f"--stall {self.stall}"
        )

    @functools.cached_property
    def problem(self) -> Problem:
        config = self.config
        choices = {}
        for key, value in self.schedule:
            names = {"slots": ("a_tile", "b_tile", "c_tile")}.get(key, ("c",))
            choices[key] = dict.fromkeys(names, value)
        return Problem(
            kernel=matmul,
            config=configurations[config] if isinstance(config, str) else config,
            dims={"M": self.m, "N": self.n, "K": self.k},
            dtype=formats[self.dtype],
            out=formats[self.out] if self.out else None,
            options=dict(self.options),
            schedule=Schedule(**choices),
            place_seed=self.place_seed,
        )

    @functools.cached_property
    def compiled(self):
        return compile_job(Job(problem=self.problem))

    def run(self, backend: str = "rtl") -> Outcome:
        """Run it; what is not verified fails with the command that repeats it."""
        conditions = MemoryConditions(
            latency=self.latency, jitter=self.jitter, stall=self.stall, seed=self.seed
        )
        if backend in ("emulator", "cocotb"):
            conditions = MemoryConditions(seed=self.seed, stall=self.stall * (backend == "cocotb"))
        job = Job(problem=self.problem, backend=backend, seed=self.seed, conditions=conditions)
        compiled, fields = self.compiled
        name = self.config if isinstance(self.config, str) else "user"
        outcome = run(job, compiled, fields | {"backend": backend, "config": name})
        assert not outcome.problems, f"{outcome.problems}; {self.command} --backend {backend}"
        inputs = random_inputs(self.problem.inputs, self.seed)
        got = outcome.outputs["C"]
        expected = oracle(inputs["A"], inputs["B"], got.dtype)
        assert got.tobytes() == expected.tobytes(), f"{self.command} --backend {backend}"
        return outcome

    def cycles(self) -> int:
        """Cycles on the RTL."""
        return self.run().report["cycles"]


def random_product(rng: np.random.Generator, config: str, *, shape: str, most: int = 150):
    """Random product: ``shape`` is ``ragged`` (in all three extents), ``thin`` or ``any``."""
    lanes = configurations[config].width_bits // 8
    sides = [int(side) for side in rng.integers(1, most + 1, 3)]
    if shape == "ragged":
        sides = [side - (side % lanes == 0) for side in (max(side, 2) for side in sides)]
    elif shape == "thin":
        sides[rng.integers(3)] = 1
    dtype = ("bf16", "int8")[rng.integers(2)]
    return Product(
        config,
        *sides,
        dtype=dtype,
        out=("bf16", "fp32")[rng.integers(2)] if dtype == "bf16" else None,
        seed=int(rng.integers(1 << 31)),
        latency=round(math.exp(rng.uniform(0, math.log(200)))),
        jitter=int(rng.integers(0, 50)),
        stall=round(float(rng.uniform(0, 0.9)), 2),
    )


@pytest.fixture(scope="session")
def product():
    """The class of products."""
    return Product


@pytest.fixture(scope="session")
def random_products():
    """Function that draws random products."""
    return random_product


@pytest.fixture(scope="session")
def lane_pcus(heavy_lock):
    """PCUs with lanes in one native model, ports after their names in `LANE_SETS`."""
    chips = {name: lane_chip(name) for name in LANE_SETS}
    bundle = Bundle(
        {name: Pcu(width_bits=chip.width_bits, config=chip.pcu) for name, chip in chips.items()}
    )
    with heavy_model(heavy_lock, emit(bundle), bundle) as model:
        yield model


def _run(folder, words):
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{shlex.join(map(str, words))}\n{done.stdout}{done.stderr}"


@pytest.fixture(scope="session")
def wheel_environment(tmp_path_factory):
    """Folder of a fresh virtual environment (``venv``) with the wheel and its dependencies.

    Nothing of the clone is on its path.
    """
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    built = ["wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", folder, ROOT]
    _run(folder, [*pip, *built])
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    _run(folder, [*pip, "--python", python, "install", "--no-index", "--no-deps", wheel])
    # A path file names the packages alone.
    site = Path(sysconfig.get_path("purelib", vars={"base": str(folder / "venv")}))
    packages = folder / "packages"
    packages.mkdir()
    for package in Path(sysconfig.get_path("purelib")).iterdir():
        if "tilewright" not in package.name and package.suffix != ".pth":
            (packages / package.name).symlink_to(package)
    (site / "dependencies.pth").write_text(f"{packages}\n")
    return folder


@pytest.fixture(scope="session")
def reducing_units(heavy_lock):
    """Model of four TMA units at one interlock."""
    stand = ReductionStand(4)
    with heavy_model(heavy_lock, emit(stand), stand) as model:
        yield model


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the tree, in which a mutant can be planted."""
    return copy_of_tree(tmp_path_factory.mktemp("copy"))
