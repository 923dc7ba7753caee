"""Ctrl-C and SIGTERM: while text is prepared, in training, and once more."""

import json
import multiprocessing
import signal
import subprocess
import time

import pytest
import torch

from elmokit.pretrain.run.stop_signal import STOPPING, StopSignal
from helpers.pretraining import COMMAND, SMALL, arguments, recipe, reports, run, wait_for


def start(text, out, environment, *more, **training):
    settings = json.loads(json.dumps(SMALL))
    settings["training"] |= {"epochs": 1000, "save_every": 100.0} | training
    return subprocess.Popen(
        [*COMMAND[:3], *arguments(text, settings, out, *more)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_and_stops(text, tmp_path, one_thread, number):
    out = tmp_path / "run"
    process = start(text, out, one_thread, evaluate_every=0.001)
    wait_for((out / "metrics.jsonl").exists, process)  # the first evaluation, in the loop
    process.send_signal(number)
    said, error = process.communicate(timeout=60)
    assert process.returncode == 0, error
    assert said.index(STOPPING) < said.index("stopped and saved")
    state = torch.load(out / "last.pt", weights_only=True)
    assert state["progress"]["step"] == reports(out)[-1]["step"]


def test_a_signal_while_text_is_prepared(text, tmp_path, one_thread):
    """Nothing half-done is left, and no process prints a traceback."""
    text[0][0].write_text(text[0][0].read_text() * 2000)
    out = tmp_path / "run"
    process = start(text, out, one_thread, "--processes", "2")
    wait_for(lambda: list(out.glob("data/.train.*.tmp")), process)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "Traceback" not in error
    assert [p.name for p in (out / "data").iterdir()] == ["lock"]


def test_the_second_signal_stops_at_once(text, tmp_path, monkeypatch):
    """The last checkpoint is as it was, and the run can be resumed."""
    from elmokit.pretrain.trainer import Trainer

    step, out = Trainer._step, tmp_path / "run"

    def interrupted(self, *arguments):
        if self.progress.step == 12:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
        return step(self, *arguments)

    monkeypatch.setattr(Trainer, "_step", interrupted)
    settings, said = recipe(training={"epochs": 1, "save_every": 0.0}), []
    with pytest.raises(KeyboardInterrupt):
        run(text, out, settings, say=said.append)
    assert said[-1] == STOPPING
    assert torch.load(out / "last.pt", weights_only=True)["progress"]["step"] == 11
    monkeypatch.undo()
    assert run(text, out, None, resume=True) is not None


def test_the_first_signal_outside_training():
    said = []
    with StopSignal(said.append) as stop:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        with stop.after_the_step():
            signal.raise_signal(signal.SIGTERM)
            assert stop.asked
            signal.raise_signal(signal.SIGTERM)  # Slurm and torchrun send one each
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
    assert said == [STOPPING]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_due_evaluation_is_skipped(text, tmp_path, monkeypatch):
    """Ctrl-C in the step before an evaluation does not wait for it."""
    from elmokit.pretrain.trainer import Trainer

    due = []
    real = Trainer._evaluate_if_due

    def evaluating(self, reporter):
        due.append(self.progress.step)
        return real(self, reporter)

    step = Trainer._step

    def stopping(self, *arguments):
        if self.progress.step == 5:
            self.stop()
        return step(self, *arguments)

    monkeypatch.setattr(Trainer, "_step", stopping)
    monkeypatch.setattr(Trainer, "_evaluate_if_due", evaluating)
    assert run(text, tmp_path / "run", recipe()) is None
    assert 5 not in due
    assert [r["kind"] for r in reports(tmp_path / "run")] == ["training"]


def test_a_process_that_reads_batches_outlives_sigterm_for_a_while(monkeypatch):
    """Slurm ends all processes at once, but the training process needs it to finish its step."""
    from elmokit.pretrain.data import feed

    monkeypatch.setattr(feed, "GRACE_SECONDS", 1)

    def work(pipe):
        feed._leave_signals(0)
        pipe.send("ready")
        # a signal just before a sleep is answered after it
        for _ in range(600):
            time.sleep(0.1)

    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=work, args=(theirs,), daemon=True)
    process.start()
    assert ours.recv() == "ready"
    process.terminate()
    process.join(0.3)
    assert process.is_alive()
    process.join(30)
    assert process.exitcode == -signal.SIGALRM
