"""ScalarMix, ElmoEmbedding, and training through them."""

import copy
import io

import numpy as np
import pytest
import torch

from elmokit import ContextConfig, Elmo, ModelConfig, TokenEncoderConfig
from elmokit.errors import InputError
from elmokit.kernels.ragged import Ragged
from elmokit.nn import BiLM, ElmoEmbedding, ProjectedLSTM, ScalarMix
from helpers.models import SENTENCES
from helpers.numbers import assert_close


def test_mix_agrees_with_a_calculation_by_hand():
    layers = [torch.full((1, 2, 3), v) for v in (1.0, 2.0, 4.0)]
    assert ScalarMix(3)(layers).allclose(torch.full((1, 2, 3), 7 / 3))
    mix = ScalarMix(3, weights=[0.0, np.log(2), 0.0], gamma=0.5, l2=0.1)
    assert mix(layers).allclose(torch.full((1, 2, 3), 0.5 * (1 + 4 + 4) / 4))
    assert mix.penalty().item() == pytest.approx(0.1 * np.log(2) ** 2)
    assert all(not p.requires_grad for p in ScalarMix(3, trainable=False).parameters())
    with pytest.raises(InputError, match="weights must be 3 numbers, one per layer"):
        ScalarMix(3, weights=[0.0, 0.0])
    with pytest.raises(InputError, match="layers must be 3 of the shape"):
        mix(layers[:2])


@pytest.mark.parametrize("flavour", ["bilm-tf", "allennlp"])
def test_mix_normalises_over_real_tokens(flavour):
    torch.manual_seed(0)
    layer, mask = torch.randn(2, 4, 5), torch.tensor([[1, 1, 1, 0], [1, 0, 0, 0]]).bool()
    real = layer[mask]
    expected = (layer - real.mean()) / real.var(unbiased=False).sqrt()
    mixed = ScalarMix(1, layer_norm=flavour)([layer], mask)
    assert_close(mixed[mask].detach(), expected[mask])
    with pytest.raises(InputError, match="needs a mask"):
        ScalarMix(1, layer_norm=flavour)([layer])
    with pytest.raises(InputError, match="bilm-tf, allennlp"):
        ScalarMix(1, layer_norm="batch")


def test_embedding_agrees_with_encode(tiny):
    embedding = ElmoEmbedding(tiny, n_outputs=2)
    embedding.eval()
    (first, second), mask = embedding(SENTENCES)
    assert first.shape == (6, 25, 16)
    assert mask.sum(1).tolist() == [len(s) for s in SENTENCES]
    assert torch.equal(first, second)
    for row, vectors in enumerate(tiny.encode(SENTENCES)):
        assert_close(first[row, : len(vectors)].detach(), vectors)
        assert not first[row, len(vectors) :].any()
    (from_ids, _), _ = embedding(embedding.ids(SENTENCES))
    assert torch.equal(from_ids, first)
    (from_text, _), _ = embedding(["The first sentence ."])
    assert_close(from_text[0].detach(), first[0, :4].detach())


def test_ids_are_wide_enough_for_the_marks(tiny):
    embedding = ElmoEmbedding(tiny).eval()
    for sentences in ([[""]], [["", ""], ["a"]]):
        (mix,), mask = embedding(sentences)
        expected = np.concatenate(tiny.encode(sentences))
        assert_close(mix[mask].detach(), expected)
    ids = torch.from_numpy(tiny.alphabet.encode(["a", "few", "words"], 50)).long()[None]
    (mix,), _ = embedding(ids)  # full width, like the result of AllenNLP's batch_to_ids
    assert_close(mix[0].detach(), tiny.encode("a few words"))


def test_embedding_accepts_empty_sentences_and_refuses_wrong_shapes(tiny):
    embedding = ElmoEmbedding(tiny)
    for flavour in (False, "bilm-tf", "allennlp"):
        (mix,), mask = ElmoEmbedding(tiny, layer_norm=flavour)([[], []])
        assert mix.shape == (2, 0, 16)
        assert mask.shape == (2, 0)
    with pytest.raises(InputError, match=r"\(B, T, C\)"):
        embedding(torch.zeros(2, 3, dtype=torch.long))
    with pytest.raises(InputError, match="n_outputs"):
        ElmoEmbedding(tiny, n_outputs=0)


