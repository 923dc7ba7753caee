"""Linear probes: the files, the classifier, the control task, the command."""

import json

import numpy as np
import pytest
import torch

from elmokit.analysis.probes.conll import TaggedWords, read_conll
from elmokit.analysis.probes.linear import LinearProbe, ProbeSettings, standardise, train_probe
from elmokit.analysis.probes.probing import control_tags, most_frequent, probe, probe_report, sample
from elmokit.errors import InputError
from helpers.tagged import COLOURS, write_tagged

CONLLU = """# sent_id = 1
# text = Don't go
1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tDo\tdo\tAUX\tVB\t_\t3\taux\t_\t_
2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t_\t_
3\tgo\tgo\tVERB\tVB\t_\t0\troot\t_\t_
3.1\tgo\tgo\tVERB\tVB\t_\t_\t_\t_\t_

# text = # 1
1\t#\t#\tSYM\t_\t_\t2\tdep\t_\t_
2\t1\t1\tNUM\tCD\t_\t0\troot\t_\t_
"""
CONLL03 = """-DOCSTART- -X- -X- O

EU NNP B-NP B-ORG
rejects VBZ B-VP O
# # B-NP O

Peter NNP B-NP B-PER
"""


@pytest.fixture
def files(tmp_path):
    train = write_tagged(tmp_path / "train.conllu", 40)
    return train, write_tagged(tmp_path / "dev.conllu", 10, seed=1)


# files


def test_conllu(tmp_path):
    path = tmp_path / "a.conllu"
    path.write_text(CONLLU, encoding="utf-8")
    first, second = read_conll(path)
    assert first == TaggedWords(["Do", "n't", "go"], ["AUX", "PART", "VERB"])
    assert second == TaggedWords(["#", "1"], ["SYM", "NUM"])
    assert read_conll(path, "xpos")[1].tags == [None, "CD"]
    assert read_conll(path, "8")[0].tags == ["aux", "advmod", "root"]
    assert read_conll(path, "DEPREL") == read_conll(path, "8")
    assert read_conll(path, "upos", word_column=3)[0].words == ["do", "not", "go"]
    path.write_text(CONLLU.replace("\n", "\r\n"), encoding="utf-8-sig")
    assert read_conll(path)[0] == first


def test_a_file_may_begin_with_a_range(tmp_path):
    path = tmp_path / "a.conllu"
    path.write_text("1-2\tzum\t_\t_\n1\tzu\tzu\tADP\n2\tdem\tder\tDET", encoding="utf-8")
    assert read_conll(path) == [TaggedWords(["zu", "dem"], ["ADP", "DET"])]


