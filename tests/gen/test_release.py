"""The range of the library that writes Verilog: another text is noted, never refused."""

import hashlib
from pathlib import Path

import pytest

from gen import release
from sim.cli.app import main

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def other_text(monkeypatch):
    """A release that writes other text than the pinned one."""
    monkeypatch.setattr(release, "sample_text", lambda: "module sample; endmodule")
    monkeypatch.setattr(release.metadata, "version", lambda name: "0.99")
    release.text_note.cache_clear()
    yield
    release.text_note.cache_clear()


def test_the_pinned_release_writes_the_text_whose_digest_is_kept():
    assert f"pyosys=={release.RELEASE}" in (ROOT / "requirements.txt").read_text().splitlines()
    # If emission has changed on purpose, the digest is that of its new text.
    digest = hashlib.sha256(release.sample_text().encode()).hexdigest()
    assert digest == release.SAMPLE_SHA256
    assert release.text_note() is None


def test_another_text_is_noted_with_both_releases(other_text):
    assert release.text_note() == (
        "pyosys 0.99 writes other Verilog text than 0.70: "
        "hashes and areas may differ from those that are stated"
    )


def test_the_commands_note_it_and_go_on(other_text, tmp_path, capsys):
    words = ["--component", "array", "--rows", "2", "--cols", "2", "-o", str(tmp_path / "a.v")]
    assert main(["verilog", *words]) == 0
    assert "note: pyosys 0.99 writes other Verilog text than 0.70" in capsys.readouterr().err
    main(["doctor"])
    assert "note    pyosys 0.99 writes other Verilog text" in capsys.readouterr().out
