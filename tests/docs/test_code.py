"""Every Python and bash block of the READMEs and the documentation runs, and prints what it shows.

Blocks marked ``console`` or ``text`` are not run: they install something, or need data or hours.
"""

import contextlib
import io
import re
import shlex
import shutil
import subprocess
import sys
import zipfile

import pytest

from helpers.allennlp_files import elmo_state, model_files, tar_gz
from helpers.docs import PAGES, READMES, ROOT, bare_code, blocks, read, translation
from helpers.models import many_langs_folder
from helpers.pictures import n_colours
from helpers.tagged import COLOURS, write_tagged
from helpers.tensor_bundles import write_checkpoint

# a translation is run only if its code is not that of the English page
PAIRS = [(page, translation(page)) for page in PAGES if translation(page)]
SAME = [chinese for english, chinese in PAIRS if bare_code(english) == bare_code(chinese)]
# need a Hub or a server; test_huggingface_page.py and test_serve_page.py run them
INTEGRATIONS = {f"docs/{name}{zh}.md" for name in ("huggingface", "serve") for zh in ("", ".zh")}
WITH_CODE = [p for p in PAGES if bare_code(p) and p not in SAME and p not in INTEGRATIONS]
TEXT = [
    "The actors rehearsed a new play for the theatre .",
    "He made a great play in the second quarter .",
    "The children play in the garden near the bank of the river .",
    "She opened an account at the bank .",
    "The plane landed on the river .",
    "They play football on the bank .",
]
CHINESE_TEXT = [
    "医生建议他每天坚持运动，多吃苹果。",
    "这场运动得到了学生和工人的支持。",
    "这种病毒会感染人和动物。",
    "苹果和谷歌都开发了新的软件。",
    "他的电脑感染了病毒，文件都打不开了。",
    "地球绕着太阳运动。",
]
FILES = {
    "corpus.txt": "The first line\n\nThe third line\n",
    "my-valid.txt": "The dog sat. The cat ran to the dog.\n" * 20,
    "my-text/part-1.txt": "The cat sat. The dog ran to the cat and the bank. He saw a play.\n" * 80,
    "my-text.txt": "\n".join(TEXT * 25),
    "old.txt": "\n".join(TEXT[:4] * 3),
    "new.txt": "\n".join(TEXT[2:] * 4),
    "my-examples.tsv": "".join(
        f"{'theatre' if 'new' in line else 'game'}\t{line}\n" for line in TEXT[:3]
    ),
    "new-reviews.txt": "A lovely film with a great cast.\nThe plot is boring.\n",
    "new-sentences.txt": "Angela Miller moved to Paris.\n",
    "new-questions.txt": "Who slept?\tAnn slept.\n",
    "story.txt": "The captain wrote a letter to Nora. She read it and sold her house.\n"
    "Then she went to see him.\n",
    "glove.txt": "film 0.1 0.2\ncast 0.3 -0.1\n",
}
CHINESE_FILES = {
    "corpus.txt": "第一行\n\n第三行\n",
    "my-valid.txt": "\n".join(CHINESE_TEXT * 5),
    "my-text/part-1.txt": "\n".join(CHINESE_TEXT * 25),
    "my-text.txt": "\n".join(CHINESE_TEXT * 20),
    "old.txt": "\n".join(CHINESE_TEXT[:4] * 3),
    "new.txt": "\n".join(CHINESE_TEXT[1:] * 3),
    "my-examples.tsv": "名词\t他是北京大学的教授。\n名词\t她当了教授。\n动词\t他在学校教授数学。\n",
    **{
        name: FILES[name]
        for name in ("new-reviews.txt", "new-sentences.txt", "new-questions.txt", "glove.txt")
    },
}
WRITTEN = {
    "README.md": ["vectors.hdf5", "my-published-elmo/softmax.hdf5"],
    "docs/classifier.md": ["my-sentiment/best/task.json", "found.jsonl"],
    "docs/coref.md": ["my-coref/best/task.json", "story.html", "found.jsonl"],
    "docs/flair.md": ["my-flair-tagger/tagger.pt"],
    "docs/gensim.md": ["words.txt", "words.bin"],
    "docs/getting-started.md": ["vectors.npz", "top.h5", "for-allennlp/weights.hdf5"],
    "docs/migration.md": ["vectors.hdf5", "my-bilm/vocabulary.txt", "for-allennlp/softmax.hdf5"],
    "docs/nli.md": ["my-nli/best/task.json", "found.jsonl", "seen.png"],
    "docs/sentence-transformers.md": ["my-sentences/0_ElmoModule/bilm/model.safetensors"],
    "docs/srl.md": ["my-srl/best/task.json", "found.html"],
    "docs/qa.md": ["my-qa/best/task.json", "answers.html"],
    "docs/tagger.md": ["my-ner/best/task.json", "my-pos/best/task.json"],
    "docs/tasks.md": ["my-relations/best/task.json", "my-scorer/task.json"],
    "docs/train.md": ["my-run/best/model.safetensors", "small-copy/model.safetensors"],
    "docs/tutorial.md": ["surprise.html", "my-index/config.json"],
}
DRAWN = {
    "docs/tutorial.md": ["banks", "play", "play-theatre", "pos", "geometry", "change"],
    "docs/tutorial.zh.md": ["apples", "professor", "movement", "pos", "geometry", "change"],
}

