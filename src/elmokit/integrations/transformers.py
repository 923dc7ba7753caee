"""ELMo as a model of transformers: Auto classes, ``Trainer`` and ``save_pretrained`` work with it.

Importing this module registers the classes, so ``AutoModel.from_pretrained(folder)`` finds them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from elmokit.config import MixConfig, ModelConfig
from elmokit.elmo import Elmo
from elmokit.errors import ConfigError, InputError, MissingExtraError, shown
from elmokit.formats.checkpoint import Checkpoint
from elmokit.inference.layers import LayerChoice
from elmokit.integrations.character_tokenizer import ElmoTokenizer
from elmokit.nn.bilm import BiLM
from elmokit.nn.char_encoder import CharEncoder
from elmokit.nn.embedding import check_ids, marked_layers
from elmokit.nn.lstm import ProjectedLSTM
from elmokit.nn.scalar_mix import ScalarMix

try:
    from transformers import (
        AutoConfig,
        AutoModel,
        AutoModelForTokenClassification,
        AutoTokenizer,
        PreTrainedConfig,
        PreTrainedModel,
    )
    from transformers.modeling_outputs import BaseModelOutput, TokenClassifierOutput
except ImportError as error:
    raise MissingExtraError("transformers>=5.22", "transformers", "ElmoModel") from error

__all__ = ["ElmoConfig", "ElmoForTokenClassification", "ElmoModel", "ElmoTokenizer"]


class ElmoConfig(PreTrainedConfig):
    """Settings of an :class:`ElmoModel`.

    Args:
        elmo: The settings of the biLM, as :meth:`elmokit.ModelConfig.to_dict` returns them.
        marks: Character ids (2, C) of the two sentence marks; needed for the alphabet codepoints.
        layers: What ``last_hidden_state`` is: "mix" (learned layer weights), "average", "top", or
            the number of a layer.
        trainable: Fine-tune the biLM. If False, it runs without gradients and only the layer
            weights and the head learn.
        classifier_dropout: Dropout before the classifier of tokens.
        **keywords: As for every config of transformers.
    """

    model_type = "elmokit-elmo"

    def __init__(
        self,
        elmo: dict[str, Any] | None = None,
        marks: list[list[int]] | None = None,
        layers: str | int = "mix",
        trainable: bool = False,
        classifier_dropout: float = 0.1,
        **keywords: Any,
    ) -> None:
        model = ModelConfig.from_dict(elmo or {})
        # without the softmax, and with the layer weights as parameters
        model = replace(model, vocabulary_size=0, softmax_cutoffs=(), mix=MixConfig())
        if marks is None and model.token_encoder.alphabet != "utf8":
            raise ConfigError("a model with its own characters needs marks=; use from_elmo()")
        if LayerChoice.parse(layers, model.n_layers).stacked:
            raise ConfigError(f"layers must be mix, average, top or a number, not {shown(layers)}")
        self.elmo, self.marks, self.layers = model.to_dict(), marks, layers
        self.trainable, self.classifier_dropout = trainable, classifier_dropout
        super().__init__(**{"pad_token_id": 0, **keywords})

    @classmethod
    def from_elmo(cls, elmo: Elmo, **keywords: Any) -> ElmoConfig:
        """Return the settings of a loaded model."""
        config = elmo.checkpoint().config
        marks = None
        if config.token_encoder.alphabet != "utf8":
            marks = ElmoTokenizer.from_elmo(elmo).marks()
        return cls(config.to_dict(), marks, **keywords)

    @property
    def model(self) -> ModelConfig:
        """The settings of the biLM."""
        return ModelConfig.from_dict(self.elmo)

    @property
    def hidden_size(self) -> int:
        """Width D of every vector."""
        return self.model.context.output_dim

    @property
    def num_hidden_layers(self) -> int:
        """Number of layers above the token layer."""
        return self.model.context.n_layers


class ElmoPreTrainedModel(PreTrainedModel):
    """What both models share: the config, new weights, and creation from a loaded model."""

    config_class = ElmoConfig
    base_model_prefix = "elmo"
    main_input_name = "input_ids"

    @classmethod
    def from_elmo(cls, elmo: Elmo, **keywords: Any) -> Any:
        """Return a model with a copy of the weights of a loaded model.

        Args:
            elmo: The model.
            **keywords: Settings of :class:`ElmoConfig`: layers, trainable, id2label …
        """
        made = cls(ElmoConfig.from_elmo(elmo, **keywords))
        base = made.base_model
        base.bilm.load_state_dict(elmo.bilm.state_dict())
        base.mix.load_state_dict(elmo.mix.state_dict())
        return made.to(elmo.device).eval()

    @classmethod
    def from_pretrained(cls, *args: Any, **keywords: Any) -> Any:
        """Load a saved model, as for every model of transformers; settings are keywords."""
        loaded = super().from_pretrained(*args, **keywords)
        model = loaded[0] if isinstance(loaded, tuple) else loaded
        model.base_model._freeze()  # loading makes all weights trainable
        return loaded

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, ScalarMix):
            nn.init.zeros_(module.weights)
            nn.init.ones_(module.gamma)
        elif isinstance(module, CharEncoder | ProjectedLSTM):
            module.reset_parameters()
        elif module is getattr(self, "classifier", None):
            super()._init_weights(module)


class ElmoModel(ElmoPreTrainedModel):
    """ELMo as a ``PreTrainedModel``: character ids to vectors.

    ``last_hidden_state`` (B, T, D) is the layer or mix that the config names, ``hidden_states``
    are all layers, the token layer first. Sentence marks are added inside and are not in the
    output. The padding is zero and has no influence.

    Args:
        config: The settings.

    Examples:
        >>> from elmokit import Elmo
        >>> from elmokit.integrations.transformers import ElmoModel, ElmoTokenizer
        >>> elmo = Elmo.load()
        >>> tokenizer, model = ElmoTokenizer.from_elmo(elmo), ElmoModel.from_elmo(elmo)
        >>> batch = tokenizer(["The cat sat.", "A dog"], padding=True, return_tensors="pt")
        >>> model(**batch).last_hidden_state.shape
        torch.Size([2, 4, 768])
    """

    def __init__(self, config: ElmoConfig) -> None:
        super().__init__(config)
        self.bilm = BiLM(config.model)
        self.mix = ScalarMix(config.model.n_layers)
        self._marks = config.marks or ElmoTokenizer(config.elmo).marks()
        self.post_init()
        self._freeze()

    def _freeze(self) -> None:
        self.bilm.requires_grad_(self.config.trainable)
        self.mix.requires_grad_(self.config.layers == "mix")

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
    ) -> BaseModelOutput | tuple[Any, ...]:
        """Vectors of a batch.

        Args:
            input_ids: Character ids (B, T, C) from :class:`ElmoTokenizer`.
            attention_mask: (B, T), 1 for real tokens; padding comes after them.
            output_hidden_states: Also return all layers.
            return_dict: Return named outputs instead of a tuple. Default: what the config says.
        """
        if output_hidden_states is None:
            output_hidden_states = self.config.output_hidden_states
        ids, mask = self._masked(input_ids, attention_mask)
        marks = torch.tensor(self._marks)
        with torch.set_grad_enabled(self.config.trainable and torch.is_grad_enabled()):
            layers = marked_layers(self.bilm, ids, mask.sum(-1), marks)[:, :, 1:-1]
        layers = torch.where(mask[..., None], layers, 0)
        choice = LayerChoice.parse(self.config.layers, len(layers))
        output = BaseModelOutput(
            last_hidden_state=choice.apply(layers, self.mix)[0],
            hidden_states=tuple(layers) if output_hidden_states else None,
        )
        named = self.config.return_dict if return_dict is None else return_dict
        return output if named else output.to_tuple()

    def _masked(self, ids: Tensor, attention_mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Checked ids, zero in the padding, and the mask (B, T) of real tokens."""
        if ids.dim() != 3:
            check_ids(self.bilm, ids, "input_ids")  # says what is wrong
        mask = ids[..., 0] > 0
        if attention_mask is not None:
            if attention_mask.shape != ids.shape[:2]:
                raise InputError(
                    f"attention_mask must have the shape {tuple(ids.shape[:2])} of the tokens, not "
                    f"{tuple(attention_mask.shape)}"
                )
            mask = mask & attention_mask.bool()
            ids = ids * mask[..., None]
        ids = check_ids(self.bilm, ids, "input_ids").to(torch.long)
        if ids.shape[-1] != (columns := len(self._marks[0])):
            raise InputError(f"input_ids must have {columns} ids per word, not {ids.shape[-1]}")
        return ids, mask

    def to_elmo(self, tokenizer: ElmoTokenizer) -> Elmo:
        """Return a model of ElmoKit with a copy of the weights, such as fine-tuned ones.

        Args:
            tokenizer: The tokenizer of this model, which has its characters and words.
        """
        weights = tuple(self.mix.weights.tolist())
        config = replace(self.config.model, mix=MixConfig(weights, self.mix.gamma.item()))
        tensors = {name: t.detach().clone() for name, t in self.bilm.state_dict().items()}
        checkpoint = Checkpoint(
            config, tensors, None, tokenizer.characters, tokenizer.words, format="transformers"
        )
        return Elmo(checkpoint, device=self.device)


