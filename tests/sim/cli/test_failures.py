"""Failures of the system, of files and of names: one line, an exit code, nothing written."""

import errno
import json
import os
import tomllib
from pathlib import Path

import numpy as np
import pytest

import tilewright
from hw.arch.config import named
from sim.cli.failures import as_refusal
from sim.files import require_space, require_writable, write_output, write_whole
from sim.native.build import run_tool

RUN = "run matmul --config tiny --backend emulator --set M=4 --set N=4 --set K=4"
LONG = "b" * 300


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def ended(capsys, *words):
    """Exit code and the one line of a command that is refused; the folder stays as it was."""
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    code = tilewright.main(list(words))
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "internal fault" not in said, said
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before
    return code, said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--outputs", ""], "--outputs must name a file, not be empty"),
        (["--image-out="], "--image-out must name a file, not be empty"),
        (["--waves", ""], "--waves must name a file, not be empty"),
        (["--waves", "x.fst"], "--waves must be a file that ends in .vcd, not 'x.fst'"),
        (["--json="], "--json must name a file, not be empty"),
        (["--json", ""], "--json must name a file, not be empty"),
        (["--config", ""], "--config must name a file, not be empty"),
        (["--inputs", ""], "--inputs must name a file, not be empty"),
        (["--outputs", LONG], "File name too long"),
        (["--outputs", "a\0b"], "--outputs must be a file that can be written, not 'a\\x00b'"),
        (["--json", LONG], "--json must be a file that can be written"),
        (["--outputs", "/dev/full"], "not '/dev/full': No space left on device"),
        (["--image-out", "/dev/full"], "not '/dev/full': No space left on device"),
        (["--json", "/dev/full"], "not '/dev/full': No space left on device"),
        (["--outputs", "/proc/x"], "the system keeps no files there"),
        (["--outputs", "X", "--image-out", "./X"], "which --outputs writes too"),
        (["--outputs", "X", "--json", "X"], "--json must be a file of its own"),
        (["--outputs", "link", "--json", "file"], "--json must be a file of its own"),
        (["--inputs", "file", "--outputs", "link"], "--outputs must be a file of its own"),
        (["--schedule", "file", "--image-out", "file"], "which --schedule reads too"),
        (["--rtl", "file", "--outputs", "file"], "which --rtl reads too"),
        (["--config", "file", "--outputs", "file"], "which --config reads too"),
        (["--inputs", "file", "--json", "file", "--nosuch"], "which the line names again"),
        (["--inputs", "/dev/zero"], "must be an npz file"),
        (["--schedule", "/dev/zero"], "Schedule '/dev/zero' must have at most"),
        (["--rtl", "/dev/zero"], "Verilog '/dev/zero' must have at most"),
        (["--config", "/proc/self/mem"], "cannot read '/proc/self/mem': Input/output error"),
        (["--set", "MM=५"], "MM must be an integer"),
        (["--set", "MM=1_0"], "MM must be an integer"),
        (["--set", "MM=+5"], "MM must be an integer"),
        (["--set", "MM=" + "9" * 5000], "MM must be an integer"),
        (["--latency", "५"], "--latency must be an integer from 1 to 65535, not '५'"),
        (["--latency", "1_0"], "--latency must be"),
        (["--stall", "٠.5"], "--stall must be a number from 0 to below 1"),
        (["--stall", "0_0.1"], "--stall must be a number"),
        (["--error-at", f"read:{'9' * 5000}:slverr"], "--error-at must be"),
    ],
    ids=str,
)
def test_a_line_that_cannot_work_is_refused_before_anything_is_written(options, message, capsys):
    Path("file").write_text("kept")
    Path("link").symlink_to("file")
    code, said = ended(capsys, *RUN.split(), *options)
    assert code == 2 and message in said, said


def test_two_outputs_may_both_be_thrown_away(capsys):
    assert tilewright.main([*RUN.split(), "--outputs", "/dev/null", "--json", "/dev/null"]) == 0


def test_the_default_output_of_verilog_is_no_place_for_the_report(capsys):
    words = ["verilog", "--preset", "tpu-v1", "--json", "build/tpu-v1.v"]
    code, said = ended(capsys, *words)
    assert code == 2 and "--json must be a file of its own" in said


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ("{", "s.json:1", "Schedule must be JSON"),
        ('{\n "tile":\n  {"i": 0}}', "s.json:3", "Schedule.tile of `i` must be a whole number"),
        ('{\n\n"tils": {}}', "s.json:3", "did you mean 'tile'"),
        ('{"tile": {},\n "slots": 3}', "s.json:2", "Schedule.slots must be"),
        ('{"tile":\n {"q": 4}}', "s.json:2", "Schedule.tile has `q`"),
        ('{"place":\n {"c": "pcu"}}', "s.json:2", "is not supported by hardware yet"),
        ("[" * 100_000, "s.json:1", "nested less deeply"),
        ('{"tile": {"i": ' + "9" * 5000 + "}}", "s.json:1", "Schedule must be JSON of small"),
        ("[1]", "s.json:1", "must be a JSON object, not [1]"),
    ],
)
def test_an_error_in_a_schedule_names_its_file_and_line(text, where, message, capsys):
    Path("s.json").write_text(text)
    code, said = ended(capsys, *RUN.split(), "--schedule", "s.json")
    assert code == 2 and f"tilewright run: {where}: " in said and message in said, said


def test_an_error_in_a_schedule_of_options_names_no_line_of_ours(capsys):
    code, said = ended(capsys, *RUN.split(), "--set", "place.c=pcu")
    assert code == 2 and "run: Schedule.place of `c` is not supported" in said


