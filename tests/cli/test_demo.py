"""elmokit demo."""

import re
from pathlib import Path

import pytest

from elmokit.analysis.scatter import read_examples
from elmokit.cli.tours import CHINESE, ENGLISH, EXAMPLES, GAP, TOURS
from elmokit.tasks.names import bundled_tasks
from helpers.pictures import n_colours
from helpers.processes import run_process

EXPECTED = Path(__file__).parent / "demo.txt"
"""What the tour printed about the model of lm_folder, before it had a second language."""
NUMBER = re.compile(r"\d\.\d+")
LABELLED = {
    "banks.tsv": "bank",
    "apples.zh.tsv": "苹果",
    "elements.zh.tsv": "元素",
    "tissues.zh.tsv": "组织",
    "units.zh.tsv": "单位",
}


def test_demo(tmp_path):
    done = run_process("demo", "--out", tmp_path / "new" / "demo")
    assert done.returncode == 0, done.stderr
    assert "not life but a [play]" in done.stdout  # nearest to the theatre's
    assert "orchestra .   piano, violin" in done.stdout
    assert "river .   side, " in done.stdout
    assert "ner  [Angela Merkel PER] flew from [Berlin LOC] to [Paris LOC]" in done.stdout
    assert "record/VERB the/DET record/NOUN" in done.stdout
    assert "srl  [The teacher ARG0] [gave V] [the students ARG2]" in done.stdout
    assert n_colours(tmp_path / "new" / "demo" / "banks.png") > 20
    assert "LSTM layer 2" in done.stdout
    assert "token layer" in done.stdout
    assert done.stderr == ""


def test_demo_in_chinese():
    done = run_process("demo", "--lang", "zh")
    assert done.returncode == 0, done.stderr
    assert re.search(r"最长的___。 .*河流", done.stdout)
    assert re.search(r"判处他___十年。 .*有期徒刑", done.stdout)
    assert re.search(r"夺得___。 .*冠军", done.stdout)
    assert re.search(r"词层 +1\.000 +1\.000 +1\.000 +1\.000", done.stdout)
    assert done.stderr == ""


def test_demo_with_a_model(cli, tiny_folder):
    done = cli("demo", "--model", tiny_folder)
    assert done.returncode == 0, done.stderr
    assert "token layer" in done.stdout
    assert "The LSTM layers read the sentence" in done.stdout


def test_every_line_in_english(cli, lm_folder, tmp_path):
    done = cli("demo", "--model", lm_folder, "--out", tmp_path, "--lang", "en", "--device", "cpu")
    first, _, rest = done.stdout.partition("\n")
    assert first.startswith("Elmo(")
    printed, _, written = rest.partition("wrote ")
    assert [Path(name).name for name in written.strip().split(", ")] == [
        "banks.json", "banks.csv", "banks.png", "banks.svg",
    ]  # fmt: skip
    expected = EXPECTED.read_text(encoding="utf-8")
    assert NUMBER.split(printed) == NUMBER.split(expected)
    numbers = [[float(n) for n in NUMBER.findall(text)] for text in (printed, expected)]
    assert numbers[0] == pytest.approx(numbers[1], abs=0.011)  # rounding, at most


