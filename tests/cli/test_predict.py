"""elmokit predict: every task and kind of file, line by line; mistakes of predict and evaluate."""

import gzip
import io
import json
import lzma
import re
import sys

import pytest

from elmokit.tasks.measures.tag_schemes import read_spans
from helpers.processes import one_sentence
from helpers.progress_bars import record_progress
from helpers.task_data import FILES, TEXTS, WHOLE_FILES

LINES = [task for task in FILES if task not in WHOLE_FILES]


@pytest.mark.parametrize("task", LINES)
def test_text_and_jsonl(cli, trained, tmp_path, task):
    file = tmp_path / "input.txt"
    file.write_text("\n".join(TEXTS[task]) + "\n", encoding="utf-8")
    lines = cli("predict", trained / task, file).stdout.splitlines()
    records = predicted(cli, trained / task, file)
    assert len(records) == 2
    if task == "srl":  # a line for each predicate
        assert len(lines) == sum(max(1, len(record["frames"])) for record in records)
        assert [record["words"] for record in records] == [text.split() for text in TEXTS[task]]
        return
    assert len(lines) == 2
    for text, line, record in zip(TEXTS[task], lines, records, strict=True):
        assert record["text"] == text
        if task == "similarity":
            assert line == f"{record['score']:.3f}"
        elif task == "qa":
            passage = text.split("\t")[1]
            assert line == record["answer"] == passage[record["start"] : record["end"]]
        elif task in ("classify", "nli", "relation"):
            assert line == f"{record['label']} {record['probabilities'][record['label']]:.3f}"
            assert sum(record["probabilities"].values()) == pytest.approx(1)
        else:
            assert record["words"] == text.split()
            assert len(record["tags"]) == len(record["words"])
        if task == "ner":
            spans = [(e["start"], e["end"], e["type"]) for e in record["entities"]]
            assert spans == read_spans(record["tags"])
            assert line.count("[") == len(spans)
        if task == "pos":
            pairs = zip(record["words"], record["tags"], strict=True)
            assert line == " ".join(f"{word}/{tag}" for word, tag in pairs)


def predicted(cli, *arguments):
    done = cli("predict", *arguments, "--format", "jsonl")
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_html_has_the_text_of_every_line(cli, trained, tmp_path):
    file = tmp_path / "input.txt"
    file.write_text("Anna < Bob\n\nOslo & Rome\n")
    done = cli("predict", trained / "ner", file, "--format", "html")
    assert (done.returncode, done.stderr) == (0, "")
    text = re.sub("<small>.*?</small>|<[^>]*>", "", done.stdout)
    assert "Anna &lt; Bob" in text
    assert "Oslo &amp; Rome" in text
    assert done.stdout.rstrip().endswith("</html>")


def test_a_terminal_shows_colours(cli, trained, monkeypatch):
    """The words are the same as elsewhere; only escape codes are added."""
    arguments = ("predict", trained / "ner", "--text", "Anna lives in Oslo")
    plain = cli(*arguments).stdout
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setattr("elmokit.cli.predict.is_terminal", lambda: True)
    assert re.sub("\x1b\\[[0-9;]*m", "", cli(*arguments).stdout) == plain


BLANK = {
    "classify": {"text": "", "label": None, "probabilities": None},
    "ner": {"text": "", "words": [], "tags": [], "entities": []},
    "nli": {"text": "", "label": None, "probabilities": None},
    "pos": {"text": "", "words": [], "tags": []},
    "qa": {"text": "", "answer": None, "start": None, "end": None, "probability": None},
    "relation": {"text": "", "label": None, "probabilities": None},
    "similarity": {"text": "", "score": None},
    "srl": {"text": "", "words": [], "frames": []},
}


@pytest.mark.parametrize("task", LINES)
def test_blank_lines_stay_blank(cli, trained, tmp_path, task):
    """Line n of the output is about line n of the input."""
    file = tmp_path / "input.txt"
    first, second = TEXTS[task]
    file.write_text(f"\n{first}\n \t\n\n{second}\n\n")
    a, b = (cli("predict", trained / task, "--text", text).stdout[:-1] for text in TEXTS[task])
    assert cli("predict", trained / task, file).stdout == f"\n{a}\n\n\n{b}\n\n"
    records = predicted(cli, trained / task, file)
    assert [record["text"] for record in records] == ["", first, "", "", second, ""]
    assert all(record == BLANK[task] for record in records if not record["text"])
    file.write_text("\n\n")
    assert cli("predict", trained / task, file).stdout == "\n\n"


def test_blank_lines_in_conll(cli, trained, tmp_path):
    """A sentence without words does not exist in CoNLL."""
    file = tmp_path / "input.txt"
    file.write_text("\nAnn slept .\n\n\nBob slept .\n")
    done = cli("predict", trained / "pos", file, "--format", "conll")
    blocks = done.stdout.split("\n\n")
    assert [block.split("\t")[0] for block in blocks] == ["Ann", "Bob", ""]


