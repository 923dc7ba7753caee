"""The public interface: listed once, importable, and complete."""

import inspect
import re

import pytest

import elmokit
import elmokit.nn
from elmokit import Elmo, ElmoEmbedding, errors

PUBLIC = """
    Alphabet BiLM BiLMState CarriedState Checkpoint ConfigError ContextConfig DataWarning Elmo
    ElmoEmbedding ElmoKitError ElmoOutput FormatError InputError LanguageWarning Layers
    MissingExtraError MixConfig ModelConfig ModelError ModelNotFoundError OutOfMemoryError
    OutputError Perplexity ScalarMix Score ShapeError State Text TokenEncoderConfig Tokenizer
    TrainingError UnsupportedModelError Vocabulary __version__
""".split()


def test_elmokit_exports_exactly_its_public_names():
    assert dir(elmokit) == PUBLIC
    for name in elmokit.__all__:
        assert getattr(elmokit, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = elmokit.nothing


def test_every_error_is_public():
    raised = {
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, errors.ElmoKitError)
    }
    assert raised <= set(PUBLIC)


@pytest.mark.parametrize("owner", [Elmo, ElmoEmbedding, elmokit.CarriedState, elmokit.BiLMState])
def test_types_in_public_signatures_can_be_imported(owner):
    """Capitalised names in annotations come from elmokit, typing, numpy or torch."""
    known = {*PUBLIC, "Any", "Array", "Callable", "Iterable", "Iterator", "None", "Path", "Self",
             "Sequence", "Tensor", "DTypeLike", "PretrainedELMo", "DType", "Module"}  # fmt: skip
    for name, member in inspect.getmembers(owner):
        if name.startswith("_") and name != "__init__":
            continue
        function = member.fget if isinstance(member, property) else member
        if not inspect.isfunction(inspect.unwrap(getattr(function, "__func__", function))):
            continue
        own = inspect.unwrap(getattr(function, "__func__", function))
        if not own.__module__.startswith("elmokit"):
            continue
        for annotation in own.__annotations__.values():
            for used in re.findall(r"\b[A-Z]\w+", str(annotation)):
                assert used in known, f"{owner.__name__}.{name}: {used}"


def test_nn_exports_exactly_its_public_names():
    assert sorted(elmokit.nn.__all__) == [
        "BiLM", "BiLMState", "CharEncoder", "ElmoEmbedding", "ElmoOutput", "FullSoftmax",
        "ProjectedLSTM", "ScalarMix",
    ]  # fmt: skip
