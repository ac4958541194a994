"""house-h: what a reader of the file list alone guesses is where things are."""

import tomllib

import pytest

from tests.docs.test_index import QUESTIONS, ROOT, index_rows, wrong_rows

GUESSES = ROOT / "tests" / "guesses.toml"
LEAST = 34


@pytest.mark.must("house-h", goal="an index of 40 questions, whose files define their names")
def test_the_index_is_right(figure):
    assert list(wrong_rows()) == []
    assert len({question for question, _, _ in index_rows()}) == len(index_rows()) == QUESTIONS
    figure(f"{QUESTIONS} questions")


@pytest.mark.must("house-h", goal=">= 34 of 40 guesses made from the file list alone are right")
def test_files_are_where_their_names_say(figure):
    guesses = tomllib.loads(GUESSES.read_text(encoding="utf-8"))
    files = {question: file for question, file, _ in index_rows()}
    assert guesses.keys() == files.keys()
    missed = [question for question, guess in guesses.items() if guess != files[question]]
    figure(f"{len(guesses) - len(missed)} of {len(guesses)}; missed: {' '.join(missed) or 'none'}")
    assert len(guesses) - len(missed) >= LEAST, missed