NEEDED = {
    "docs/flair": "flair",
    "docs/sentence-transformers": "sentence_transformers",
    "docs/spacy": "spacy",
    "docs/spacy.zh": "jieba",
}
"""Packages that the pages of some tools need, in environments of their own: see the Makefile."""


@pytest.fixture
def workplace(tmp_path, tiny_folder, lm_folder, monkeypatch, page):
    """The files the pages speak of."""
    chinese = ".zh" in page
    shutil.copytree(tiny_folder, tmp_path / "my-elmo")
    shutil.copytree(lm_folder, tmp_path / "my-elmo-with-softmax")
    many_langs_folder(tmp_path / "zhs.model")
    with zipfile.ZipFile(tmp_path / "elmo.zip", "w") as archive:
        archive.write(tiny_folder / "options.json", "options.json")
        archive.write(tiny_folder / "weights.hdf5", "model.hdf5")
    for name in ("options.json", "weights.hdf5"):
        shutil.copy(tiny_folder / name, tmp_path)
    if "migration" in page:
        (tmp_path / "model.tar.gz").write_bytes(tar_gz(model_files(elmo_state(tiny_folder))))
        write_checkpoint(tmp_path / "training", lm_folder, "model.ckpt-935588")
    for name in ("recipes", "examples"):
        shutil.copytree(ROOT / name, tmp_path / name)
    (tmp_path / "my-text").mkdir()
    for name, text in (CHINESE_FILES if chinese else FILES).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    for number, name in enumerate(("train", "dev")):
        words = ("红色", "绿色", "蓝色") if chinese else COLOURS
        write_tagged(tmp_path / f"{name}.conllu", 20, number, words)
    monkeypatch.chdir(tmp_path)
    return tmp_path


# Python warns of forking while threads run, as DataLoader does
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
# flair 0.15 uses a name that PyTorch has replaced
@pytest.mark.filterwarnings("ignore:.*GradScaler:FutureWarning")
# spaCy cannot send hooks between processes, as docs/spacy.md says
@pytest.mark.filterwarnings("ignore:.*W109:UserWarning")
# the trainer of sentence-transformers on a machine without a GPU
@pytest.mark.filterwarnings("ignore:.*pin_memory.*:UserWarning")
# the stand-in for a Chinese model is tiny and has no Chinese words
@pytest.mark.filterwarnings("ignore::elmokit.LanguageWarning")
@pytest.mark.parametrize("page", WITH_CODE)
def test_code_runs(page, workplace, cli):
    for start in {page.removesuffix(".md"), page.split(".")[0]} & set(NEEDED):
        package = NEEDED[start]
        pytest.importorskip(package, reason=f"{package} is not installed, which {page} uses")
    names = {"__name__": "page"}
    for block in blocks(page, "python", "bash"):
        if block.language == "python":
            printed = run_python(block, names, page)
        else:
            printed = "".join(run_command(line, cli) for line in commands(block.code))
        if block.output is not None:
            trained = "elmokit evaluate" in block.code
            printed, shown = (comparable(text, trained) for text in (printed, block.output))
            assert printed == shown, f"{page}:{block.line}"
    english = page.replace(".zh-CN.md", ".md").replace(".zh.md", ".md")
    for name in WRITTEN.get(english, []):
        assert (workplace / name).is_file(), name
    for name in DRAWN.get(page, []):
        assert n_colours(workplace / f"{name}.png") > 20, name


def comparable(text, trained):
    """The words of a text; without numbers and rules if they are scores of a trained model.

    A training ends with other weights on another processor, because it rounds differently.
    """
    return re.sub(r"[\d.]+|─+", " # ", text).split() if trained else text.split()


def run_python(block, names, page):
    """Run a block after those before it; what it printed."""
    code = "\n" * (block.line - 1) + block.code  # a traceback names the page's line
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, ROOT / page, "exec"), names)
    return printed.getvalue()


def commands(code):
    """The command lines of a bash block."""
    lines = code.replace("\\\n", " ").splitlines()
    return [line for line in lines if line and not line.startswith("elmokit demo")]  # has a test


def run_command(line, cli):
    """Run a command line; what it printed."""
    words = shlex.split(line, comments=True)
    if words[0] == "elmokit" and not set(words) & {"<", ">", "|", "&&"}:
        done = cli(*words[1:])  # in this process, which is faster
    else:
        line = re.sub(r"(^|\| )elmokit ", rf"\1{sys.executable} -m elmokit ", line)
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    assert done.returncode == 0, (line, done.stderr)
    # without a Chinese font, every picture prints a warning
    warned = re.sub(r"elmokit: no installed font has .*\n", "", done.stderr)
    assert warned == "", line
    return done.stdout


@pytest.mark.parametrize(("english", "chinese"), PAIRS)
def test_both_languages_have_as_much_code(english, chinese):
    assert len(bare_code(english)) == len(bare_code(chinese))


def test_only_known_kinds_of_blocks():
    for page in PAGES:
        languages = set(
            re.findall(r"^```(\w*)\n(?:.*?)^```$", read(page), re.MULTILINE | re.DOTALL)
        )
        assert languages <= {"python", "bash", "console", "text"}, page


def test_readmes_show_python_and_commands():
    for readme in READMES:
        assert blocks(readme, "python")[0].output
        assert len(blocks(readme, "bash")) >= 2
