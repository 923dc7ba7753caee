"""What a notebook shows of a model and of what its methods return."""

from pathlib import Path

import elmokit
from elmokit import Elmo, Perplexity

TEXT = ["the", "cat", "<sat>", "."]


def test_a_model(tiny):
    html = tiny._repr_html_()
    for part in ("token layer, LSTM layer 1, LSTM layer 2", f">{tiny.n_parameters:,}<", ">none<"):
        assert part in html
    assert tiny._repr_png_() is None
    assert tiny.layer_names == ["token layer", "LSTM layer 1", "LSTM layer 2"]


def test_a_bundled_model_has_a_name_and_no_path():
    elmo = Elmo.load("zh")
    folder = str(Path(elmokit.__file__).parent)
    assert repr(elmo).startswith("Elmo('zh', ")
    assert ">zh<" in elmo._repr_html_()
    assert folder not in repr(elmo) + elmo._repr_html_()


def test_scores(lm):
    (score,) = lm.score([TEXT])
    html = score._repr_html_()
    for part in ("forward", "backward", ">&lt;sat&gt;<", "(end of sentence)"):
        assert part in html
    assert f">{score.forward[0]:.2f}<" in html
    assert f">{score.start:.2f}<" in html
    assert "forward=<array (4,)>" in repr(score)
    found = Perplexity.from_scores([score])
    assert f">{found.mean:,.2f}<" in found._repr_html_()


def test_substitutes(lm):
    found = lm.substitutes(TEXT, 1, k=3)
    assert found == list(found)
    assert len(found) == 3
    html = found._repr_html_()
    assert "the [cat] &lt;sat&gt; ." in html
    assert f">{found[0][1]:.3f}<" in html
