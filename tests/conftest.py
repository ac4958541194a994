"""Fixtures and options of every test: one lock for heavy work, one seed, the must-show report."""

import contextlib
import fcntl
import gc
import json
import random
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from _pytest.nodeid import NodeId
from xdist.scheduler import LoadGroupScheduling

from sim.native import chip_model

__all__: list[str] = []

pytest_plugins = ["tests.few_cases", "tests.hw.shared_models"]

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"

#: Lines of the must-show list, each with the tests that it takes; of fewer it is not met.
MUST_SHOW: dict[str, int] = tomllib.loads((ROOT / "tests" / "must_show.toml").read_text())["tests"]

#: Group of the heavy tests, behind their ids in a worker of xdist.
_HEAVY = "@heavy"

HeavyLock = Callable[[], contextlib.AbstractContextManager[None]]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--seed-base",
        type=int,
        default=1,
        metavar="N",
        help="base of the seeds of every random test (default 1)",
    )
    parser.addoption(
        "--must-report",
        type=Path,
        metavar="FILE",
        help="write the must-show report there, and fail if a line is missing or not met; "
        "with --collect-only the number of tests of each line",
    )


def pytest_report_header(config: pytest.Config) -> str:
    return f"seed base: {config.getoption('--seed-base')}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # One worker runs all heavy tests, one after another; the others have the light ones, file by
    # file. xdist groups tests by what follows an @ in their ids; its mark has no effect with this
    # pytest.
    for item in items:
        if hasattr(config, "workerinput") and "heavy_lock" in getattr(item, "fixturenames", ()):
            item._id = NodeId.parse(item.nodeid + _HEAVY)


def _plain(nodeid: str) -> str:
    """Id of a test without its group."""
    return nodeid.removesuffix(_HEAVY)


def pytest_collection_finish() -> None:
    # The modules and thousands of tests that are now in memory stay to the end, and most garbage
    # is freed by its counts: the collector need not walk through all of them again and again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 10)


class FilesTogether(LoadGroupScheduling):
    """Scheduling by groups, where the light tests of a file are one: they share its fixtures."""

    def _split_scope(self, nodeid: str) -> str:
        return str(super()._split_scope(nodeid)).partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FilesTogether | None:
    return FilesTogether(config, log) if config.getoption("dist") == "loadgroup" else None


