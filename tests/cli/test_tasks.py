"""elmokit train, predict and evaluate: for every task, in every format, and what they refuse."""

import io
import json
import shutil
import sys

import pytest

from elmokit.tasks.measures.tag_schemes import read_spans
from helpers.task_data import reviews, tagged

RELATIONS = """label\ttext
Cause(e2,e1)\tThe <e1>fire</e1> was caused by a <e2>spark</e2>.
Other\tA <e1>cat</e1> saw a <e2>dog</e2>.
"""
PAIRS = "first\tsecond\tscore\nA cat.\tA cat.\t5\nA dog.\tThe sea.\t0.5\nA man.\tA boy.\t3\n"
TEXTS = {
    "classify": ["The film is good.", "An awful film."],
    "ner": ["Ann went to Rome .", "Bob slept ."],
    "pos": ["Ann went to Rome .", "Bob slept ."],
    "relation": ["A <e1>spark</e1> lit the <e2>fire</e2>.", "A <e2>cat</e2> has a <e1>tail</e1>."],
    "similarity": ["A cat.\tA dog.", "A man.\tA boy."],
}
FILES = {"classify": "tsv", "ner": "conll", "pos": "conll", "relation": "rel", "similarity": "sts"}
SMALL = ["--epochs", 1, "--set", "model.hidden_dim=4"]


def write_files(folder):
    """Write train and dev files of every task."""
    for name, n, seed in (("train", 12, 0), ("dev", 4, 1)):
        rows = "".join(f"{e.label}\t{e.text}\n" for e in reviews(n, seed))
        sentences = (zip(e.words, e.tags, strict=True) for e in tagged(n, seed))
        words = "\n".join("".join(f"{w} _ {t}\n" for w, t in pairs) for pairs in sentences)
        texts = {"tsv": "label\ttext\n" + rows, "conll": words, "rel": RELATIONS, "sts": PAIRS}
        for suffix, text in texts.items():
            (folder / f"{name}.{suffix}").write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def trained(tmp_path_factory, tiny_folder):
    """A folder with files and a trained model of every task."""
    from elmokit import Elmo
    from elmokit.tasks import task_class

    folder = tmp_path_factory.mktemp("tasks")
    write_files(folder)
    settings = {"model": {"hidden_dim": 4}, "training": {"epochs": 1}}
    for name, suffix in FILES.items():
        task_class(name).train(
            folder / f"train.{suffix}",
            folder / f"dev.{suffix}",
            elmo=Elmo.load(tiny_folder, device="cpu"),
            settings=settings,
            out=folder / name,
        )
    return folder


@pytest.fixture
def place(tmp_path, tiny_folder, monkeypatch):
    """A working folder with files and a tiny biLM."""
    write_files(tmp_path)
    shutil.copytree(tiny_folder, tmp_path / "tiny")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def data(suffix):
    return ["--train", f"train.{suffix}", "--dev", f"dev.{suffix}", "--model", "tiny"]


# Training


@pytest.mark.parametrize(("task", "suffix"), FILES.items())
def test_train_predict_evaluate(cli, place, task, suffix):
    done = cli("train", task, *data(suffix), "--out", "out", *SMALL)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("ELMo's layers of ")
    assert "\nepoch 1: loss " in done.stdout
    assert done.stdout.endswith("in epoch 1; the model is out/best\n")
    card = (place / "out/best/README.md").read_text(encoding="utf-8")
    assert card.startswith("# out\n")  # not "best", which no command could be given
    assert cli("predict", "out", "--text", TEXTS[task][0]).returncode == 0
    scores = json.loads(cli("evaluate", "out", f"dev.{suffix}", "--json").stdout)
    told = done.stdout.splitlines()[-1]
    assert told.startswith(f"dev {scores['name']} {scores['value']:.2f} ")


def test_sentiment_is_classify(cli, place):
    assert cli("train", "sentiment", *data("tsv"), "--out", "out", *SMALL).returncode == 0
    assert json.loads((place / "out/best/task.json").read_text())["task"] == "classify"


