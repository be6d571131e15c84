"""The trainer against plain PyTorch: same model (MoE, dense, MoE with two modules of multi-token prediction), data and initial
weights; 20 losses within 1e-5 in fp32, and the first gradient of every parameter.

The trainer trains 20 steps; PyTorch (bench/studies/compare_fsdp2/model.py, torch.optim.AdamW, clip_grad_norm_) starts from the
trainer's own initial weights and takes the samples that its metrics name.
"""

import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import yaml
from safetensors.torch import load_file

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench" / "studies" / "compare_fsdp2"))
from data import read_tokens  # noqa: E402
from model import ModelShape, Transformer  # noqa: E402

STEPS, WARM_UP, LOSS_TOLERANCE, GRADIENT_TOLERANCE = 20, 3, 1e-5, 1e-4
RUN = {
    "run_name": "parity", "max_duration": f"{STEPS}ba", "max_seq_len": 64, "global_train_batch_size": 8,
    "device_train_microbatch_size": 4, "precision": "fp32", "seed": 5,
    "model": {"name": "parity", "n_layers": 3, "d_model": 64, "n_heads": 4, "vocab_size": 264, "attn_config": {"kv_n_heads": 2}},
    "optimizer": {"name": "adamw", "lr": 0.003},
    "scheduler": {"name": "cosine_with_warmup", "t_warmup": f"{WARM_UP}ba", "alpha_f": 0.1},
    "algorithms": {"gradient_clipping": {"clipping_type": "norm", "clipping_threshold": 1.0}},
}
MOE = {"ffn_config": {"ffn_hidden_size": 96, "moe_num_experts": 8, "moe_top_k": 2, "moe_zloss_weight": 0.001}}
MODELS = {
    "moe": MOE,
    "dense": {"ffn_config": {"ffn_hidden_size": 176}},
    "mtp": MOE | {"mtp_num_layers": 2, "mtp_loss_scaling_factor": 0.5},
}


def train(run, folder):
    """Runs the trainer; returns its metrics, one dictionary a step."""
    file = Path(f"{folder}.yaml")
    file.write_text(yaml.safe_dump(run))
    subprocess.run([os.environ["WINDTUNNEL_TRAIN"], "train", file, "-o", folder], check=True, stdout=subprocess.DEVNULL)
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def stored_tensors(folder):
    """All of the newest checkpoint, by the trainer's names."""
    checkpoint = folder / "checkpoints" / (folder / "checkpoints" / "latest").read_text().strip()
    stored = {}
    for file in checkpoint.glob("*.safetensors"):
        stored |= load_file(file)
    return stored


def by_parameter(model, stored):
    """Yields each parameter of the model with its tensor among the stored ones, all of which must be one's."""
    left = dict(stored)
    for name, parameter in model.named_parameters():
        name = name.replace("ffn.experts.", "experts.").replace("ffn.router.", "router.")
        if ".experts." in name:
            layer, kind = name.split(".experts.")
            parts = [left.pop(f"{layer}.experts.{expert}.{kind}.weight") for expert in range(len(parameter))]
            yield parameter, torch.stack(parts).view(parameter.shape)
        else:
            yield parameter, left.pop(name).view(parameter.shape)
    assert not left, f"not in the PyTorch model: {sorted(left)}"


def load_weights(model, stored):
    with torch.no_grad():
        for parameter, value in by_parameter(model, {name: value for name, value in stored.items() if not name.startswith("state.")}):
            parameter.copy_(value)


