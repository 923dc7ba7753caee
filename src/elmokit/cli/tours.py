"""What ``elmokit demo`` shows and says, in English and in Chinese."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "analysis" / "examples"
"""Folder of the sentences."""
GAP = "___"
"""Marks the missing word of a sentence."""


@dataclass(frozen=True)
class Tour:
    """The tour in one language.

    Texts are filled in with ``str.format``: ``kind`` is LSTM or transformer.
    """

    tokenizer: str
    """Splits the sentences if the model's own tokenizer expects tokenised text."""
    token_layer: str
    """Name of the token layer."""
    context_layer: str
    """Name of a layer above it, with ``kind`` and ``number``."""
    comma: str
    """Between the words of a list."""

    word: str
    """An ambiguous word."""
    senses: Mapping[str, Sequence[str]]
    """Two senses of the word, and two sentences for each."""
    sentence_line: str
    """A line with ``sense``, ``number``, ``sentence`` and ``shape``."""
    similarity_title: str
    layer_column: str
    """Head of the column with the names of the layers."""
    pair: str
    """Head of a column with the similarity of two sentences."""
    similarity_note: str

    forms: Sequence[str]
    """Forms of another ambiguous word, as it is in the asked sentences first."""
    asked: Sequence[str]
    """Sentences with this word, each in another sense."""
    uses: str
    """File of sentences with the word, one per line."""
    uses_title: str
    uses_note: str

    gaps: Sequence[str]
    """Sentences with a gap that the bundled model fills well."""
    gaps_title: str
    gaps_note: str
    hard_gap: str
    """A sentence with a gap that it does not."""

    labelled: str
    """File of labelled sentences with the first word."""
    picture: str
    """Name of the picture's files."""
    picture_title: str
    drawn_title: str = ""
    """Title in the picture; empty for the one of ``elmokit scatter``."""
    drawn: Mapping[str, str] = field(default_factory=dict)
    """Translations of other English texts in the picture."""

    tasks: Mapping[str, str] = field(default_factory=dict)
    """Bundled task models, and a sentence for each."""
    tasks_title: str = ""


ENGLISH = Tour(
    tokenizer="whitespace",
    token_layer="token layer",
    context_layer="{kind} layer {number}",
    comma=", ",
    word="bank",
    senses={
        "money": [
            "I went to the bank to deposit money",
            "She opened an account at the bank on Main Street",
        ],
        "river": [
            "I sat by the bank of the river",
            "They walked along the muddy bank of the stream",
        ],
    },
    sentence_line="{sense} {number}: {sentence}   → vectors {shape}",
    similarity_title='Cosine similarity of "bank" in two sentences:',
    layer_column="layer",
    pair="{} ~ {}",
    similarity_note=(
        "The token layer sees only the word, as a static vector does, and cannot tell the banks "
        "apart.\nThe {kind} layers read the sentence."
    ),
    forms=["play", "plays", "played", "playing"],
    asked=[
        "The actors rehearsed a new play for the theatre .",
        "She sat down at the piano to play a waltz .",
        "The children ran into the garden to play with their dog .",
    ],
    uses="play.txt",
    uses_title='Nearest uses of "play" in sentences from old novels (top layer):',
    uses_note=(
        "A stage, music, and a game: only 2 of the 30 sentences from novels mention a piano, so "
        "neighbours\nin another sense are likely for the second."
    ),
    gaps=[
        "She plays the ___ in an orchestra .",
        "She swam to the other ___ of the river .",
        "The judge sentenced him to ten years in ___ .",
    ],
    gaps_title=(
        "Words that fit the gap, best first, in sentences picked because the bundled model does "
        "well on them:"
    ),
    gaps_note=(
        "Each direction predicts the word from its side of the gap alone, and the two are "
        "combined.\nIf neither side suffices on its own, the guess is weak:"
    ),
    hard_gap="He took his ___ because it was raining .",
    labelled="banks.tsv",
    picture="banks",
    picture_title='Two dozen uses of "bank" as points:',
    tasks={
        "ner": "Angela Merkel flew from Berlin to Paris and met the board of Siemens .",
        "pos": "They refuse to record the record , so he can open the can .",
        "srl": "The teacher gave the students a book in the garden yesterday .",
    },
    tasks_title="Small task models in the package read these vectors (elmokit predict NAME):",
)

CHINESE = Tour(
    tokenizer="chinese",
    token_layer="词层",
    context_layer="{kind} 第 {number} 层",
    comma="、",
    word="苹果",
    senses={
        "水果": [
            "妈妈从市场上买回来一袋又红又大的苹果。",
            "他喜欢吃苹果、香蕉和葡萄。",
        ],
        "公司": [
            "苹果在秋季发布会上推出了新款手机。",
            "去年苹果的营业收入超过了谷歌。",
        ],
    },
    sentence_line="{sense} {number}：{sentence}   → 向量 {shape}",
    similarity_title="“苹果”在两个句子里的余弦相似度：",
    layer_column="层",
    pair="{} ~\n{}",
    similarity_note=(
        "词层只看词本身，和静态词向量一样，分不清水果和公司。\n{kind} 层读的是整个句子。"
    ),
    forms=["运动"],
    asked=[
        "他喜欢运动，尤其是游泳和跑步。",
        "这场争取独立的运动得到了学生和工人的支持。",
        "地球沿着椭圆形的轨道绕太阳运动。",
    ],
    uses="movements.zh.txt",
    uses_title="在维基百科的句子里，与下面各句的“运动”最接近的用法（顶层）：",
    uses_note="三句里的“运动”依次指锻炼身体、社会运动和物体的移动。",
    gaps=[
        "长江是中国最长的___。",
        "法院判处他___十年。",
        "球队在决赛中击败对手，夺得___。",
    ],
    gaps_title="填空，最合适的词排在最前（句子经过挑选，都是自带的模型填得好的）：",
    gaps_note=(
        "两个方向各自只根据空格一侧的文字预测，再把两边的结果合在一起。\n"
        "如果单看哪一侧都不够，就猜不准："
    ),
    hard_gap="他去___存了一些钱。",
    labelled="apples.zh.tsv",
    picture="apples",
    picture_title="把 24 个“苹果”画成点：",
    drawn_title="“苹果”的 24 次出现（水果 12 次，公司 12 次）",
    drawn={
        "silhouette score": "轮廓系数",
        "1, 2, …: line of the file (sentences in the .json)": "1、2……：行号（句子见 .json）",
        "all points coincide": "所有点重合",
        "PC ": "主成分 ",
    },
)

TOURS = {"en": ENGLISH, "zh": CHINESE}
"""Tours by the name of the bundled model."""