def test_embedding_accepts_an_empty_batch_with_a_transformer():
    config = ModelConfig(
        TokenEncoderConfig(((1, 4), (2, 8)), max_characters=20),
        ContextConfig("transformer", n_layers=2, cell_dim=24, projection_dim=16, n_heads=2),
    )
    embedding = ElmoEmbedding(Elmo.random(config, device="cpu"), trainable=True)
    for batch in ([], [[]], [[], []]):
        (mix,), mask = embedding(batch)
        assert mix.shape == (len(batch), 0, 32)
        assert mask.shape == (len(batch), 0)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (torch.full((1, 2, 20), 262), "batch has ids from 262 to 262, but this model has 261 char"),
        (torch.full((1, 2, 20), -1), "batch has ids from -1"),
        (torch.zeros(1, 2, 20), "whole numbers of the shape .* not float32"),
        (torch.ones(1, 2, 20, dtype=torch.bool), "whole numbers of the shape .* not bool"),
        (torch.ones(1, 2, 2, dtype=torch.long), "batch must have 3 or more columns of characters"),
        (torch.tensor([[[0] * 5, [1] * 5]]), "padding .* only after real tokens"),
    ],
)
def test_embedding_refuses_wrong_ids(tiny, ids, message):
    with pytest.raises(InputError, match=message):
        ElmoEmbedding(tiny)(ids)


def test_embedding_accepts_small_integers(tiny):
    embedding = ElmoEmbedding(tiny, dropout=0)
    ids = embedding.ids([["a", "b"], ["c"]])
    (expected,), _ = embedding(ids)
    (found,), _ = embedding(ids.to(torch.int16))
    assert torch.equal(found, expected)


@pytest.mark.parametrize(
    "arguments",
    [{"n_outputs": 1.5}, {"n_outputs": 2**70}, {"dropout": 2}, {"dropout": "x"}, {"l2": -1},
     {"layer_norm": []}, {"layer_norm": True}, {"trainable": "no"}],
)  # fmt: skip
def test_embedding_names_the_argument(tiny, arguments):
    (name,) = arguments
    with pytest.raises(InputError, match=f"^{name} must be "):
        ElmoEmbedding(tiny, **arguments)
    with pytest.raises(InputError, match=r"elmo must be a model from Elmo.load\(\), not 5"):
        ElmoEmbedding(5)


def test_networks_check_what_they_are_given(tiny):
    with pytest.raises(InputError, match="config must be a ModelConfig"):
        BiLM(5)
    with pytest.raises(InputError, match=r"tokens must have the shape \(B, T, 8\)"):
        tiny.bilm(torch.zeros(1, 2, 5), torch.tensor([2]))
    for n_layers in (0, 1.5, "3", 2**70):
        with pytest.raises(InputError, match="n_layers must be a whole number"):
            ScalarMix(n_layers)
    for layers in (None, 5, [1, 2, 3], [torch.zeros(2, 3), torch.zeros(3, 2), torch.zeros(2, 3)]):
        with pytest.raises(InputError, match="layers must be"):
            ScalarMix(3)(layers)


def test_allennlp_norm_counts_the_sentence_marks(tiny):
    embedding = ElmoEmbedding(tiny, dropout=0, layer_norm="allennlp")
    marked = [["<S>", *s, "</S>"] for s in SENTENCES if s]
    layers = [torch.cat(parts) for parts in zip(*_layers_with_marks(tiny, marked), strict=True)]
    expected = sum((x - x.mean()) / x.var(unbiased=False).sqrt() for x in layers) / 3
    (mix,), mask = embedding([s for s in SENTENCES if s])
    inside = torch.cat([torch.tensor([i not in (0, len(s) - 1) for i in range(len(s))])
                        for s in marked])  # fmt: skip
    assert_close(mix[mask].detach(), expected[inside])


