"""The models bundled with the package: English and Chinese."""

import os
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from elmokit import Elmo, LanguageWarning
from elmokit.analysis.similarity import word_similarity
from elmokit.formats import DEFAULT_MODEL, bundled_models
from elmokit.io.lines import read_lines
from elmokit.text.sentences import split_sentences

MONEY = [
    "I went to the bank to deposit money",
    "She opened an account at the bank on Main Street",
    "The bank raised its interest rates again",
    "He borrowed ten thousand dollars from a bank in London",
]
RIVER = [
    "I sat by the bank of the river",
    "They walked along the muddy bank of the stream",
    "The boat was tied to a tree on the left bank of the Rhine",
    "Willows grew along the bank of the lake",
]
FRUIT = [
    "妈妈从市场上买回来一袋又红又大的苹果。",
    "孩子们爬上树去摘苹果，装满了两个篮子。",
    "桌子上放着几个苹果、两根香蕉和一串葡萄。",
    "奶奶用苹果和蜂蜜做了一个蛋糕。",
]
COMPANY = [
    "苹果在秋季发布会上推出了新款手机。",
    "苹果和三星的专利官司打了好几年。",
    "苹果宣布将在中国新建一个数据中心。",
    "他们开发的软件只能在苹果的电脑上运行。",
]
HELD_OUT = [  # written for this test
    "这座大桥长约两公里，连接岛屿和大陆。",
    "她从小学习钢琴，十二岁时第一次登台演出。",
    "由于连日暴雨，山区的公路被洪水冲毁。",
    "该市的主要产业是纺织业和旅游业。",
    "比赛的最后一分钟，主队凭借一记头球反超比分。",
    "科学家在洞穴中发现了一种以前没有记录的蜥蜴。",
    "小说讲述了一个普通家庭在战争年代的遭遇。",
    "他大学毕业后进入一家银行工作，三年后辞职。",
]


@pytest.fixture(scope="module")
def en():
    return Elmo.load(device="cpu")


@pytest.fixture(scope="module")
def zh():
    return Elmo.load("zh", device="cpu")


def test_it_is_found_by_name(en, monkeypatch, tmp_path):
    (named,) = Elmo.load("en", device="cpu").encode(["the bank"])
    assert np.array_equal(en.encode(["the bank"])[0], named)
    (tmp_path / "en").mkdir()
    monkeypatch.chdir(tmp_path)  # a local folder named en does not replace the default
    assert np.array_equal(Elmo.load(device="cpu").encode(["the bank"])[0], named)


def test_both_are_listed():
    assert bundled_models() == ["en", "zh"]


@pytest.mark.parametrize(
    ("model", "word", "senses"), [("en", "bank", (MONEY, RIVER)), ("zh", "苹果", (FRUIT, COMPANY))]
)
def test_senses_differ(model, word, senses, request):
    elmo = request.getfixturevalue(model)

    def cosines(pairs):
        return np.array([word_similarity(elmo, a, b, word)[0].cosines for a, b in pairs])

    same = cosines([(s[i], s[j]) for s in senses for i in range(len(s)) for j in range(i)]).mean(0)
    other = cosines([(a, b) for a in senses[0] for b in senses[1]]).mean(0)
    assert same[0] == pytest.approx(1, abs=1e-5)  # the token layer does not see the context
    assert other[0] == pytest.approx(1, abs=1e-5)
    assert same[2] > other[2] + 0.1
    assert same[1] > other[1]


def test_it_predicts_english(en):
    right = en.perplexity(["He went to the bank to deposit some money ."]).mean
    wrong = en.perplexity(["money some deposit to bank the to went He ."]).mean
    assert right < wrong / 20
    words = [word for word, _ in en.substitutes("She sat on the edge of the bed .", 4)]
    assert "side" in words
    words = [word for word, _ in en.substitutes("He went to the bank to deposit some money .", 4)]
    assert "bank" in words
    assert not set(words) & {'"', "first", ",", "and"}  # frequent in any context


def test_it_predicts_chinese(zh):
    right = zh.perplexity(["他大学毕业后进入一家银行工作。"]).mean
    wrong = zh.perplexity([zh.tokenize("他大学毕业后进入一家银行工作。")[::-1]]).mean
    assert right < wrong / 20
    for text, word, expected in [
        ("他是唐代著名的诗人。", "诗人", "书法家"),
        ("他在学校教授数学。", "教授", "学习"),
        ("他是北京大学的教授。", "教授", "教授"),
    ]:
        found = zh.substitutes(text, zh.tokenize(text).index(word))
        assert expected in [word for word, _ in found]


def test_both_scripts_have_the_same_vectors(zh):
    simplified, traditional = zh.encode(["他买了两斤苹果。", "他買了兩斤蘋果。"], layers="all")
    np.testing.assert_allclose(simplified, traditional, atol=1e-5)
    assert zh.tokenize("他買了兩斤蘋果。") == ["他", "買", "了", "兩斤", "蘋果", "。"]
    assert zh.perplexity(["他買了兩斤蘋果。"]).mean == pytest.approx(
        zh.perplexity(["他买了两斤苹果。"]).mean
    )
    substitutes = zh.substitutes("這座大橋連接島嶼和大陸。", 1)
    assert [word for word, _ in substitutes] == [
        word for word, _ in zh.substitutes("这座大桥连接岛屿和大陆。", 1)
    ]


@pytest.mark.parametrize(
    ("model", "text", "other"), [("en", HELD_OUT[0], "zh"), ("zh", MONEY[0], "en")]
)
def test_text_in_the_other_language_gives_a_warning(model, text, other):
    with pytest.warns(LanguageWarning, match=f"such as the bundled {other}"):
        Elmo.load(model, device="cpu").encode(text)


@pytest.mark.parametrize(
    ("model", "most", "licence"), [("en", 48e6, "CC BY-SA 4.0"), ("zh", 40e6, "CC BY-SA 3.0")]
)
def test_it_is_small_and_described(model, most, licence, request):
    folder = DEFAULT_MODEL.parent / model
    assert sum(p.stat().st_size for p in folder.iterdir()) <= most
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert f"{request.getfixturevalue(model).n_parameters:,}" in card
    assert licence in card.split("## Licence\n\n")[1].split("\n")[0]


def test_perplexity_on_held_out_text(en):
    folder = os.environ.get("ELMOKIT_TEST_DATA")
    if not folder:
        pytest.skip("ELMOKIT_TEST_DATA is not set, so there is no held-out text to score")
    path = Path(folder) / "data" / "en" / "enwiki-2015.test.txt.xz"
    if not path.exists():
        pytest.skip("ELMOKIT_TEST_DATA does not contain the held-out text")
    lines = read_lines(path)
    # one sentence of every twelfth paragraph, for a mix of articles
    sentences = [split_sentences(line)[0] for line in islice(lines, 0, None, 12) if line.strip()]
    assert en.perplexity(sentences[:200]).mean < 65


def test_perplexity_of_chinese_sentences(zh):
    assert zh.perplexity(HELD_OUT).mean < 40