def test_options_and_recipe_reach_the_settings(cli, place):
    (place / "glove.txt").write_text("film 0.1 0.2\ngood 0.1 0.3\n")
    (place / "my.toml").write_text(
        "[training]\nepochs = 7\npatience = 2\n[model]\nhidden_dim = 3\n"
    )
    done = cli(
        "train", "classify", *data("tsv"), "--out", "out", "--recipe", "my.toml",
        "--vectors", "glove.txt", "--layers", "1", "--elmo-at", "both", "--fine-tune",
        "--epochs", 1, "--batch-size", 5, "--learning-rate", 0.01, "--seed", 3,
        "--set", "training.schedule=slanted",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    settings = json.loads((place / "out/best/task.json").read_text())["settings"]
    assert settings["model"]["hidden_dim"] == 3
    assert settings["tuning"]["enabled"]
    chosen = {"vectors": "glove.txt", "layers": "1", "at": "both"}
    assert settings["input"] == settings["input"] | chosen
    assert settings["training"] == settings["training"] | {
        "epochs": 1, "patience": 2, "batch_size": 5, "learning_rate": 0.01, "seed": 3,
        "schedule": "slanted",
    }  # fmt: skip


def test_columns(cli, place):
    for name in ("train", "dev"):
        rows = "".join(f"{e.text},7,{e.label}\n" for e in reviews(8, 2))
        (place / f"{name}.csv").write_text(rows)
    columns = ["--column", "text=1", "--column", "label=3"]
    done = cli("train", "classify", *data("csv"), "--out", "out", *columns, *SMALL)
    assert (done.returncode, done.stderr) == (0, "")
    done = cli("evaluate", "out", "dev.csv", "--json", *columns)
    assert sorted(json.loads(done.stdout)["per_class"]) == ["neg", "pos"]


def test_a_column_of_tags(cli, place):
    done = cli("train", "pos", *data("conll"), "--out", "out", "--column", "tag=2", *SMALL)
    assert done.returncode == 2  # the column has _ for every word
    done = cli("train", "pos", *data("conll"), "--out", "out", "--column", "tag=3", *SMALL)
    assert (done.returncode, done.stderr) == (0, "")


def test_resume(cli, place):
    command = ["train", "ner", *data("conll"), "--out", "out", *SMALL, "--epochs", 2]
    assert cli(*command).returncode == 0
    weights = (place / "out/best/head.safetensors").read_bytes()
    done = cli(*command, "--resume")
    assert (done.returncode, done.stderr) == (0, "")
    assert "resuming after epoch 2\n" in done.stdout
    assert (place / "out/best/head.safetensors").read_bytes() == weights


def test_quiet(cli, place):
    done = cli("--quiet", "train", "pos", *data("conll"), "--out", "out", *SMALL)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# Predicting


@pytest.mark.parametrize("task", FILES)
def test_text_and_jsonl(cli, trained, tmp_path, task):
    file = tmp_path / "input.txt"
    file.write_text("\n".join(TEXTS[task]) + "\n\n", encoding="utf-8")
    lines = cli("predict", trained / task, file).stdout.splitlines()
    records = [
        json.loads(line)
        for line in cli("predict", trained / task, file, "--format", "jsonl").stdout.splitlines()
    ]
    assert len(lines) == len(records) == 2
    for text, line, record in zip(TEXTS[task], lines, records, strict=True):
        assert record["text"] == text
        if task == "similarity":
            assert line == f"{record['score']:.3f}"
        elif task in ("classify", "relation"):
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


def test_conll_can_be_evaluated(cli, trained, tmp_path):
    file, out = tmp_path / "input.txt", tmp_path / "tagged.conll"
    file.write_text("\n".join(TEXTS["pos"]))
    done = cli("predict", trained / "pos", file, "--format", "conll", "--out", out)
    assert (done.returncode, done.stdout) == (0, f"wrote {out}\n")
    assert out.read_text().count("\n\n") == 2
    scores = json.loads(cli("evaluate", trained / "pos", out, "--json").stdout)
    assert scores["value"] == 100


def test_standard_input(cli, trained, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"A film.\n")))
    done = cli("predict", trained / "classify", "-")
    assert done.returncode == 0
    assert done.stdout == cli("predict", trained / "classify", "--text", "A film.").stdout


