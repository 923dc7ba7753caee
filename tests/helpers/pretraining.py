"""Short runs on small texts, for several tests."""

import json
import os
import random
import socket
import subprocess
import sys
import time

import torch

from elmokit.pretrain.recipe import Recipe
from elmokit.pretrain.run.paths import RunPaths
from elmokit.pretrain.start import pretrain

NOUNS = "cat dog bird fish horse cow king queen child doctor".split()
VERBS = "sees likes follows finds hears".split()
PLACES = "house garden river city forest".split()


def sentences(n, seed=0):
    rng = random.Random(seed)
    return [
        f"the {rng.choice(NOUNS)} {rng.choice(VERBS)} the {rng.choice(NOUNS)} in the "
        f"{rng.choice(PLACES)} ."
        for _ in range(n)
    ]


SMALL = {
    "model": {
        "token_encoder": {"filters": [[1, 8], [2, 8], [3, 16]], "n_highway": 1},
        "context": {"cell_dim": 48, "projection_dim": 16},
    },
    "text": {"tokenized": True, "min_count": 1},
    "batch": {"tokens": 200},
    "softmax": {"kind": "full"},
    "optimizer": {"learning_rate": 0.02},
    "training": {"epochs": 2, "dropout": 0.1},
}


def recipe(**changes):
    values = json.loads(json.dumps(SMALL))
    for section, settings in changes.items():
        values.setdefault(section, {}).update(settings)
    return Recipe.from_dict(values)


def run(text, out, settings, resume=False, say=None, processes=None, **paths):
    places = RunPaths(*text, out, **paths)
    return pretrain(settings, places, resume=resume, device="cpu", say=say, processes=processes)


def reports(out):
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def weights(out):
    return torch.load(out / "last.pt", weights_only=True)["model"]


def same_weights(a, b):
    return all(
        torch.equal(x, y) for x, y in zip(weights(a).values(), weights(b).values(), strict=True)
    )


COMMAND = [sys.executable, "-m", "elmokit", "pretrain", "--tokenized", "--device", "cpu"]


def options(settings):
    flags = []
    for section, values in settings.items():
        for key, value in values.items():
            if isinstance(value, dict):
                for inner, v in value.items():
                    flags += ["--set", f"{section}.{key}.{inner}={json.dumps(v)}"]
            elif key != "tokenized":
                flags += ["--set", f"{section}.{key}={json.dumps(value)}"]
    return flags


IN_TURN = """
import json, os, sys
from elmokit.cli.main import app
from elmokit.pretrain.run import reporter
reporter.draw_training = lambda folder: None  # takes longer than these runs
for port, arguments in json.loads(sys.argv[1]):
    os.environ["MASTER_PORT"] = str(port)
    app(arguments, standalone_mode=False)
"""


def free_port():
    with socket.socket() as one:
        one.bind(("localhost", 0))
        return one.getsockname()[1]


def in_two_processes(*commands):
    """Run commands in turn, each in the same two processes, as torchrun would start them."""
    given = json.dumps([(free_port(), list(map(str, c))) for c in commands])
    environment = os.environ | {"OMP_NUM_THREADS": "1", "WORLD_SIZE": "2"}
    environment["MASTER_ADDR"] = "localhost"
    started = [
        subprocess.Popen(
            [sys.executable, "-c", IN_TURN, given],
            env=environment | {"RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        (said, *others), errors = zip(*(p.communicate(timeout=120) for p in started), strict=True)
    finally:
        for process in started:
            process.kill()
            process.communicate()  # closes its pipes
    assert [process.returncode for process in started] == [0, 0], errors
    assert said.count("the model is") == len(commands)
    assert others == [""]  # only the first process prints


def arguments(text, settings, out, *more):
    command = [*COMMAND[3:], text[0][0], "--valid", text[1][0], *options(settings)]
    return [*command, "--out", out, *more]


SIZES = {"n_layers": 2, "cell_dim": 48, "projection_dim": 16, "n_heads": 2}
TRANSFORMER = {"context": {"kind": "transformer"} | SIZES}


def wait_for(what, process):
    """Wait until a condition holds while a process runs, on a busy machine too."""
    deadline = time.monotonic() + 120
    while not what():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
