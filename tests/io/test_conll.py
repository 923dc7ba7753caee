"""CoNLL files."""

import pytest

from elmokit.errors import InputError
from elmokit.io.conll import TaggedWords, read_conll

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
    with pytest.raises(InputError, match="upos is a column of CoNLL-U.*give the number"):
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
        ("pos", "unknown column 'pos'.*upos"),
        ("0", "unknown column '0'"),
        ("²", "unknown column"),
        ("9" * 5000, "unknown column '9{98}…;"),
        ("12", "line 4 of .* has 10 columns; expected at least 12"),
        ("feats", "column feats of .* has no tags"),
    ],
)
def test_wrong_columns(tmp_path, column, message):
    path = tmp_path / "a.conllu"
    path.write_text(CONLLU, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_conll(path, column)
