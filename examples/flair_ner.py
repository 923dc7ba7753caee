"""Train two flair taggers of named entities, without and with ELMo, and compare them.

    python examples/flair_ner.py [FOLDER]

FOLDER has the .iob2 files of UNER English-EWT: 2,000 sentences to train on, 300 to choose the best
epoch, 1,000 to test. Without it, the few sentences of examples/data show that everything works.
Needs the extra: pip install 'elmokit[flair]'
"""

import logging
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import flair
import torch
from flair.data import Corpus, Sentence
from flair.datasets import ColumnCorpus
from flair.embeddings import OneHotEmbeddings, StackedEmbeddings
from flair.models import SequenceTagger
from flair.trainers import ModelTrainer

from elmokit.integrations.flair import ELMoEmbeddings

EPOCHS = 6
logging.getLogger("flair").setLevel(logging.WARNING)


def read(folder: str | None) -> Corpus:
    """The sentences of UNER English-EWT, or those of examples/data."""
    if folder is None:
        data = Path(__file__).parent / "data"
        return ColumnCorpus(
            data,
            {0: "text", 1: "ner"},
            train_file="entities.train.conll",
            dev_file="entities.dev.conll",
            test_file="entities.dev.conll",
            column_delimiter="\t",
        )
    corpus = ColumnCorpus(
        folder,
        {1: "text", 2: "ner"},
        train_file="en_ewt-ud-train.iob2",
        dev_file="en_ewt-ud-dev.iob2",
        test_file="en_ewt-ud-test.iob2",
        column_delimiter="\t",
        comment_symbol="# ",
    )
    train, dev, test = (
        [part[i] for i in range(n)]
        for part, n in ((corpus.train, 2000), (corpus.dev, 300), (corpus.test, 1000))
    )
    return Corpus(train, dev, test, name="UNER English-EWT")


def train(corpus: Corpus, name: str, *more: ELMoEmbeddings) -> SequenceTagger:
    """Train a tagger on learned embeddings of words, and others if given."""
    flair.set_seed(1)
    start = time.process_time()
    words = OneHotEmbeddings.from_corpus(corpus, min_freq=2, embedding_length=100)
    tagger = SequenceTagger(
        # words last: flair does not save their name, which decides the order in a loaded stack
        StackedEmbeddings([*more, words]),
        corpus.make_label_dictionary("ner", add_unk=False),
        tag_type="ner",
        hidden_size=128,
        reproject_embeddings=False,
    )
    with TemporaryDirectory() as folder:
        ModelTrainer(tagger, corpus).train(
            folder,
            optimizer=torch.optim.AdamW,
            learning_rate=5e-3,
            mini_batch_size=32 if len(corpus.train) > 100 else 4,
            max_epochs=EPOCHS,
            embeddings_storage_mode="cpu",
        )
        file = Path(folder, "tagger.pt")
        tagger.save(file)
        tagger, size = SequenceTagger.load(file), file.stat().st_size
    result = tagger.evaluate(corpus.test, "ner")
    seconds = time.process_time() - start
    print(f"{name}: F1 {100 * result.main_score:.2f}, {seconds:.0f} s, {size / 1e6:.1f} MB")
    return tagger


if __name__ == "__main__":
    corpus = read(sys.argv[1] if len(sys.argv) > 1 else None)
    print(", ".join(f"{len(part)} sentences" for part in (corpus.train, corpus.dev, corpus.test)))
    train(corpus, "words")
    for sentence in [*corpus.train, *corpus.dev, *corpus.test]:
        sentence.clear_embeddings()
    tagger = train(corpus, "words and ELMo", ELMoEmbeddings("en"))
    sentence = Sentence("Angela Miller moved from Paris to work for Blue Ocean Airlines .")
    tagger.predict(sentence)
    for entity in sentence.get_spans("ner"):
        print(f"{entity.text}: {entity.tag}")
