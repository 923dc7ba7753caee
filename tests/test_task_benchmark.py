"""The table of benchmarks/tasks.py: gains over the same seeds, and a mark at outdated scores."""

import json
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
TESTED = {"glove": [80, 82, 84], "token": [85, 84, 89], "elmo": [90, 88, 92]}


@pytest.fixture
def benchmark(monkeypatch):
    """The modules of the benchmark, which are found only in their own folder."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import task_tables

    import tasks

    yield tasks, task_tables
    for name in ("tasks", "task_files", "task_tables", "task_sets", "cpu", "tf_idf"):
        sys.modules.pop(name, None)


@pytest.fixture
def records(tmp_path):
    """Records of three seeds."""
    for column, values in TESTED.items():
        for seed, value in enumerate(values):
            path = tmp_path / "records" / "trec" / f"{column}-{seed}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            mixes = {"input": [0.2, 0.3, 0.5, 1.1]} if column == "elmo" else {}
            record = {"measure": "accuracy", "test": value, "seconds": 10, "mixes": mixes}
            record["others"] = {}
            path.write_text(json.dumps(record | {"machine": "any", "bilm": "none"}))
    return tmp_path / "records"


def rows(lines):
    return [line for line in lines if line.startswith("| trec")]


def test_means_gains_and_weights(benchmark, records):
    _, tables = benchmark
    (row,) = rows(tables.report(records, "glove.txt"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    # gains: 10, 6 and 8 over GloVe, with 18 errors in a hundred; 5, 4 and 3 over the token layer
    assert cells == [
        "trec", "accuracy", "3", "", "82.0 ± 2.0", "86.0 ± 2.6", "90.0 ± 2.0", "",
        "+8.0 ± 1.2 (44%)", "+4.0 ± 0.6", "", "0.20 / 0.30 / 0.50 / 1.10", "10",
    ]  # fmt: skip


def test_seeds_may_be_missing(benchmark, records):
    """Gains are over the seeds that both columns have."""
    _, tables = benchmark
    (records / "trec" / "elmo-1.json").unlink()
    (records / "trec" / "elmo-1-5.json").write_text("another share")
    (row,) = rows(tables.report(records, "glove.txt"))
    assert "| 2–3 |" in row
    assert "| 91.0 ± 1.4 |" in row
    assert "| +9.0 ± 1.0 (50%) | +4.0 ± 1.0 |" in row


def test_further_test_sets(benchmark, records):
    _, tables = benchmark
    lingnli = records / "lingnli"
    (records / "trec").rename(lingnli)
    assert not any("Further" in line for line in tables.report(records, "glove.txt"))
    for path in lingnli.iterdir():
        record = json.loads(path.read_text())
        path.write_text(json.dumps(record | {"others": {"SNLI dev": record["test"] - 10}}))
    found = tables.report(records, "glove.txt", {("lingnli", "elmo")})
    (row,) = (line for line in found if "SNLI dev" in line)
    assert row == (
        "| lingnli, SNLI dev | 72.0 ± 2.0 | 76.0 ± 2.6 | 80.0 ± 2.0† | +8.0 ± 1.2 (29%) | "
        "+4.0 ± 0.6 |"
    )


def test_outdated_scores_are_marked(benchmark, records):
    _, tables = benchmark
    lines = tables.report(records, "glove.txt", {("trec", "elmo")})
    assert "| 86.0 ± 2.6 | 90.0 ± 2.0† |" in rows(lines)[0]
    assert tables.OUTDATED in lines
    assert tables.OUTDATED not in tables.report(records, "glove.txt")


def test_records_of_other_settings_or_data_are_outdated(benchmark, records, tmp_path):
    tasks, _ = benchmark
    glove, data = tmp_path / "glove.txt", tmp_path / "sentconv"
    glove.write_text("word 1 2 3")
    places = tasks.Places(tmp_path, glove, None)
    with pytest.raises(SystemExit, match="trec has records, but .* is missing"):
        tasks._outdated(records, places)
    data.mkdir()
    for name in ("TREC.train.all", "TREC.test.all"):
        (data / name).write_text("1 a question\n")
    every = {("trec", column) for column in TESTED}
    assert tasks._outdated(records, places) == every

    for seed in range(3):
        path = records / "trec" / f"glove-{seed}.json"
        made_of = tasks._made_of(tasks.Cell("trec", "glove", seed, 100), places)
        path.write_text(json.dumps(json.loads(path.read_text()) | {"made_of": made_of}))
    assert tasks._outdated(records, places) == every - {("trec", "glove")}

    glove.write_text("word 1 2 4")
    tasks._file_sha256.cache_clear()
    assert tasks._outdated(records, places) == every


def test_phrases_of_a_sentiment_tree(benchmark):
    from task_files import phrases

    tree = r"(3 (2 ``) (4 (2 -LRB-) (3 (2 a\/b\*) (1 .))))"
    assert phrases(tree) == [
        ("3", '" ( a/b* .'), ("2", '"'), ("4", "( a/b* ."), ("2", "("),
        ("3", "a/b* ."), ("2", "a/b*"), ("1", "."),
    ]  # fmt: skip


def test_sentiment_trees_become_tables(benchmark, tmp_path):
    from task_files import _sst_trees

    trees = {
        "train": "(3 (2 good) (2 film))\n(1 (2 dull) (2 film))\n",
        "dev": "(4 (3 fine) (2 .))\n",
    }
    (tmp_path / "trees").mkdir()
    for part, text in {**trees, "test": "(0 (1 bad) (2 .))\n"}.items():
        extra = trees["dev"] if part == "train" else ""  # as in copies that repeat the dev trees
        (tmp_path / "trees" / f"{part}.txt").write_text(text + extra)
    _sst_trees(tmp_path, tmp_path / "out")
    made = {file.stem: file.read_text() for file in (tmp_path / "out" / "sst-trees").iterdir()}
    assert made == {
        "train": "label\ttext\n3\tgood film\n2\tgood\n2\tfilm\n1\tdull film\n2\tdull\n",
        "dev": "label\ttext\n4\tfine .\n",
        "test": "label\ttext\n0\tbad .\n",
    }
