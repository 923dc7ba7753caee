"""Sentiment in a scikit-learn pipeline: counted words against ELMo's vectors.

    python examples/sklearn_reviews.py [TRAIN TEST]

TRAIN and TEST have a label and a text per line, with a space or a tab between them. Left out: the
film reviews in examples/data. Both pipelines learn from 500 training examples, then from all.
"""

import random
import sys
import time
from pathlib import Path

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from elmokit.integrations.sklearn import ElmoVectorizer

DATA = Path(__file__).parent / "data"
# each kind of feature has its own scale, and so its own strengths of the penalty
PIPELINES = {
    "TF-IDF": (
        [TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)],
        [0.3, 1, 3, 10, 30],
    ),
    "ELMo": (
        [ElmoVectorizer(layers="all"), StandardScaler()],
        [0.0001, 0.0003, 0.001, 0.003, 0.01],
    ),
}


def read(path):
    """Return the texts and the labels of a file, in random order."""
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    rows = [line.split(None, 1) for line in lines if line.strip() and line != "label\ttext"]
    random.Random(0).shuffle(rows)
    return [text for _, text in rows], [label for label, _ in rows]


train, test = sys.argv[1:] or (DATA / "reviews.train.tsv", DATA / "reviews.dev.tsv")
(texts, labels), (test_texts, test_labels) = read(train), read(test)
for n in sorted({min(500, len(texts)), len(texts)}):
    for name, (features, strengths) in PIPELINES.items():
        started = time.process_time()
        classifier = GridSearchCV(LogisticRegression(max_iter=500), {"C": strengths}, cv=4)
        pipeline = make_pipeline(*features, classifier).fit(texts[:n], labels[:n])
        accuracy = 100 * pipeline.score(test_texts, test_labels)
        seconds = time.process_time() - started
        print(f"{n:5} examples  {name:6}  accuracy {accuracy:.1f}  {seconds:.0f} CPU-seconds")
