"""Examples in docstrings print what they say."""

import doctest
import importlib
import pkgutil

import pytest

import elmokit


def modules_with_examples():
    names = [m.name for m in pkgutil.walk_packages(elmokit.__path__, "elmokit.")]
    finder = doctest.DocTestFinder()
    for name in ["elmokit", *names]:
        if name == "elmokit.__main__" or name.endswith("_triton"):
            continue
        try:
            module = importlib.import_module(name)
        except elmokit.MissingExtraError:  # an integration, which has tests of its own
            continue
        if any(test.examples for test in finder.find(module)):
            yield name


@pytest.mark.parametrize("name", list(modules_with_examples()))
def test_examples(name):
    done = doctest.testmod(importlib.import_module(name))
    assert done.attempted
    assert not done.failed