def _layers_with_marks(elmo, marked):
    for sentence in marked:
        words = torch.from_numpy(elmo.alphabet.encode(sentence))
        tokens = elmo.bilm.token_encoder(words)[None]
        layers, _ = elmo.bilm(tokens, torch.tensor([len(sentence)]))
        yield [layer[0] for layer in layers]


def test_dropout_is_active_only_in_training(tiny):
    embedding = ElmoEmbedding(tiny, dropout=0.5)
    (mix,), mask = embedding(SENTENCES)
    share = (mix[mask] == 0).float().mean()
    assert 0.4 < share < 0.6
    embedding.eval()
    (mix,), _ = embedding(SENTENCES)
    assert (mix[mask] == 0).float().mean() < 0.01


@pytest.mark.parametrize("trainable", [False, True])
def test_only_trainable_parameters_learn(tiny, trainable):
    embedding = ElmoEmbedding(tiny, n_outputs=2, trainable=trainable, dropout=0, l2=0.01)
    before = copy.deepcopy(embedding.state_dict())
    optimizer = torch.optim.AdamW([p for p in embedding.parameters() if p.requires_grad], lr=0.01)
    (first, second), mask = embedding(SENTENCES)
    loss = (first[mask] ** 2).mean() + second[mask].abs().mean() + embedding.penalty()
    loss.backward()
    optimizer.step()
    changed = {k for k, v in embedding.state_dict().items() if not torch.equal(v, before[k])}
    assert {"mixes.0.weights", "mixes.1.gamma"} <= changed
    rest = {k for k in before if k.startswith("bilm.")}
    assert rest
    assert (rest <= changed) if trainable else not (rest & changed)
    # the Elmo object shares the trained weights, and its word cache notices the change
    embedding.eval()
    uniform = ScalarMix(3)
    layers = tiny.encode(SENTENCES[0:1], "all")[0]
    embedding.mixes[0] = uniform
    (mix, _), _ = embedding(SENTENCES[0:1])
    assert_close(mix[0].detach(), layers.mean(0))


def test_lstm_gradients_agree_with_finite_differences():
    """In float64, on a ragged batch, with some values clipped."""
    torch.manual_seed(0)
    lstm = ProjectedLSTM(3, 5, 2, cell_clip=0.6, proj_clip=0.3).double()
    lengths = torch.tensor([4, 1, 0, 3])
    x = torch.randn(4, 4, 3, dtype=torch.float64, requires_grad=True)
    parameters = [p.detach().mul(4).requires_grad_() for p in lstm.parameters()]
    names = [name for name, _ in lstm.named_parameters()]

    def run(x, *values):
        named = dict(zip(names, values, strict=True))
        out, (h, c) = torch.func.functional_call(lstm, named, (x, lengths))
        return out, h, c

    out, _, c = run(x, *parameters)
    assert (out.abs() == 0.3).any()
    assert (c.abs() == 0.6).any()
    assert torch.autograd.gradcheck(run, (x, *parameters))


def test_state_dict_and_pickle_restore_an_embedding(tiny, tiny_folder):
    embedding = ElmoEmbedding(tiny, n_outputs=2, layer_norm="bilm-tf").eval()
    with torch.no_grad():
        embedding.mixes[1].weights += torch.tensor([1.0, 2.0, 3.0])
        embedding.bilm.forward_layers[0].bias += 0.1
    expected = embedding(SENTENCES)
    other = ElmoEmbedding(
        Elmo.load(tiny_folder, device="cpu"), n_outputs=2, layer_norm="bilm-tf"
    ).eval()
    other.load_state_dict(embedding.state_dict())
    file = io.BytesIO()
    torch.save(embedding, file)
    file.seek(0)
    for again in (other, torch.load(file, weights_only=False)):
        found = again(SENTENCES)
        for a, b in zip(found.mixes, expected.mixes, strict=True):
            assert torch.equal(a, b)


