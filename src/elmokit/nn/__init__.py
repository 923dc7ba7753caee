"""The paper as modules: tensors in, tensors out, no files and no printing.

Letters used for shapes everywhere: B sentences, T tokens with the two sentence marks, C characters,
W distinct words, F filters, H cells, P projection, D = 2P (P for a forward model), L LSTM layers,
V vocabulary.
"""

from elmokit.nn.bilm import BiLM, BiLMState
from elmokit.nn.char_encoder import CharEncoder
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