def test_conll_without_numbers(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text(CONLL03, encoding="utf-8")
    first, second = read_conll(path, "4")
    assert first == TaggedWords(["EU", "rejects", "#"], ["B-ORG", "O", "O"])
    assert second == TaggedWords(["Peter"], ["B-PER"])
    with pytest.raises(InputError, match="upos is a column of CoNLL-U.*give --column a number"):
        read_conll(path)


@pytest.mark.parametrize(
    "first", ["1987 CD B-NP", "1 CD B-NP\nof IN B-PP", "1 CD B-NP\n3 CD I-NP", "2.5 CD B-NP"]
)
def test_a_first_word_may_be_a_number(tmp_path, first):
    path = tmp_path / "a.txt"
    path.write_text(f"{first}\n\nEU NNP B-NP\n", encoding="utf-8")
    found = read_conll(path, "2")
    assert found[0].words == [line.split()[0] for line in first.splitlines()]
    assert found[1] == TaggedWords(["EU"], ["NNP"])


@pytest.mark.parametrize("first", ["1-2 zum _", "0.1 zum _", "# 1\n1-3 zum _"])
def test_numbers_that_begin_otherwise(tmp_path, first):
    path = tmp_path / "a.txt"
    path.write_text(f"{first}\n1 zu ADP\n2 dem DET\n\n7 x X\n", encoding="utf-8")
    found = read_conll(path, "3")
    assert found == [TaggedWords(["zu", "dem"], ["ADP", "DET"]), TaggedWords(["x"], ["X"])]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("pos", "no column 'pos'.*upos"),
        ("0", "no column '0'"),
        ("²", "no column"),
        ("12", "line 4 of .* has 10 columns, so that there is no column 12"),
        ("feats", "column feats of .* has no tag"),
    ],
)
def test_wrong_columns(tmp_path, column, message):
    path = tmp_path / "a.conllu"
    path.write_text(CONLLU, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_conll(path, column)


# the classifier


def separable(n=600, seed=0):
    """Tokens (N, 2, 3) whose tag the second layer shows on a line of its own, and the first not."""
    rng = np.random.default_rng(seed)
    tags = rng.integers(0, 3, n)
    vectors = rng.normal(0, 1, (n, 2, 3)).astype(np.float32)
    vectors[:, 1] = 10 * np.eye(3)[tags] + rng.normal(0, 0.1, (n, 3))
    return torch.from_numpy(vectors), torch.from_numpy(tags), torch.arange(n) % 10 == 0


def test_separable_tags_are_all_found():
    vectors, tags, held_out = separable()
    standardise(vectors)
    for layers, mixed in ((slice(1, 2), False), (slice(None), False), (slice(None), True)):
        found = train_probe(vectors[:, layers], tags, held_out, 3, mixed=mixed)
        assert found.accuracy(vectors[:, layers], tags) == 100
    assert train_probe(vectors[:, :1], tags, held_out, 3).accuracy(vectors[:, :1], tags) < 60


def test_the_mix_learns_which_layer_matters():
    vectors, tags, held_out = separable()
    standardise(vectors)
    found = train_probe(vectors, tags, held_out, 3, mixed=True)
    shares = found.shares()
    assert sum(shares) == pytest.approx(1)
    assert shares[1] > 0.6
    assert train_probe(vectors, tags, held_out, 3).shares() is None


def test_training_is_the_same_twice():
    vectors, tags, held_out = separable()
    a, b = (train_probe(vectors, tags, held_out, 3, seed=4).linear.weight for _ in range(2))
    assert torch.equal(a, b)
    assert not torch.equal(a, train_probe(vectors, tags, held_out, 3, seed=5).linear.weight)


def test_training_stops():
    """With tags that cannot be learned, long before the last epoch; and the best state is kept."""
    rng = torch.Generator().manual_seed(0)
    vectors = torch.randn(300, 1, 8, generator=rng)
    tags = torch.randint(0, 2, (300,), generator=rng)
    held_out = torch.arange(300) >= 200
    few = ProbeSettings(most_rounds=15)
    many = ProbeSettings(most_rounds=1000)
    a, b = (train_probe(vectors, tags, held_out, 2, settings=s) for s in (few, many))
    assert torch.equal(a.linear.weight, b.linear.weight)


def test_training_tells_of_its_rounds():
    vectors, tags, held_out = separable()
    told = []
    settings = ProbeSettings(most_rounds=30, patience=2)
    train_probe(vectors[:, 1:], tags, held_out, 3, settings=settings, advance=told.append)
    assert sum(told) == 30
    assert told[:-1] == [1] * (len(told) - 1)
    assert told[-1] > 1  # stopped in time


def test_held_out_tokens_are_not_trained_on():
    """Half of the tokens contradict the other half; the trained half alone is believed."""
    vectors = torch.eye(2)[torch.arange(400) % 2][:, None]
    held_out = torch.arange(400) >= 200
    tags = torch.arange(400) % 2
    tags[held_out] = 1 - tags[held_out]
    found = train_probe(vectors, tags, held_out, 2, settings=ProbeSettings(most_rounds=5))
    assert found.accuracy(vectors[held_out], tags[held_out]) == 0


def test_standardise():
    vectors = torch.tensor([[[1.0, 5.0]], [[3.0, 5.0]]], dtype=torch.float16)
    other = torch.tensor([[[2.0, 5.0]], [[5.0, 5.0]]], dtype=torch.float16)
    standardise(vectors, other)
    assert vectors.tolist() == [[[-1.0, 0.0]], [[1.0, 0.0]]]
    assert other.tolist() == [[[0.0, 0.0]], [[3.0, 0.0]]]


def test_scores_by_hand():
    found = LinearProbe(2, 2, 2)
    with torch.no_grad():
        found.linear.weight[:] = torch.tensor([[1.0, 0, 0, 0], [0, 0, 0, 2.0]])
        found.linear.bias[:] = torch.tensor([0.5, 0])
    scores = found(torch.tensor([[[1.0, 9], [9, 3]]], dtype=torch.float16))
    assert scores.tolist() == [[1.5, 6.0]]


# the control task, and a list of words


def test_control_tags():
    words = [str(i) for i in range(3000)] * 2
    tags = torch.tensor([0] * 6 + [1] * 3 + [3])
    drawn = control_tags(words, tags, np.random.default_rng(0))
    assert torch.equal(drawn[:3000], drawn[3000:])  # a word's tag is the same everywhere
    shares = drawn.bincount().double() / len(drawn)
    assert shares.tolist() == pytest.approx([0.6, 0.3, 0, 0.1], abs=0.03)
    assert torch.equal(drawn, control_tags(words, tags, np.random.default_rng(0)))


def test_most_frequent():
    words, tags = ["a", "a", "a", "b", "b"], torch.tensor([1, 0, 1, 2, 2])
    # a: 1; b: 2; new: 1, the smaller of the two most frequent
    assert most_frequent(words, tags, ["a", "b", "new", "a"], torch.tensor([1, 2, 1, 0])) == 75


def test_memory_can_do_the_control_task_of_known_words(tiny):
    """Three words have three vectors in the token layer, which a probe can keep apart."""
    rng = np.random.default_rng(0)
    sentences = [
        TaggedWords([COLOURS[i] for i in row], [f"T{i}" for i in row])
        for row in rng.integers(0, 3, (40, 4)).tolist()
    ]
    result = probe(tiny, sentences[:30], sentences[30:])
    assert result.layers[0].accuracy == result.layers[0].control == 100
    assert result.word_list.accuracy == result.word_list.control == 100
    assert result.layers[0].selectivity == 0
    assert (result.n_train, result.n_dev, result.unseen) == (120, 40, 0)
    assert result.tags == ["T0", "T1", "T2"]
    assert len(result.layers) == len(result.shares) == 3
    assert probe(tiny, sentences[:30], sentences[30:]) == result


def test_words_without_a_tag_are_read_but_not_asked_for(tiny):
    known = [TaggedWords(["red", "of", "green"], ["A", None, "B"])] * 4
    asked = [TaggedWords(["red", "of"], ["A", None]), TaggedWords(["new"], ["C"])]
    result = probe(tiny, known, asked)
    assert (result.n_train, result.n_dev, result.unseen) == (8, 2, 0.5)
    assert result.word_list.accuracy == 50  # the tag C is not known
    with pytest.raises(InputError, match="no word of the text to test"):
        probe(tiny, known, [TaggedWords(["of"], [None])])


def test_sample():
    sentences = [TaggedWords([str(i)], ["T"]) for i in range(50)]
    some = sample(sentences, 10, seed=0)
    assert some == sample(sentences, 10, seed=0) != sample(sentences, 10, seed=1)
    assert some == sorted(some, key=lambda s: int(s.words[0]))
    assert sample(sentences, None, 0) == sample(sentences, 50, 0) == sentences


# the command


def test_command(cli, files, tiny_folder, tmp_path):
    from matplotlib.image import imread

    done = cli("probe", "pos", *files, "-m", tiny_folder, "--out", tmp_path / "x")
    assert done.returncode == 0, done.stderr
    assert "160 to train on" in " ".join(done.stdout.split())
    values = json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))
    assert [row["vectors"] for row in values["rows"]] == [
        *("token layer", "LSTM layer 1", "LSTM layer 2"),
        *("learned mix", "all side by side", "list of words"),
    ]
    assert values["rows"][0]["accuracy"] == 100
    assert (values["train_tokens"], values["dev_tokens"], values["column"]) == (160, 40, "upos")
    assert len(np.unique(imread(tmp_path / "x.png").reshape(-1, 4), axis=0)) > 10


