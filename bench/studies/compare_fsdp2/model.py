"""The trainer's model in plain PyTorch: the transformer that a run file describes, as a good PyTorch user would write it.

RMSNorm, rotary grouped-query attention, and a SwiGLU FFN or a softmax top-k router without capacity with SwiGLU experts, a
balancing loss per sequence and a z loss; modules of multi-token prediction. Operators of PyTorch only.
tests/python/parity_test.py holds it to the trainer's losses and gradients, so that the speed comparison compares the same model. Shapes: B sequences, S tokens each, D width, E experts, k choices
a token, F width of an expert or of the FFN.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

NO_TARGET = -100


@dataclass(frozen=True)
class ModelShape:
    layers: int
    width: int
    heads: int
    kv_heads: int
    ffn: int
    experts: int  # 0: a dense model
    top_k: int
    vocab: int
    rope_theta: float = 10000.0
    norm_eps: float = 1e-5
    normalize_top_k: bool = True
    aux_weight: float = 0.01
    z_weight: float = 0.0
    modules: int = 0  # of multi-token prediction
    module_weight: float = 0.3

    @property
    def head_dim(self):
        return self.width // self.heads

    @property
    def blocks(self):
        return self.layers + self.modules

    @staticmethod
    def of_run(run):
        """From a run file of the trainer, as read by a YAML library."""
        model, ffn = run["model"], run["model"]["ffn_config"]
        return ModelShape(
            layers=model["n_layers"], width=model["d_model"], heads=model["n_heads"],
            kv_heads=model.get("attn_config", {}).get("kv_n_heads", model["n_heads"]), ffn=ffn["ffn_hidden_size"],
            experts=ffn.get("moe_num_experts", 0), top_k=ffn.get("moe_top_k", 0), vocab=model["vocab_size"],
            aux_weight=ffn.get("moe_loss_weight", 0.01), z_weight=ffn.get("moe_zloss_weight", 0.0),
            modules=model.get("mtp_num_layers", 0), module_weight=model.get("mtp_loss_scaling_factor", 0.3))


def rope_tables(sequence, head_dim, theta):
    """cos and sin (S, head_dim) fp32, both halves alike: the rotate-half convention of Llama."""
    angle = torch.arange(sequence, dtype=torch.float64)[:, None] * theta ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
    angle = torch.cat([angle, angle], dim=1)
    return angle.cos().float(), angle.sin().float()


def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return (x * cos + torch.cat([-b, a], dim=-1) * sin).to(x.dtype)


class Attention(nn.Module):
    def __init__(self, m):
        super().__init__()
        self.m = m
        self.qkv = nn.Linear(m.width, (m.heads + 2 * m.kv_heads) * m.head_dim, bias=False)
        self.output = nn.Linear(m.heads * m.head_dim, m.width, bias=False)

    def forward(self, x, cos, sin):
        m, (batch, sequence, _) = self.m, x.shape
        qkv = self.qkv(x).view(batch, sequence, -1, m.head_dim).transpose(1, 2)
        q, k, v = qkv.split([m.heads, m.kv_heads, m.kv_heads], dim=1)
        attended = F.scaled_dot_product_attention(rotate(q, cos, sin), rotate(k, cos, sin), v, is_causal=True,
                                                  enable_gqa=m.heads != m.kv_heads)
        return self.output(attended.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, m):
        super().__init__()
        self.gate_up = nn.Linear(m.width, 2 * m.ffn, bias=False)
        self.down = nn.Linear(m.ffn, m.width, bias=False)

    def forward(self, x):
        gate, up = self.gate_up(x).chunk(2, dim=-1)
        return self.down(F.silu(gate) * up), x.new_zeros(2, dtype=torch.float)


class Experts(nn.Module):
    def __init__(self, m):
        super().__init__()
        self.gate_up = nn.Parameter(torch.empty(m.experts, 2 * m.ffn, m.width))
        self.down = nn.Parameter(torch.empty(m.experts, m.width, m.ffn))

    def forward(self, rows, ends):
        """rows (N, D) sorted by expert; ends (E) int32: where each expert's rows end."""
        gate, up = torch._grouped_mm(rows, self.gate_up.transpose(1, 2), offs=ends).chunk(2, dim=-1)
        return torch._grouped_mm(F.silu(gate) * up, self.down.transpose(1, 2), offs=ends)


