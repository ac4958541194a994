"""Folder of an export: what is refused, what is replaced, and that nothing is lost."""

import json

import pytest

from hw.arch.errors import BadInputError
from sim.export.core_folder import MANIFEST, require_folder, write_folder
from tilewright import main

FILES = {"core.v": "module core; endmodule\n", "run.py": "print()\n"}


def test_a_new_and_an_empty_folder_are_written(tmp_path):
    for folder in (tmp_path / "new" / "er", tmp_path):
        if folder == tmp_path:
            (tmp_path / "new").rename(tmp_path.parent / "moved")
        write_folder(folder, FILES, {"core": "core"})
        assert {name: (folder / name).read_text() for name in FILES} == FILES
        assert json.loads((folder / MANIFEST).read_text())["core"] == "core"


def test_an_export_is_replaced_and_what_a_build_left_stays(tmp_path):
    write_folder(tmp_path, FILES, {})
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "log").write_text("kept")
    write_folder(tmp_path, FILES | {"core.v": "// new\n"}, {})
    assert (tmp_path / "core.v").read_text() == "// new\n"
    assert (tmp_path / "build" / "log").read_text() == "kept"


def test_an_interrupted_export_may_be_repeated(tmp_path):
    write_folder(tmp_path, FILES, {})
    (tmp_path / "core.v").unlink()
    write_folder(tmp_path, FILES, {})
    assert (tmp_path / "core.v").exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"mine.v": "x"}, "it holds files"),
        ({MANIFEST: "no JSON"}, "it holds files"),
        ({MANIFEST: "[]"}, "it holds files"),
        ({MANIFEST: '{"files": {"core.v": "0"}}', "core.v": "mine"}, "core.v has been changed"),
    ],
)
def test_a_folder_of_somebody_else_is_refused_and_kept(content, said, tmp_path):
    for name, text in content.items():
        (tmp_path / name).write_text(text)
    for act in (require_folder, lambda folder: write_folder(folder, FILES, {})):
        with pytest.raises(BadInputError, match=said):
            act(tmp_path)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == content


def test_a_file_as_the_folder_is_refused_before_any_work(tmp_path, capsys):
    (tmp_path / "file").write_text("kept")
    for place in ("file", "file/below"):
        command = ["export", "--component", "barrier", "-o", str(tmp_path / place)]
        assert main(command) == 2
        message = capsys.readouterr().err
        assert (
            message.startswith("tilewright export: --output must be ") and "\n" not in message[:-1]
        )
    assert (tmp_path / "file").read_text() == "kept"