def test_in_chinese(cli, lm_folder, tmp_path):
    pytest.importorskip("rjieba")
    done = cli("demo", "--lang", "zh", "--model", lm_folder, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "tokenizer='chinese'" in done.stdout  # the model itself reads tokenised text
    assert re.search(r"词层 +1\.000 +1\.000 +1\.000 +1\.000", done.stdout)
    assert "LSTM 第 2 层" in done.stdout
    assert done.stdout.count("[运动]") == 9
    assert all(gap in done.stdout for gap in CHINESE.gaps)
    others = {"Elmo", "LSTM", "wrote", *(tmp_path / "apples").parts}
    words = set(re.findall(r"[A-Za-z]{4,}", "\n".join(done.stdout.splitlines()[1:-1])))
    assert words <= others | set(re.findall(r"\w+", (EXAMPLES / CHINESE.uses).read_text("utf-8")))


def test_the_picture_in_chinese(cli, lm_folder, tmp_path):
    pytest.importorskip("rjieba")
    pytest.importorskip("matplotlib")
    cli("demo", "--lang", "zh", "--model", lm_folder, "--out", tmp_path)
    picture = (tmp_path / "apples.svg").read_text(encoding="utf-8")
    drawn = re.findall(r"<text[^>]*>([^<]*)</text>", picture)
    assert {"词层", "水果", "公司"} <= set(drawn)
    assert "“苹果”的 24 次出现（水果 12 次，公司 12 次）" in drawn
    assert not [text for text in drawn if re.search("[a-z]{3}", text.replace(".json", ""))]


def test_columns_of_wide_characters_are_aligned(cli, tiny_folder):
    from rich.cells import cell_len

    pytest.importorskip("rjieba")
    lines = cli("demo", "--lang", "zh", "--model", tiny_folder).stdout.splitlines()
    (start,) = (i for i, line in enumerate(lines) if "水果 1 ~" in line)
    assert len({cell_len(line) for line in lines[start : start + 6]}) == 1


def test_languages(cli):
    done = cli("demo", "--lang", "fr", "--model", "no such model")
    assert done.returncode == 2
    assert done.stderr == "elmokit: --lang must be en or zh, not 'fr'\n"


def test_the_language_chooses_the_model(cli, monkeypatch, tmp_path):
    monkeypatch.setattr("elmokit.formats.DEFAULT_MODEL", tmp_path / "en")
    for lang in TOURS:
        done = cli("demo", "--lang", lang)
        assert done.returncode == 2
        assert f"there is no model '{tmp_path / lang}'" in done.stderr


def test_task_models_are_those_of_the_package(tmp_path, monkeypatch):
    (tmp_path / "ner").mkdir()
    (tmp_path / "ner" / "task.json").write_text("{")
    monkeypatch.chdir(tmp_path)
    done = run_process("demo")
    assert "ner  [Angela Merkel PER] flew" in done.stdout, done.stderr


def test_task_models_need_the_weights_they_were_trained_with(cli, lm_folder):
    assert "ner  " not in cli("demo", "--model", lm_folder).stdout
    assert set(ENGLISH.tasks) == set(bundled_tasks())


@pytest.mark.parametrize("tour", TOURS.values(), ids=TOURS)
def test_the_contents(tour):
    assert [len(sentences) for sentences in tour.senses.values()] == [2, 2]
    assert all(tour.word in text for sentences in tour.senses.values() for text in sentences)
    assert all(tour.forms[0] in text for text in tour.asked)
    assert all(text.count(GAP) == 1 for text in [*tour.gaps, tour.hard_gap])
    examples = read_examples(EXAMPLES / tour.labelled)
    assert {example.sense for example in examples} == set(tour.senses)
    assert all(example.sentence.count(tour.word) == 1 for example in examples)


def test_how_rare_pianos_are():
    sentences = (EXAMPLES / ENGLISH.uses).read_text(encoding="utf-8").splitlines()
    pianos = sum("piano" in sentence.split() for sentence in sentences)
    assert f"{pianos} of the {len(sentences)} sentences" in ENGLISH.uses_note


@pytest.mark.parametrize(("file", "word"), LABELLED.items())
def test_labelled_sentences(file, word):
    examples = read_examples(EXAMPLES / file)
    senses = [example.sense for example in examples]
    assert {senses.count(sense) for sense in senses} == {12}
    assert len({example.sentence for example in examples}) == len(examples)
    assert all(example.sentence.count(word) == 1 for example in examples)


def test_segmented_sentences_have_the_word_as_one_token():
    cut = pytest.importorskip("rjieba").cut
    uses = (EXAMPLES / CHINESE.uses).read_text(encoding="utf-8").splitlines()
    texts = [("运动", sentence) for sentence in uses]
    for file, word in LABELLED.items():
        if ".zh." in file:
            texts += [(word, example.sentence) for example in read_examples(EXAMPLES / file)]
    assert len(uses) == len(set(uses)) == 68
    assert [text for word, text in texts if cut(text).count(word) != 1] == []


def test_the_folder_is_checked_first(cli, tmp_path):
    (tmp_path / "file").write_text("")
    done = cli("demo", "--out", tmp_path / "file", "-m", "no such model")
    assert done.returncode == 2
    assert "is a file; give another folder" in done.stderr
    assert done.stdout == ""
