"""The command elmokit serve: mistakes, warnings, and task models by a real server."""

import json
import signal
import socket

import httpx
import pytest

from elmokit.tasks import NerTagger, QuestionAnswerer, load
from helpers.processes import one_sentence
from helpers.serving import service
from helpers.task_data import TEXTS, questions, tagged


def test_a_port_in_use(cli, tiny_folder):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = cli("serve", "--model", tiny_folder, "--port", taken.getsockname()[1])
    assert one_sentence(done, "cannot listen on 127.0.0.1")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--model", "nowhere"], "nowhere"),
        (["--model", "a="], "has no path"),
        (["--api-key-file", "nowhere"], "cannot read the keys"),
        (["--senses", "nowhere"], "needs --wordnet"),
        (["--task", "nowhere"], "nowhere"),
        (["--index", "nowhere"], "there is no index"),
        (["--max-queue", "0"], "--max-queue"),
    ],
)
def test_mistakes(cli, given, words, tiny_folder, monkeypatch):
    monkeypatch.delenv("ELMOKIT_WORDNET", raising=False)
    given = given if "--model" in given else [*given, "--model", tiny_folder]
    assert one_sentence(cli("serve", "--port", "0", *given), words)


def test_two_models_of_one_name(cli, tiny_folder):
    done = cli("serve", "--port", 0, "--model", f"a={tiny_folder}", "--model", f"a={tiny_folder}")
    assert one_sentence(done, "two models are named 'a'")


def test_a_public_service_without_a_key_warns(tmp_path, tiny_folder):
    given = ("--model", tiny_folder, "--host", "0.0.0.0", "--no-access-log")
    with service(tmp_path, *given) as running:
        url = running.url.replace("0.0.0.0", "127.0.0.1")
        assert httpx.get(f"{url}/health", headers={"Host": "any.example"}).status_code == 200
        assert running.stop(signal.SIGINT) == 130
        said = running.log.read_text()
    assert "without a key" in said
    assert '"route"' not in said


def test_task_models(tmp_path, tiny_folder, tiny):
    folder, settings = tmp_path / "my-ner", {"training": {"epochs": 1}}
    NerTagger.train(tagged(20), tagged(5), elmo=tiny, settings=settings).save(folder)
    with service(tmp_path, "--model", tiny_folder, "--task", folder) as running:
        asked = [*TEXTS["ner"], ["Ann", "slept"], "", {"text": "Bob <b> slept"}]
        found = httpx.post(f"{running.url}/predict/my-ner", json={"inputs": asked}).json()
        info = httpx.get(f"{running.url}/info").json()["tasks"]
        wrong = httpx.post(f"{running.url}/predict/my-ner", json={"inputs": {"a": "b"}})
        missing = httpx.post(f"{running.url}/predict/other", json={"inputs": "a"})
    task = load(folder)
    assert info == [{"name": "my-ner", "task": "ner", "labels": task.labels}]
    assert found["task"] == "ner"
    for text, row in zip(TEXTS["ner"], found["predictions"], strict=False):
        right = {"text": text} | json.loads(json.dumps(task.record(task(text))))
        assert {name: row[name] for name in right} == right
        assert row["html"].startswith('<p dir="auto">')
        for span, entity in zip(row["spans"], row["entities"], strict=True):
            assert text[span["start"] : span["stop"]] == " ".join(entity["words"])
    assert found["predictions"][2]["words"] == ["Ann", "slept"]
    assert found["predictions"][3]["words"] == []
    assert "<b>" not in found["predictions"][4]["html"]
    assert wrong.status_code == 422
    assert missing.status_code == 404
    assert "my-ner" in missing.json()["error"]


def test_a_task_about_two_texts(tmp_path, tiny_folder, lm_folder, tiny):
    """Its biLM is not among the models that are served."""
    settings = {"training": {"epochs": 1}}
    qa = QuestionAnswerer.train(questions(8), questions(4), elmo=tiny, settings=settings)
    qa.save(tmp_path / "qa")
    given = ("--model", lm_folder, "--task", f"answers={tmp_path / 'qa'}")
    question, passage = TEXTS["qa"][1].split("\t")
    with service(tmp_path, *given) as running:
        body = {"inputs": [TEXTS["qa"][1], {"question": question, "passage": passage}]}
        line, fields = httpx.post(f"{running.url}/predict/answers", json=body).json()["predictions"]
        refused = httpx.post(f"{running.url}/predict/answers", json={"inputs": "no tab"})
    right = load(tmp_path / "qa")((question, passage))
    for row in (line, fields):
        assert row["answer"] == right.text == passage[row["start"] : row["end"]]
        assert row["spans"] == [{"start": row["start"], "stop": row["end"], "label": "answer"}]
    assert fields["question"] == question
    assert refused.status_code == 422
