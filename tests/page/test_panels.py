"""Each panel used as a person would: two languages, phone and desktop, light and dark."""

import re

import pytest

pytest.importorskip("playwright", reason="make test-page installs playwright")

import httpx
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

VIEWS = ("en-desktop-light", "en-phone-dark", "zh-desktop-dark", "zh-phone-light")
WORDS = {"en": "bank", "zh": "苹果"}


@pytest.fixture(params=VIEWS)
def view(request, served, visit):
    """Open a panel by its name; also says the language."""
    lang, size, colours = request.param.split("-")

    def view(panel, address=served):
        page = visit(address, lang, size, color_scheme=colours, reduced_motion="reduce")
        page.locator(f"#tab-{panel}").click()
        expect(page.locator(f"#panel-{panel} h2")).to_be_visible()
        return page, lang

    return view


def check(page):
    """The page is accessible, and no wider than the screen."""
    page.mouse.move(0, 0)
    expect(page.locator(".body")).to_have_attribute("aria-busy", "false")
    found = Axe().run(page).response["violations"]
    assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in found] == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def slide(page, layer):
    """Move the layer slider with the keyboard; 3 is the mix."""
    slider = page.get_by_role("slider")
    slider.press("Home")
    for _ in range(layer):
        slider.press("ArrowRight")


def test_two_sentences(view):
    page, lang = view("compare")
    chosen = page.get_by_role("radio", checked=True)
    expect(chosen).to_have_text([WORDS[lang]] * 2)
    context, static = page.locator(".context output"), page.locator(".static output")
    expect(static).to_have_text("1.00")
    seen = set()
    for layer in range(4):
        slide(page, layer)
        expect(page.locator(".bars li.chosen")).to_have_count(1)
        row = page.locator(".bars li").nth(layer)
        expect(row).to_have_class("chosen")
        expect(context).to_have_text(row.locator(".value").text_content())
        expect(static).to_have_text("1.00")
        seen.add(context.text_content())
    assert len(seen) == 4
    # another word beside it: the static vector is another one then
    page.get_by_role("radiogroup").nth(1).get_by_role("radio").nth(1).click()
    expect(static).not_to_have_text("1.00")
    check(page)


def test_typing_changes_the_words(view):
    page, _ = view("compare")
    page.locator(".body textarea").first.fill("Ann saw a bank there")
    expect(page.get_by_role("radiogroup").first.get_by_role("radio")).to_have_count(5)
    page.locator(".body textarea").first.fill("")
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.locator(".foot button").first).to_be_disabled()
    check(page)


def test_where_a_word_lives(view):
    page, lang = view("where")
    points = page.locator(".point")
    expect(points).to_have_count(24)
    expect(page.locator(".legend li")).to_have_count(2)
    before = points.first.evaluate("point => point.style.transform")
    slide(page, 1)
    assert points.first.evaluate("point => point.style.transform") != before
    slide(page, 0)  # the word has one vector there
    assert len(set(points.evaluate_all("all => all.map(each => each.style.transform)"))) == 1
    slide(page, 2)
    points.nth(3).hover(force=True)
    expect(page.locator(".caption strong")).to_have_count(1)
    expect(page.locator(".caption")).to_contain_text(WORDS[lang])
    points.nth(3).focus()  # the pointer may be on another point, above this one
    said = page.locator(".caption").text_content()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".caption")).not_to_have_text(said)
    selects = page.locator(".side select")
    selects.nth(1).select_option("cluster")
    page.get_by_role("spinbutton").fill("3")
    expect(page.locator(".legend li")).to_have_count(3)
    check(page)


def test_own_sentences(view):
    page, lang = view("where")
    sets = page.locator(".side select").first
    if lang == "zh":  # an edit keeps the word of the chosen sentences
        sets.select_option("元素")
        expect(page.locator(".side textarea")).to_have_value(re.compile("元素"))
        page.locator(".side textarea").fill("这种元素很轻。\n氧元素很重。")
        expect(page.locator(".point")).to_have_count(2)
    sets.select_option("own")
    page.locator(".side input[type=text]").fill("run")
    page.locator(".side textarea").fill("A run .\nWe run fast .\nsport\tThey run .\nNothing here .")
    expect(page.locator(".point")).to_have_count(3)
    page.locator(".side input[type=text]").fill("absent")
    expect(page.get_by_role("alert")).to_contain_text("absent")
    check(page)