def test_evaluate_prints_tables(cli, trained):
    done = cli("evaluate", trained / "classify", trained / "dev.tsv")
    assert done.returncode == 0
    for word in ("accuracy", "macro f1", "precision", "support", "gold \\ predicted"):
        assert word in done.stdout
    scores = json.loads(cli("evaluate", trained / "classify", trained / "dev.tsv", "--json").stdout)
    assert f"{scores['value']:.2f}" in done.stdout


# Mistakes

TRAINING = [
    ("cooking", "task must be classify, sentiment, ner, pos, relation or similarity, not"),
    ("classify --train no.tsv", "there is no file no.tsv"),
    ("classify --vectors no.txt", "there is no file no.txt"),
    ("classify --model no-such", "no-such"),
    ("classify --train bad.tsv", "line 3 of bad.tsv has 3 columns; expected 2"),
    ("classify --dev empty.tsv", "no examples found in empty.tsv"),
    ("classify --train one.tsv", "the training examples have 1 label; expected two or more"),
    ("classify --out full", "full is not empty; choose another folder, or continue with --resume"),
    ("classify --out train.tsv", "cannot write into train.tsv: it is a file; choose another"),
    ("classify --out nothing --resume", "nothing has no training to resume; leave out --resume"),
    ("classify --column lable=1", "--column contains 'lable'; expected only the names text and"),
    ("classify --column text=no", "train.tsv has no column 'no'; its first line has label, text"),
    ("classify --column text=9", "train.tsv has 2 columns; expected at least 9; check --column"),
    ("classify --column text", "--column needs NAME=COLUMN, such as text=2, not 'text'"),
    ("classify --train names.tsv", "choose one with --column label=NAME"),
    ("classify --train three.tsv", "by number with --column text=1 --column label=2"),
    ("classify --train swapped.txt", "if the text is first, pass --column text=1 --column label=2"),
    ("classify --train keys.jsonl", "choose a key with --column label=KEY"),
    ("ner --column label=2", "--column contains 'label'; expected only the names word and tag"),
    ("ner --train words.conll", "choose a column of tags with --column tag=3"),
    ("ner --train tags.conll", "sentence 2 of tags.conll: unknown tag 'X'; expected O, or one of"),
    ("ner --train outside.conll", "the training examples have no entities; expected tags such as"),
    ("relation --train train.tsv", "line 2 of train.tsv has no marks; expected <e1>"),
    ("similarity --train text.sts", "line 2 of text.sts has 'much' as its score; expected a"),
    ("similarity --train same.sts", "the scores of the training examples go from 3 to 3"),
    ("classify --set training.epoch=1", "training has the unknown setting epoch; known settings"),
    ("classify --set model.n_layers=2", "model has the unknown setting n_layers"),
    ("classify --set foo.bar=1", "unknown section foo; sections are model, input, tuning"),
    ("classify --set epochs", "--set needs section.key=value, not 'epochs'"),
    ("classify --recipe no.toml", "no.toml"),
    ("classify --layers 7", "--layers must be a layer from 0 to 2, mix, average, top or none"),
    ("classify --layers x", "--layers must be mix, average, top, the number of a layer, or none"),
    ("classify --layers none", "a model needs some vectors"),
    ("classify --elmo-at nowhere", "--elmo-at must be one of input, output, both, not 'nowhere'"),
    ("classify --epochs 0", "--epochs must be 1 or more, not 0"),
    ("classify --batch-size 0 --seed -1", "--batch-size must be 1 or more, not 0; --seed must be"),
    ("classify --learning-rate 0", "--learning-rate must be above 0"),
    ("classify --vectors token --layers none --fine-tune",
     "--fine-tune needs ELMo; choose --layers other than none"),
]  # fmt: skip


