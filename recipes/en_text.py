r"""Mix the text of the bundled model "en": from folders of public texts to files for training.

    python recipes/en_text.py SOURCES… --out MIX \
        --held-out enwiki-2015.valid.txt.xz enwiki-2015.test.txt.xz --evaluation SETS… \
        --most gutenberg=66 --repeat children_stories=3 common_voice_en=3 scp_fiction=3 \
        stackexchange_small=3 tatoeba_en=3 podcasts=2 sgd_dialogues=2 us_gov_web=2 \
        us_presidency_speeches=2

SOURCES are text files (.txt, also packed as .gz or .xz) and folders of them, with one paragraph per
line and a blank line between documents. A file is named after its source, one of the table SOURCES
below: gutenberg.txt, tatoeba_en.txt.xz. The script writes

    MIX/train/SOURCE.txt     text to train on
    MIX/heldout/SOURCE.txt   one document in 200 but at least ten, chosen by their hashes
    MIX/log.md               the tables that are also printed

Wikipedia gets no file in heldout: its held-out text is given with --held-out. What is left out:

- Documents that share a paragraph of at least 60 characters or the first sentence with a document
  of --held-out; case, spaces and punctuation do not count.
- Paragraphs of at least 40 characters that came before, in any source or in --held-out; white space
  does not count. A held-out paragraph that is also in the training text is left out there.
- Paragraphs with a sentence of the evaluation sets (--evaluation: files or archives .tar.xz), of at
  least 32 letters and digits, about 40 characters; case, spaces and punctuation do not count.
  Articles of Wikipedia keep such paragraphs: SQuAD consists of them. The log has the counts.

--most SOURCE=N takes documents at equal distances, about N million tokens. --repeat SOURCE=N writes
the training text N times. Equal input gives equal output. Only Python's library and ElmoKit's
tokenizer are used. One source at a time is held in memory.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tarfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain
from pathlib import Path

from elmokit.io.lines import find_files, read_lines
from elmokit.text.sentences import split_sentences
from elmokit.text.tokenizers import TOKENIZERS

SOURCES = {  # licences; of two equal paragraphs, the one in the earlier source is kept
    "enwiki-2015": "CC BY-SA 3.0",
    "enwiki-2014": "CC BY-SA 3.0",
    "children_stories": "CC BY",
    "common_voice_en": "CC0",
    "elife_science": "CC BY 4.0",
    "frus_diplomacy": "public domain",
    "medquad_qa": "CC BY 4.0",
    "openstax_textbooks": "CC BY 4.0",
    "scp_fiction": "CC BY-SA 3.0",
    "sgd_dialogues": "CC BY-SA 4.0",
    "stackexchange_small": "CC BY-SA 2.5 to 4.0",
    "tatoeba_en": "CC BY 2.0 FR",
    "us_gov_web": "US government works",
    "us_presidency_speeches": "US government works",
    "podcasts": "CC BY-SA 4.0",
    "gutenberg": "public domain",
}
WIKIPEDIA = ("enwiki-2015", "enwiki-2014")
SINGLE_SENTENCES = ("common_voice_en", "tatoeba_en")  # every line is a document

HELD_OUT = 200  # one document in so many
LEAST_HELD_OUT = 10  # documents
LEAST = 40  # characters of a paragraph that may occur once only
LEAST_SHARED = 60  # characters of a paragraph that shows that two articles are the same
LEAST_KEY = 32  # letters and digits of a sentence that is looked for in the evaluation sets
SAMPLE = 300_000  # characters to be tokenised for an estimate

Document = list[str]
"""Paragraphs, with single spaces."""


@dataclass
class Counts:
    """What became of a source."""

    documents: int = 0
    """Documents that are trained on."""
    tokens: float = 0
    """Their tokens, estimated, without repetition."""
    repeat: int = 1
    held_out: float = 0
    """Held-out tokens, estimated."""
    same_article: int = 0
    """Documents left out because they are held out elsewhere."""
    duplicates: int = 0
    """Paragraphs left out because they came before."""
    evaluated: int = 0
    """Paragraphs with a sentence of an evaluation set."""


@dataclass
class Filter:
    """Decides which paragraphs are kept, and remembers them."""

    seen: set[bytes] = field(default_factory=set)
    """Hashes of paragraphs that may not occur again."""
    held_out: set[bytes] = field(default_factory=set)
    """Hashes of the long paragraphs and first sentences of the held-out documents."""
    evaluation: dict[bytes, str] = field(default_factory=dict)
    """Hashes of sentences, and the set that each is from."""
    found: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Paragraphs with sentences of evaluation sets, by set and source."""

    def hold_out(self, document: Document) -> None:
        """Keep the text of a document from being used."""
        self.seen.update(digest(p) for p in document if len(p) >= LEAST)
        self.held_out.update(marks(document))

    def apply(self, document: Document, source: str, counts: Counts) -> Document:
        """Return the paragraphs of a document that are kept."""
        if not self.held_out.isdisjoint(marks(document)):
            counts.same_article += 1
            return []
        kept = []
        for paragraph in document:
            if self.is_new(paragraph):
                if names := self._evaluations(paragraph):
                    counts.evaluated += 1
                    self.found.update((name, source) for name in names)
                if not names or source in WIKIPEDIA:
                    kept.append(paragraph)
            else:
                counts.duplicates += 1
        return kept

    def is_new(self, paragraph: str) -> bool:
        """Return whether a paragraph is short or occurs for the first time."""
        if len(paragraph) < LEAST:
            return True
        key = digest(paragraph)
        if key in self.seen:
            return False
        self.seen.add(key)
        return True

    def _evaluations(self, paragraph: str) -> set[str]:
        return {self.evaluation[key] for key in sentence_keys(paragraph) if key in self.evaluation}


