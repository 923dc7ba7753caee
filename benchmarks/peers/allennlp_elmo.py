"""Speed of AllenNLP's ELMo; the benchmarks run this with the Python of AllenNLP.

    python allennlp_elmo.py JOB.json

The job names options, weights, sentences, device, threads, batch sizes and cases. The script prints
the result as JSON and stores the layers of the first batch for comparison. It does not import
ElmoKit.
"""

import json
import sys
import time
import warnings

warnings.simplefilter("ignore")

import numpy as np  # noqa: E402
import torch  # noqa: E402
from allennlp.modules.elmo import _ElmoBiLm, batch_to_ids  # noqa: E402


def embed(model, batches, cached_ids=None):
    """Return all layers of all batches as numpy arrays, as ElmoEmbedder does."""
    results = []
    with torch.no_grad():
        for batch in batches:
            if cached_ids is None:
                out = model(batch_to_ids(batch))
            else:
                width = max(map(len, batch))
                words = torch.zeros(len(batch), width, dtype=torch.long)
                for row, sentence in zip(words, batch):
                    row[: len(sentence)] = torch.tensor([cached_ids[w] for w in sentence])
                out = model(None, words)
            stacked = torch.stack(out["activations"], 1).numpy()
            results += [stacked[i, :, 1 : len(s) + 1] for i, s in enumerate(batch)]
    return results


def best_of_three(run):
    """Return [CPU time, wall time] of the fastest of three rounds."""
    times = []
    for _ in range(3):
        cpu, wall = time.process_time(), time.perf_counter()
        run()
        times.append([time.process_time() - cpu, time.perf_counter() - wall])
    return min(times, key=lambda pair: pair[1])


def on_cpu(job, found):
    """Measure the cases on a CPU."""
    torch.set_num_threads(job["threads"])
    sentences = job["sentences"]
    batches = [sentences[i : i + 64] for i in range(0, len(sentences), 64)]
    model = _ElmoBiLm(job["options"], job["weights"]).eval()
    first = embed(model, batches[:1])  # from a zero state: nothing has been carried yet
    np.savez(job["store"], *first)
    if "as run" in job["cases"]:
        found["as run"] = best_of_three(lambda: embed(model, batches))
    if "latency" in job["cases"]:
        seconds = []
        for sentence in sentences[:40]:
            started = time.perf_counter()
            embed(model, [[sentence]])
            seconds.append(time.perf_counter() - started)
        found["latency"] = float(np.median(seconds))
    if "cached" in job["cases"]:
        vocabulary = ["@@PADDING@@", *sorted({w for s in sentences for w in s})]
        model = _ElmoBiLm(job["options"], job["weights"], vocab_to_cache=vocabulary).eval()
        ids = {w: i for i, w in enumerate(vocabulary)}
        model._token_embedder = None  # makes a word that is not cached an error
        embed(model, batches[:1], ids)
        found["cached"] = best_of_three(lambda: embed(model, batches, ids))


def on_gpu(job, found):
    """Measure tokens per second by batch size, from strings and from precomputed ids."""
    sentences = job["sentences"]
    model = _ElmoBiLm(job["options"], job["weights"]).eval().cuda()
    torch.backends.cudnn.allow_tf32 = False  # exact vectors, for comparison
    with torch.no_grad():
        out = model(batch_to_ids(sentences[: job["compared"]]).cuda())
    torch.backends.cudnn.allow_tf32 = True  # default settings, for speed
    stacked = torch.stack(out["activations"], 1).cpu().numpy()
    first = sentences[: job["compared"]]
    np.savez(job["store"], *[stacked[i, :, 1 : len(s) + 1] for i, s in enumerate(first)])
    for size in job["batches"]:
        batches = [sentences[i : i + size] for i in range(0, len(sentences), size)][: job["most"]]
        n_tokens = sum(len(s) for batch in batches for s in batch)
        ready = [batch_to_ids(batch).cuda() for batch in batches]

        def from_ids(ready=ready):
            with torch.no_grad():
                for ids in ready:
                    model(ids)
            torch.cuda.synchronize()

        def from_strings(batches=batches):
            with torch.no_grad():
                for batch in batches:
                    model(batch_to_ids(batch).cuda())
            torch.cuda.synchronize()

        from_ids()
        found[f"ids {size}"] = n_tokens / best_of_three(from_ids)[1]
        if size == job["batches"][0]:
            found[f"strings {size}"] = n_tokens / best_of_three(from_strings)[1]
    # the largest batch again, with cached word vectors
    vocabulary = ["@@PADDING@@", *sorted({w for batch in batches for s in batch for w in s})]
    model = _ElmoBiLm(job["options"], job["weights"], vocab_to_cache=vocabulary).eval().cuda()
    number = {w: i for i, w in enumerate(vocabulary)}
    ready = []
    for batch in batches:
        words = torch.zeros(len(batch), max(map(len, batch)), dtype=torch.long)
        for row, sentence in zip(words, batch):
            row[: len(sentence)] = torch.tensor([number[w] for w in sentence])
        ready.append(words.cuda())

    def cached():
        with torch.no_grad():
            for words in ready:
                model(None, words)
        torch.cuda.synchronize()

    cached()
    found[f"cached {size}"] = n_tokens / best_of_three(cached)[1]


def main():
    """Measure every case of the job."""
    with open(sys.argv[1]) as file:
        job = json.load(file)
    found = {"tokens": sum(map(len, job["sentences"]))}
    (on_cpu if job["device"] == "cpu" else on_gpu)(job, found)
    found["versions"] = f"AllenNLP 2.10.1, PyTorch {torch.__version__}"
    print(json.dumps(found))


main()
