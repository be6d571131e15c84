"""`windtunnel eval` with the real lm-eval, offline, on a Mixtral of two layers with our byte tokenizer: what it brings home
are the scores that the logits give here. lm-eval's rolling log-likelihood a token is the loss.

lm_eval_test.py scores    its scores are those that the logits give here
lm_eval_test.py loss      the loss of a run on its evaluation set, which the trainer computes, is lm-eval's of its export, to 1e-5

Skipped where lm-eval is not installed, neither here nor in WINDTUNNEL_PYTHON.
"""
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
import transformers
from streaming import MDSWriter

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
SEQ = 48
RUN = """run_name: scored
max_duration: 30ba
max_seq_len: {seq}
global_train_batch_size: 8
device_train_microbatch_size: 4
precision: fp32
model:
  name: scored
  n_layers: 2
  d_model: 32
  n_heads: 4
  vocab_size: 257
  attn_config: {{kv_n_heads: 2}}
  ffn_config: {{ffn_hidden_size: 48, moe_num_experts: 4, moe_top_k: 2}}
fsdp_config: {{data_parallel_shard_degree: 2, expert_parallel_degree: 2}}
optimizer: {{name: adamw, lr: 0.01}}
scheduler: {{name: cosine_with_warmup, t_warmup: 0ba, alpha_f: 1}}
train_loader: {{dataset: {{local: {folder}/train}}}}
eval_loader: {{label: held, dataset: {{local: {folder}/held}}}}
save: false
callbacks: {{hf_checkpointer: {{save_folder: {folder}/export}}}}
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


def check_scores(folder):
    weights = folder / "export"
    model = tiny_mixtral(weights)
    write_lines(folder / "rolling.jsonl", [dict(text=text) for text in TEXTS])
    write_lines(folder / "choice.jsonl", CHOICES)
    scores, averages = evaluate(folder, weights, folder / "rolling.jsonl", folder / "choice.jsonl")
    each = [one for text in TEXTS for one in log_likelihoods(model, [END_OF_TEXT], text)]
    loss = -sum(each) / len(each)
    assert abs(loss_a_byte(scores) - loss) < 1e-5, (scores, loss)
    assert scores["wt_choice", "acc"] == accuracy(model, False), scores
    assert scores["wt_choice", "acc_norm"] == accuracy(model, True), scores
    assert abs(averages["choice"] - (scores["wt_choice", "acc"] - 0.25) / 0.75) < 1e-12, averages


def loss_a_byte(scores):
    return scores["wt_rolling", "bits_per_byte"] * math.log(2)


def samples_of(texts, folder):
    """Each text after an end of text, as a data set without overlap."""
    with MDSWriter(out=str(folder), columns={"tokens": "ndarray:uint16"}) as out:
        for text in texts:
            out.write({"tokens": np.array([END_OF_TEXT, *text.encode()], np.uint16)})


def check_loss(folder):
    licence = " ".join(Path("LICENSE").read_text().split())
    texts = [licence[at:at + SEQ - 1].replace(" ", "_") for at in range(0, 200 * (SEQ - 1), SEQ - 1)]
    held = texts[:25]
    samples_of(texts, folder / "train")
    samples_of(held, folder / "held")
    (folder / "run.yaml").write_text(RUN.format(folder=folder, seq=SEQ))
    subprocess.run([os.environ["WINDTUNNEL_TRAIN"], "train", folder / "run.yaml", "-o", folder / "out"], check=True, stdout=subprocess.DEVNULL)
    last = json.loads((folder / "out" / "evaluations.jsonl").read_text().splitlines()[-1])
    assert (last["label"], last["samples"], last["targets"]) == ("held", len(held), len(held) * (SEQ - 1)), last
    write_lines(folder / "rolling.jsonl", [dict(text=text) for text in held])
    scores, _ = evaluate(folder, folder / "export", folder / "rolling.jsonl", None)
    print(f"loss {last['loss']:.9f}, lm-eval {loss_a_byte(scores):.9f}")
    assert abs(loss_a_byte(scores) - last["loss"]) < 1e-5, (scores, last)


def main():
    if subprocess.run([interpreter(), "-c", "import lm_eval, datasets"], stderr=subprocess.DEVNULL).returncode != 0:
        print(f"SKIPPED: lm_eval is not installed for {interpreter()}; name an interpreter that has it in WINDTUNNEL_PYTHON")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        {"scores": check_scores, "loss": check_loss}[sys.argv[1]](folder)


main()
