"""Random command lines over all commands: odd values, damaged files, broken streams.

Each case is one command line, built from the options that the commands declare. It must exit with 0
or 2. With 2, it prints one sentence, leaves no temporary file, and changes nothing that was there
before. Most cases run in this process; some run as a process of their own, with streams that are
closed, full or broken, or with Ctrl-C.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from harness import Limits, run

os.environ.setdefault("OMP_NUM_THREADS", "1")
ASSETS = "ELMOKIT_FUZZ_ASSETS"

ALONE = 0.02  # share of cases that run as a process of their own, which takes seconds

TEXT = "the cat sat on a mat .\na dog sat on the bank of the river .\n" * 5
# fmt: off
INTEGERS = ["0", "-1", "1", "2", "3", "7", "99", "1.5", "x", "", "²", " 3", "1e3", "0x10", "True",
            "4611686018427387904", "9223372036854775808", "9" * 30, "9" * 5000]
NUMBERS = ["0", "-1", "0.01", "nan", "inf", "-inf", "1e308", "1e-308", "x", "", "1,5"]
TEXTS = ["", " ", "bank", "the bank of the bank", "the cat", "the cat sat on a mat .", "a" * 3000,
         "the cat " * 500, "\udcff\udcfe", "\x1b[31mred\x07", "two\nlines", "[bold]x[/]", "-x",
         "银行里的猫", "🙂 é \u200b", "--", "{x}", "%s", "x=3", "~nobody-here/x", "a,b,cat", ","]
# fmt: on
GOOD = {
    "train": "tagged.conllu",
    "dev": "tagged.conllu",
    "senses": "senses.npz",
    "index": "index",
    "semcor": "semcor",
    "data": "set.data.xml",
    "wordnet": "wordnet",
    "source": "model",
    "model": "model",
    "text": "text.txt",
    "input": "text.txt",
    "old": "text.txt",
    "new": "text.txt",
    "valid": "text.txt",
    "file": "text.txt",
    "init_from": "model",
    "recipe": "recipe.toml",
    "vocabulary": "words.txt",
    "options_file": "model/options.json",
    "weight_file": "model/weights.hdf5",
}  # fmt: skip
"""Files that suit a parameter."""
SENTENCES = {"first", "second", "sentence"}
PLACES = {"out", "output", "folder", "html"}
VALUES = {
    "word": ["cat", "bank", "the cat", "sat"], "words": ["cat", "cat,mat", "the cat,sat"],
    "layer": ["top", "0", "2", "mix", "average"], "layers": ["top", "0,2", "mix", "all", "9"],
    "column": ["upos", "4", "2", "0", "x", "9" * 5000], "device": ["cpu"], "k": ["1", "5", "9999"],
    "setting": ["training.seed=1", "x", "a.b=", "model.context.cell_dim=-1", "text=3", ".=."],
    "epochs": ["0.01"], "minutes": ["0.001"], "threads": ["1"], "cuda_device": ["-1"],
    "processes": ["1"], "most": ["5", "10000"], "size": ["small", "huge"],
}  # fmt: skip
"""Values that suit a parameter, or nearly do."""


def make_assets(folder: Path) -> None:
    """Write good files of every kind, and odd ones."""
    sys.path.append(str(Path(__file__).parent.parent / "tests"))
    from elmokit import Elmo
    from elmokit.analysis.index.build import build_index
    from elmokit.analysis.senses.sense_vectors import SenseVectors
    from helpers.indexing import TOKENIZED  # type: ignore[import-not-found]
    from helpers.models import TINY, VOCABULARY, write_published  # type: ignore[import-not-found]
    from helpers.senses import DATA, TRAIN, write_wordnet  # type: ignore[import-not-found]

    (folder / "model").mkdir()
    write_published(folder / "model", TINY, seed=1, vocabulary=VOCABULARY)
    elmo = Elmo.load(folder / "model", device="cpu")
    (folder / "text.txt").write_text(TEXT)
    build_index(elmo, [folder / "text.txt"], folder / "index", TOKENIZED)
    SenseVectors.train(elmo, TRAIN, keep=True).save(folder / "senses.npz")
    write_wordnet(folder / "wordnet")
    (folder / "semcor/tagfiles").mkdir(parents=True)
    (folder / "semcor/tagfiles/a").write_text(
        "<s><wf lemma=bank lexsn=1:14:00::>bank</wf><wf>the</wf></s>"
    )
    (folder / "set.data.xml").write_text(DATA)
    (folder / "set.gold.key.txt").write_text("t0 bank%1:17:01::\nt1 bank%1:14:00::\n")
    (folder / "tagged.conllu").write_text("1\ta\t_\tDET\n2\tcat\t_\tNOUN\n\n" * 4)
    (folder / "words.txt").write_text("".join(f"{word}\n" for word in VOCABULARY))
    (folder / "recipe.toml").write_text(
        "[model]\ntoken_encoder = {filters = [[1, 4]], n_highway = 0}\n"
        "context = {cell_dim = 8, projection_dim = 4}\n[batch]\ntokens = 64\n"
        "[text]\nmin_count = 1\n[training]\nepochs = 0.1\n"
    )
    rng = random.Random(0)
    (folder / "empty").write_bytes(b"")
    (folder / "binary").write_bytes(rng.randbytes(3000))
    (folder / "latin1.txt").write_bytes("the caf\xe9\n".encode("latin-1"))
    (folder / "one-line.txt").write_text("the cat " * 20_000)
    (folder / "blank.txt").write_text(" \n\n\t\n")
    (folder / "bad\nname.txt").write_text("x")
    (folder / "half.xz").write_bytes(b"\xfd7zXZ\0\0\4")
    (folder / "empty-folder").mkdir()
    os.mkfifo(folder / "fifo")
    for name in ("model", "index", "wordnet"):
        for number in range(3):
            _damage(shutil.copytree(folder / name, folder / f"{name}-{number}"), rng)
    for name in ("senses.npz", "tagged.conllu", "recipe.toml", "set.data.xml"):
        raw = bytearray((folder / name).read_bytes())
        for _ in range(5):
            raw[rng.randrange(len(raw))] = rng.randrange(256)
        (folder / f"damaged-{name}").write_bytes(raw)


def _damage(folder: Path, rng: random.Random) -> None:
    path = rng.choice(sorted(p for p in folder.iterdir() if p.is_file()))
    raw = path.read_bytes()
    at = rng.randrange(len(raw))
    path.write_bytes(rng.choice([raw[:at], raw[:at] + rng.randbytes(4) + raw[at + 4 :], b""]))


class Line:
    """A command line, and the places where it may write."""

    def __init__(self, rng: random.Random, folder: Path) -> None:
        from elmokit.cli.help import walk
        from elmokit.cli.main import app

        self.rng, self.folder, self.assets = rng, folder, Path(os.environ[ASSETS])
        self.care = rng.choice([0.7, 0.9, 0.97, 1.0])  # how often a value suits
        commands = dict(walk(app))
        self.name = rng.choice(sorted(commands))
        words = self.name.split()
        if rng.random() < 0.03:
            words[-1] = rng.choice(["embedd", "x", words[-1][:-1], words[-1].upper(), ""])
        front = rng.choice(
            [[]] * 8 + [["--quiet"], ["--threads", self.value("threads", "INTEGER")]]
        )
        self.words = [*front, *words, *self.parameters(commands[self.name])]
        if rng.random() < 0.1:
            odd = ["--no-such-option", "-x", "extra", "--", "--model", "-h", "--out=", "--json=1"]
            self.words.insert(rng.randrange(len(self.words) + 1), rng.choice(odd))

    def parameters(self, command: Any) -> list[str]:
        """Return values for some parameters of a command."""
        from typer.main import get_command

        from elmokit.cli.main import app

        rng = self.rng
        context = get_command(app).make_context("elmokit", ["demo"], resilient_parsing=True)
        found: list[list[str]] = []
        for parameter in command.get_params(context):
            name, kind = parameter.name, parameter.metavar or ""
            wanted = parameter.required or name in ("model", "recipe", "word", "epochs")
            if name == "help" or rng.random() < (0.04 if wanted else 0.85):
                continue
            if parameter.param_type_name == "argument":
                found.append([self.value(name, kind or "PATH")])
            elif parameter.is_flag:
                found.append([rng.choice(parameter.opts)])
            else:
                found.append([rng.choice(parameter.opts), self.value(name, kind)])
        arguments = [words for words in found if not words[0].startswith("-") or len(words) == 1]
        options = [words for words in found if words not in arguments]
        rng.shuffle(options)
        return [word for words in [*arguments, *options] for word in words]

    def value(self, name: str, kind: str) -> str:
        """Return a value for a parameter; mostly one that suits it."""
        rng, good = self.rng, self.rng.random() < self.care
        if name in PLACES:
            return self.place(good)
        if good and (name in SENTENCES or (name == "text" and self.name == "wsd tag")):
            return rng.choice(TEXTS[2:8])
        if good and name in VALUES:
            return rng.choice(VALUES[name])
        if good and name in GOOD:
            return str(self.assets / GOOD[name])
        if kind.startswith("["):
            return rng.choice([*kind.strip("[]").split("|")] * 3 + ["x", ""])
        if kind in ("INTEGER", "NUMBER"):
            return rng.choice(INTEGERS[:7] if good else INTEGERS if kind == "INTEGER" else NUMBERS)
        if kind == "PATH" or name in GOOD:
            return self.odd_path(name)
        return rng.choice(TEXTS)

    def odd_path(self, name: str) -> str:
        """Return a path that mostly does not suit a parameter."""
        # a text may be a pipe, as in <(zcat a.gz); nobody would write to this one
        texts = {"text", "input", "old", "new", "valid", "file", "train", "dev"}
        some = [p for p in sorted(self.assets.iterdir()) if p.name != "fifo" or name not in texts]
        odd = [
            "",
            "-",
            "missing",
            "~nobody-here/x",
            "/dev/null",
            "a" * 300,
            "/proc/self/mem",
            "x/y",
        ]
        return self.rng.choice([*map(str, some), *odd])

    def place(self, good: bool) -> str:
        """Return a place to write to; some exist already."""
        rng = self.rng
        path = self.folder / rng.choice(
            ["out", "out.h5", "out.npz", "out.parquet", "out.json", "é"]
        )
        if not good:
            (self.folder / "folder").mkdir(exist_ok=True)
            (self.folder / "folder/kept").write_text("kept")
            odd = [self.folder, self.folder / "folder", self.folder / "no/x", "", "~nobody-here/x"]
            odd += ["/proc/x", "/dev/full", self.folder / ("b" * 250), self.folder / "text/x"]
            return str(rng.choice(odd))
        if rng.random() < 0.3:
            path.write_text("kept")
        return str(path)


def case(seed: int, folder: Path) -> str:
    """Run a random command line, and check what it did."""
    rng = random.Random(seed)
    line = Line(rng, folder)
    before, assets = _files(folder), _files(line.assets)
    alone = rng.random() < ALONE
    code, out, err, how = (_in_process if alone else _here)(line, rng)
    shown = f"elmokit {' '.join(word[:200] for word in line.words)!r}\n({how}) exit {code}\n{err}"
    shown = shown.encode("utf-8", "backslashreplace").decode()
    assert "Traceback" not in out + err, shown
    # 130 is Ctrl-C, or dying by its signal, which a shell shows as 130; 141 is a broken pipe
    assert code in {0, 2} | ({130, -signal.SIGINT, 141} if alone else set()), shown
    lines = err.splitlines()
    assert all(one.startswith("elmokit: ") for one in lines), shown
    assert all(len(one) <= 2100 for one in lines), shown
    if code == 2 and how != "closed stderr":
        errors = lines[-1:] if "Usage: " not in out else ["help"]
        assert errors, shown
    assert _files(line.assets) == assets, "changed its input: " + shown
    after = _files(folder)
    left = [name for name in after if name.rpartition("/")[2].startswith(".") or ".tmp" in name]
    assert not left, f"left {left}: " + shown
    if code:
        changed = [name for name in before if after.get(name) != before[name]]
        assert not changed, f"changed {changed}: " + shown
        # a job may be continued; a last message may not reach standard output
        kept = line.name in ("embed", "index", "pretrain") or "to standard output" in err
        new = [name for name in after if name not in before]
        assert kept or not new, f"made {new}: " + shown
    return f"{line.name.split()[0]} {code}"


def _here(line: Line, rng: random.Random) -> tuple[int, str, str, str]:
    """Run a command line in this process; returns exit code, output, errors, and how it ran."""
    import torch

    from elmokit.cli.main import main

    encoding = rng.choice(["utf-8"] * 4 + ["ascii", "latin-1"])
    limit = rng.choice([None] * 8 + [0, 100, 4096])
    changes = rng.choice(
        [{"COLUMNS": "80"}] * 4 + [{"COLUMNS": "1"}, {"COLUMNS": "100000"}, {"TERM": "dumb"}]
    )
    how = f"{encoding}, at most {limit} bytes, {changes}"
    with ExitStack() as stack:
        out, err = (stack.enter_context(_captured(fd, encoding)) for fd in (1, 2))
        stack.enter_context(_changed(line, changes))
        stack.enter_context(_largest_file(limit))
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0
        finally:
            torch.set_num_threads(1)
    return code, out[0], err[0], how


@contextmanager
def _captured(descriptor: int, encoding: str) -> Iterator[list[str]]:
    """Catch what is written to standard output or error; a list with the text at the end."""
    name = {1: "stdout", 2: "stderr"}[descriptor]
    found: list[str] = []
    before, kept = getattr(sys, name), os.dup(descriptor)
    before.flush()
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), descriptor)
        stream = os.fdopen(os.dup(descriptor), "w", encoding=encoding)
        setattr(sys, name, stream)
        try:
            yield found
        finally:
            setattr(sys, name, before)
            stream.close()
            os.dup2(kept, descriptor)
            os.close(kept)
            file.seek(0)
            found.append(file.read().decode("utf-8", "replace"))


@contextmanager
def _changed(line: Line, changes: dict[str, str]) -> Iterator[None]:
    """Set command line, environment, working folder and standard input."""
    argv, environment, cwd, stdin = sys.argv, dict(os.environ), Path.cwd(), sys.stdin
    with open(line.assets / "text.txt") as text:
        sys.argv, sys.stdin = ["elmokit", *line.words], text
        os.environ.update(changes | {"HOME": str(line.folder)})
        os.chdir(line.folder)
        try:
            yield
        finally:
            sys.argv, sys.stdin = argv, stdin
            os.environ.clear()
            os.environ.update(environment)
            os.chdir(cwd)


@contextmanager
def _largest_file(n_bytes: int | None) -> Iterator[None]:
    """Let writes beyond a size fail, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    if n_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)