#: A value of each type that TOML has.
VALUES = {
    "integer": "7",
    "negative": "-1",
    "wide": "0x" + "f" * 5000,
    "float": "1.5",
    "nan": "nan",
    "truth": "true",
    "text": '"x"',
    "empty": '""',
    "date": "1979-05-27",
    "time": "07:32:00",
    "array": "[1]",
    "nested": '["cm", "mc"]',
    "table": "{a = 1}",
}


def _fields():
    parameters = {key: each for key, each in named["tiny"].resolved().items() if key != "derived"}
    for key, value in parameters.items():
        if isinstance(value, dict):
            yield from ((key, inner) for inner in value)
        yield None, key


def _toml(section, field, value):
    """The chip `tiny` with one field of another value."""
    top, sections = [], {}
    parameters = named["tiny"].resolved()
    for key, each in parameters.items():
        if key == "derived":
            continue
        if isinstance(each, dict):
            sections[key] = {name: json.dumps(inner) for name, inner in each.items() if inner}
        else:
            top.append((key, json.dumps(each)))
    if section is None:
        sections.pop(field, None)
        top = [(key, each) for key, each in top if key != field] + [(field, value)]
    else:
        sections[section][field] = value
    lines = [f"{key} = {each}" for key, each in top]
    for key, table in sections.items():
        lines += [f"[{key}]", *(f"{name} = {each}" for name, each in table.items())]
    return "\n".join(lines)


@pytest.mark.parametrize(("section", "field"), list(_fields()))
def test_a_field_of_every_wrong_type_is_refused_by_name(section, field, capsys):
    refused = 0
    for kind, value in VALUES.items():
        text = _toml(section, field, value)
        Path("chip.toml").write_text(text)
        sound = kind == "integer" and tomllib.loads(text)
        code = tilewright.main(["config", "chip.toml"])
        said = capsys.readouterr().err
        if code == 0 and sound:
            continue
        refused += 1
        assert code == 2 and said.count("\n") == 1 and "must" in said, (kind, said)
        noun = {"width_bits": "link width", "columns": "columns", "pcu": "pcu", "pmu": "pmu"}
        word = noun.get(field, field.split("_")[0])
        assert word.lower() in said.lower() or "chip.toml" in said, (kind, said)
    assert refused >= len(VALUES) - 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a=" + b"[" * 3000, "must be TOML nested less deeply"),
        (b"\xff\xfe", "must be UTF-8 text; byte 0 is 0xff"),
        (b"rows = ", "must be TOML"),
        (b"rows = " + b"9" * 5000, "must be TOML"),
        (b"", "must have the key 'rows'"),
    ],
)
def test_a_broken_configuration_names_its_file(content, message, capsys):
    Path("chip.toml").write_bytes(content)
    code, said = ended(capsys, "config", "chip.toml")
    assert code == 2 and "'chip.toml'" in said and message in said, said


def test_a_name_that_no_file_can_have_is_unknown(capsys):
    for name in ("x" * 5000, "a\0b"):
        code, said = ended(capsys, "config", name)
        assert code == 2 and len(said) < 300, said


@pytest.mark.parametrize("cache", ["/proc/foo", "/dev/full", "/dev/null/x", "y" * 300])
def test_a_cache_that_cannot_be_used_names_its_variable(cache, capsys, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE", cache)
    code, said = ended(capsys, "run", "matmul", "--config", "tiny", "--set", "M=4")
    assert code == 3 and "TILEWRIGHT_CACHE" in said and cache[:40] in said, said


def test_a_failure_without_a_file_keeps_its_meaning():
    cases = [(MemoryError(), 3), (RecursionError(), 2), (OSError(errno.ENOSPC, "full", "a"), 3)]
    cases.append((PermissionError(errno.EACCES, "denied", "a"), 2))
    for error, code in cases:
        refusal = as_refusal(error)
        assert refusal is not None and refusal.code == code
        assert "\n" not in refusal.message
    assert as_refusal(ValueError("ours")) is None


def test_space_is_checked_and_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    target = tmp_path / "a"
    target.write_text("old")
    require_space(target, 1)
    with pytest.raises(
        tilewright.BadInputError, match=r"--outputs .* must have .* bytes free, not"
    ):
        require_space(target, 1 << 60, where="--outputs")
    monkeypatch.setattr(
        Path, "write_bytes", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space"))
    )
    with pytest.raises(OSError, match="No space") as caught:
        write_whole(target, "new")
    assert caught.value.filename == str(target)
    with pytest.raises(tilewright.BadInputError, match="--outputs must be .*: No space"):
        write_output(target, "new", where="--outputs")
    assert target.read_text() == "old" and os.listdir(tmp_path) == ["a"]


def test_devices_that_take_bytes_are_outputs():
    assert require_writable("/dev/null") == Path("/dev/null")


@pytest.mark.parametrize("words", [["config", "tiny"], ["list"], ["config", "tiny", "--json"]])
def test_a_standard_output_without_room_is_refused(words, capsys, monkeypatch):
    with open("/dev/full", "w") as full:
        monkeypatch.setattr("sys.stdout", full)
        code = tilewright.main(words)
        monkeypatch.undo()
    said = capsys.readouterr().err
    assert code == 2 and said.count("\n") == 1 and "No space left on device" in said


def test_a_compressed_file_that_grows_too_large_is_refused(capsys):
    np.savez_compressed("a.npz", A=np.zeros(300 << 20, np.uint8))
    code, said = ended(capsys, *RUN.split(), "--inputs", "a.npz")
    assert code == 2 and "must hold at most" in said


def test_a_tool_that_finds_the_disk_full_names_its_folder(tmp_path):
    words = ["sh", "-c", "echo 'ld: final link failed: No space left on device' >&2; exit 1"]
    with pytest.raises(OSError, match="No space left") as caught:
        run_tool(words, tmp_path, "the harness")
    assert caught.value.filename == str(tmp_path)
