"""What the package promises about itself."""

import re
import sys
import zlib

import elmokit
from helpers.docs import ROOT, read

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MEGABYTE = 1_000_000


def project():
    return tomllib.loads(read("pyproject.toml"))["project"]


def test_the_wheel_stays_small():
    package = ROOT / "src/elmokit"
    files = [p for p in package.rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    total = sum(len(zlib.compress(path.read_bytes())) for path in files)  # as a wheel does
    assert total < 95 * MEGABYTE


def test_every_extra_is_documented():
    extras = set(project()["optional-dependencies"])
    table = re.findall(r"^\| `([\w-]+)` \|", read("docs/getting-started.md"), re.MULTILINE)
    assert set(table) == extras
    for readme in ("README.md", "README.zh-CN.md"):
        listed = re.findall(r"^- (`[^：:]*)[：:]", read(readme), re.MULTILINE)
        assert {name for line in listed for name in re.findall(r"`([\w-]+)`", line)} == extras


def test_the_makefile_lists_its_targets():
    text = read("Makefile")
    (phony,) = re.findall(r"^\.PHONY: (.*)$", text, re.MULTILINE)
    assert re.findall(r"^# make ([\w-]+) ", text, re.MULTILINE) == phony.split()
    assert set(phony.split()) <= set(re.findall(r"^([\w-]+):", text, re.MULTILINE))


def test_the_citation_has_the_version():
    citation = read("CITATION.cff")
    assert f"\nversion: {elmokit.__version__}\n" in citation
    assert "doi: 10.18653/v1/N18-1202" in citation


def test_continuous_integration_runs_every_supported_python():
    classified = re.findall(r"Python :: (3\.\d+)", "\n".join(project()["classifiers"]))
    workflow = read(".github/workflows/ci.yml")
    (matrix,) = re.findall(r"^ +python: \[(.*)\]$", workflow, re.MULTILINE)
    assert re.findall(r"3\.\d+", matrix) == classified
    (oldest,) = (d for d in project()["dependencies"] if d.startswith("torch>="))
    assert f"torch=={oldest.removeprefix('torch>=')}" in workflow
