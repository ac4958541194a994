"""Hostile input by seed: command lines, configurations, schedules, files of arrays, API calls.

Every case ends in a typed way: an answer or one line, no fault of ours, nothing left behind.
"""

import contextlib
import io
import json
import os
import random
import re
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

import tilewright as tw
from hw.arch.config import named
from hw.arch.errors import shown
from hw.lib.barrier import Barrier
from hw.pmu.unit import Pmu
from hw.tma.engine import TmaEngine
from sw.kernels.matmul import matmul

__all__ = ["KINDS", "Case", "ended", "make"]

#: CPU seconds within which a case ends.
MOST_SECONDS = 2.0

_NOTHING = re.compile(r"(\w: |read |be )None\b")


class Case(NamedTuple):
    """What is tried, and the files that its report may replace: a refused line has one too."""

    text: str
    act: Callable[[], int | None]
    reports: tuple[str, ...] = ()


_PLAIN = """
- -- ५ 1_0 +5 -1 0 0x 00 0b2 1e9 nan inf 1.5 . .. / é none true [] {} = a=b=c , :
bf16,bf16 --json -h * %s ' "
/dev/full /dev/null/x /proc/self/mem /proc/x /nowhere/x 18446744073709551616 -9223372036854775809
tiny matmul
file link file.py file.py: :x read:1:slverr M=1 M=
"""
WORDS = ("", " ", "\t", "a\0b", "a\nb", "\udcff", "\\", "9" * 5000, "x" * 5000, *_PLAIN.split())
WORDS += ("0x" + "f" * 300,)
_PROBLEM = "--set --dtype --config --schedule --json --bogus"
_MEMORY = "--seed --latency --jitter --stall --error-at --max-cycles --warm"
_FILES = "--inputs --outputs --rtl --image-out --waves"
_UNIT = "--rows --cols --dataflow --format --latency --preset --out --adder --buffer-rows"
#: Options of each command.
OPTIONS = {
    "run": f"{_PROBLEM} {_MEMORY} {_FILES} --backend",
    "map": f"{_PROBLEM} --svg",
    "list": "--json --bogus -x",
    "config": "--toml --json --bogus",
    "verilog": f"--config --component --output --json --bogus {_UNIT}",
    "area": f"--config --component --liberty --bogus {_UNIT}",
    "sim": "--simulator --seed --rows --waves --bogus",
    "prove": "--bogus",
    "bench": "--seed --bogus",
    "doctor": "--bogus",
    "bogus": "--config",
}
#: Commands whose work takes longer than a case may: their lines hold a word that none accepts.
SLOW = ("verilog", "area", "sim", "prove", "bench", "doctor")
_SETTINGS = """
M N K MM NN out place_seed row_par col_par sum_par slots tile.i tile place.c row_par.c slots.c
bogus . tile. é
"""
KEYS = ("", *_SETTINGS.split())
_SHORT = """5 -1 0 1.5 nan true "x" "" [1] [[[1]]] {a=1} 1979-05-27 ''' é 64 1024 'c/m' inf"""
LITERALS = ("0x" + "f" * 4000, "9" * 4500, "[" * 2000, "\x00", *_SHORT.split())
_NUMBERS = (0, -1, 3, 7, 1.5, 1j, float("nan"), float("inf"), 10**30, -(10**30), 10**5000)
_TEXTS = ("x", "", "a\0b", "\udcff", "9" * 500, b"x", Path("file"))
_GROUPS = ([], [1], {}, {"a": 1}, (), {1: 2}, {"tile": 3}, [[[]]], range(3))
_OTHERS = (None, True, int, object(), np.int64(4), np.float32(2), np.zeros(3))
VALUES: tuple[object, ...] = (*_NUMBERS, *_TEXTS, *_GROUPS, *_OTHERS)
FIELDS = ("tile", "row_par", "col_par", "sum_par", "slots", "place")
PARAMETERS = "rows columns width_bits tracks token_tracks pattern pcu pmu agcu".split()
ARGUMENTS = """
config schedule backend seed latency jitter stall error warm max_cycles waves
use_cache progress place_seed out MM NN bogus design
""".split()
SMALL = ("--config", "tiny", "--set", "M=4", "--set", "N=5", "--set", "K=6")


