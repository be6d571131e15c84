"""Recipes of LLM Foundry, imported and trained, against plain PyTorch: a small MPT (learned positions, biases, GELU, tied), a Llama
(rotary positions, RMSNorm, SiLU with a gate, grouped queries) and a DBRX (experts with a balancing loss of each microbatch, clipped
queries). 20 losses and learning rates within 1e-5 in fp32, with decoupled AdamW and a warm-up as Composer's.

recipe_parity_test.py KIND: mpt, llama or dbrx; glu, an MPT with GELU behind a gate and LayerNorm of each head's queries and keys;
gelu_experts, MegaBlocks' defaults with LayerNorm of whole queries and keys. Models and optimizer are written here from the papers and from what the recipe's keys
mean; PyTorch starts from the trainer's own initial weights and takes the samples that its metrics name.
"""

import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import torch.nn.functional as F
import yaml
from safetensors.torch import load_file

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench" / "studies" / "compare_fsdp2"))
from data import read_tokens  # noqa: E402

SEQUENCE, STEPS, WARM_UP, BATCH, MICROBATCH, TOLERANCE = 64, 20, 4, 8, 4, 1e-5
LR, BETAS, EPS, DECAY, ALPHA_F = 3e-3, (0.9, 0.95), 1e-8, 1e-4, 0.1
ROTARY = {"rope": True, "rope_theta": 10000}
MODELS = {
    "mpt": {},
    "glu": {"attn_config": {"qk_gn": True}, "ffn_config": {"ffn_type": "mptglu", "ffn_hidden_size": 96}},
    "gelu_experts": {"no_bias": True, "attn_config": {"qk_ln": True},
                     "ffn_config": {"ffn_type": "mb_dmoe", "ffn_hidden_size": 48, "moe_num_experts": 8, "moe_top_k": 2}},
    "llama": {"norm_type": "rmsnorm", "no_bias": True, "tie_word_embeddings": False,
              "attn_config": ROTARY | {"attn_type": "grouped_query_attention", "kv_n_heads": 2},
              "ffn_config": {"ffn_type": "mptglu", "ffn_hidden_size": 176, "ffn_act_fn": {"name": "silu"}}},
    "dbrx": {"no_bias": True, "tie_word_embeddings": False,
             "attn_config": ROTARY | {"attn_type": "grouped_query_attention", "kv_n_heads": 2, "clip_qkv": 0.5},
             "ffn_config": {"ffn_type": "mb_dmoe", "mlp_type": "glu", "ffn_hidden_size": 48, "ffn_act_fn": {"name": "silu"},
                            "moe_num_experts": 8, "moe_top_k": 2, "moe_loss_weight": 0.05, "moe_normalize_expert_weights": 1}},
}
RECIPE = {
    "variables": {"data_local": "", "max_seq_len": SEQUENCE, "global_seed": 5},
    "max_seq_len": "${variables.max_seq_len}", "run_name": "recipe",
    "model": {"name": "mpt_causal_lm", "init_device": "meta", "d_model": 64, "n_heads": 4, "n_layers": 3, "vocab_size": 264,
              "max_seq_len": "${variables.max_seq_len}"},
    "tokenizer": {"name": "bytes", "kwargs": {"model_max_length": "${variables.max_seq_len}"}},
    "train_loader": {"name": "text", "drop_last": True, "num_workers": 8,
                     "dataset": {"local": "${variables.data_local}", "shuffle_seed": "${variables.global_seed}"}},
    "scheduler": {"name": "cosine_with_warmup", "t_warmup": f"{WARM_UP * BATCH * SEQUENCE}tok", "alpha_f": ALPHA_F},
    "optimizer": {"name": "decoupled_adamw", "lr": LR, "betas": list(BETAS), "eps": EPS, "weight_decay": DECAY},
    "algorithms": {"gradient_clipping": {"clipping_type": "norm", "clipping_threshold": 1.0}},
    "max_duration": f"{STEPS * BATCH * SEQUENCE}tok", "global_train_batch_size": BATCH, "seed": "${variables.global_seed}",
    "device_train_microbatch_size": MICROBATCH, "precision": "fp32", "progress_bar": False,
    "callbacks": {"speed_monitor": {"window_size": 10}, "lr_monitor": {}},
}


def imported(recipe, file):
    """The recipe as a run file for the CPU."""
    source = file.with_suffix(".recipe.yaml")
    source.write_text(yaml.safe_dump(recipe))
    command = [os.environ["WINDTUNNEL"], "import-run", source, "--gpus", "1", "-o", file]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "assumed" not in done.stderr, f"the run says otherwise than the recipe:\n{done.stderr}"
    run = yaml.safe_load(file.read_text()) | {"device": "cpu"}
    return run


