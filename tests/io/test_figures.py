"""Pictures find fonts for the characters they show."""

import warnings

import pytest

from elmokit.analysis.reports.report import Report
from elmokit.io import fonts
from elmokit.io.figures import save_figure

pytest.importorskip("matplotlib")


@pytest.fixture
def made_up(monkeypatch):
    """Replace the installed fonts by made-up ones, given as characters by family."""

    def install(known, new=None):
        faces = known | (new or {})

        class Face:
            def __init__(self, family):
                self.family = family

            def get_char_index(self, code):
                return int(chr(code) in faces[self.family])

        def listed(some):
            return lambda: [(family, family, 0) for family in some]

        fonts.families_with.cache_clear()
        monkeypatch.setattr(fonts, "_open", lambda file, face: Face(file))
        monkeypatch.setattr(fonts, "_known_fonts", listed(known))
        monkeypatch.setattr(fonts, "_new_fonts", listed(new or {}))

    yield install
    fonts.families_with.cache_clear()


def test_fonts_are_chosen_by_their_characters(made_up):
    made_up({"Noto Sans CJK SC": "河", "Obscure": "河岸", "Latin": "ab", "Last Resort": "河岸x"})
    assert fonts.families_with(frozenset("河岸")) == ["Obscure"]
    assert fonts.families_with(frozenset("河")) == ["Noto Sans CJK SC"]  # a known name comes first
    assert fonts.families_with(frozenset("岸a")) == ["Latin", "Obscure"]  # as few as possible
    assert fonts.families_with(frozenset("岸x")) == ["Obscure"]  # a placeholder is no glyph


def test_fonts_installed_later(made_up):
    made_up({"Old": "a"}, {"New": "河岸"})
    assert fonts.families_with(frozenset("河岸")) == ["New"]
    assert fonts.families_with(frozenset("a")) == ["Old"]
    assert fonts.families_with(frozenset("🙂")) == []


def test_a_font_that_cannot_be_read(tmp_path):
    (tmp_path / "x.ttf").write_bytes(b"no font")
    assert fonts._open(str(tmp_path / "x.ttf"), 0) is None
    assert fonts._covered(str(tmp_path / "no.ttf"), 0, [65]) == set()


def draw(figure):
    axes = figure.subplots()
    axes.set_title("河岸 bank")
    axes.set_xticks([0], ["苹果"])


def test_no_font(made_up, tmp_path):
    made_up({})
    assert save_figure(draw, (2, 2), tmp_path / "x.png") == "岸果河苹"
    assert save_figure(draw, (2, 2), tmp_path / "x.svg") == ""
    report = Report("河岸", ["a"], [["b"]], draw=draw)
    report.write(tmp_path / "y")
    (warning,) = report.warnings
    assert warning.startswith("no installed font has 岸果河苹, so the PNG shows boxes; install")
    assert "apt install fonts-noto-cjk" in warning
    report = Report("🫨", ["a"], [["b"]], draw=lambda figure: figure.subplots())
    report.write(tmp_path / "z")
    assert all("install a font that has them" in one for one in report.warnings)


def test_english_needs_no_search(made_up, tmp_path, monkeypatch):
    monkeypatch.setattr("elmokit.io.figures.families_with", None)
    axes = []
    assert (
        save_figure(lambda f: axes.append(f.subplots()), (2, 2), tmp_path / "x.png", "Ä $5$") == ""
    )


def test_a_real_font(tmp_path):
    if not fonts.families_with(frozenset("河岸苹果")):
        pytest.skip("no installed font has Chinese characters")
    report = Report("河岸", ["a"], [["b"]], draw=draw)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report.write(tmp_path / "x")
    assert report.warnings == []
    svg = (tmp_path / "x.svg").read_text(encoding="utf-8")
    assert "'DejaVu Sans', '" in svg  # Latin letters keep the usual font