def test_neighbours(view):
    page, lang = view("neighbours")
    if lang == "zh":  # the index in the package is English
        page.locator(".notice button").click()
    expect(page.get_by_role("radio", checked=True)).to_have_text("left")
    expect(page.locator(".found li")).to_have_count(10)
    expect(page.locator(".found mark").first).to_have_text("left")
    expect(page.locator(".bars.static li")).to_have_count(10)
    first = page.locator(".found li").first.text_content()
    page.get_by_role("radio").filter(has_text="house").click()
    expect(page.locator(".found li").first).not_to_have_text(first)
    page.locator("summary").click()
    expect(page.locator("details pre")).to_contain_text("--senses")
    check(page)


def test_how_it_reads(view):
    page, lang = view("reading")
    words = page.locator(".strip button")
    strange = words.filter(has_text={"en": "bicycle", "zh": "自行车"}[lang])
    assert float(strange.locator(".bits.forward").text_content()) > 6
    strange.click()
    expect(page.locator(".expected .bars")).to_have_count(3)
    expect(page.locator(".expected .bars.forward li")).to_have_count(10)
    shares = page.locator(".bars.backward .value").all_text_contents()
    shares = [float(share.rstrip("%")) for share in shares]
    assert shares == sorted(shares, reverse=True)
    page.keyboard.press("ArrowLeft")
    expect(strange).to_have_attribute("aria-checked", "false")
    expect(page.locator(".expected h3")).not_to_contain_text(re.compile("bicycle|自行车"))
    check(page)


def test_token_by_token(view):
    page, _ = view("tokens")
    cells = page.locator(".heat tbody td")
    expect(cells.first).to_be_visible()
    rows, columns = (page.locator(f".heat {part} th").count() for part in ("tbody", "thead"))
    expect(cells).to_have_count(rows * columns)
    slide(page, 0)
    expect(cells.filter(has_text="1.00").first).to_be_visible()
    cells.first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.cellIndex") == 2
    second = page.locator(".heat tbody th").nth(1).text_content()
    expect(page.locator(".caption")).to_contain_text(second)
    check(page)


def test_tasks(view, served):
    """The page shows what the service predicts."""

    def fill(task, *texts):
        page.locator(".body select").select_option(task)
        expect(fields).to_have_count(len(texts))
        for place, text in enumerate(texts):
            fields.nth(place).fill(text)
        asked = {"inputs": "\t".join(texts)}
        answer = httpx.post(f"{served}/predict/{task}", json=asked, timeout=60)
        return answer.json()["predictions"][0]

    page, _ = view("tasks")
    fields, marks = page.locator(".body textarea"), page.locator(".output mark")
    found = fill("entities", "Ann went to Rome .")
    assert found["entities"]
    expect(marks).to_have_text(["".join([*e["words"], e["type"]]) for e in found["entities"]])
    found = fill("sentiment", "The film is awful. I saw it on day 3.")
    expect(page.locator(".bars .chosen .name")).to_have_text(found["label"])
    expect(page.locator(".bars li")).to_have_count(2)
    found = fill("roles", "Ann saw Bob .")
    (frame,) = found["frames"]
    expect(marks).to_have_text(["".join([*r["words"], r["role"]]) for r in frame["roles"]])
    found = fill("roles", "Ann saw Bob. Bob saw Rome.")  # each predicate with its sentence
    assert [sum(found["sentences"]), len(found["frames"])] == [len(found["words"]), 2]
    roles = [r for frame in found["frames"] for r in frame["roles"]]
    expect(marks).to_have_text(["".join([*r["words"], r["role"]]) for r in roles])
    shown = page.locator(".output .marked")
    expect(shown).to_have_count(2)
    expect(shown.nth(0)).not_to_contain_text("Rome")
    expect(shown.nth(1)).not_to_contain_text("Ann")
    found = fill("answers", "Where did Bob go?", "Ann went to Rome. Bob went to Oslo.")
    expect(marks).to_have_text(found["answer"])
    check(page)
