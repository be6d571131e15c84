"""A recipe of LLM Foundry with peft_config, imported and trained, against PEFT in plain PyTorch: 20 losses within 1e-5 in fp32. Then
PeftModel opens what the run exported, and has the loss that a run of ours starts from it with.

lora_parity_test.py KIND: llama, whose queries, keys and values are three modules; mpt, with one for all of them; falcon, whose rows
are in another order than ours. PyTorch starts from the trainer's first factors and takes the samples that its metrics name.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77
try:
    import peft
except ImportError:
    print("SKIPPED: peft is not installed")
    sys.exit(SKIPPED)
import torch
import torch.nn.functional as F
import transformers
import yaml

from recipe_parity_test import BATCH, MICROBATCH, RECIPE, SEQUENCE, STEPS, DecoupledAdamW, learning_rate, read_tokens, relative, train

ROOT, TOLERANCE = Path(__file__).resolve().parents[2], 1e-5
KINDS = {
    "llama": ("Llama", dict(hidden_size=64, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, intermediate_size=96,
                            max_position_embeddings=SEQUENCE), ["q_proj", "v_proj", "o_proj"]),
    "mpt": ("Mpt", dict(d_model=64, n_heads=4, n_layers=3, expansion_ratio=4, max_seq_len=SEQUENCE), ["Wqkv"]),
    "falcon": ("Falcon", dict(hidden_size=64, num_hidden_layers=3, num_attention_heads=4, num_kv_heads=2, bias=False, alibi=False,
                              new_decoder_architecture=True, tie_word_embeddings=False), ["query_key_value", "dense"]),
}
PEFT = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": 4, "lora_alpha": 16, "lora_dropout": 0.0}


def loss_of(model, batch):
    logits = model(batch[:, :SEQUENCE]).logits
    return F.cross_entropy(logits.flatten(0, 1), batch[:, 1 : SEQUENCE + 1].flatten())


def make_base(kind, tokens, folder):
    """A model that has learned a little, so that adapters of its attention find something to do."""
    torch.manual_seed(11)
    name, config, _ = KINDS[kind]
    model = getattr(transformers, name + "ForCausalLM")(getattr(transformers, name + "Config")(vocab_size=264, **config))
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    for step in range(30):
        loss_of(model, tokens[step % 8 :: 8]).backward()
        optimizer.step()
        optimizer.zero_grad()
    model.save_pretrained(folder)


def opened(folder, base, **more):
    model = transformers.AutoModelForCausalLM.from_pretrained(base)
    return peft.PeftModel.from_pretrained(model, folder, **more)


def imported(kind, data, base, scratch):
    """The recipe as a run file for the CPU."""
    model = {"name": "hf_causal_lm", "pretrained": True, "pretrained_model_name_or_path": str(base),
             "peft_config": PEFT | {"target_modules": KINDS[kind][2]}}
    source, file = scratch / "recipe.yaml", scratch / "run.yaml"
    source.write_text(yaml.safe_dump(RECIPE | {"model": model, "variables": RECIPE["variables"] | {"data_local": str(data)}}))
    done = subprocess.run([os.environ["WINDTUNNEL"], "import-run", source, "--gpus", "1", "-o", file], check=True, capture_output=True,
                          text=True)
    assert "assumed" not in done.stderr, f"the run says otherwise than the recipe:\n{done.stderr}"
    run = yaml.safe_load(file.read_text())
    assert run["load_path"] == str(base) and run["model"]["peft_config"]["r"] == PEFT["r"]
    return run | {"device": "cpu"}


def exporting(run, folder):
    return run | {"callbacks": {"hf_checkpointer": {"save_folder": str(folder)}}}


def compare(kind, run, base, tokens, scratch):
    metrics = train(exporting(run, scratch / "adapter"), scratch / "trained")
    # The first step of Composer's warm-up has rate 0: it exports the first factors.
    train(exporting(run | {"max_duration": "1ba"}, scratch / "first"), scratch / "initial")
    model = opened(scratch / "first", base, is_trainable=True)
    learned = {name: p for name, p in model.named_parameters() if p.requires_grad}
    assert learned and all("lora_" in name for name in learned)
    optimizer, worst = DecoupledAdamW(list(learned.values())), 0.0
    for batch, line in enumerate(metrics):
        loss = 0.0
        for begin in range(0, BATCH, MICROBATCH):
            part = loss_of(model, tokens[line["samples"][begin : begin + MICROBATCH]]) * MICROBATCH / BATCH
            part.backward()
            loss += part.item()
        norm = torch.nn.utils.clip_grad_norm_(learned.values(), 1.0).item()
        optimizer.update(learning_rate(batch))
        off = relative(line["loss"], loss)
        print(f"{line['step']:4}  {loss:8.5f}  {off:10.1e}  gradient norm {norm:.5f}  {relative(line['grad_norm'], norm):10.1e}")
        assert batch > 0 or relative(line["grad_norm"], norm) < 1e-4
        worst = max(worst, off)
    with torch.no_grad(), model.disable_adapter():
        of_base = loss_of(model, tokens[metrics[-1]["samples"]]).item()
    print(f"{kind}: the last loss is {metrics[-1]['loss']:.5f}, and without the adapter {of_base:.5f}")
    assert len(metrics) == STEPS and metrics[-1]["loss"] < of_base - 1e-3, "nothing was learned: this means little"
    print(f"{kind}: worst relative difference of a loss over {STEPS} steps: {worst:.1e}, allowed {TOLERANCE:.0e}")
    assert worst <= TOLERANCE
    return learned


def check_exported(kind, run, base, tokens, learned, scratch):
    ours = opened(scratch / "adapter", base)
    for name, p in ours.named_parameters():
        if name in learned:
            assert torch.allclose(p, learned[name], atol=1e-4), name
    # A run that starts from the adapter, of one step.
    line = train(run | {"max_duration": "1ba", "load_path": str(scratch / "adapter")}, scratch / "goes-on")[0]
    with torch.no_grad():
        batch = tokens[line["samples"]]
        loss, of_base = loss_of(ours, batch).item(), loss_of(transformers.AutoModelForCausalLM.from_pretrained(base), batch).item()
    print(f"{kind}: loss of the exported adapter in PEFT {loss:.6f}, in a run of ours {line['loss']:.6f}, of the base {of_base:.6f}")
    assert relative(line["loss"], loss) < TOLERANCE and abs(loss - of_base) > 1e-3


def main(kind, scratch):
    data, base = scratch / "data", scratch / "base"
    subprocess.run([os.environ["WINDTUNNEL"], "data", "pack", "--text", ROOT / "LICENSE", "-o", data, "--seq-len", str(SEQUENCE)],
                   check=True, stdout=subprocess.DEVNULL)
    tokens = read_tokens(data)
    make_base(kind, tokens, base)
    run = imported(kind, data, base, scratch)
    learned = compare(kind, run, base, tokens, scratch)
    check_exported(kind, run, base, tokens, learned, scratch)


if __name__ == "__main__":
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        main(sys.argv[1], Path(scratch))
