"""What the page promises apart from its panels: order of answers, links, copies, errors, keys."""

import json
import re
import subprocess
import sys
from urllib.parse import parse_qs, urlsplit

import pytest

pytest.importorskip("playwright", reason="make test-page installs playwright")

from playwright.sync_api import expect

from elmokit import Elmo
from elmokit.analysis.similarity import word_similarity
from helpers.serving import service

FIRST = ".body textarea >> nth=0"


def test_the_page_shows_what_the_library_computes(served, visit):
    page = visit(served)
    page.locator(FIRST).fill("We rowed to the bank.")
    expect(page.get_by_role("radio", checked=True).first).to_have_text("bank")
    second = page.locator(".body textarea").nth(1).input_value()
    (pair,) = word_similarity(Elmo.load("en"), "We rowed to the bank.", second, "bank")
    values = page.locator(".bars .value").all_text_contents()[:3]
    assert [float(value) for value in values] == pytest.approx(pair.cosines.tolist(), abs=0.0051)


def test_a_late_answer_does_not_overtake_a_newer_one(served, visit):
    """The first answer is held back until the second is on the screen."""
    page = visit(served)
    expect(page.locator(".result")).to_be_visible()
    held, sent = [], []

    def hold(route):
        body = route.request.post_data_json
        sent.append(body["first"])
        if body["first"] == "one slow question":
            held.append(route)
        else:
            route.continue_()

    # keeps the page from aborting requests: even an answer that arrives must not be shown
    page.add_init_script("AbortController.prototype.abort = () => {}")
    page.reload()
    expect(page.locator(".result")).to_be_visible()
    page.route("**/similarity/tokens", hold)
    words = page.get_by_role("radiogroup").first.get_by_role("radio")
    page.locator(FIRST).fill("one slow question")
    page.wait_for_timeout(600)
    assert held
    page.locator(FIRST).fill("a quick one")
    expect(words).to_have_text(["a", "quick", "one"])
    with page.expect_response("**/similarity/tokens"):
        held[0].continue_()
    page.wait_for_timeout(300)
    expect(words).to_have_text(["a", "quick", "one"])
    assert sent == ["one slow question", "a quick one"]


def test_typing_asks_once_and_keeps_what_is_shown(served, visit):
    page = visit(served)
    expect(page.locator(".result")).to_be_visible()
    asked = []
    page.on("request", lambda r: asked.append(r.url) if r.method == "POST" else None)
    page.evaluate("""() => {
        window.gone = 0;
        const result = document.querySelector(".result");
        new MutationObserver(() => { if (result.hidden) window.gone += 1; })
            .observe(result, { attributes: true });
    }""")
    page.locator(FIRST).press("End")
    page.locator(FIRST).press_sequentially(" today", delay=20)
    expect(page.get_by_role("radio").filter(has_text="today")).to_be_visible()
    assert len(asked) <= 3
    assert page.evaluate("window.gone") == 0


def test_a_link_shows_the_same_view(served, visit):
    page = visit(served)
    page.locator(FIRST).fill("The crane flew over the bank & the “sea” + 100%.")
    group = page.get_by_role("radiogroup").first
    group.get_by_role("radio").filter(has_text="crane").click()
    page.get_by_role("slider").press("Home")
    page.wait_for_timeout(600)
    said = parse_qs(urlsplit(page.url).fragment)
    assert (said["panel"], said["model"], said["layer"]) == (["compare"], ["en"], ["0"])
    shown = page.locator(".cards").text_content()

    other = visit(page.url, "zh")
    expect(other.locator(FIRST)).to_have_value("The crane flew over the bank & the “sea” + 100%.")
    expect(other.get_by_role("radio", checked=True).first).to_have_text("crane")
    expect(other.get_by_role("slider")).to_have_value("0")
    assert other.locator(".context output").text_content() in shown
    # tabs are entries of the history
    page.locator("#tab-reading").click()
    expect(page.locator("#panel-reading")).to_be_visible()
    page.go_back()
    expect(page.locator(FIRST)).to_have_value("The crane flew over the bank & the “sea” + 100%.")


