"""The model card (README.md) of a saved model."""

from __future__ import annotations

from elmokit._version import __version__
from elmokit.formats.checkpoint import Checkpoint


def model_card(checkpoint: Checkpoint, name: str, load: str = "load") -> str:
    """Return a README for a model folder: what the model is, its origin, and how to use it.

    Args:
        checkpoint: The model.
        name: Its name.
        load: The method of Elmo that loads it by this name.
    """
    encoder, context = checkpoint.config.token_encoder, checkpoint.config.context
    filters = ", ".join(f"{width}:{count}" for width, count in encoder.filters)
    directions = "forward and backward" if context.bidirectional else "forward only"
    vocabulary = (
        f"{checkpoint.config.vocabulary_size:,} words"
        if checkpoint.config.vocabulary_size
        else "none (vectors only)"
    )
    return f"""# {name}

An ELMo model saved by ElmoKit {__version__}.

| | |
|---|---|
| parameters without softmax | {checkpoint.n_parameters:,} |
| vector width | {context.output_dim} |
| layers | 1 token layer + {context.n_layers} {context.label} layers, {directions} |
| {context.label} | {context.cell_dim} {context.inner_label}, projection {context.projection_dim} |
| clipping | cell {context.cell_clip}, projection {context.proj_clip} |
| residual connections | {"yes" if context.skip_connections else "no"} |
| characters | {encoder.alphabet}, at most {encoder.max_characters} per word |
| filters (width:count) | {filters} |
| highway layers | {encoder.n_highway} |
| softmax | {vocabulary} |
| tokenizer for raw text | {checkpoint.config.tokenizer} |
| source format | {checkpoint.format} |
| SHA-256 of the weights | `{checkpoint.checksum()}` |

```python
from elmokit import Elmo

elmo = Elmo.{load}("{name}")
vectors = elmo.encode(["I went to the bank to deposit money"])  # one (T, {context.output_dim})
```

Describe here what the model was trained on, its licence, its quality, and its limits.
"""
