"""`windtunnel eval` with the real lm-eval, offline, on a Mixtral of two layers with our byte tokenizer: what it brings home
are the scores that the logits give here. lm-eval's rolling log-likelihood a token is the loss.

lm_eval_test.py                          where lm-eval is installed (or in WINDTUNNEL_PYTHON); else skipped
lm_eval_test.py EXPORT TEXTS.jsonl LOSS  that a run's loss over these texts ({"text": ...} a line, each after an end of text
                                         and no longer than the model's positions) is lm-eval's of its export, to 1e-5
"""
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import transformers

SKIPPED = 77
END_OF_TEXT = 256
TEXTS = ["The first words of a text.", "Others follow, caf\u00e9.", "0123456789" * 9]
CHOICES = [dict(question="a b", choices=["c", "d e"], answer=0), dict(question="x y", choices=["zz", "q"], answer=1),
           dict(question="one", choices=["two", "3"], answer=1), dict(question="is", choices=["it so", "not", "?"], answer=2)]
CHOICE = """task: wt_choice
dataset_path: json
dataset_kwargs: {{data_files: {{test: {file}}}}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{question}}}}"
doc_to_choice: "{{{{choices}}}}"
doc_to_target: "{{{{answer}}}}"
metric_list: [{{metric: acc, aggregation: mean, higher_is_better: true}}, {{metric: acc_norm, aggregation: mean, higher_is_better: true}}]
"""
ROLLING = """task: wt_rolling
dataset_path: json
dataset_kwargs: {{data_files: {{test: {file}}}}}
test_split: test
output_type: loglikelihood_rolling
doc_to_text: ""
doc_to_target: "{{{{text}}}}"
metric_list: [{{metric: bits_per_byte, aggregation: bits_per_byte, higher_is_better: false}}]
"""
GAUNTLET = """eval_gauntlet:
  categories:
  - {name: choice, benchmarks: [{name: wt_choice, num_fewshot: 0, random_baseline: 0.25, metric: acc}]}
"""


def write_lines(file, documents):
    file.write_text("".join(json.dumps(document) + "\n" for document in documents))


def evaluate(folder, weights, rolling, choices):
    """The scores of evaluation.json by (task, metric), and the Gauntlet's by name."""
    tasks = folder / "tasks"
    tasks.mkdir()
    names = ["wt_rolling"]
    (tasks / "rolling.yaml").write_text(ROLLING.format(file=rolling))
    if choices:
        names.append("wt_choice")
        (tasks / "choice.yaml").write_text(CHOICE.format(file=choices))
    (folder / "evaluation.yaml").write_text(f"tasks: [{', '.join(names)}]\ninclude_path: tasks\ndevice: cpu\ndtype: float32\ntimeout: 30m\n" +
                                            (GAUNTLET if choices else ""))
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(folder / "cache"),
                                "WINDTUNNEL_PYTHON": interpreter()}
    subprocess.run([os.environ["WINDTUNNEL"], "eval", weights, folder / "evaluation.yaml"], check=True, env=environment,
                   stdout=subprocess.DEVNULL)
    found = json.loads((weights / "evaluation.json").read_text())
    averages = (found["gauntlet"] or {}).get("categories", [])
    return {(s["task"], s["metric"]): s["value"] for s in found["scores"]}, {c["name"]: c["score"] for c in averages}


def interpreter():
    return os.environ.get("WINDTUNNEL_PYTHON") or sys.executable


def log_likelihoods(model, before, text):
    """Of each byte of a text after these tokens."""
    tokens = torch.tensor([before + list(text.encode())])
    with torch.no_grad():
        logits = torch.log_softmax(model(tokens).logits[0].double(), -1)
    return [logits[i - 1, tokens[0, i]].item() for i in range(len(before), tokens.shape[1])]


def accuracy(model, per_letter):
    right = 0
    for each in CHOICES:  # lm-eval puts a blank before a choice
        score = [sum(log_likelihoods(model, list(each["question"].encode()), " " + c)) / (len(c) if per_letter else 1) for c in each["choices"]]
        right += score.index(max(score)) == each["answer"]
    return right / len(CHOICES)


def tiny_mixtral(folder):
    torch.manual_seed(1)
    config = transformers.MixtralConfig(vocab_size=264, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                                        intermediate_size=32, num_local_experts=4, num_experts_per_tok=2, max_position_embeddings=128,
                                        sliding_window=None, initializer_range=0.3, bos_token_id=END_OF_TEXT, eos_token_id=END_OF_TEXT)
    model = transformers.MixtralForCausalLM(config).eval()
    model.save_pretrained(folder)
    subprocess.run([os.environ["WT_BYTE_TOKENIZER"], folder], check=True)
    return model


def main():
    if subprocess.run([interpreter(), "-c", "import lm_eval, datasets"], stderr=subprocess.DEVNULL).returncode != 0:
        print(f"SKIPPED: lm_eval is not installed for {interpreter()}; name an interpreter that has it in WINDTUNNEL_PYTHON")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if len(sys.argv) == 4:
            scores, _ = evaluate(folder, Path(sys.argv[1]), Path(sys.argv[2]).resolve(), None)
            theirs, ours = scores["wt_rolling", "bits_per_byte"] * math.log(2), float(sys.argv[3])
            assert abs(theirs - ours) < 1e-5, (theirs, ours)
            return
        weights = folder / "export"
        model = tiny_mixtral(weights)
        write_lines(folder / "rolling.jsonl", [dict(text=text) for text in TEXTS])
        write_lines(folder / "choice.jsonl", CHOICES)
        scores, averages = evaluate(folder, weights, folder / "rolling.jsonl", folder / "choice.jsonl")
        each = [one for text in TEXTS for one in log_likelihoods(model, [END_OF_TEXT], text)]
        loss = -sum(each) / len(each)
        assert abs(scores["wt_rolling", "bits_per_byte"] * math.log(2) - loss) < 1e-5, (scores, loss)
        assert scores["wt_choice", "acc"] == accuracy(model, False), scores
        assert scores["wt_choice", "acc_norm"] == accuracy(model, True), scores
        assert abs(averages["choice"] - (scores["wt_choice", "acc"] - 0.25) / 0.75) < 1e-12, averages


main()
