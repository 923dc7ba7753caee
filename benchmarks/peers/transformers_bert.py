"""BERT-base and MiniLM-L6 of random weights; run by benchmarks/cpu.py with transformers' Python.

    python transformers_bert.py JOB.json

One subword a word, the fewest there can be, which favours them; sorted by length, batches of 64.
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
    """Print words a second of wall time for both sizes."""
    with open(sys.argv[1]) as file:
        job = json.load(file)
    torch.set_num_threads(job["threads"])
    found = {"versions": f"transformers {transformers.__version__}, PyTorch {torch.__version__}"}
    for name, sizes in SIZES.items():
        model = transformers.BertModel(transformers.BertConfig(**sizes)).eval()
        sentences = sorted(job["sentences"][: job["limits"][name]], key=len)
        n_words = sum(map(len, sentences))
        batches = []
        for i in range(0, len(sentences), 64):
            lengths = torch.tensor([len(s) + 2 for s in sentences[i : i + 64]])
            mask = torch.arange(int(lengths.max())) < lengths[:, None]
            batches.append((torch.randint(1000, 30000, mask.shape), mask.long()))
        with torch.inference_mode():
            model(*batches[0])
            started = time.perf_counter()
            for ids, mask in batches:
                model(ids, attention_mask=mask).last_hidden_state.numpy()
        found[name] = n_words / (time.perf_counter() - started)
    print(json.dumps(found))


main()