def make(kind: str, generator: random.Random) -> Case:
    """A case of a kind, with the text that describes it; its files lie in the current folder."""
    return _MAKERS[kind](generator)


def ended(case: Case) -> Iterator[str]:
    """Everything that is wrong with how a case ended."""
    before = _files(case)
    said = io.StringIO()
    began = time.process_time()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            code = case.act()
        except tw.TilewrightError as error:
            code = error.code
            said.write(f"{error.message}\n")
        except Exception as error:
            error.add_note(case.text)
            raise
    seconds = time.process_time() - began
    text = said.getvalue()
    if "internal fault" in text or "Traceback" in text or _NOTHING.search(text):
        yield text
    if code and (code not in (1, 2, 3, 4, 5) or text.count("\n") != 1 or not text.strip()):
        yield f"code {code}: {text!r}"
    if seconds > MOST_SECONDS:
        yield f"{seconds:.1f} s"
    if code and (after := _files(case)) != before:
        yield f"files {sorted({*after} ^ {*before})}"


def _files(case: Case) -> dict[str, bytes]:
    reports = {os.path.realpath(path) for path in case.reports if "\0" not in path}
    found = [os.path.join(at, name) for at, _, names in os.walk(".") for name in names]
    kept = [path for path in found if os.path.realpath(path) not in reports]
    return {path: Path(path).read_bytes() for path in kept}


def _command(*words: str) -> Case:
    def act() -> int:
        try:
            return tw.main(list(words))
        except SystemExit as stop:
            assert stop.code == 0
            return 0

    reports = [word.partition("=")[2] for word in words if word.startswith("--json=")]
    reports += [after for word, after in pairwise(words) if word == "--json"]
    return Case(f"tilewright {' '.join(map(repr, words))}"[:400], act, tuple(reports))


def _line(generator: random.Random) -> Case:
    command = generator.choice([*OPTIONS])
    words = [command]
    if command in ("run", "map"):
        words += [generator.choice(("matmul", "gemm", *WORDS)), *SMALL]
    elif command == "config":
        words.append(generator.choice(("tiny", *WORDS)))
    for _ in range(generator.randrange(4)):
        option, value = generator.choice(OPTIONS[command].split()), generator.choice(WORDS)
        if option == "--set":
            value = f"{generator.choice(KEYS)}={value}"
        words += [f"{option}={value}"] if generator.random() < 0.4 else [option, value]
    if command == "run":
        words += ["--backend", generator.choice(("emulator", "golden"))]
    if command in SLOW:
        words.append("--no-such-option")
    if generator.random() < 0.2:
        generator.shuffle(words)
        words.append("--no-such-option")
    return _command(*words)


def _toml_text(generator: random.Random) -> bytes:
    lines: list[str] = []
    for key, value in named["tiny"].resolved().items():
        if isinstance(value, dict) and key != "derived":
            rows = [f"{name} = {json.dumps(each)}" for name, each in value.items() if each]
            lines += [f"[{key}]", *rows]
        elif key != "derived":
            lines.insert(0, f"{key} = {json.dumps(value)}")
    for _ in range(generator.randint(1, 3)):
        index = generator.randrange(len(lines))
        key = lines[index].partition(" = ")[0]
        lines[index] = generator.choice(
            (
                f"{key} = {generator.choice(LITERALS)}",
                f"{lines[index]}\n{lines[index]}",
                "",
                "[pcu]",
                key,
            )
        )
    content = "\n".join(lines).encode(errors="surrogatepass")
    return _broken(content, generator) if generator.random() < 0.3 else content


def _broken(content: bytes, generator: random.Random) -> bytes:
    """Bytes cut short, or with some changed."""
    if generator.random() < 0.3:
        return content[: generator.randrange(len(content) + 1)]
    changed = bytearray(content)
    for _ in range(generator.randint(1, 8)):
        changed[generator.randrange(len(changed))] = generator.randrange(256)
    return bytes(changed)


def _configuration(generator: random.Random) -> Case:
    Path("chip.toml").write_bytes(content := _toml_text(generator))
    if generator.random() < 0.7:
        act = _command("config", "chip.toml").act
    else:
        act = _command(
            "run", "matmul", "--config", "chip.toml", *SMALL[2:], "--backend", "golden"
        ).act
    return Case(f"TOML {content!r}", act)