MARKED = "A <e1>spark</e1> lit the <e2>fire</e2>."
TABLES = [
    ("classify", "a.tsv", "label\ttext\npos\tA good film.\n\tBad.\n", [{"text": "A good film."},
     {"text": "Bad."}], []),
    ("classify", "a.csv", "review\n\"Good, really.\"\n", [{"text": "Good, really."}], []),
    ("classify", "a.csv", "id,body\n1,Good.\n", [{"text": "Good."}], ["--column", "text=body"]),
    ("classify", "a.txt", "1\tGood.\n\n2\tBad.\n", [{"text": "Good."}, {"text": "Bad."}],
     ["--column", "text=2"]),
    ("classify", "a.jsonl", '{"text": ["A", "film"], "label": 1.5}\n', [{"text": ["A", "film"]}],
     []),
    ("similarity", "a.tsv", "first\tsecond\tscore\nA cat.\tA dog.\t?\n",
     [{"first": "A cat.", "second": "A dog."}], []),
    ("relation", "a.tsv", f"text\n{MARKED}\n",
     [{"text": "A spark lit the fire.", "first": [2, 7], "second": [16, 20]}], []),
    ("relation", "TEST.TXT", f'8001\t"{MARKED}"\n8002\t"{MARKED}"\n',
     [{"text": "A spark lit the fire."}] * 2, []),
    ("ner", "a.conll", "Ann _ B-PER\nslept _ O\n\nBob _ X\n",
     [{"words": ["Ann", "slept"]}, {"words": ["Bob"]}], []),
    ("srl", "a.conll", "Ann - *\nslept sleep (V*)\n\nYes -\n",
     [{"words": ["Ann", "slept"]}, {"words": ["Yes"], "frames": []}], []),
    ("srl", "a.jsonl", '{"words": ["Ann", "slept"]}\n', [{"words": ["Ann", "slept"]}], []),
    ("pos", "a.iob2", "Ann\nslept\n", [{"words": ["Ann", "slept"]}], []),
    ("pos", "a.txt", "O Ann\nO slept\n\n", [{"words": ["Ann", "slept"]}],
     ["--column", "word=2", "--column", "tag=1"]),
    ("coref", "a.jsonl", '{"doc_key": "x", "sentences": [["Ann", "slept"]]}\n',
     [{"name": "x", "sentences": [["Ann", "slept"]]}], []),
    ("coref", "a.conll", "Ann (0)\nslept 5\n", [{"sentences": [["Ann", "slept"]]}], []),
]  # fmt: skip


@pytest.mark.parametrize(("task", "name", "content", "expected", "options"), TABLES)
def test_tables(cli, trained, tmp_path, task, name, content, expected, options):
    """What train and evaluate read, predict reads too; answers are ignored."""
    file = tmp_path / name
    file.write_text(content)
    found = predicted(cli, trained / task, file, *options)
    assert [record | given for record, given in zip(found, expected, strict=True)] == found
    for record in found:
        assert None not in record.values()


@pytest.mark.parametrize("suffix", ["gz", "xz"])
def test_packed_tables(cli, trained, tmp_path, suffix):
    packed = tmp_path / f"dev.conll.{suffix}"
    pack = {"gz": gzip, "xz": lzma}[suffix]
    packed.write_bytes(pack.compress((trained / "dev.conll").read_bytes()))
    assert predicted(cli, trained / "ner", packed) == predicted(
        cli, trained / "ner", trained / "dev.conll"
    )


def test_tokenized(cli, trained, tmp_path):
    """Chinese entities are tagged character by character."""
    file = tmp_path / "input.txt"
    file.write_text("高 勇 ： 男 , U.S.\n", encoding="utf-8")
    (record,) = predicted(cli, trained / "ner", file, "--tokenized")
    assert record["words"] == ["高", "勇", "：", "男", ",", "U.S."]
    (split,) = predicted(cli, trained / "ner", "--text", "Ann's,")
    (whole,) = predicted(cli, trained / "ner", "--text", "Ann's,", "--tokenized")
    assert (split["words"], whole["words"]) == (["Ann", "'s", ","], ["Ann's,"])
    for task in ("classify", "relation", "similarity"):
        done = cli("predict", trained / task, "--text", TEXTS[task][0], "--tokenized")
        assert (done.returncode, done.stderr) == (0, "")


def test_conll_can_be_evaluated(cli, trained, tmp_path):
    file, out = tmp_path / "input.txt", tmp_path / "tagged.conll"
    file.write_text("\n".join(TEXTS["pos"]))
    done = cli("predict", trained / "pos", file, "--format", "conll", "--out", out)
    assert (done.returncode, done.stdout) == (0, f"wrote {out}\n")
    assert out.read_text().count("\n\n") == 2
    scores = json.loads(cli("evaluate", trained / "pos", out, "--json").stdout)
    assert scores["value"] == 100