@pytest.mark.parametrize("panel", ["compare", "where", "neighbours", "reading", "tokens", "tasks"])
def test_copies_run(served, visit, panel):
    """What the buttons copy runs as it is, and both ways give the same answer."""
    page = visit(f"{served}/#panel={panel}", permissions=["clipboard-read", "clipboard-write"])
    if panel in ("compare", "tokens", "reading"):
        page.locator(FIRST).fill('It\'s a "bank" \\ of the river $HOME `here`')
    buttons = page.locator(".foot button")
    python, curl = buttons.first, buttons.last
    expect(python).to_be_enabled()
    page.wait_for_timeout(800)
    copied = []
    for button in (python, curl):
        button.click()
        expect(page.locator(".foot .status")).to_have_text("Copied.")
        copied.append(page.evaluate("navigator.clipboard.readText()"))
    printed = _run([sys.executable, "-c", copied[0]])
    assert printed.strip()
    answer = json.loads(_run(["sh", "-c", copied[1]]))
    again = f"{copied[0]}\nprint(json.dumps(answer))"
    assert json.loads(_run([sys.executable, "-c", again]).splitlines()[-1]) == answer
    if panel == "compare":
        shown = float(page.locator(".context output").text_content())
        assert float(printed.splitlines()[-1]) == pytest.approx(shown, abs=0.0051)


def test_copying_by_hand(served, visit):
    """Without a clipboard, the text is there to select."""
    page = visit(served, permissions=[])
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.locator(".foot button").last.click()
    expect(page.locator(".code")).to_have_value(re.compile("^curl -sS 'http://127"))
    expect(page.locator(".code")).to_be_focused()


def _run(command):
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def test_errors_are_sentences_in_place(served, visit):
    page = visit(served)
    page.expected = "Failed to load resource"
    expect(page.locator(".result")).to_be_visible()
    page.locator(FIRST).fill("word " * 2100)
    expect(page.get_by_role("alert")).to_contain_text("too long")
    page.locator(FIRST).fill("Short again at the bank.")
    expect(page.get_by_role("alert")).to_have_count(0)
    page.route("**/similarity/tokens", lambda route: route.abort())
    page.locator(FIRST).fill("Nobody hears this.")
    expect(page.get_by_role("alert")).to_contain_text("cannot be reached")


def test_a_key_is_asked_for_and_kept_in_the_tab(browser, visit, tmp_path):
    with service(tmp_path, ELMOKIT_API_KEY="open-sesame") as running:
        page = visit(running.url, permissions=["clipboard-read", "clipboard-write"])
        page.expected = "401"
        field = page.locator("input[type=password]")
        field.fill("guess")
        field.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("did not accept")
        field.fill("open-sesame")
        field.press("Enter")
        expect(page.locator(".context output")).to_be_visible()
        expect(field).to_have_count(0)
        page.reload()
        expect(page.locator(".context output")).to_be_visible()
        assert page.evaluate("JSON.stringify(localStorage)").count("sesame") == 0
        page.locator(".foot button").first.click()
        expect(page.locator(".foot .status")).to_have_text("Copied.")
        assert "sesame" not in page.evaluate("navigator.clipboard.readText()")


def test_language_and_colours_are_remembered(served, visit):
    page = visit(served)
    model, language, colours = (page.locator("header select").nth(k) for k in range(3))
    expect(page.locator(".result")).to_be_visible()
    language.select_option("zh")
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    expect(page.locator("#tab-where")).to_have_text("词的分布")
    expect(model).to_have_value("zh")  # nothing was typed, so the examples follow
    expect(page.get_by_role("radio", checked=True).first).to_have_text("苹果")
    colours.select_option("dark")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.reload()
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark
    page.locator("header select").nth(2).select_option("light")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark


def test_the_keyboard_is_enough(served, visit):
    page = visit(served)
    expect(page.locator(".result")).to_be_visible()
    page.locator("#tab-compare").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#tab-where")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".result")).to_be_visible()
    reached = set()
    for _ in range(14):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate(
                "document.activeElement.getAttribute('role') ?? document.activeElement.type"
            )
        )
    assert {"textarea", "radio", "range", "button"} <= reached


def test_missing_parts_say_how_to_add_them(browser, visit, tmp_path):
    with service(tmp_path, "--model", "zh") as running:
        page = visit(f"{running.url}/#panel=neighbours")
        expect(page.locator(".notice pre")).to_contain_text("--index my-index")
        page.locator("#tab-tasks").click()
        expect(page.locator(".notice pre")).to_contain_text("--task ner --task pos")
        expect(page.locator(".foot button").first).to_be_disabled()
