"""Adapters against PEFT: what PEFT saves is read and merged as PEFT merges it, what we write loads in PEFT and gives the same
logits, and the modules that our target names mean are those that PEFT adapts, by name and shape."""
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
import transformers

TOOL = os.environ["WT_ADAPTER_TOOL"]
TOKENS = torch.randint(0, 96, (2, 24), generator=torch.Generator().manual_seed(3))
LLAMA = dict(vocab_size=96, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
             intermediate_size=72)
# Class, configuration, targets.
FAMILIES = [
    ("Mixtral", dict(LLAMA, num_local_experts=4, num_experts_per_tok=2, sliding_window=None), ["q_proj", "v_proj"]),
    ("Llama", LLAMA, ["self_attn.k_proj", "o_proj"]),
    ("Qwen3Moe", dict(LLAMA, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=40, head_dim=24), ["q_proj", "k_proj", "v_proj", "o_proj"]),
    ("Olmoe", dict(LLAMA, num_experts=4, num_experts_per_tok=2), ["o_proj"]),
    ("Dbrx", dict(vocab_size=96, d_model=64, n_heads=4, n_layers=2, max_seq_len=64, attn_config=dict(kv_n_heads=2, clip_qkv=8.0, rope_theta=5e5),
                  ffn_config=dict(ffn_hidden_size=72, moe_num_experts=4, moe_top_k=2)), ["Wqkv", "out_proj"]),
    ("Mpt", dict(vocab_size=96, d_model=72, n_heads=6, n_layers=2, max_seq_len=64), ["Wqkv"]),
    ("Falcon", dict(vocab_size=96, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, bias=False, alibi=False,
                    tie_word_embeddings=False, num_kv_heads=2, new_decoder_architecture=True), ["query_key_value", "dense"]),
]


def logits(model):
    with torch.no_grad():
        return model.eval()(TOKENS).logits


def tool(*words):
    return subprocess.run([TOOL, *map(str, words)], check=True, stdout=subprocess.PIPE, text=True).stdout


def adapted(model):
    """(name, out, in) of each module that has factors."""
    for name, module in model.named_modules():
        if isinstance(module, peft.tuners.lora.LoraLayer):
            yield name.removeprefix("base_model.model."), module.out_features, module.in_features


def check(folder, family, config, targets, dtype):
    torch.manual_seed(7)
    config = getattr(transformers, family + "Config")(**config)
    base = getattr(transformers, family + "ForCausalLM")(config)
    base.save_pretrained(folder / "base")
    model = peft.get_peft_model(base, peft.LoraConfig(task_type="CAUSAL_LM", r=4, lora_alpha=12, lora_dropout=0.0, target_modules=targets))
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.2)
        if "lora_" in name:
            parameter.data = parameter.data.to(dtype).float()
    named = sorted(f"{name} {out} {into}" for name, out, into in adapted(model))
    assert sorted(tool("modules", folder / "base/config.json", *targets).splitlines()) == named, family
    wanted = logits(model)
    for name, parameter in model.named_parameters():
        if "lora_" in name:
            parameter.data = parameter.data.to(dtype)
    model.save_pretrained(folder / "adapter")

    tool("copy", folder / "adapter", folder / "copied")
    again = peft.PeftModel.from_pretrained(type(base).from_pretrained(folder / "base"), folder / "copied")
    assert torch.equal(logits(again), wanted), family

    subprocess.run([os.environ["WINDTUNNEL"], "lora", "merge", folder / "adapter", "--base", folder / "base", "-o", folder / "merged"],
                   check=True)
    ours, theirs = type(base).from_pretrained(folder / "merged"), again.merge_and_unload()
    for (name, mine), other in zip(ours.state_dict().items(), theirs.state_dict().values()):
        assert torch.allclose(mine, other, atol=1e-6, rtol=0), (family, name, (mine - other).abs().max())
    assert torch.allclose(logits(ours), wanted, atol=1e-4, rtol=0), family
    assert not torch.allclose(logits(type(base).from_pretrained(folder / "base")), wanted, atol=1e-2), family  # it adapts something


def main():
    for i, (family, config, targets) in enumerate(FAMILIES):
        with tempfile.TemporaryDirectory() as folder:
            check(Path(folder), family, config, targets, [torch.float32, torch.bfloat16, torch.float16][i % 3])


main()
