"""Reports of a run: the picture of training, and how busy the GPU is."""

import pytest
import torch

from elmokit.pretrain.objective.stopwatch import gpu_busy
from elmokit.pretrain.run.folder import RunFolder
from elmokit.pretrain.run.reporter import draw_training
from helpers.pretraining import recipe, reports, run


@pytest.mark.parametrize("shares", [(1.0,), (0.0,), (1.0, 0.0)])
def test_picture_of_training(tmp_path, shares):
    """The losses of the sampled and of the full softmax are two curves."""
    from matplotlib.figure import Figure

    folder = RunFolder(tmp_path)
    for step in range(20):
        drawn = bool(shares[step * len(shares) // 20])
        values = {"tokens": 1000 * step, "step": step}
        folder.report(kind="training", loss=9 - step / 4, sampled=drawn, **values)
        for whole in (False, True)[: 1 + (step == 19)]:
            folder.report(kind="evaluation", mean=20_000 / 1.3**step, whole=whole, **values)
    figures = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", lambda self, path, **_: figures.append(self))
        draw_training(folder)
    left, right = figures[0].axes
    assert left.get_xlabel() == "training tokens (thousands)"
    assert max(left.lines[-1].get_xdata()) == 19
    assert [len(line.get_xdata()) for line in left.lines] == [20 // len(shares)] * len(shares)
    names = [] if left.legend_ is None else [t.get_text() for t in left.legend_.texts]
    among = {1.0: "loss (sampled words)", 0.0: "loss (all words)"}
    assert names == ([among[share] for share in shares] if 1.0 in shares else [])
    assert len(right.lines[0].get_xdata()) == 20  # the last, by all of the text, is not in it
    assert right.get_ylabel() == f"validation perplexity, {20_000 / 1.3**19:.1f} at the end"


def test_one_loss_is_a_point(tmp_path, monkeypatch):
    """A run of a few seconds reports its loss once, and a line would not be seen."""
    from matplotlib.figure import Figure

    folder, figures = RunFolder(tmp_path), []
    folder.report(kind="training", loss=3.0, sampled=False, tokens=1000, step=5)
    monkeypatch.setattr(Figure, "savefig", lambda self, path, **_: figures.append(self))
    draw_training(folder)
    assert figures[0].axes[0].lines[0].get_marker() == "o"


def test_how_busy_the_gpu_is(text, tmp_path, monkeypatch):
    """Utilisation is reported if it is known."""
    device = torch.device("cuda")
    monkeypatch.setattr(torch.cuda, "utilization", lambda device: 93)
    assert gpu_busy(device) == 0.93
    monkeypatch.setattr(torch.cuda, "utilization", lambda device: 1 / 0)
    assert gpu_busy(device) is None
    assert gpu_busy(torch.device("cpu")) is None
    lines = []
    monkeypatch.setattr("elmokit.pretrain.trainer.gpu_busy", lambda device: 0.93)
    settings = recipe(training={"epochs": 0.2})
    run(text, tmp_path / "run", settings, say=lines.append)
    assert any("GPU 93% busy" in line for line in lines)
    training = [r for r in reports(tmp_path / "run") if r["kind"] == "training"]
    assert training
    assert all(r["gpu_busy"] == 0.93 for r in training)
