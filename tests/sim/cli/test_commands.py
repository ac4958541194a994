"""The small commands, and what sub-commands share: settings, configurations, files."""

import dataclasses
import json
import os

import pytest

import tilewright
from hw.arch.config import from_toml, named
from hw.arch.errors import BadInputError, did_you_mean
from sim.cli.options import setting
from sim.files import require_writable, write_whole
from sim.rules import load_config, validating

KNOWN = ("M", "N", "K", "row_par", "col_par", "slots")


@pytest.mark.parametrize("name", named)
def test_a_configuration_printed_as_toml_reads_back_as_itself(name, capsys, tmp_path):
    assert tilewright.main(["config", name, "--toml"]) == 0
    path = tmp_path / "again.toml"
    text = capsys.readouterr().out
    path.write_text(text)
    assert "# [derived.peak_macs_per_cycle]\n" in text
    assert from_toml(path) == named[name] == load_config(str(path))


@pytest.mark.parametrize("name", named)
def test_a_configuration_printed_as_json_holds_parameters_and_derived_sizes(name, capsys):
    assert tilewright.main(["config", name, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    chip = named[name]
    agcu = dataclasses.asdict(chip.agcu) | {"axi_data_bits": chip.width_bits}
    pcu = dataclasses.asdict(chip.pcu) | {"formats": [*chip.pcu.formats]}
    assert not pcu.pop("functions")
    expected = dataclasses.asdict(chip) | {"agcu": agcu, "pcu": pcu}
    assert {name: report[name] for name in expected} == expected
    assert report["derived"]["peak_macs_per_cycle"]["int8"] == chip.peak_macs_per_cycle(8)


def test_the_width_of_a_link_can_be_changed_alone(capsys, tmp_path):
    assert tilewright.main(["config", "small", "--toml"]) == 0
    text = capsys.readouterr().out
    assert "\n# axi_data_bits = 256\n" in text
    path = tmp_path / "wide.toml"
    path.write_text(text.replace("width_bits = 256", "width_bits = 512"))
    wide = dataclasses.replace(named["small"], width_bits=512)
    assert load_config(str(path)) == wide
    assert wide.resolved()["agcu"]["axi_data_bits"] == 512
    given = dataclasses.replace(wide, agcu=dataclasses.replace(wide.agcu, axi_data_bits=512))
    assert given == wide
    assert tilewright.main(["config", str(path)]) == 0


BAD_FILES = [
    ("rows = ", "must be TOML"),
    ("rows = 4", "must have the key 'columns'"),
    ("rows = 4\ncolumns = 4\nwidth = 3", "not 'width'"),
    ("rows = 4\ncolumns = 4\nwidth_bits = 100", "Link width in bits must be a power of two"),
    (
        "rows = 4\ncolumns = 4\nwidth_bits = 128\n[agcu]\naxi_data_bits = 256",
        "AXI data bits must equal the link width 128, not 256",
    ),
    ("rows = 1\ncolumns = 1", "Pattern must have a PMU on 1 x 1 switches, not 'checkerboard'"),
    ('rows = 2\ncolumns = 1\npattern = "c/c"', "must have a PMU on 2 x 1 switches, not 'c/c'"),
    ('rows = 2\ncolumns = 1\npattern = "m/m"', "must have a PCU on 2 x 1 switches, not 'm/m'"),
    ("rows = 2\ncolumns = 2\n[agcu]\ncount = 0", "AGCU count must be an integer from 1 to 16"),
    ("rows = 4\ncolumns = 4\n[pmu]\nslots = 1.5", "PMU slots must be an integer"),
    ('rows = "4"\ncolumns = 4', "Mesh rows must be an integer"),
    ("pcu = 3", "must be a table, not 3"),
]


@pytest.mark.parametrize(("text", "message"), BAD_FILES)
def test_a_configuration_file_that_cannot_work_is_refused(text, message, capsys, tmp_path):
    path = tmp_path / "chip.toml"
    path.write_text(text)
    assert tilewright.main(["config", str(path)]) == 2
    out, error = capsys.readouterr()
    assert out == "" and message in error and error.count("\n") == 1


def test_a_configuration_file_that_is_not_text_is_refused(capsys, tmp_path):
    path = tmp_path / "chip.toml"
    path.write_bytes(b"\xff\xfe")
    assert tilewright.main(["config", str(path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_list_names_the_configurations(capsys):
    assert tilewright.main(["list", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in report["configs"]] == list(named)
    assert {"kernels", "blocks"} <= set(report)


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("M=256", ("M", 256)),
        ("M=0x40", ("M", 64)),
        ("K=-1", ("K", -1)),
        ("warm=true", ("warm", True)),
        ("path=a=b", ("path", "a=b")),
    ],
)
def test_a_setting_is_an_integer_or_a_truth_value_where_it_reads_as_one(text, pair):
    assert setting(text) == pair


def test_a_name_like_none_known_brings_no_suggestion():
    assert did_you_mean("zzz", KNOWN) == ""


@pytest.mark.parametrize("error", [ValueError("a"), TypeError("a")])
def test_what_a_lower_layer_refuses_is_bad_input(error):
    with pytest.raises(BadInputError, match="^a$") as caught, validating("--set M"):
        raise error
    assert caught.value.where == "--set M"


@pytest.mark.parametrize(("own", "where"), [(None, "--set M"), ("line 3", "line 3")])
def test_an_error_of_ours_keeps_its_own_kind_and_place(own, where):
    with pytest.raises(BadInputError) as caught, validating("--set M"):
        raise BadInputError("b", kind="own", where=own)
    assert (caught.value.kind, caught.value.where) == ("own", where)


def test_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "new" / "a.txt"
    write_whole(path, "one")
    write_whole(path, b"two")
    assert path.read_text() == "two"
    assert list(path.parent.iterdir()) == [path]


def test_an_interrupted_write_leaves_the_old_file_alone(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    write_whole(path, "old")

    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_whole(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link_and_a_device_a_device(tmp_path):
    path, link = tmp_path / "a.txt", tmp_path / "link"
    path.write_text("old")
    link.symlink_to(path)
    write_whole(link, "new")
    assert link.is_symlink() and path.read_text() == "new"
    write_whole(os.devnull, "gone")
    assert not os.path.isfile(os.devnull)


def test_an_output_that_cannot_be_written_is_refused_with_its_option(tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "file" / "below"):
        with pytest.raises(BadInputError, match="-o must be a file") as caught:
            require_writable(path, where="-o")
        assert caught.value.where == "-o"
    assert require_writable(tmp_path / "x" / "y") == tmp_path / "x" / "y"