@pytest.mark.parametrize("task", WHOLE_FILES)
def test_a_file_is_one_text(cli, trained, tmp_path, task):
    file = tmp_path / "input.txt"
    text = "\n".join(TEXTS[task])
    file.write_text(f"{text}\n")
    (record,) = predicted(cli, trained / task, file)
    assert record == predicted(cli, trained / task, "--text", text)[0]
    assert record["text"] == text
    words = [word for sentence in record["sentences"] for word in sentence]
    assert words == re.findall(r"\w+|\.", text)
    shown = cli("predict", trained / task, file).stdout
    assert re.sub(r" \d+\]|\[", "", shown).split() == words
    page = cli("predict", trained / task, file, "--format", "html").stdout
    assert page.count("<mark") == sum(map(len, record["clusters"]))
    out = tmp_path / "out.conll"
    assert cli("predict", trained / task, file, "--format", "conll", "--out", out).returncode == 0
    scores = json.loads(cli("evaluate", trained / task, out, "--json").stdout)
    assert scores["value"] == 100 or not record["clusters"]


def test_standard_input(cli, trained, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"A film.\n")))
    done = cli("predict", trained / "classify", "-")
    assert done.returncode == 0
    assert done.stdout == cli("predict", trained / "classify", "--text", "A film.").stdout


USING = [
    ("predict classify", "give either a file or --text"),
    ("predict classify dev.tsv --text a", "give either a file or --text"),
    ("predict classify no.txt", "there is no file no.txt"),
    ("predict classify .", "cannot read .: it is a folder; give a file"),
    ("predict classify --text a --format conll",
     "--format conll is for ner, pos, srl and coref, and classify is a model for classify"),
    ("predict classify --text a --format html",
     "--format html is for marked text, which classify does not have"),
    ("predict classify --text a --format xml",
     "--format must be text, jsonl, conll or html, not 'xml'"),
    ("predict classify dev.tsv --out ./dev.tsv", "dev.tsv is the input, which would be lost"),
    ("predict classify --text a --out no/x", "cannot write no/x: the folder no does not exist"),
    ("predict classify --text a --device x", "cannot use the device 'x'"),
    ("predict no-model --text a", "no-model is not a task model: it has no task.json"),
    ("predict . --text a", ". is not a task model: it has no task.json"),
    ("predict en --text a", "en is not a task model: it has no task.json"),
    ("predict begun --text a", "begun is a training without a model so far; its first epoch"),
    ("predict relation --text a", "the text has no marks; expected <e1>…</e1> and <e2>…</e2>"),
    ("predict similarity --text a", "expected two texts: a pair, or a line with a tab between"),
    ("predict similarity dev.conll", "line 1 of dev.conll: expected two texts: a pair, or a"),
    ("predict classify three.tsv", "choose columns by number with --column text=1"),
    ("predict relation dev.sts", "line 1 of dev.sts has 3 columns without names; add a first line"),
    ("predict relation dev.conll", "line 1 of dev.conll: the text has no marks; expected <e1>"),
    ("predict classify --text a --column text=1", "--column is for a file; leave it out with"),
    ("predict classify dev.tsv --column text", "--column needs NAME=COLUMN, such as --column"),
    ("predict classify dev.tsv --column words=1", "--column contains 'words'"),
    ("predict ner some.jsonl", "some.jsonl is not a file for ner; give one text per line (.txt)"),
    ("evaluate no-model dev.tsv", "no-model is not a task model: it has no task.json"),
    ("evaluate classify no.tsv", "there is no file no.tsv"),
    ("evaluate classify dev.tsv --column label=5", "expected at least 5; check --column"),
    ("evaluate classify dev.tsv --column words=1", "--column contains 'words'"),
    ("evaluate ner dev.tsv", "line 1 of dev.tsv has the tag"),
    ("evaluate coref dev.conll", "line 1 of dev.conll has 'B-PER' in the column of clusters"),
    ("evaluate relation dev.tsv", "line 2 of dev.tsv has no marks"),
]  # fmt: skip


@pytest.mark.parametrize(("typed", "message"), USING)
def test_mistakes_of_predict_and_evaluate(cli, trained, monkeypatch, typed, message):
    monkeypatch.chdir(trained)
    (trained / "begun").mkdir(exist_ok=True)
    (trained / "begun/training.json").write_text("{}")
    (trained / "three.tsv").write_text("pos\t1\tGood.\nneg\t2\tBad.\n")
    assert one_sentence(cli(*typed.split()), message)


@pytest.mark.parametrize(
    ("watched", "shown"),
    [
        pytest.param(False, [("predicting", 600, [256, 256, 88])], id="a file: one bar for all"),
        pytest.param(
            True,
            [("predicting", n, [64] * (n // 64) + [n % 64] * (n % 64 > 0)) for n in (256, 256, 88)],
            id="a terminal: until the next lines appear",
        ),
    ],
)
def test_progress(cli, trained, tmp_path, monkeypatch, watched, shown):
    file = tmp_path / "input.txt"
    file.write_text("Ann slept .\n" * 600)
    bars = record_progress(monkeypatch, "elmokit.io.progress", "elmokit.tasks.task")
    monkeypatch.setattr("elmokit.cli.predict.is_terminal", lambda: watched)
    assert len(cli("predict", trained / "pos", file).stdout.splitlines()) == 600
    assert bars == shown