class ElmoForTokenClassification(ElmoPreTrainedModel):
    """A linear classifier of tokens on ELMo, for ``Trainer``.

    Args:
        config: The settings; ``num_labels``, ``id2label`` and ``label2id`` as for other models.
    """

    def __init__(self, config: ElmoConfig) -> None:
        super().__init__(config)
        self.elmo = ElmoModel(config)
        self.dropout = nn.Dropout(config.classifier_dropout)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
    ) -> TokenClassifierOutput | tuple[Any, ...]:
        """Scores of labels (B, T, number of labels), and the loss if labels are given.

        Args:
            input_ids: As for :class:`ElmoModel`.
            attention_mask: As for :class:`ElmoModel`.
            labels: The number (B, T) of each token's label; -100 where there is none.
            output_hidden_states: As for :class:`ElmoModel`.
            return_dict: As for :class:`ElmoModel`.
        """
        found = self.elmo(input_ids, attention_mask, output_hidden_states, return_dict=True)
        logits = self.classifier(self.dropout(found.last_hidden_state))
        loss = None
        if labels is not None:
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
        output = TokenClassifierOutput(loss=loss, logits=logits, hidden_states=found.hidden_states)
        named = self.config.return_dict if return_dict is None else return_dict
        return output if named else output.to_tuple()


AutoConfig.register(ElmoConfig.model_type, ElmoConfig, exist_ok=True)
AutoModel.register(ElmoConfig, ElmoModel, exist_ok=True)
AutoModelForTokenClassification.register(ElmoConfig, ElmoForTokenClassification, exist_ok=True)
AutoTokenizer.register(ElmoConfig, tokenizer_class=ElmoTokenizer, exist_ok=True)