def _json(generator: random.Random, depth: int = 0) -> object:
    if depth < 3 and generator.random() < 0.5:
        names = (
            "tile",
            "row_par",
            "col_par",
            "sum_par",
            "slots",
            "place",
            "i",
            "j",
            "c",
            "a_tile",
            "é",
            "",
        )
        chosen = generator.sample(names, generator.randrange(4))
        return {name: _json(generator, depth + 1) for name in chosen}
    return generator.choice(
        (1, 2, 0, -1, 64, 1.5, True, None, "x", "", [], [1], {}, 10**20, 10**4000)
    )


def _schedule(generator: random.Random) -> Case:
    if generator.random() < 0.8:
        content = json.dumps(_json(generator)).encode()
    else:
        content = generator.choice(
            (b"[" * 50_000, b"", b"\xff", b"{", b"nan", b'{"tile":{"i":1e999}}')
        )
    if generator.random() < 0.2 and content:
        content = _broken(content, generator)
    Path("s.json").write_bytes(content)
    act = _command("run", "matmul", *SMALL, "--backend", "emulator", "--schedule", "s.json").act
    return Case(f"schedule {content[:300]!r}", act)


def _arrays(generator: random.Random) -> Case:
    dtypes = "uint16 int8 int32 int64 float32 float64 bool S3 complex64 M8[s]".split()
    shapes = ((4, 6), (6, 5), (4,), (), (0, 6), (4, 6, 1), (1, 1), (3, 6))
    arrays = {
        generator.choice(("A", "B", "C", "a", "", "é", "../x")): np.zeros(
            generator.choice(shapes), generator.choice(dtypes)
        )
        for _ in range(generator.randrange(4))
    }
    if generator.random() < 0.5:
        arrays |= {"A": np.zeros((4, 6), np.uint16), "B": np.zeros((6, 5), np.uint16)}
    stream = io.BytesIO()
    save = generator.choice((np.savez, np.savez_compressed))
    save(stream, **arrays)
    content = stream.getvalue()
    if generator.random() < 0.5:
        content = _broken(content, generator)
    Path("in.npz").write_bytes(content)
    act = _command(
        "run", "matmul", "--config", "tiny", "--backend", "emulator", "--inputs", "in.npz"
    ).act
    shown = {name: f"{each.dtype}{each.shape}" for name, each in arrays.items()}
    return Case(f"npz {shown}, {len(content)} bytes", act)


def _call(generator: random.Random) -> Case:
    value = generator.choice(VALUES)
    name, field = generator.choice(ARGUMENTS), generator.choice(FIELDS)
    chip = generator.choice(PARAMETERS)
    a, b = np.ones((4, 6), np.int8), np.ones((6, 5), np.int8)
    options = {"config": "tiny", "backend": "emulator"} | {name: value}
    calls: dict[str, Callable[[], object]] = {
        f"run({name})": lambda: matmul.run(a, b, **options),
        "run(a)": lambda: matmul.run(value, b, config="tiny", backend="emulator"),
        "call": lambda: matmul(a, value),
        "Schedule": lambda: tw.Schedule(**{field: value}),
        "Schedule of": lambda: tw.Schedule(**{field: {"c": value}}),
        "from_json": lambda: tw.Schedule.from_json(value),
        f"ChipConfig({chip})": lambda: tw.ChipConfig(**({"rows": 2, "columns": 2} | {chip: value})),
        "compile": lambda: matmul.compile("tiny", M=value, N=4, K=4, dtype=tw.int8),
        "compile dtype": lambda: matmul.compile("tiny", M=4, N=4, K=4, dtype=value),
        "kernel": lambda: tw.kernel(value)(lambda X: None),
        "Barrier": lambda: Barrier(arrivals=value, tx_bytes=4),
        "TmaEngine": lambda: TmaEngine(width_bits=value),
        "Pmu": lambda: Pmu(width_bits=64, capacity_bytes=value, slots=4),
    }
    called = generator.choice([*calls])

    def act() -> None:
        calls[called]()

    return Case(f"{called}: {shown(value)} ({field})", act)


_MAKERS: dict[str, Callable[[random.Random], Case]] = {
    "line": _line,
    "configuration": _configuration,
    "schedule": _schedule,
    "arrays": _arrays,
    "call": _call,
}
KINDS = tuple(_MAKERS)
