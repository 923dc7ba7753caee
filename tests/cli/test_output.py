"""Tables, messages, and the hint after Ctrl-C."""

from types import SimpleNamespace

import pytest

from elmokit.cli.output import kind_of_layers, print_table, resumable
from elmokit.cli.streams import StoppedError
from elmokit.config import ContextConfig


def test_layers_are_called_what_they_are(tiny):
    assert kind_of_layers(tiny) == "LSTM"
    config = SimpleNamespace(context=ContextConfig(kind="transformer"))
    assert kind_of_layers(SimpleNamespace(config=config)) == "transformer"


def test_names_stay_whole_among_many_columns(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    print_table(["F1", *["LSTM layer 1"] * 9], [["semeval2007", *["67.2"] * 9]])
    shown = capsys.readouterr().out
    assert ["semeval2007", *["67.2"] * 9] in [line.split() for line in shown.splitlines()]


def test_tables_cut_nothing(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    words = ["a-very-long-name-of-a-test-set", "another-long-word-in-a-column"]
    print_table(["name", "value"], [words])
    shown = capsys.readouterr().out
    assert "…" not in shown
    for word in words:
        assert all(character in shown for character in word)
    lines = [line.split() for line in shown.splitlines() if line.strip()]
    cells = [line for line in lines if len(line) == 2][1:]
    assert "".join(cell[0] for cell in cells).startswith("a-very-long-name")


@pytest.mark.parametrize("kept", [True, False])
def test_ctrl_c_names_resume_if_there_is_something_to_resume(tmp_path, kept):
    if kept:
        (tmp_path / "out.h5.partial").mkdir()
        for name in ("settings.json", "vectors"):
            (tmp_path / "out.h5.partial" / name).touch()
    hint = "; add --resume to the same command to continue" if kept else ""
    with (
        pytest.raises(StoppedError, match=f"^stopped{hint}$"),
        resumable(tmp_path / "out.h5"),
    ):
        raise KeyboardInterrupt


def test_long_tables_are_cut(capsys, monkeypatch):
    monkeypatch.setattr("elmokit.cli.output._MOST_ROWS", 3)
    print_table(["n", "value"], [[f"row {n}", "1"] for n in range(1003)])
    shown = capsys.readouterr().out
    assert "row 2" in shown
    assert "row 3" not in shown
    assert shown.endswith("… and 1,000 more rows; --out writes all of them\n")