@pytest.mark.parametrize(("typed", "message"), TRAINING)
def test_mistakes_of_train(cli, place, typed, message):
    files = {
        "bad.tsv": "label\ttext\npos\tGood.\nneg\tBad.\tx\n",
        "empty.tsv": "label\ttext\n",
        "one.tsv": "label\ttext\npos\tGood.\n",
        "names.tsv": "verdict\ttext\npos\tGood.\n",
        "three.tsv": "pos\t1\tGood.\nneg\t2\tBad.\n",
        "swapped.txt": "Good.\tpos\nBad.\tneg\nFine.\tpos\n",
        "keys.jsonl": '{"text": "Good.", "verdict": "pos"}\n',
        "words.conll": "Ann\nslept\n\n",
        "tags.conll": "Ann B-PER\nslept O\n\nBob X\n",
        "outside.conll": "Ann O\nslept O\n",
        "text.sts": "first\tsecond\tscore\na\tb\tmuch\n",
        "same.sts": "first\tsecond\tscore\na\tb\t3\n",
        "full/file": "",
    }
    (place / "full").mkdir()
    for name, text in files.items():
        (place / name).write_text(text)
    task, *options = typed.split()
    suffix = FILES.get(task, "tsv")
    done = cli("train", task, *data(suffix), "--out", "out", *options)
    assert one_sentence(done, message)
    assert not (place / "out").exists()


USING = [
    ("predict classify", "give either a file or --text"),
    ("predict classify dev.tsv --text a", "give either a file or --text"),
    ("predict classify no.txt", "there is no file no.txt"),
    ("predict classify .", "cannot read .: it is a folder; give a file"),
    ("predict classify --text a --format conll",
     "--format conll is for taggers, and classify is a model for classify"),
    ("predict classify --text a --format xml", "--format must be text, jsonl or conll, not 'xml'"),
    ("predict classify --text a --out no/x", "cannot write no/x: the folder no does not exist"),
    ("predict classify --text a --device x", "cannot use the device 'x'"),
    ("predict no-model --text a", "no-model is not a task model: it has no task.json"),
    ("predict . --text a", ". is not a task model: it has no task.json"),
    ("predict en --text a", "en is not a task model: it has no task.json"),
    ("predict begun --text a", "begun is a training without a model so far; its first epoch"),
    ("predict relation --text a", "the text has no marks; expected <e1>…</e1> and <e2>…</e2>"),
    ("predict similarity --text a", "expected two texts: a pair, or a line with a tab between"),
    ("evaluate no-model dev.tsv", "no-model is not a task model: it has no task.json"),
    ("evaluate classify no.tsv", "there is no file no.tsv"),
    ("evaluate classify dev.tsv --column label=5", "expected at least 5; check --column"),
    ("evaluate classify dev.tsv --column words=1", "--column contains 'words'"),
    ("evaluate ner dev.tsv", "sentence 1 of dev.tsv: unknown tag"),
    ("evaluate relation dev.tsv", "line 2 of dev.tsv has no marks"),
]  # fmt: skip


@pytest.mark.parametrize(("typed", "message"), USING)
def test_mistakes_of_predict_and_evaluate(cli, trained, monkeypatch, typed, message):
    monkeypatch.chdir(trained)
    (trained / "begun").mkdir(exist_ok=True)
    (trained / "begun/training.json").write_text("{}")
    assert one_sentence(cli(*typed.split()), message)


def test_another_training_is_not_resumed(cli, place):
    command = ["train", "classify", *data("tsv"), "--out", "out"]
    assert cli(*command, *SMALL).returncode == 0
    done = cli(*command, *SMALL, "--epochs", 2, "--resume")
    assert one_sentence(done, "the training in out has other examples or settings")


def one_sentence(done, message):
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("elmokit: ")
    assert message in done.stderr
    return done.stderr.count("\n") == 1
