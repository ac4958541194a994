"""The command: every ending has an exit code, one line, and a report if one is asked for."""

import json
import os
import subprocess
import sys
import time

import pytest

import tilewright
from hw import __version__
from hw.arch.errors import (
    BadInputError,
    DeviceError,
    HangError,
    MissingToolError,
    TilewrightError,
    WrongResultError,
)
from sim.cli import app
from sim.cli.commands import doctor

ENVELOPE = ["schema", "tilewright", "command", "tools", "error"]

#: A command line that is refused, and the one line that says why.
REFUSED = [
    ("", "COMMAND must be given; see tilewright --help"),
    ("rum", "unknown command 'rum'; did you mean 'run'?"),
    ("profile", "unknown command 'profile'; write 'run KERNEL --profile FILE.html'"),
    ("--versoin", "unknown option '--versoin'; did you mean '--version'?"),
    ("run", "the following arguments are required: KERNEL; see tilewright run --help"),
    ("run matmul --sede 3", "unknown option '--sede'; did you mean '--seed'"),
    ("run matmul --see 3", "unknown option '--see'; did you mean '--seed'"),
    ("run matmul other", "unknown argument 'other'; see tilewright run --help"),
    ("run matmul --backend rtll", "--backend must be one of rtl, cocotb, emulator, golden, not"),
    ("run matmul --dtype bf61", "not 'bf61'; did you mean 'bf16'?"),
    ("run matmul --seed -1", "--seed must be an integer from 0 to 9223372036854775807, not '-1'"),
    ("run matmul --latency 0", "--latency must be an integer from 1 to 65535, not '0'"),
    ("run matmul --max-cycles many", "--max-cycles must be an integer from 1 up, not 'many'"),
    ("run matmul --stall 1", "--stall must be a number from 0 to below 1, not '1'"),
    ("run matmul --stall nan", "--stall must be a number from 0 to below 1, not 'nan'"),
    ("run matmul --set M", "--set must be KEY=VALUE, not 'M'"),
    ("run matmul --set =3", "--set must be KEY=VALUE, not '=3'"),
    ("run matmul --error-at read:x:slverr", "--error-at must be read|write:BEAT:slverr|decerr"),
    ("run matmul --error-at both:1:slverr", "--error-at must be read|write:BEAT:slverr|decerr"),
    ("run matmul --seed", "expected one argument"),
    ("config", "the following arguments are required: NAME|FILE"),
    ("config smal", "unknown configuration 'smal'; did you mean 'small'?"),
    (
        "config other",
        "unknown configuration 'other'; known: tiny, small, large, a TOML file, or FILE.py:NAME",
    ),
    ("config absent.toml", "cannot read 'absent.toml': No such file or directory"),
]


@pytest.fixture
def failing(monkeypatch):
    """Function that makes the command ``doctor`` end with an error."""

    def plan(error):
        def execute(args):
            raise error

        monkeypatch.setattr(doctor, "execute", execute)

    return plan


@pytest.mark.parametrize(("line", "message"), REFUSED)
def test_a_bad_command_line_is_refused_in_one_line_and_in_the_report(line, message, capsys):
    assert tilewright.main(line.split()) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert error.count("\n") == 1 and message in error and error.startswith("tilewright")

    assert tilewright.main([*line.split(), "--json", "-"]) == 2
    report = json.loads(capsys.readouterr().out)
    assert list(report) == ENVELOPE
    assert report["error"]["code"] == 2
    if line != "run matmul --seed":  # there --json itself takes the place of the argument
        assert message in report["error"]["message"]


def test_a_refused_value_is_named_with_its_place_and_rule(capsys):
    tilewright.main(["run", "matmul", "--latency", "0", "--json"])
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["where"] == "--latency" and error["value"] == "0"
    assert error["kind"] == "bad-value" and error["rule"] == "must be an integer from 1 to 65535"


@pytest.mark.parametrize(
    ("error", "code", "kind"),
    [
        (WrongResultError("3 of 9 words differ", result={"verified": False}), 1, "wrong-result"),
        (BadInputError("M must be positive, not 0"), 2, "bad-input"),
        (MissingToolError("g++ is missing"), 3, "missing-tool"),
        (HangError("stream a of p0 waits for room"), 4, "hang"),
        (DeviceError("read error at 0x40"), 5, "device-error"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (ValueError("a fault of ours"), 1, "internal"),
    ],
)
@pytest.mark.parametrize("target", ["-", "file"])
def test_each_error_has_its_exit_code_and_report(
    error, code, kind, target, failing, capsys, tmp_path
):
    failing(error)
    path = tmp_path / "made" / "report.json"
    name = "-" if target == "-" else str(path)
    assert tilewright.main(["doctor", "--json", name]) == code
    out, said = capsys.readouterr()
    report = json.loads(out if target == "-" else path.read_text())
    assert (report["schema"], report["tilewright"], report["command"]) == (2, __version__, "doctor")
    assert (report["error"]["code"], report["error"]["kind"]) == (code, kind)
    assert set(report["error"]) == {"code", "kind", "message", "where", "value", "rule"}
    assert said.startswith("tilewright doctor: ") and said.count("\n") == 1
    if isinstance(error, TilewrightError):
        assert error.result.items() <= report.items()


def test_debug_alone_shows_the_traceback(failing, capsys):
    failing(ValueError("a fault of ours"))
    assert tilewright.main(["doctor"]) == 1
    assert "Traceback" not in capsys.readouterr().err
    for line in (["doctor", "--debug"], ["--debug", "doctor"]):
        assert tilewright.main(line) == 1
        assert "Traceback" in capsys.readouterr().err


def test_nothing_but_the_report_reaches_standard_output(monkeypatch, capfd):
    def execute(args):
        print("from Python")
        os.write(1, b"from C\n")
        subprocess.run(["echo", "from a program"], check=True)
        return {"figure": float("nan"), "files": [os.PathLike]}

    monkeypatch.setattr(doctor, "execute", execute)
    assert tilewright.main(["doctor", "--json", "-"]) == 0
    out, error = capfd.readouterr()
    report = json.loads(out)
    assert report["figure"] is None and report["error"] is None
    assert {"from Python", "from C", "from a program"} <= set(error.splitlines())
    # Afterwards standard output is as before.
    os.write(1, b"from C\n")
    assert tilewright.main(["list"]) == 0
    out = capfd.readouterr().out
    assert out.startswith("from C\n") and "configs:" in out


def test_a_report_that_cannot_be_written_is_refused_before_any_work(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(doctor, "execute", lambda args: pytest.fail("it ran"))
    assert tilewright.main(["doctor", "--json", str(tmp_path)]) == 2
    assert "--json must be a file that can be written" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["", *app.COMMANDS])
def test_help_is_quick_and_loads_nothing_heavy(command):
    """Under a second; the modules loaded are checked too, as a time alone depends on the day."""
    code = (
        "import sys, tilewright\n"
        "try: tilewright.main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "heavy = {'amaranth', 'numpy', 'ml_dtypes', 'cocotb', 'importlib.metadata'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code, *command.split(), "--help"], capture_output=True, text=True
    )
    seconds = time.perf_counter() - began
    assert done.stdout.startswith(f"usage: tilewright {command}".strip())
    assert done.stderr.strip() in ("[]", "['importlib.metadata']")
    assert seconds < 1.0


def test_the_version_is_one_line(capsys):
    with pytest.raises(SystemExit) as ended:
        tilewright.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"tilewright {__version__}\n"


def test_a_reader_that_goes_away_is_no_traceback():
    command = f"{sys.executable} -m tilewright list | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.strip() in ("0", "130")
