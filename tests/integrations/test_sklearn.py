"""scikit-learn's own checks, pipelines, searches and pickles with ElmoVectorizer."""

import pickle
import runpy
import subprocess
import sys

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError, SkipTestWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.utils import estimator_checks, get_tags

from elmokit import Elmo, InputError, ModelError
from elmokit.integrations import sklearn as integration
from elmokit.integrations.sklearn import ElmoVectorizer
from helpers.docs import ROOT

TEXTS = ["the river bank", "", "I deposit money in the bank", "a", "the bank of the river"] * 3
LABELS = [0, 1, 1, 0, 1] * 3


@pytest.fixture
def vectorizer(tiny_folder):
    return ElmoVectorizer(tiny_folder)


@pytest.mark.parametrize("name", [
    "check_estimator_cloneable",
    "check_no_attributes_set_in_init",
    "check_get_params_invariance",
    "check_set_params",
    "check_parameters_default_constructible",
    "check_mixin_order",
    "check_estimator_tags_renamed",
    "check_valid_tag_types",
    "check_estimator_repr",
    "check_do_not_raise_errors_in_init_or_set_params",
])  # fmt: skip
def test_the_checks_of_scikit_learn(vectorizer, name):
    getattr(estimator_checks, name)("ElmoVectorizer", vectorizer)


def test_check_estimator_as_a_whole(vectorizer):
    # most of its checks need tables of numbers, which it says; the checks above are called alone
    with pytest.warns(SkipTestWarning, match="string=True"):
        results = estimator_checks.check_estimator(vectorizer, on_fail=None, on_skip=None)
    assert [r["check_name"] for r in results if r["status"] != "passed"] == []
    assert results


def test_tags_say_text(vectorizer):
    tags = get_tags(vectorizer)
    assert tags.input_tags.string
    assert not tags.input_tags.two_d_array
    assert tags.requires_fit
    assert not tags.target_tags.required


def test_vectors_are_those_of_elmo(vectorizer, tiny):
    assert np.array_equal(vectorizer.fit_transform(TEXTS), tiny.encode_sentences(TEXTS))
    several = ElmoVectorizer(vectorizer.model, layers=[0, 2], pooling="max", dtype="float16")
    expected = tiny.encode_sentences(TEXTS, [0, 2], pooling="max", dtype="float16")
    assert np.array_equal(several.fit(TEXTS).transform(TEXTS), expected.reshape(len(TEXTS), -1))
    assert several.n_features_out_ == 2 * tiny.dim
    tokens = [text.split() for text in TEXTS]
    assert np.array_equal(vectorizer.transform(tokens), tiny.encode_sentences(tokens))
    assert vectorizer.transform([]).shape == (0, tiny.dim)


def test_a_tokenizer_of_ones_own(vectorizer, tiny):
    own = ElmoVectorizer(vectorizer.model, tokenizer=str.split).fit(TEXTS)
    assert np.array_equal(own.transform(["a-b c"]), tiny.encode_sentences([["a-b", "c"]]))


def test_names_of_features_and_pandas(vectorizer, tiny):
    frame = vectorizer.set_output(transform="pandas").fit_transform(pd.Series(TEXTS))
    assert list(frame.columns[:2]) == ["elmovectorizer0", "elmovectorizer1"]
    assert frame.shape == (len(TEXTS), tiny.dim)
    assert list(vectorizer.get_feature_names_out()) == list(frame.columns)


def test_pipeline_columns_and_union(vectorizer, tiny):
    table = pd.DataFrame({"text": TEXTS, "length": [len(text) for text in TEXTS]})
    columns = ColumnTransformer([("text", vectorizer, "text"), ("rest", "passthrough", ["length"])])
    pipeline = make_pipeline(columns, LogisticRegression()).fit(table, LABELS)
    assert pipeline.predict(table).shape == (len(TEXTS),)
    assert columns.fit_transform(table).shape == (len(TEXTS), tiny.dim + 1)
    union = FeatureUnion(
        [("mean", vectorizer), ("max", clone(vectorizer).set_params(pooling="max"))]
    )
    assert union.fit_transform(TEXTS).shape == (len(TEXTS), 2 * tiny.dim)


def test_a_search_loads_the_model_once(vectorizer, monkeypatch):
    integration._load.cache_clear()
    loads, load = [], Elmo.load
    monkeypatch.setattr(Elmo, "load", lambda *a, **k: loads.append(a) or load(*a, **k))
    pipeline = make_pipeline(vectorizer, LogisticRegression())
    search = GridSearchCV(pipeline, {"elmovectorizer__layers": ["mix", "top", 0]}, cv=2)
    assert search.fit(TEXTS, LABELS).best_params_["elmovectorizer__layers"] in ("mix", "top", 0)
    assert len(loads) == 1


def test_a_search_in_two_processes(vectorizer):
    pipeline = make_pipeline(vectorizer, LogisticRegression())
    search = GridSearchCV(pipeline, {"elmovectorizer__layers": ["mix", 0]}, cv=2, n_jobs=2)
    assert len(search.fit(TEXTS, LABELS).cv_results_["mean_test_score"]) == 2


def test_a_pickle_is_small_and_loads_in_a_fresh_process(vectorizer, tiny, tmp_path):
    pipeline = make_pipeline(vectorizer, LogisticRegression()).fit(TEXTS, LABELS)
    assert len(pickle.dumps(pipeline[0])) < 2000
    joblib.dump(pipeline, tmp_path / "pipeline.joblib")
    code = (
        "import joblib, sys\n"
        "pipeline = joblib.load(sys.argv[1])\n"
        "print(pipeline.predict(sys.argv[2:]).tolist())"
    )
    command = [sys.executable, "-c", code, tmp_path / "pipeline.joblib", *TEXTS[:5]]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(pipeline.predict(TEXTS[:5]).tolist())


def test_another_model_under_the_same_name_is_noticed(tiny, lm, tmp_path):
    tiny.save(tmp_path / "model")
    vectorizer = ElmoVectorizer(tmp_path / "model").fit(TEXTS)
    lm.save(tmp_path / "model", overwrite=True)
    integration._load.cache_clear()
    with pytest.raises(ModelError, match="fitted with another model than .* is now"):
        vectorizer.transform(TEXTS)


def test_mistakes(vectorizer):
    with pytest.raises(NotFittedError):
        vectorizer.transform(TEXTS)
    with pytest.raises(InputError, match="not one string; pass \\[text\\]"):
        vectorizer.fit("one text")
    with pytest.raises(InputError, match="is a table"):
        vectorizer.fit(TEXTS).transform(pd.DataFrame({"text": TEXTS}))
    for wrong in ({"layers": "best"}, {"pooling": "sum"}, {"dtype": "int8"}, {"batch_size": 0}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            clone(vectorizer).set_params(**wrong).fit(TEXTS)
    with pytest.raises(ModelError, match="there is no model"):
        ElmoVectorizer("no-such-model").fit(TEXTS)


def test_the_missing_extra_is_named():
    code = "import sys; sys.modules['sklearn'] = None; import elmokit.integrations.sklearn"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install 'elmokit[sklearn]'" in done.stderr.splitlines()[-1]


def test_the_example(monkeypatch, capsys):
    path = ROOT / "examples" / "sklearn_reviews.py"
    monkeypatch.setattr(sys, "argv", [str(path)])
    runpy.run_path(str(path), run_name="__main__")
    counted, elmo = capsys.readouterr().out.splitlines()
    assert "TF-IDF" in counted
    assert float(elmo.split("accuracy ")[1].split()[0]) > 60
