"""The modules of task models: tensors in, tensors out, no files and no printing.

Letters for shapes: B sentences, T tokens, C characters, D width of a token's vector, H width of one
direction of a biLSTM, F filters, K tags or classes. Padding does not change the results of a
sentence, except through batch normalisation in training.
"""

from elmokit.tasks.heads.alternating import AlternatingLSTM, HighwayLSTM
from elmokit.tasks.heads.biattentive import BiattentiveClassifier
from elmokit.tasks.heads.bio_viterbi import best_bio
from elmokit.tasks.heads.crf import CRF, allowed_transitions
from elmokit.tasks.heads.encoders import BiGRUEncoder, BiLSTMEncoder, CharCNN, LockedDropout
from elmokit.tasks.heads.entity_attention import EntityAttention
from elmokit.tasks.heads.esim import ESIM
from elmokit.tasks.heads.pair import SiameseHead
from elmokit.tasks.heads.sentence_pooling import AttentionPooling, SentencePooling
from elmokit.tasks.heads.span_ranking import SpanRanker

__all__ = [
    "CRF",
    "ESIM",
    "AlternatingLSTM",
    "AttentionPooling",
    "BiGRUEncoder",
    "BiLSTMEncoder",
    "BiattentiveClassifier",
    "CharCNN",
    "EntityAttention",
    "HighwayLSTM",
    "LockedDropout",
    "SentencePooling",
    "SiameseHead",
    "SpanRanker",
    "allowed_transitions",
    "best_bio",
]
