"""The paper as modules: tensors in, tensors out, no files and no printing.

Letters for shapes, used everywhere: B sentences, T tokens (two sentence marks included), N packed
tokens, C characters, W distinct words, F filters, H cells, P projection, D = 2P (P for a
forward-only model), R directions (1 or 2), L context layers, V vocabulary.
"""

from elmokit.nn.bilm import BiLM
from elmokit.nn.char_encoder import CharEncoder
from elmokit.nn.context import BiLMState
from elmokit.nn.embedding import ElmoEmbedding, ElmoOutput
from elmokit.nn.lstm import ProjectedLSTM
from elmokit.nn.scalar_mix import ScalarMix
from elmokit.nn.softmax import FullSoftmax

__all__ = [
    "BiLM",
    "BiLMState",
    "CharEncoder",
    "ElmoEmbedding",
    "ElmoOutput",
    "FullSoftmax",
    "ProjectedLSTM",
    "ScalarMix",
]
