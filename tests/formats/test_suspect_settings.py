"""Settings with odd numbers, sizes that no file has, and JSON that a parser trips over."""

import json
import math
import re

import pytest
import torch

from elmokit import Elmo
from elmokit.config import (
    ContextConfig,
    MixConfig,
    ModelConfig,
    TokenEncoderConfig,
    published_size,
)
from elmokit.errors import FormatError, shortened, shown
from elmokit.formats.checkpoint import required_shapes
from elmokit.nn.bilm import BiLM
from elmokit.text.characters import Utf8Alphabet


def rewrite(path, change):
    values = json.loads(path.read_text())
    change(values)
    path.write_text(json.dumps(values))


@pytest.mark.parametrize("model", ["native", "broken", "many_langs"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a":' * 2000 + "1" + "}" * 2000, "nested too deeply"),
        ('{"a": ' + "1" * 5000 + "}", "thousands of digits"),
        ("[" * 100_000, "nested too deeply"),
        (" " * (2 << 20) + "{}", "such a file has at most"),
        ("", "not valid JSON"),
    ],
)
def test_odd_json(request, model, text, message, refused):
    folder = request.getfixturevalue(model)
    names = {"native": "config.json", "broken": "options.json", "many_langs": "cnn_tiny.json"}
    (folder / names[model]).write_text(text)
    assert message in refused(folder)


SIZES = [-1, 200_000, 10**9, 2**63 - 1, 2**64, 10**400, math.inf, math.nan, 2.5, True, "2", None]


@pytest.mark.parametrize("size", [*SIZES, [], {}, "x" * 10_000], ids=lambda v: shown(v, 20))
def test_odd_sizes(native, broken, many_langs, refused, size):
    """Each is refused before a layer is built or a value is read."""
    kept = {
        f: f.read_text() for folder in (native, broken, many_langs) for f in folder.glob("*.json")
    }
    for path, sections in (
        (native / "config.json", {"context": "n_layers cell_dim projection_dim n_heads",
                                  "token_encoder": "n_highway character_dim max_characters n_words",
                                  "mix": "weights"}),
        (broken / "options.json", {"lstm": "n_layers dim projection_dim",
                                   "char_cnn": "max_characters_per_token embedding filters"}),
        (many_langs / "cnn_tiny.json", {"encoder": "n_layers dim projection_dim",
                                        "token_embedder": "n_highway char_dim word_dim filters"}),
    ):  # fmt: skip
        for section, keys in sections.items():
            for key in keys.split():
                if (key, size) in [("weights", None), ("n_heads", 200_000)]:
                    continue  # equal weights; the heads of an LSTM, which has none
                rewrite(path, lambda v, s=section, k=key: v[s].update({k: size}))
                refused(path.parent)
                path.write_text(kept[path])


@pytest.mark.parametrize(
    ("key", "filters"),
    [
        ("many", [[1, 1]] * 2000),
        ("filters", [[1, 200_000]]),
        ("filters", [[2**63 - 1, 1]]),
        ("filters", [["1", "4"], ["2", "8"], ["3", "12"]]),
        ("filters", [[1]]),
        ("filters", [1, 2]),
        ("filters", [[1.5, 4]]),
        ("filters", [[True, 4]]),
    ],
)
def test_odd_filters(native, broken, many_langs, refused, key, filters):
    for path, section in (
        (native / "config.json", "token_encoder"),
        (broken / "options.json", "char_cnn"),
        (many_langs / "cnn_tiny.json", "token_embedder"),
    ):
        rewrite(path, lambda v, s=section: v[s].update(filters=filters))
        refused(path.parent)


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("context", "forget_bias", math.nan),
        ("context", "forget_bias", -1e300),
        ("context", "cell_clip", 1e300),
        ("context", "cell_clip", math.inf),
        ("context", "proj_clip", math.nan),
        ("context", "proj_clip", True),
        ("context", "proj_clip", 10**400),
        ("mix", "gamma", math.inf),
        ("mix", "gamma", math.nan),
        ("mix", "gamma", 1e29),
        ("mix", "weights", [0.0, math.nan, 0.0]),
        ("mix", "weights", [0.0, 1e300, 0.0]),
        ("token_encoder", "word_dim", 8),
    ],
)
def test_numbers_that_would_give_nan(native, refused, section, key, value):
    rewrite(native / "config.json", lambda v: v[section].update({key: value}))
    if section == "mix" and value == 1e29:
        assert Elmo.load(native, device="cpu").encode("a b").max() > 1e25
    else:
        assert "config.json: " in refused(native)


