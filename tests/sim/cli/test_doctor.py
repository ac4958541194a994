"""``tilewright doctor``: every tool with its line, the cache with its size, and how to free it."""

import json
from pathlib import Path

import tilewright
from sim.cache import cached
from sim.cli.commands import doctor

OPTIONAL = {"iverilog", "chromium", "chromedriver"}


def build(size):
    def make(work):
        (work / "result").write_bytes(bytes(size))

    return cached("verilator", [str(size)], "result", make, name="it")[0]


def report(capsys, *words):
    code = tilewright.main(["doctor", *words, "--json"])
    out, said = capsys.readouterr()
    return code, json.loads(out), said


def test_the_cache_is_shown_and_freed(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "my cache"))
    folder = build(2_000_000)
    code, shown, said = report(capsys)
    assert code == 0 and shown["cache"] == {
        "folder": str(tmp_path / "my cache"),
        "bytes": 2_000_000,
        "freed_bytes": 0,
    }
    assert f"{tmp_path / 'my cache'}: 2.0 MB; tilewright doctor --clean frees it" in said
    assert folder.exists()
    code, shown, said = report(capsys, "--clean")
    assert code == 0 and shown["cache"]["freed_bytes"] == 2_000_000
    assert ": 0.0 MB, 2.0 MB freed" in said and not folder.exists()


def test_a_running_build_is_not_freed(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))
    kept = build(1000)

    def make(work):
        code, shown, said = report(capsys, "--clean")
        assert code == 2 and shown["error"]["kind"] == "cache-in-use"
        assert "Cache must not be freed while a build is running" in said
        (work / "result").touch()

    cached("verilog", ["a"], "result", make, name="it")
    assert kept.exists()


def test_what_is_missing_has_the_line_that_installs_it(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "_output", lambda *command: "")
    code, shown, said = report(capsys)
    assert code == 3
    fixes = {row["name"]: row["fix"] for row in shown["checks"] if row["version"] is None}
    assert set(fixes) == {"verilator", "g++", "make", "perl", *OPTIONAL}
    assert fixes["verilator"] == "make setup"
    for name, fix in fixes.items():
        assert any(name in line and line.endswith(f"fix: {fix}") for line in said.splitlines())
    assert Path(shown["cache"]["folder"]).is_absolute()