def test_embedding_trains_under_autocast(tiny):
    embedding = ElmoEmbedding(tiny, dropout=0, trainable=True)
    (exact,), mask = embedding(SENTENCES)
    with torch.autocast("cpu", torch.bfloat16):
        (mix,), _ = embedding(SENTENCES)
        loss = (mix[mask] ** 2).mean()
    loss.backward()
    cosine = torch.nn.functional.cosine_similarity(mix[mask].float(), exact[mask], dim=-1)
    assert cosine.min() > 0.99
    gradient = tiny.bilm.forward_layers[0].state_weight.grad
    assert gradient is not None
    assert gradient.isfinite().all()


def _train_one_step(rank, world, folder, store, results):
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=world
    )
    embedding = ElmoEmbedding(Elmo.load(folder, device="cpu"), dropout=0, trainable=True)
    model = torch.nn.parallel.DistributedDataParallel(embedding)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    part = SENTENCES[rank::world]
    (mix,), mask = model(part)
    (mix[mask].sum() / 100).backward()
    optimizer.step()
    torch.save(embedding.state_dict(), f"{results}/{rank}.pt")
    torch.distributed.destroy_process_group()


def test_two_processes_take_the_same_step_as_one(tiny_folder, tmp_path):
    """DistributedDataParallel averages their gradients."""
    torch.multiprocessing.spawn(
        _train_one_step, (2, str(tiny_folder), str(tmp_path / "store"), str(tmp_path)), nprocs=2
    )
    embedding = ElmoEmbedding(Elmo.load(tiny_folder, device="cpu"), dropout=0, trainable=True)
    optimizer = torch.optim.SGD(embedding.parameters(), lr=0.1)
    (mix,), mask = embedding(SENTENCES)
    (mix[mask].sum() / 100 / 2).backward()
    optimizer.step()
    for rank in range(2):
        other = torch.load(tmp_path / f"{rank}.pt", weights_only=True)
        for name, value in embedding.state_dict().items():
            assert_close(other[name], value, 2e-5)


def test_convolutions_in_one_product_agree_with_separate_ones(tiny):
    """A GPU uses one product, on ids that are cut to the longest word."""
    encoder = tiny.bilm.token_encoder
    words = ["a", "", "word", "x" * 20, "日本"]
    ids = torch.from_numpy(tiny.alphabet.encode(words))
    assert ids.shape[1] < 50
    characters = encoder.character_embedding(ids)
    expected = torch.cat([convolution(characters) for convolution in encoder.convolutions], -1)
    torch.testing.assert_close(encoder.convolve_at_once(characters), expected)


@pytest.mark.parametrize("trainable", [False, True])
def test_embedding_of_an_empty_batch(tiny, trainable):
    (mix,), mask = ElmoEmbedding(tiny, trainable=trainable)([])
    assert mix.shape == (0, 0, tiny.dim)
    assert mask.shape == (0, 0)


def test_rounding_is_left_out_on_the_plain_path(tiny):
    """Without a projection no kernel can run in bfloat16; the step-by-step path stays exact."""
    lengths = torch.tensor([3, 2])
    tokens = torch.randn(2, 3, 8)
    ragged = Ragged(lengths, 3, torch.device("cpu"))
    rows = torch.stack([ragged.pack(tokens, reverse) for reverse in (False, True)])
    exact = list(tiny.bilm.context.read_plainly(rows, ragged))
    found = list(tiny.bilm.context.read(rows, ragged, precision="bfloat16", dropout=1e-30))
    for a, b in zip(found, exact, strict=True):
        assert_close(torch.stack(list(a.rows)), torch.stack(list(b.rows)))


def test_float64_under_autocast(tiny):
    tokens, lengths = torch.randn(2, 3, 8).double(), torch.tensor([3, 2])
    tiny.bilm.double()
    with torch.autocast("cpu", torch.bfloat16):
        layers, _ = tiny.bilm(tokens, lengths)
    assert layers.dtype == torch.float64
