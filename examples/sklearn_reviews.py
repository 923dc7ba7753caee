"""Sentiment in a scikit-learn pipeline: counted words, ELMo's vectors, and both.

    python examples/sklearn_reviews.py [TRAIN TEST]

TRAIN and TEST have a label and a text per line, with a space or a tab between them. Left out: the
film reviews in examples/data.
"""

import sys
import time
from pathlib import Path

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler

from elmokit.integrations.sklearn import ElmoVectorizer

DATA = Path(__file__).parent / "data"


def read(path):
    """Return the texts and the labels of a file."""
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    rows = [line.split(None, 1) for line in lines if line.strip() and line != "label\ttext"]
    return [text for _, text in rows], [label for label, _ in rows]


train, test = sys.argv[1:] or (DATA / "reviews.train.tsv", DATA / "reviews.dev.tsv")
(texts, labels), (test_texts, test_labels) = read(train), read(test)

counts = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
vectors = make_pipeline(ElmoVectorizer(layers="all", dtype="float32"), StandardScaler())
both = FeatureUnion(
    [("counts", counts), ("vectors", vectors)], transformer_weights={"vectors": 0.05}
)
for name, features in (("TF-IDF", counts), ("ELMo", vectors), ("both", both)):
    started = time.process_time()
    classifier = LogisticRegressionCV(Cs=[0.0003, 0.003, 0.03, 0.3, 3, 30], cv=3, max_iter=300)
    pipeline = make_pipeline(features, classifier).fit(texts, labels)
    accuracy = 100 * pipeline.score(test_texts, test_labels)
    print(f"{name:6}  accuracy {accuracy:.1f}  {time.process_time() - started:.0f} CPU-seconds")