def main() -> None:
    """Mix the sources; write and print what became of them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sources", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--held-out", nargs="+", type=Path, default=[])
    parser.add_argument("--evaluation", nargs="+", type=Path, default=[])
    parser.add_argument("--most", nargs="+", default=[], metavar="SOURCE=MILLIONS")
    parser.add_argument("--repeat", nargs="+", default=[], metavar="SOURCE=N")
    arguments = parser.parse_args()
    files = {source_of(path): path for path in find_files(arguments.sources)}
    if unknown := sorted(files.keys() - SOURCES.keys()):
        parser.error(f"no licence known of {', '.join(unknown)}; add it to SOURCES")
    most = numbers(parser, arguments.most, files, r"\d+(\.\d+)?")
    repeat = numbers(parser, arguments.repeat, files, r"[1-9]")

    rules = Filter()
    for document in chain.from_iterable(documents(path) for path in arguments.held_out):
        rules.hold_out(document)
    for path in find_files(arguments.evaluation):
        for text in evaluation_texts(path):
            for key in sentence_keys(text):
                rules.evaluation.setdefault(key, path.name.split(".t")[0])
    (arguments.out / "train").mkdir(parents=True, exist_ok=True)
    (arguments.out / "heldout").mkdir(exist_ok=True)
    results: dict[str, Counts] = {}
    unseen: dict[str, list[Document]] = {}
    for name in filter(files.__contains__, SOURCES):
        read = list(documents(files[name], name in SINGLE_SENTENCES))
        train, unseen[name] = (read, []) if name in WIKIPEDIA else split(read)
        if name in most:
            train = sample(train, most[name] * 1e6 / estimate(train))
        counts = results[name] = Counts(repeat=int(repeat.get(name, 1)))
        kept = [document for d in train if (document := rules.apply(d, name, counts))]
        counts.documents, counts.tokens = len(kept), estimate(kept)
        write(arguments.out / "train" / f"{name}.txt", kept, name, counts.repeat)
        say(f"{name}: {counts.tokens / 1e6:.1f} million tokens\n")
    for name in filter(unseen.get, unseen):  # last, when all training text is known
        held = [[p for p in document if rules.is_new(p)] for document in unseen[name]]
        held = [document for document in held if document]
        results[name].held_out = estimate(held)
        write(arguments.out / "heldout" / f"{name}.txt", held, name)
    text = "\n".join([*mix_table(results), "", *evaluation_table(rules)]) + "\n"
    (arguments.out / "log.md").write_text(text, encoding="utf-8")
    say("\n" + text)


def say(text: str) -> None:
    """Print at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