@pytest.fixture(scope="session")
def heavy_lock() -> HeavyLock:
    """Function that makes a context in which no other process of this clone does heavy work.

    For fixtures of a wider scope, which build what many tests use: ``with heavy_lock(): ...``.
    Entering it twice in one process is harmless.
    """
    depth = 0

    @contextlib.contextmanager
    def locked() -> Iterator[None]:
        nonlocal depth
        if depth:
            yield
            return
        BUILD.mkdir(exist_ok=True)
        with open(BUILD / "heavy.lock", "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            depth += 1
            try:
                yield
            finally:
                depth -= 1

    return locked


@pytest.fixture
def heavy(heavy_lock: HeavyLock) -> Iterator[None]:
    """Hold the lock for a whole test: one that builds or runs a Verilator model."""
    with heavy_lock():
        yield


@pytest.fixture(autouse=True)
def no_model_of_a_light_test(request: pytest.FixtureRequest) -> Iterator[None]:
    """Keep a quick test that is not heavy from models of chips, which take minutes to build."""
    slow = request.node.get_closest_marker("slow") is not None
    if slow or "heavy_lock" in request.fixturenames:
        yield
        return
    rule = "A test that runs on the model of a chip must use `heavy`, or be slow"
    with mock.patch.object(chip_model, "build_parts", side_effect=AssertionError(rule)):
        yield


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """Seed of this test, drawn from ``--seed-base`` and the test's name."""
    base = request.config.getoption("--seed-base")
    return random.Random(f"{base} {_plain(request.node.nodeid)}").getrandbits(32)


@pytest.fixture(scope="session")
def draws(request: pytest.FixtureRequest) -> Callable[[int, int], int]:
    """Function ``draws(few, many)``: random cases of a test, few where slow tests are left out.

    The few are the first of the many, which `make regress` draws, and a repeated failure.
    """
    short = "not slow" in request.config.option.markexpr
    return lambda few, many: few if short else many


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Function that records the figure a must-show test measured."""
    return lambda text: request.node.user_properties.append(("figure", text))


def _command(nodeid: str, config: pytest.Config) -> str:
    seed_base = config.getoption("--seed-base")
    return f".venv/bin/python -m pytest --seed-base={seed_base} '{_plain(nodeid)}'"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    mark = item.get_closest_marker("must")
    if mark is not None and (report.when == "call" or report.failed):
        report.user_properties.append(("must", [mark.args[0], mark.kwargs["goal"]]))
    if report.failed:
        report.sections.append(("Repeat this failure", _command(item.nodeid, item.config)))
    return report


class Ledger:
    """What a whole run leaves in build/: how long each test took, and the must-show report."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.target: Path | None = config.getoption("--must-report")
        self.seconds: dict[str, float] = {}
        self.must: dict[str, dict[str, Any]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        nodeid = _plain(report.nodeid)
        self.seconds[nodeid] = self.seconds.get(nodeid, 0.0) + report.duration
        properties = dict(report.user_properties)
        if "must" not in properties:
            return
        name, goal = properties["must"]
        row = {
            "id": name,
            "command": _command(nodeid, self.config),
            "figure": properties.get("figure"),
            "goal": goal,
            "met": report.passed,
            "tests": 1,
            "seconds": round(self.seconds[nodeid], 3),
        }
        # A line shown by several tests is met when each passes; the first failure speaks for it.
        former = self.must.get(name)
        row["tests"] += former["tests"] if former else 0
        if former is None or (former["met"] and not row["met"]):
            self.must[name] = row
            return
        former["tests"] = row["tests"]
        if not former["met"] or report.when != "call":
            return
        figures = [each for each in (former["figure"], row["figure"]) if each]
        former["figure"] = "; ".join(dict.fromkeys(figures)) or None
        former["seconds"] = round(former["seconds"] + row["seconds"], 3)
        former["command"] = _command(nodeid.partition("::")[0], self.config)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if self.config.option.collectonly and self.target is not None:
            marks = (item.get_closest_marker("must") for item in session.items)
            counts = Counter(mark.args[0] for mark in marks if mark is not None)
            self.target.write_text(json.dumps(counts) + "\n")
            self.target = None

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.target is not None and any(not row["met"] for row in self.rows()):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def rows(self) -> list[dict[str, Any]]:
        """The must-show list in order: one of too few tests is not met, one of none is missing."""
        missing = dict.fromkeys(("command", "figure", "goal", "seconds")) | {"met": False}
        found = []
        for name, needed in MUST_SHOW.items():
            row = self.must.get(name, {"id": name, "tests": 0} | missing) | {"needed": needed}
            found.append(row | {"met": row["met"] and row["tests"] >= needed})
        return found

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        BUILD.mkdir(exist_ok=True)
        (BUILD / "test-durations.json").write_text(json.dumps(self.seconds, indent=2) + "\n")
        if self.target is None:
            return
        self.target.parent.mkdir(parents=True, exist_ok=True)
        self.target.write_text(json.dumps(self.rows(), indent=2) + "\n")
        for row in self.rows():
            verdict = "met" if row["met"] else "NOT MET" if row["command"] else "MISSING"
            few = f"{row['tests']} of {row['needed']} tests; " * (row["tests"] < row["needed"])
            terminalreporter.write_line(f"{row['id']:<10}{verdict:<9}{few}{row['figure'] or ''}")


def pytest_configure(config: pytest.Config) -> None:
    # Workers of xdist pass their reports on to the process that started them.
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Ledger(config), "ledger")