def compare_gradients(model, stored, batch):
    """With the first moment of the first step, which is 1 - beta1 = 0.1 of the clipped gradient; each parameter over its own
    largest."""
    sum(model(batch[:, :-1], batch[:, 1:])).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    moments = {name[len("state."):-len(".exp_avg")]: value for name, value in stored.items() if name.endswith(".exp_avg")}
    worst = 0.0
    for parameter, moment in by_parameter(model, moments):
        assert parameter.grad.abs().max() > 0
        worst = max(worst, ((moment / 0.1 - parameter.grad).abs().max() / parameter.grad.abs().max()).item())
    model.zero_grad()
    print(f"gradients of the first step differ by at most {worst:.1e} of each parameter's largest, allowed {GRADIENT_TOLERANCE:.0e}")
    assert worst <= GRADIENT_TOLERANCE


def learning_rate(step):
    """Of a step counted from 1: LLM Foundry's cosine_with_warmup."""
    if step <= WARM_UP:
        return RUN["optimizer"]["lr"] * step / WARM_UP
    done = (step - WARM_UP) / (STEPS - WARM_UP)
    return RUN["optimizer"]["lr"] * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * done)))


def reference_steps(model, tokens, metrics):
    """Trains on the samples of each step; yields the losses (cross entropy, balancing loss, z loss, each module's) and the
    gradient norm."""
    sequence = RUN["max_seq_len"]
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
    for line in metrics:
        batch = tokens[line["samples"]]
        optimizer.param_groups[0]["lr"] = learning_rate(line["step"])
        losses = model(batch[:, :sequence], batch[:, 1 : sequence + 1])
        sum(losses).backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        yield [loss.item() for loss in losses], norm.item()


def relative(found, expected):
    return abs(found - expected) / abs(expected) if expected else abs(found)


def compare(run, data, scratch):
    metrics = train(run, scratch / "run")
    # One step at learning rate 0 leaves the initial weights in its checkpoint.
    train(run | {"max_duration": "1ba", "optimizer": {"name": "adamw", "lr": 0.0}}, scratch / "initial")
    shape, stored, tokens = ModelShape.of_run(run), stored_tensors(scratch / "initial"), read_tokens(data)
    model = Transformer(shape, run["max_seq_len"])
    load_weights(model, stored)
    compare_gradients(model, stored, tokens[metrics[0]["samples"]][:, : run["max_seq_len"] + 1])

    worst = 0.0
    print("step  loss      difference  gradient norm  difference  (relative)")
    for line, (losses, norm) in zip(metrics, reference_steps(model, tokens, metrics), strict=True):
        modules = [loss * shape.module_weight / shape.modules for loss in line.get("mtp_losses", [])]
        found = [line["loss"], line["aux_loss"], line["z_loss"], *modules]
        off = [relative(*pair) for pair in zip(found, losses, strict=True)]
        print(f"{line['step']:4}  {losses[0]:8.5f}  {off[0]:10.1e}  {norm:13.5f}  {relative(line['grad_norm'], norm):10.1e}")
        assert abs(line["lr"] - learning_rate(line["step"])) < 1e-12, f"step {line['step']}: the trainer's learning rate is {line['lr']}"
        worst = max(worst, *off)
    assert len(metrics) == STEPS and metrics[-1]["loss"] < metrics[0]["loss"] - 1, "nothing was learned: the comparison means little"
    for depth in range(shape.modules):
        assert metrics[-1]["mtp_losses"][depth] < metrics[0]["mtp_losses"][depth] - 1, f"module {depth + 1} learned nothing"
    print(f"worst relative difference of a loss over {STEPS} steps: {worst:.1e}, allowed {LOSS_TOLERANCE:.0e}")
    assert worst <= LOSS_TOLERANCE


def main(kind, scratch):
    data = scratch / "data"
    subprocess.run([os.environ["WINDTUNNEL"], "data", "pack", "--text", ROOT / "LICENSE", "-o", data, "--seq-len", str(RUN["max_seq_len"])],
                   check=True, stdout=subprocess.DEVNULL)
    compare(RUN | {"model": RUN["model"] | MODELS[kind], "train_loader": {"dataset": {"local": str(data)}}}, data, scratch)


if __name__ == "__main__":
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        main(sys.argv[1], Path(scratch))
