"""Speed of BERT-base and MiniLM-L6; the benchmarks run this with the Python of transformers.

    python transformers_bert.py JOB.json

Weights are random. Each word counts as one subword, the fewest possible, which favours these
models. All sentences are sorted by length and batches are taken evenly from them; the best of three
rounds counts.
"""

import json
import sys
import time
import warnings

warnings.simplefilter("ignore")

import torch  # noqa: E402
import transformers  # noqa: E402

SIZES = {
    "BERT-base": {},
    "MiniLM-L6": {"hidden_size": 384, "num_hidden_layers": 6, "intermediate_size": 1536},
}


def main():
    """Print the words per second of wall time for both models."""
    with open(sys.argv[1]) as file:
        job = json.load(file)
    device = job["device"]
    if device == "cpu":
        torch.set_num_threads(job["threads"])
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    found = {"versions": f"transformers {transformers.__version__}, PyTorch {torch.__version__}"}
    sentences = sorted(job["sentences"], key=len)
    for name, sizes in SIZES.items():
        model = transformers.BertModel(transformers.BertConfig(**sizes)).eval().to(device, dtype)
        groups = [sentences[i : i + job["batch"]] for i in range(0, len(sentences), job["batch"])]
        every = max(1, len(sentences) // job["limits"][name])
        groups = groups[every // 2 :: every]
        batches = []
        for group in groups:
            lengths = torch.tensor([len(s) + 2 for s in group])
            mask = torch.arange(int(lengths.max())) < lengths[:, None]
            batches.append((torch.randint(1000, 30000, mask.shape), mask.long()))
        best = float("inf")
        with torch.inference_mode():
            model(batches[-1][0].to(device), attention_mask=batches[-1][1].to(device))
            for _ in range(3):
                started = time.perf_counter()
                for ids, mask in batches:
                    out = model(ids.to(device), attention_mask=mask.to(device)).last_hidden_state
                    if device == "cpu":
                        out.numpy()
                if device != "cpu":
                    torch.cuda.synchronize()
                best = min(best, time.perf_counter() - started)
        found[name] = sum(len(s) for group in groups for s in group) / best
    print(json.dumps(found))


main()
