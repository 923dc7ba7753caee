"""A browser, and a service with both bundled models and four task models, for the page."""

import os
import shutil
from collections.abc import Iterator

import pytest

from elmokit import Elmo
from elmokit.tasks import NerTagger, QuestionAnswerer, RoleLabeller, TextClassifier
from helpers.serving import service
from helpers.task_data import questions, reviews, roles, tagged

SIZES = {"desktop": (1180, 800), "phone": (390, 780)}
LOCALES = {"en": "en-GB", "zh": "zh-CN"}
TASKS = {
    "entities": (NerTagger, tagged),
    "sentiment": (TextClassifier, reviews),
    "roles": (RoleLabeller, roles),
    "answers": (QuestionAnswerer, questions),
}
QUICK = {
    "model": {"hidden_dim": 16, "dropout": 0.0},
    "input": {"dropout": 0.0},
    "training": {"epochs": 10, "batch_size": 8, "learning_rate": 0.01, "patience": 10},
}


@pytest.fixture(scope="session")
def browser():
    """Chromium; ELMOKIT_CHROMIUM names one that is not on the path."""
    pytest.importorskip("fastapi", reason="the service needs elmokit[serve]")
    api = pytest.importorskip("playwright.sync_api", reason="make test-page installs playwright")
    names = (os.environ.get("ELMOKIT_CHROMIUM"), "chromium", "chromium-browser", "google-chrome")
    found = next((path for path in map(shutil.which, filter(None, names)) if path), None)
    if found is None:
        pytest.skip("no browser: apt-get install chromium fonts-noto-cjk")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def served(browser, tmp_path_factory) -> Iterator[str]:
    """The address of the service; made only where a browser is there."""
    folder = tmp_path_factory.mktemp("page")
    elmo, given = Elmo.load("en", device="cpu"), ["--model", "en", "--model", "zh"]
    for name, (kind, data) in TASKS.items():
        kind.train(data(40), data(8, 1), elmo=elmo, settings=QUICK).save(folder / name)
        given += ["--task", f"{name}={folder / name}"]
    with service(folder, *given) as running:
        yield running.url


@pytest.fixture
def visit(browser, request):
    """Open an address in a fresh profile; afterwards no error may have been logged.

    A test that provokes an error names a part of its message in ``page.expected``.
    """
    opened = []

    def visit(address, lang="en", size="desktop", **options):
        width, height = SIZES[size]
        context = browser.new_context(
            locale=LOCALES[lang], viewport={"width": width, "height": height}, **options
        )
        context.set_default_timeout(20_000)
        page = context.new_page()
        page.errors, page.expected = [], None
        page.on("console", lambda m: page.errors.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        opened.append(page)
        page.goto(address)
        return page

    yield visit
    for page in opened:
        errors = [e for e in page.errors if page.expected is None or page.expected not in e]
        page.context.close()
        assert errors == []
