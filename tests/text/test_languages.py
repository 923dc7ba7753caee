"""A warning for text in a script that a model hardly knows."""

import warnings

import pytest

from elmokit import Elmo, LanguageWarning
from elmokit.text.languages import LanguageCheck
from helpers.models import many_langs_folder

ENGLISH = ["<S>", "</S>", "<UNK>", *(f"word{i}" for i in range(400)), "国"]
CHINESE = ["<S>", "</S>", "<UNK>", "今天", "天气", "银行", "河边", "存钱", "水果"]
SENTENCE = ["今天", "天气", "真", "好"]


def caught(check, *sentences):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        assert list(check.watch(iter(sentences))) == list(sentences)
    return [str(warning.message) for warning in found if warning.category is LanguageWarning]


def test_a_warning_once():
    check = LanguageCheck(ENGLISH)
    (message,) = caught(check, SENTENCE, SENTENCE)
    assert message.startswith("the text is in Chinese characters, but only 1 of the 404 words")
    assert caught(check, SENTENCE) == []
    assert "but none of" in caught(LanguageCheck(["a", "b"]), SENTENCE)[0]


def test_english_on_a_chinese_model():
    check = LanguageCheck([*CHINESE, "IBM", "iPhone"])
    sentence = "I went to the bank".split()
    (message,) = caught(check, SENTENCE, sentence, sentence)
    assert message.startswith("the text is in Latin letters, but only 2 of the 11 words")
    assert message.endswith("such as the bundled en, or a task model trained with it")
    assert caught(check, sentence) == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (CHINESE, SENTENCE),
        (CHINESE, ["我", "用", "Windows", "Office", "Photoshop", "和", "Chrome"]),
        (CHINESE, ["OK", "IBM", "iPhone"]),
        (CHINESE, ["Ð", "ß", "1", "2"]),
        ([], SENTENCE),  # no list of words, so nothing is known
        (ENGLISH, ["The", "city", "of", "北京", "is", "large"]),
        (ENGLISH, ["国"]),
        (ENGLISH, ["naïve", "café", "Привет", "🙂"]),
        (ENGLISH, []),
    ],
)
def test_no_warning(words, sentence):
    assert caught(LanguageCheck(words), sentence) == []


def test_only_the_first_sentences_are_looked_at():
    check = LanguageCheck(ENGLISH)
    assert caught(check, *[["a"]] * 8, SENTENCE) == []
    assert len(caught(check, SENTENCE)) == 1  # but those of every call


@pytest.mark.parametrize(
    "call",
    [
        lambda elmo, texts: elmo.encode(texts),
        lambda elmo, texts: elmo.encode_sentences(texts),
        lambda elmo, texts: elmo.encode_spans(texts[0], [(0, 1)]),
        lambda elmo, texts: elmo.score(texts),
        lambda elmo, texts: elmo.substitutes(texts[0], 0),
        lambda elmo, texts: elmo.perplexity(texts),
        lambda elmo, texts: list(elmo.stream(texts)),
    ],
)
def test_every_method_warns(lm, call):
    with pytest.warns(LanguageWarning, match="none of the 10 words"):
        call(lm, ["今天 天气"])
    call(lm, ["今天 天气"])  # once is enough


def test_models_without_a_softmax(tiny, tmp_path):
    tiny.encode(["今天 天气"])  # reads bytes and has no list of words
    with pytest.warns(LanguageWarning, match="of the 5 words"):
        Elmo.load(many_langs_folder(tmp_path / "x"), device="cpu").encode(["今天 天气"])
    characters = many_langs_folder(tmp_path / "y", word_dim=0)
    Elmo.load(characters, device="cpu").encode(["日 日"])  # one character in ten is Chinese


def test_commands_print_it_as_a_note(cli, lm_folder):
    done = cli("surprisal", "今天 天气 the", "-m", lm_folder)
    assert done.returncode == 0
    first, second = done.stderr.splitlines()
    assert first.startswith("elmokit: the text is in Chinese characters, but none of the 10 words")
    assert second == "elmokit: tokens outside the model's vocabulary, scored as <UNK>: 2 of 3"
    assert cli("--quiet", "surprisal", "今天 天气 the", "-m", lm_folder).stderr == ""
    assert cli("surprisal", "the cat", "-m", lm_folder).stderr == ""