@pytest.mark.parametrize("clip", ["1e300", "NaN", '"3"', "[3]", "true", "-1"])
def test_odd_clips_of_other_formats(broken, many_langs, refused, clip):
    for path, section in (
        (broken / "options.json", "lstm"),
        (many_langs / "cnn_tiny.json", "encoder"),
    ):
        rewrite(path, lambda v, s=section: v[s].update(cell_clip=json.loads(clip)))
        assert "cell_clip" in refused(path.parent)


def test_words_need_an_alphabet_with_words():
    with pytest.raises(FormatError, match="word_dim above 0 needs alphabet=codepoints"):
        Utf8Alphabet(TokenEncoderConfig(word_dim=4, n_words=10))


@pytest.mark.parametrize(
    "config",
    [
        published_size("small"),
        ModelConfig(TokenEncoderConfig(filters=((1, 3), (4, 5)), n_highway=0),
                    ContextConfig(n_layers=3, cell_dim=8, projection_dim=8, bidirectional=False)),
        ModelConfig(TokenEncoderConfig(filters=((2, 8),), n_highway=3),
                    ContextConfig("transformer", 3, 12, 8, n_heads=2), mix=MixConfig((1, 2, 3, 4))),
        ModelConfig(TokenEncoderConfig(filters=(), n_highway=0, alphabet="codepoints", word_dim=4,
                                       n_words=7, n_characters=9), ContextConfig(n_layers=1)),
    ],
)  # fmt: skip
def test_required_shapes_are_those_of_the_modules(config):
    with torch.device("meta"):
        expected = {name: tuple(t.shape) for name, t in BiLM(config).state_dict().items()}
    assert dict(required_shapes(config)) == expected


def test_a_huge_model_is_described_without_building_it():
    config = ModelConfig(context=ContextConfig(n_layers=1000, cell_dim=1 << 20))
    shapes = required_shapes(config)
    assert sum(1 for _ in shapes) > 8000


def test_quoted_values_are_cut(native, refused):
    rewrite(native / "config.json", lambda v: v.update(tokenizer="x" * 100_000))
    assert re.search("no tokenizer 'x{98}…;", refused(native))
    rewrite(
        native / "config.json",
        lambda v: v.update({"y" * 100_000: 1, "a\nb": 2, "tokenizer": "english"}),
    )
    assert "unknown setting a b, yyy" in refused(native)
    nested: list = []
    for _ in range(100_000):
        nested = [nested]
    assert shown(nested) == "a value of type list"
    assert shown(10**5000) == "a value of type int"
    assert shown("é\n") == "'é\\n'"
    assert len(shown("x" * 1000)) == len(shortened("x" * 1000)) == 100
    assert shortened("a\nb") == "a b"


def test_the_architecture_of_many_langs_is_not_searched_for_everywhere(many_langs, refused):
    (many_langs / "cnn_tiny.json").rename(many_langs / "other.json")
    (many_langs / "data.json").write_bytes(bytes(2 << 20))  # too large for an architecture
    assert Elmo.load(many_langs, device="cpu").dim == 8
    (many_langs / "other.json").unlink()
    for i in range(40):
        (many_langs / f"{i}.json").write_text("{}")
    rewrite(many_langs / "config.json", lambda v: v.update(config_path="z" * 10_000))
    assert "zzz…" in refused(many_langs)