def test_command_options(cli, files, tiny_folder):
    few = cli("probe", "pos", *files, "-m", tiny_folder, "--max-sentences", 5, "--column", 4)
    assert "20 tokens, 20 to train on" in " ".join(few.stdout.split())


def test_very_long_sentences(cli, tmp_path, tiny_folder):
    path = tmp_path / "long.conll"
    sentence = "".join(f"w{i % 7}\tT{i % 2}\n" for i in range(1500))
    path.write_text(sentence + "\n" + sentence + "\n" + "x" * 5000 + "\tT0\n", encoding="utf-8")
    done = cli("probe", "pos", path, path, "--column", 2, "-m", tiny_folder)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "there is no sentence"),
        (b"# only = this\n", "there is no sentence"),
        (b"1\tword\tword\tNOUN\n", "needs two sentences"),
        (b"1\tw\xff\tw\tNOUN\n", "is not UTF-8"),
        (b"1\tone\n", "has 2 columns, so that there is no column 4"),
    ],
)
def test_mistakes_in_files(cli, tmp_path, files, tiny_folder, text, message):
    path = tmp_path / "wrong.conllu"
    path.write_bytes(text)
    done = cli("probe", "pos", path, files[1], "-m", tiny_folder)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_other_mistakes(cli, tmp_path, files, tiny_folder):
    for arguments, message in (
        (["probe", "pos", tmp_path / "no", files[1]], "there is no file"),
        (["probe", "pos", *files, "--column", "part"], "no column 'part'"),
        (["probe", "pos", *files, "--out", tmp_path / "no" / "x"], "does not exist"),
    ):
        done = cli(*arguments, "-m", tiny_folder)
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr


def test_report_of_a_model_with_one_layer(tmp_path):
    from elmokit.analysis.probes.probing import ProbeResult, ProbeScore

    score = ProbeScore(90.0, 60.0)
    result = ProbeResult([score] * 2, score, score, score, [0.5, 0.5], ["A"], 10, 5, 0.1)
    report = probe_report(result, ["token layer", "LSTM layer 1"])
    assert report.shown()[0] == ["token layer", "90.00", "60.00", "30.00"]
    report.write(tmp_path / "x")
