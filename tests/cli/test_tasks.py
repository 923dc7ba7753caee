"""elmokit train and evaluate: for every task, in every format, and what they refuse."""

import json
import shutil

import pytest

from helpers.processes import one_sentence
from helpers.task_data import FILES, TEXTS, reviews, write_files

SMALL = ["--epochs", 1, "--set", "model.hidden_dim=4"]


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


# Evaluating


def test_evaluate_prints_tables(cli, trained):
    done = cli("evaluate", trained / "classify", trained / "dev.tsv")
    assert done.returncode == 0
    for word in ("accuracy", "macro f1", "precision", "support", "gold \\ predicted"):
        assert word in done.stdout
    scores = json.loads(cli("evaluate", trained / "classify", trained / "dev.tsv", "--json").stdout)
    assert f"{scores['value']:.2f}" in done.stdout


# Mistakes

TRAINING = [
    ("cooking", "task must be classify, sentiment, ner, nli, "),
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
    ("classify --column text", "--column needs NAME=COLUMN, such as --column text=2, not 'text'"),
    ("classify --train names.tsv", "choose one with --column label=NAME"),
    ("classify --train three.tsv", "by number with --column text=1 --column label=2"),
    ("classify --train swapped.txt", "if the text is first, pass --column text=1 --column label=2"),
    ("classify --train keys.jsonl", "choose a key with --column label=KEY"),
    ("ner --column label=2", "--column contains 'label'; expected only the names word and tag"),
    ("ner --train words.conll", "words.conll has words only; add a column with the tag of"),
    ("ner --train tags.conll", "line 4 of tags.conll has the tag 'X' in column 2; expected O"),
    ("ner --train outside.conll", "the training examples have no entities; expected tags such as"),
    ("relation --train train.tsv", "line 2 of train.tsv has no marks; expected <e1>"),
    ("similarity --train text.sts", "line 2 of text.sts has 'much' as its score; expected a"),
    ("similarity --train same.sts", "the scores of the training examples go from 3 to 3"),
    ("coref --train train.tsv", "line 1 of train.tsv has 'text' in the column of clusters"),
    ("coref --column text=2", "--column contains 'text'; expected only the names word and cluster"),
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


def test_another_training_is_not_resumed(cli, place):
    command = ["train", "classify", *data("tsv"), "--out", "out"]
    assert cli(*command, *SMALL).returncode == 0
    done = cli(*command, *SMALL, "--epochs", 2, "--resume")
    assert one_sentence(done, "the training in out has other examples or settings")
