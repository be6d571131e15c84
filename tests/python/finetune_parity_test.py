"""A finetuning recipe of LLM Foundry, imported and trained, against plain PyTorch with masked labels: 20 losses within 1e-5 in fp32.

finetune_parity_test.py KIND: alone, an MPT with one example a sequence; packed, a Llama with examples packed into sequences, which
attention and targets do not leave. The texts become tokens, labels and masks here, from what the recipe's keys mean; of the trainer's
metrics the choice of samples and sequences is taken, and checked.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import torch.nn.functional as F
from recipe_parity_test import (BATCH, MICROBATCH, MODELS, RECIPE, ROOT, SEQUENCE, STEPS, TOLERANCE, WARM_UP, Decoder, DecoupledAdamW, imported,
                                learning_rate, relative, stored_weights, train)

END, LONG_PROMPT, EXAMPLES = 256, 8, 240
KINDS = {"alone": ("mpt", 1), "packed": ("llama", 2.5)}


def texts():
    """Prompts and responses of many lengths; some responses reach beyond the sequence."""
    licence = (ROOT / "LICENSE").read_text()
    for i in range(EXAMPLES):
        at, prompt, response = i * 41, 3 + i % 10, 90 if i % 30 == 11 else 4 + i * 11 % 35
        yield licence[at : at + prompt], licence[at + prompt : at + prompt + response]


def labelled(prompt, response):
    """Tokens, and labels of those that are learned: -100 where none is."""
    context, answer = list(prompt.encode()), [*response.encode(), END]
    labels = (context if len(context) >= LONG_PROMPT else [-100] * len(context)) + answer
    return (context + answer)[:SEQUENCE], [-100, *labels[1:SEQUENCE]]


class SeparatingDecoder(Decoder):
    """Attention stays inside of the examples that `owner` (B, S) numbers."""

    owner = None

    def unseen(self, sequence):
        apart = self.owner[:, :, None] != self.owner[:, None, :]
        return (apart | super().unseen(sequence))[:, None]


def tensors(sequences, examples):
    tokens, labels = torch.zeros(len(sequences), SEQUENCE, dtype=torch.long), torch.full((len(sequences), SEQUENCE + 1), -100)
    owner = torch.full((len(sequences), SEQUENCE), -1)
    for row, members in enumerate(sequences):
        at = 0
        for number, member in enumerate(members):
            ids, targets = examples[member]
            tokens[row, at : at + len(ids)], labels[row, at : at + len(ids)] = torch.tensor(ids), torch.tensor(targets)
            owner[row, at : at + len(ids)] = number
            at += len(ids)
        assert at <= SEQUENCE, f"{members} are longer than a sequence"
    return tokens, labels[:, 1:], owner


def packs_all(metrics):
    """No sample is taken that was not drawn, or taken twice of one draw."""
    waiting = []
    for line in metrics:
        waiting += line["samples"]
        assert len(line["sequences"]) == BATCH
        for member in (member for sequence in line["sequences"] for member in sequence):
            waiting.remove(member)
    return len(waiting)


def compare(recipe, examples, scratch):
    run = imported(recipe, scratch / "run.yaml")
    metrics = train(run, scratch / "trained")
    train(run | {"max_duration": "1ba", "save": True}, scratch / "initial")
    model = SeparatingDecoder(recipe["model"], stored_weights(scratch / "initial"))
    optimizer, worst = DecoupledAdamW(list(model.w.values())), 0.0
    for batch, line in enumerate(metrics):
        sequences = line.get("sequences", [[sample] for sample in line["samples"]])
        tokens, labels, owner = tensors(sequences, examples)
        targets = int((labels != -100).sum())
        assert line["targets"] == targets, f"step {line['step']}: {line['targets']} targets, PyTorch has {targets}"
        total = 0.0
        for begin in range(0, BATCH, MICROBATCH):
            part = slice(begin, begin + MICROBATCH)
            model.owner = owner[part]
            logits, _ = model.logits(tokens[part])
            loss = F.cross_entropy(logits.flatten(0, 1), labels[part].flatten(), reduction="sum") / targets
            loss.backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(model.w.values(), 1.0)
        optimizer.update(learning_rate(batch))
        off = relative(line["loss"], total)
        print(f"{line['step']:4}  {total:8.5f}  {off:10.1e}  {targets} targets in {sum(map(len, sequences))} examples")
        worst = max(worst, off)
    assert len(metrics) == STEPS and metrics[-1]["loss"] < metrics[0]["loss"] - 0.5, "nothing was learned: the comparison means little"
    print(f"worst relative difference of a loss over {STEPS} steps: {worst:.1e}, allowed {TOLERANCE:.0e}")
    assert worst <= TOLERANCE
    return metrics


def main(kind, scratch):
    model, ratio = KINDS[kind]
    lines = [json.dumps({"prompt": prompt, "response": response}) for prompt, response in texts()]
    (scratch / "examples.jsonl").write_text("\n".join(lines) + "\n")
    said = subprocess.run([os.environ["WINDTUNNEL"], "data", "pack", "--text", scratch / "examples.jsonl", "-o", scratch / "data", "--samples",
                           "finetune", "--seq-len", str(SEQUENCE)], check=True, capture_output=True, text=True).stdout
    assert f"in {EXAMPLES} samples" in said, said
    loader = {"name": "finetuning", "drop_last": True, "num_workers": 8, "dataset": {
        "remote": str(scratch / "data"), "local": str(scratch / "data"), "shuffle": True, "shuffle_seed": 5, "max_seq_len": SEQUENCE,
        "decoder_only_format": True, "target_prompts": f"length>={LONG_PROMPT}", "target_responses": "last", "packing_ratio": ratio,
        "eos_token_id": END, "allow_pad_trimming": False}}
    described = RECIPE["model"] | MODELS[model]
    described["attn_config"] = described.get("attn_config", {}) | {"attn_uses_sequence_id": True}
    schedule = RECIPE["scheduler"] | {"t_warmup": f"{WARM_UP * BATCH}sp"}  # of one unit with the end, and not of tokens
    recipe = RECIPE | {"model": described, "train_loader": loader, "scheduler": schedule, "max_duration": f"{STEPS * BATCH}sp"}
    metrics = compare(recipe, [labelled(*text) for text in texts()], scratch)
    if kind == "packed":
        print(f"{packs_all(metrics)} examples wait at the end")


if __name__ == "__main__":
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        main(sys.argv[1], Path(scratch))