def train(run, folder):
    """Runs the trainer; returns its metrics, one dictionary a step."""
    file = Path(f"{folder}.yaml")
    file.write_text(yaml.safe_dump(run))
    subprocess.run([os.environ["WINDTUNNEL_TRAIN"], "train", file, "-o", folder], check=True, stdout=subprocess.DEVNULL)
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def stored_weights(folder):
    """Of the newest checkpoint, by the trainer's names."""
    checkpoint = folder / "checkpoints" / (folder / "checkpoints" / "latest").read_text().strip()
    stored = {}
    for file in checkpoint.glob("*.safetensors"):
        stored |= load_file(file)
    return {name: value for name, value in stored.items() if not name.startswith("state.")}


class Decoder:
    """mpt_causal_lm by the recipe's keys, over a dictionary of weights by the trainer's names."""

    def __init__(self, model, weights):
        self.width, self.heads, self.layers = model["d_model"], model["n_heads"], model["n_layers"]
        self.head = self.width // self.heads
        self.attention, self.ffn = model.get("attn_config", {}), model.get("ffn_config", {})
        self.kv_heads = self.attention.get("kv_n_heads", self.heads)
        self.rms = model.get("norm_type") == "rmsnorm"
        self.w = {name: value.clone().requires_grad_(True) for name, value in weights.items()}
        self.used = set()

    def get(self, name):
        self.used.add(name)
        return self.w.get(name)

    def norm(self, x, name):
        gain, bias = self.get(name + ".weight"), self.get(name + ".bias")
        if self.rms:
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * gain
        return F.layer_norm(x, (x.shape[-1],), gain, bias, 1e-5)

    def linear(self, x, name):
        return F.linear(x, self.get(name + ".weight").view(-1, x.shape[-1]), self.get(name + ".bias"))

    def split(self, qkv):
        return qkv.split([self.heads * self.head, self.kv_heads * self.head, self.kv_heads * self.head], -1)

    def rotated(self, x):
        half = self.head // 2
        angles = torch.outer(torch.arange(x.shape[2]), self.attention["rope_theta"] ** (-torch.arange(half) / half))
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], -1)

    def unseen(self, sequence):
        """True where a query (row) does not see a key."""
        return torch.ones(sequence, sequence, dtype=torch.bool).triu(1)

    def attend(self, x, name):
        batch, sequence, _ = x.shape
        qkv = self.linear(x, name + "qkv")
        if clip := self.attention.get("clip_qkv"):
            qkv = qkv.clamp(-clip, clip)
        if self.attention.get("qk_ln"):
            q, k, v = self.split(qkv)
            qkv = torch.cat([self.norm(q, name + "q_norm"), self.norm(k, name + "k_norm"), v], -1)
        q, k, v = (part.view(batch, sequence, -1, self.head).transpose(1, 2) for part in
                   self.split(qkv))
        if self.attention.get("qk_gn"):
            q, k = self.norm(q, name + "q_norm"), self.norm(k, name + "k_norm")
        if self.attention.get("rope"):
            q, k = self.rotated(q), self.rotated(k)
        k, v = (part.repeat_interleave(self.heads // self.kv_heads, 1) for part in (k, v))
        scores = (q @ k.transpose(2, 3)) / math.sqrt(self.head)
        scores = scores.masked_fill(self.unseen(sequence), -math.inf)
        return self.linear((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, sequence, -1), name + "output")

    def feed_forward(self, x, name):
        # MegaBlocks' own GELU is the one by tanh, where the recipe names no function.
        named = self.ffn.get("ffn_act_fn", {}).get("name")
        way = "tanh" if "moe_num_experts" in self.ffn and named is None else "none"
        act = F.silu if named == "silu" else lambda part: F.gelu(part, approximate=way)
        if self.get(name + "gate_up.weight") is None:
            return self.linear(act(self.linear(x, name + "up")), name + "down")
        gate, up = self.linear(x, name + "gate_up").chunk(2, -1)
        return self.linear(act(gate) * up, name + "down")

    def experts(self, x, layer):
        """The chosen experts' sum, and MegaBlocks' balancing loss of this microbatch without its weight."""
        rows, experts, k = x.reshape(-1, self.width), self.ffn["moe_num_experts"], self.ffn["moe_top_k"]
        scores = F.linear(rows, self.get(f"layers.{layer}.router.weight").view(experts, -1)).softmax(-1)
        weights, chosen = scores.topk(k, -1)
        if self.ffn.get("moe_normalize_expert_weights"):
            weights = weights / weights.sum(-1, keepdim=True)
        out = torch.zeros_like(rows)
        for expert in range(experts):
            row, place = (chosen == expert).nonzero(as_tuple=True)
            out = out.index_add(0, row, self.feed_forward(rows[row], f"layers.{layer}.experts.{expert}.") * weights[row, place, None])
        counts = torch.bincount(chosen.flatten(), minlength=experts)
        return out.view(x.shape), experts * (counts * scores.mean(0)).sum() / (self.layers * k * len(rows))

    def logits(self, tokens):
        """Of every token, and the weighted balancing loss of a microbatch."""
        x, balance = F.embedding(tokens, self.get("embedding.weight").view(-1, self.width)), 0.0
        if "positions.weight" in self.w:
            x = x + self.get("positions.weight").view(-1, self.width)
        for layer in range(self.layers):
            name = f"layers.{layer}."
            x = x + self.attend(self.norm(x, name + "attention_norm"), name + "attention.")
            normed = self.norm(x, name + "ffn_norm")
            if "moe_num_experts" in self.ffn:
                out, loss = self.experts(normed, layer)
                x, balance = x + out, balance + self.ffn.get("moe_loss_weight", 0.1) * loss
            else:
                x = x + self.feed_forward(normed, name + "ffn.")
        head = self.get("output.weight" if "output.weight" in self.w else "embedding.weight")
        return F.linear(self.norm(x, "norm"), head.view(-1, self.width)), balance

    def losses(self, batch):
        """Mean cross entropy and weighted balancing loss of a microbatch."""
        logits, balance = self.logits(batch[:, :SEQUENCE])
        return F.cross_entropy(logits.flatten(0, 1), batch[:, 1 : SEQUENCE + 1].flatten()), balance


class DecoupledAdamW:
    """AdamW whose step multiplies weights by 1 - decay x rate / first rate."""

    def __init__(self, parameters):
        self.parameters, self.step = parameters, 0
        self.moments = [(torch.zeros_like(p), torch.zeros_like(p)) for p in parameters]

    @torch.no_grad()
    def update(self, rate):
        self.step += 1
        for p, (first, second) in zip(self.parameters, self.moments, strict=True):
            p.mul_(1 - DECAY * rate / LR)
            first.mul_(BETAS[0]).add_(p.grad, alpha=1 - BETAS[0])
            second.mul_(BETAS[1]).addcmul_(p.grad, p.grad, value=1 - BETAS[1])
            deviation = (second / (1 - BETAS[1] ** self.step)).sqrt() + EPS
            p.sub_(rate * first / (1 - BETAS[0] ** self.step) / deviation)
            p.grad = None


def learning_rate(batch):
    """Composer's cosine_with_warmup; batches count from 0."""
    if batch < WARM_UP:
        return LR * batch / WARM_UP
    return LR * (ALPHA_F + (1 - ALPHA_F) * 0.5 * (1 + math.cos(math.pi * (batch - WARM_UP) / (STEPS - WARM_UP))))


def relative(found, expected):
    return abs(found - expected) / abs(expected) if expected else abs(found)


def compare(kind, recipe, scratch):
    run = imported(recipe, scratch / "run.yaml")
    metrics = train(run, scratch / "trained")
    # The first step of Composer's warm-up has rate 0: its checkpoint has the initial weights.
    train(run | {"max_duration": "1ba", "save": True}, scratch / "initial")
    tokens = read_tokens(Path(recipe["variables"]["data_local"]))
    model = Decoder(recipe["model"], stored_weights(scratch / "initial"))
    optimizer, worst = DecoupledAdamW(list(model.w.values())), 0.0
    print("step  loss      difference  balancing  difference  (relative)")
    for batch, line in enumerate(metrics):
        cross_entropy = balancing = 0.0
        share = MICROBATCH / BATCH
        for begin in range(0, BATCH, MICROBATCH):
            loss, balance = model.losses(tokens[line["samples"][begin : begin + MICROBATCH]])
            (share * (loss + balance)).backward()
            cross_entropy, balancing = cross_entropy + share * loss.item(), balancing + share * torch.as_tensor(balance).item()
        assert model.used >= set(model.w), f"not used: {sorted(set(model.w) - model.used)}"
        torch.nn.utils.clip_grad_norm_(model.w.values(), 1.0)
        rate = learning_rate(batch)
        optimizer.update(rate)
        off = [relative(line["loss"], cross_entropy), relative(line["aux_loss"], balancing)]
        print(f"{line['step']:4}  {cross_entropy:8.5f}  {off[0]:10.1e}  {balancing:9.5f}  {off[1]:10.1e}")
        assert abs(line["lr"] - rate) < 1e-12, f"step {line['step']}: the trainer's learning rate is {line['lr']}, Composer's {rate}"
        worst = max(worst, *off)
    assert len(metrics) == STEPS and metrics[-1]["loss"] < metrics[0]["loss"] - 1, "nothing was learned: the comparison means little"
    print(f"{kind}: worst relative difference of a loss over {STEPS} steps: {worst:.1e}, allowed {TOLERANCE:.0e}")
    assert worst <= TOLERANCE


def main(kind, scratch):
    data = scratch / "data"
    subprocess.run([os.environ["WINDTUNNEL"], "data", "pack", "--text", ROOT / "LICENSE", "-o", data, "--seq-len", str(SEQUENCE)],
                   check=True, stdout=subprocess.DEVNULL)
    recipe = RECIPE | {"model": RECIPE["model"] | MODELS[kind], "variables": RECIPE["variables"] | {"data_local": str(data)}}
    compare(kind, recipe, scratch)


if __name__ == "__main__":
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        main(sys.argv[1], Path(scratch))