def source_of(path: Path) -> str:
    """Return the name of a file without its endings."""
    return re.sub(r"(\.train)?\.txt(\.[gx]z)?$", "", path.name)


def numbers(
    parser: argparse.ArgumentParser, given: Sequence[str], files: dict[str, Path], form: str
) -> dict[str, float]:
    """Parse SOURCE=NUMBER."""
    found = {}
    for text in given:
        name, _, number = text.partition("=")
        if name not in files or not re.fullmatch(form, number):
            parser.error(f"{text}: expected SOURCE=NUMBER with one of {', '.join(files)}")
        found[name] = float(number)
    return found


def documents(path: Path, by_line: bool = False) -> Iterator[Document]:
    """Yield the documents of a file; if ``by_line``, every line is one."""
    document: Document = []
    for line in read_lines(path):
        if paragraph := " ".join(line.split()):
            document.append(paragraph)
        if document and (by_line or not paragraph):
            yield document
            document = []
    if document:
        yield document


def split(found: list[Document]) -> tuple[list[Document], list[Document]]:
    """Split documents into training and held-out text, whatever their order."""
    hashes = [int.from_bytes(digest("\n".join(document)), "big") for document in found]
    keys = [(number % HELD_OUT, number) for number in hashes]
    n = max(sum(rest == 0 for rest, _ in keys), min(LEAST_HELD_OUT, (len(found) + 1) // 2))
    last = sorted(keys)[n - 1]
    parts: tuple[list[Document], list[Document]] = ([], [])
    for document, key in zip(found, keys, strict=True):
        parts[key <= last].append(document)
    return parts


def sample(found: list[Document], fraction: float) -> list[Document]:
    """Take a fraction of the documents, at equal distances."""
    if fraction >= 1:
        return found
    return [d for i, d in enumerate(found) if int((i + 1) * fraction) > int(i * fraction)]


def estimate(found: Sequence[Document]) -> float:
    """Estimate the number of tokens from a sample of paragraphs."""
    paragraphs = [p for document in found for p in document]
    n_characters = sum(map(len, paragraphs))
    some = paragraphs[:: max(1, n_characters // SAMPLE)]
    n_tokens = sum(len(TOKENIZERS["english-hyphens"](p)) for p in some)
    return n_characters * n_tokens / max(1, sum(map(len, some)))


def write(path: Path, found: Sequence[Document], source: str, repeat: int = 1) -> None:
    """Write documents, a blank line after each unless they are single sentences."""
    end = "\n" if source in SINGLE_SENTENCES else "\n\n"
    with path.open("w", encoding="utf-8") as file:
        for _ in range(repeat):
            file.writelines("\n".join(document) + end for document in found)


def digest(text: str) -> bytes:
    """Return a hash that is the same in every run."""
    return blake2b(text.encode(), digest_size=8).digest()


def marks(document: Document) -> Iterator[bytes]:
    """Yield hashes by which a document is recognised: of its start and its long paragraphs."""
    yield digest("first sentence: " + letters(split_sentences(document[0])[0]))
    yield from (digest(letters(p)) for p in document if len(p) >= LEAST_SHARED)


_END = re.compile(r"(?<=[.!?])[\"'”’)\]]*\s+")
_BRACKET = re.compile(r"-[lr][rcs]b-|<[^<>]{1,40}>|&\w+;")  # in the treebanks; marked-up words
_NO_WORD = re.compile(r"[\W_]+")


def sentence_keys(text: str) -> Iterator[bytes]:
    """Yield hashes of the letters and digits of each long sentence, cut at every full stop."""
    for sentence in _END.split(text):
        if len(sentence) >= LEAST_KEY:
            key = letters(sentence)
            if len(key) >= LEAST_KEY:
                yield digest(key)


def letters(text: str) -> str:
    """Return the letters and digits of a text, in lower case."""
    return _NO_WORD.sub("", text.lower())


def evaluation_texts(path: Path) -> Iterator[str]:
    """Yield all texts of an evaluation set: a file, packed or not, or an archive .tar.xz."""
    if not path.name.endswith(".tar.xz"):
        yield from plain_texts(read_lines(path))
        return
    with tarfile.open(path) as archive:
        for member in archive:
            if file := archive.extractfile(member):  # None for a folder
                text = file.read().decode("utf-8", "replace")
                lines = text.split("\n")
                if member.name.endswith(".json"):
                    yield from strings(json.loads(text))
                elif member.name.endswith(".jsonl"):
                    yield from strings([json.loads(line) for line in lines if line])
                elif any(line.startswith(("<s snum", "<sentence")) for line in lines):
                    yield from tagged_texts(lines)
                else:
                    yield from plain_texts(lines)


def plain_texts(lines: Iterable[str]) -> Iterator[str]:
    """Yield the columns of each line, with and without their first word, which may be a label."""
    for line in lines:
        for column in line.removeprefix("# text = ").split("\t"):
            text = _BRACKET.sub(" ", column)
            yield text
            yield text.partition(" ")[2]


def tagged_texts(lines: Iterable[str]) -> Iterator[str]:
    """Yield the sentences of SemCor or Raganato's sets, with a word per line."""
    words: list[str] = []
    for line in lines:
        if word := re.search(r">([^<]+)</(?:wf|instance|punc)>", line):
            words.append(word[1].replace("_", " "))
        elif line.startswith(("</s>", "</sentence>")):
            yield " ".join(words)
            words = []


def strings(value: object) -> Iterator[str]:
    """Yield all strings in parsed JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from strings(part)


def mix_table(results: dict[str, Counts]) -> list[str]:
    """Return the sources with their tokens and shares."""
    total = sum(counts.tokens for counts in results.values())
    repeated = sum(counts.tokens * counts.repeat for counts in results.values())
    lines = [
        "| source | licence | documents | million tokens | share | times | share repeated "
        "| thousand held out | paragraphs seen before | evaluated | same articles |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, counts in results.items():
        lines.append(
            f"| {name} | {SOURCES[name]} | {counts.documents:,} | {counts.tokens / 1e6:.2f} "
            f"| {counts.tokens / total:.1%} | {counts.repeat} "
            f"| {counts.tokens * counts.repeat / repeated:.1%} | {counts.held_out / 1e3:.0f} "
            f"| {counts.duplicates:,} | {counts.evaluated:,} | {counts.same_article} |"
        )
    lines.append(f"| all | | | {total / 1e6:.1f} | | | {repeated / 1e6:.1f} million | | | | |")
    return lines


def evaluation_table(rules: Filter) -> list[str]:
    """Return how many paragraphs contain a sentence of each evaluation set."""
    lines = [
        "| evaluation set | in Wikipedia, kept | elsewhere, left out |",
        "|---|---|---|",
    ]
    for name in sorted(set(rules.evaluation.values())):
        found = {source: n for (other, source), n in rules.found.items() if other == name}
        kept = sum(found.pop(source, 0) for source in WIKIPEDIA)
        others = ", ".join(f"{source} {n}" for source, n in found.items()) or "none"
        lines.append(f"| {name} | {kept:,} | {others} |")
    return lines


if __name__ == "__main__":
    main()
