"""Python arguments in library errors become flags."""

import pytest

from elmokit.cli.flags import in_flags


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            "pass resume=True to continue it, or restart=True to start over",
            "pass --resume to continue it, or --restart to start over",
        ),
        ("batch_size= must be positive", "--batch-size must be positive"),
        ("batch_size=3 is too small.", "--batch-size 3 is too small."),
        ("add overwrite=True", "add --force"),
        (
            "give either a model, or both options= and weights=",
            "give either a model, or both --options-file and --weight-file",
        ),
        ("leave out sentence_keys=True", "leave out --use-sentence-keys"),
        ("leave out (forget_sentences=True)", "leave out (--forget-sentences)"),
        ("try tokenizer=\"english\", or state='warm'", "try --tokenizer english, or --state warm"),
        ("device=cuda:1 is not there", "--device cuda:1 is not there"),
        ("pass resume=False", "pass no --resume"),
        ("choose with column= and word_column=", "choose with --column and --word-column"),
        ("use init_from=my/run.", "use --init-from my/run."),
        ("leave out layers=; k=5 is", "leave out --layers; -k 5 is"),
    ],
)
def test_arguments_become_flags(message, expected):
    assert in_flags(message, []) == expected


@pytest.mark.parametrize(
    "message",
    [
        "optimizer.learning_rate=0.001 is not positive",
        "training.seed=3 and text.tokenized=True contradict each other",
        "softmax= has no flag",
        "the environment has WORLD_SIZE=2",
        "layers=[0, 2] has no form on the command line",
        "the tokenizer has no name",
        "seed == 3",
    ],
)
def test_everything_else_stays(message):
    assert in_flags(message, []) == message


@pytest.mark.parametrize(
    ("typed", "message", "expected"),
    [
        ("embed seed=3.txt a.h5", "there is no file seed=3.txt", "there is no file seed=3.txt"),
        (
            "embed a.txt out=1/a.h5 --dtype x",
            "cannot write out=1/a.h5: the folder out=1 does not exist; leave out dtype=",
            "cannot write out=1/a.h5: the folder out=1 does not exist; leave out --dtype",
        ),
        ("--threads 2 embed a b", "dtype must be float32", "--dtype must be float32"),
        ("convert a b", "format must be native", "--to must be native"),
        ("perplexity a", "pass vocabulary= and device=", "pass vocabulary= and --device"),
        ("wsd train a", "weights= is missing", "--weight-file is missing"),
        ("pretrain a --seed=-4", "training.seed must be 0", "--seed must be 0"),
        (
            "train ner --fine-tune --layers none",
            "tuning.enabled=true needs ELMo; choose input.layers other than none",
            "--fine-tune needs ELMo; choose --layers other than none",
        ),
        (
            "train ner --elmo-at output",
            "input.vectors must be token or a file if input.at=output: the encoder needs input",
            "--vectors must be token or a file if --elmo-at output: the encoder needs input",
        ),
        ("train ner --seed 1", "input.at must be input", "input.at must be input"),
        ("train ner --seed 1", "training.epochs must be 1", "training.epochs must be 1"),
        (
            "evaluate a b",
            'pass columns={"text": "1", "label": "2"}, or other columns=',
            "pass --column text=1 --column label=2, or other --column",
        ),
        ("embed a b", 'pass columns={"text": "1"}', 'pass columns={"text": "1"}'),
        ("pretrain a --seed -4", "training.seed must be 0", "--seed must be 0"),
        ("pretrain a --set training.seed=-4", "training.seed must be 0", "training.seed must be 0"),
    ],
)
def test_only_flags_of_the_command_and_never_what_was_typed(typed, message, expected):
    assert in_flags(message, typed.split()) == expected


def test_errors_are_printed_with_flags(cli, tiny_folder):
    done = cli("info", "--options-file", tiny_folder / "options.json")
    assert done.returncode == 2
    assert "--options-file and --weight-file" in done.stderr
    assert done.stderr.count("\n") == 1