class MoE(nn.Module):
    def __init__(self, m):
        super().__init__()
        self.m = m
        self.router = nn.Linear(m.width, m.experts, bias=False)
        self.experts = Experts(m)

    def forward(self, x):
        m, (batch, sequence, _) = self.m, x.shape
        logits = F.linear(x.float(), self.router.weight.float())  # the router works in fp32
        probabilities = logits.softmax(dim=-1)
        weights, choice = probabilities.topk(m.top_k, dim=-1)
        if m.normalize_top_k:
            weights = weights / weights.sum(dim=-1, keepdim=True)

        flat = x.flatten(0, 1)
        order = choice.flatten().argsort(stable=True)  # brings rows of the same expert together
        token = order // m.top_k
        counts = torch.zeros(batch, m.experts, dtype=torch.long, device=x.device).scatter_add_(1, choice.flatten(1), torch.ones_like(choice.flatten(1)))
        rows = self.experts(flat[token], counts.sum(0).cumsum(0).int())
        out = torch.zeros(flat.shape, device=x.device).index_add(0, token, rows * weights.flatten()[order, None]).to(x.dtype)

        # Per sequence: experts * sum_e (share of choices of e) * (mean probability of e), averaged over layers and sequences.
        balance = (counts * probabilities.sum(1)).sum() * (m.experts / (m.top_k * batch * sequence**2))
        z = logits.logsumexp(dim=-1).square().mean()
        return out.view_as(x), torch.stack([m.aux_weight * balance, m.z_weight * z]) / m.blocks


class Block(nn.Module):
    def __init__(self, m):
        super().__init__()
        self.attention_norm = nn.RMSNorm(m.width, eps=m.norm_eps)
        self.attention = Attention(m)
        self.ffn_norm = nn.RMSNorm(m.width, eps=m.norm_eps)
        self.ffn = MoE(m) if m.experts > 0 else FeedForward(m)

    def forward(self, x, cos, sin):
        x = x + self.attention(self.attention_norm(x), cos, sin)
        out, losses = self.ffn(self.ffn_norm(x))
        return x + out, losses


class Module(Block):
    """Of multi-token prediction (DeepSeek-V3, section 2.2): a block on the hidden state and the embedding of a token ahead."""

    def __init__(self, m):
        super().__init__(m)
        self.enorm = nn.RMSNorm(m.width, eps=m.norm_eps)
        self.hnorm = nn.RMSNorm(m.width, eps=m.norm_eps)
        self.eh_proj = nn.Linear(2 * m.width, m.width, bias=False)
        self.shared_head = nn.ModuleDict({"norm": nn.RMSNorm(m.width, eps=m.norm_eps)})

    def forward(self, hidden, embedding, cos, sin):
        return super().forward(self.eh_proj(torch.cat([self.enorm(embedding), self.hnorm(hidden)], dim=-1)), cos, sin)


class Transformer(nn.Module):
    def __init__(self, m, sequence):
        super().__init__()
        self.embedding = nn.Embedding(m.vocab, m.width)
        self.m = m
        self.layers = nn.ModuleList((Block if layer < m.layers else Module)(m) for layer in range(m.blocks))
        self.norm = nn.RMSNorm(m.width, eps=m.norm_eps)
        self.output = nn.Linear(m.width, m.vocab, bias=False)
        self.rope = rope_tables(sequence, m.head_dim, m.rope_theta)

    def forward(self, tokens, targets):
        """tokens, targets (B, S). Returns cross entropy, balancing loss, z loss and the weighted loss of each module, each a
        mean over these sequences."""
        x = self.embedding(tokens)
        router_losses = []
        for block in self.layers[: self.m.layers]:
            x, losses = block(x, *self.rope)
            router_losses.append(losses)
        cross_entropy = self.loss(self.norm(x), targets)
        module_losses = []
        for depth, module in enumerate(self.layers[self.m.layers :], start=1):
            # The token `depth` positions later (0 beyond the end) and the one after it (NO_TARGET beyond the end).
            given, wanted = F.pad(targets[:, depth - 1 :], (0, depth - 1)), F.pad(targets[:, depth:], (0, depth), value=NO_TARGET)
            x, losses = module(x, self.embedding(given), *self.rope)
            router_losses.append(losses)
            module_losses.append(self.m.module_weight / self.m.modules * self.loss(module.shared_head["norm"](x), wanted))
        return cross_entropy, *torch.stack(router_losses).sum(0), *module_losses

    def loss(self, normed, targets):
        return F.cross_entropy(self.output(normed).flatten(0, 1).float(), targets.flatten(), ignore_index=NO_TARGET)