def _in_process(line: Line, rng: random.Random) -> tuple[int, str, str, str]:
    """Run a command line as a process, with something wrong around it."""
    hows = ["closed stdin", "closed stdout", "closed stderr", "full", "broken pipe", "Ctrl-C",
            "ascii", "C", "no home"]  # fmt: skip
    how = rng.choice(hows)
    changes = {"ascii": {"PYTHONIOENCODING": "ascii"}, "C": {"LC_ALL": "C", "PYTHONUTF8": "0"}}
    import elmokit

    source = str(Path(elmokit.__file__).parent.parent)
    environment = os.environ | {"HOME": str(line.folder), "PYTHONPATH": source}
    environment |= changes.get(how, {})
    if how == "no home":
        del environment["HOME"]
    shell = {
        "closed stdin": '"$@" <&-', "closed stdout": '"$@" >&-', "closed stderr": '"$@" 2>&-',
        "full": '"$@" >/dev/full', "broken pipe": 'set -o pipefail; "$@" | true',
    }.get(how, 'exec "$@"')  # fmt: skip
    with open(line.assets / "text.txt") as text, subprocess.Popen(
        ["bash", "-c", shell, "bash", sys.executable, "-m", "elmokit", *line.words],
        stdin=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
        cwd=line.folder,
    ) as process:  # fmt: skip
        if how == "Ctrl-C":
            _wait_for_numpy(process)
            time.sleep(rng.random() * 2)
            process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    return process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"), how


def _wait_for_numpy(process: subprocess.Popen[bytes]) -> None:
    """Wait until a process has begun to work: before that, Python itself answers Ctrl-C."""
    maps = Path(f"/proc/{process.pid}/maps")
    for _ in range(200):
        if process.poll() is not None or b"_multiarray_umath" in maps.read_bytes():
            return
        time.sleep(0.05)


def _files(folder: Path) -> dict[str, bytes]:
    """All files below a folder, by name; a kept resumable job counts as unchanged."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".partial" not in str(path)
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="fuzz-assets-") as name:
        os.environ[ASSETS] = name
        make_assets(Path(name))
        status = run("commands", case, Limits(cpu_seconds=20), default_seeds="0:500")
    sys.exit(status)
