"""Our models against Hugging Face transformers: small randomly initialised models of every family, saved by transformers and
loaded by us, give the same logits; and what we save of them loads there again, bit for bit."""

import json
import os
import subprocess
import tempfile
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file, save_file

TOLERANCE = 1e-4
TOOL = os.environ["WT_HUGGING_FACE_MODEL"]
TOKENS = torch.randint(0, 96, (1, 24), generator=torch.Generator().manual_seed(3))
LLAMA = dict(vocab_size=96, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
             intermediate_size=72)
MOE = dict(LLAMA, num_experts=8, num_experts_per_tok=3)
LATENT = dict(LLAMA, num_key_value_heads=4, kv_lora_rank=24, qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=20, n_routed_experts=8,
              num_experts_per_tok=3, moe_intermediate_size=40, n_shared_experts=2, first_k_dense_replace=1)
FALCON = dict(vocab_size=96, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, bias=False, alibi=False, tie_word_embeddings=False)
FAMILIES = {
    "Mixtral": dict(LLAMA, num_local_experts=8, num_experts_per_tok=3, sliding_window=None),
    "Qwen3Moe": dict(MOE, moe_intermediate_size=40, norm_topk_prob=True, head_dim=24),
    "Olmoe": dict(MOE, clip_qkv=0.5),
    "Dbrx": dict(vocab_size=96, d_model=64, n_heads=4, n_layers=2, max_seq_len=64, attn_config=dict(kv_n_heads=2, clip_qkv=0.3, rope_theta=5e5),
                 ffn_config=dict(ffn_hidden_size=72, moe_num_experts=8, moe_top_k=3)),
    "DeepseekV2": dict(LATENT, q_lora_rank=None, topk_method="greedy", norm_topk_prob=False, routed_scaling_factor=1.0),
    "DeepseekV3": dict(LATENT, q_lora_rank=32, n_group=4, topk_group=2, norm_topk_prob=True, routed_scaling_factor=2.5),
    "Llama": dict(LLAMA, rope_theta=20000.0),
    "Mpt": dict(vocab_size=96, d_model=72, n_heads=6, n_layers=2, max_seq_len=64),
    "Falcon": dict(FALCON, multi_query=True, parallel_attn=True, new_decoder_architecture=False),
    "FalconNewer": dict(FALCON, num_kv_heads=2, new_decoder_architecture=True),
}


def make(name):
    family = name.removesuffix("Newer")
    torch.manual_seed(7)
    config = getattr(transformers, family + "Config")(**FAMILIES[name])
    model = getattr(transformers, family + "ForCausalLM")(config).eval()
    with torch.no_grad():  # gains and biases that are not 1 and 0, so that mistaken ones show
        for key, value in model.named_parameters():
            if value.dim() == 1:
                value.add_(0.1 * torch.randn(value.shape))
            else:
                value.mul_(2)
        for key, value in model.named_buffers():
            if "correction_bias" in key:
                value.add_(0.05 * torch.randn(value.shape))
    return model


def tool(*words):
    return subprocess.run([TOOL, *map(str, words)], check=True, capture_output=True, text=True).stdout


def check(name, folder):
    model = make(name)
    shards = {"max_shard_size": "100KB"} if name == "Mixtral" else {}  # several files and an index
    model.save_pretrained(folder / "theirs", **shards)
    assert not shards or (folder / "theirs" / "model.safetensors.index.json").exists()
    with torch.no_grad():
        expected = model(TOKENS, use_cache=False).logits[0]
    said = tool("logits", folder / "theirs", *TOKENS[0].tolist())
    found = torch.tensor([[float(word) for word in line.split()] for line in said.splitlines()])
    worst = (found - expected).abs().max().item()
    print(f"{name}: logits up to {expected.abs().max():.2f} differ by at most {worst:.1e}")
    assert worst <= TOLERANCE, name

    tool("save", folder / "theirs", folder / "ours")
    again = type(model).from_pretrained(folder / "ours", dtype=torch.float32)
    differing = [key for key, value in again.state_dict().items() if not torch.equal(value, model.state_dict()[key])]
    assert not differing and again.state_dict().keys() == model.state_dict().keys(), (name, differing)
    with torch.no_grad():
        torch.testing.assert_close(again.eval()(TOKENS, use_cache=False).logits[0], expected, rtol=1e-5, atol=1e-5)


def refused(folder):
    """Files of another model end in an error that names what is wrong, never in wrong weights."""
    model = make("Llama")
    model.save_pretrained(folder / "theirs")

    def said(change):
        tensors = load_file(folder / "theirs" / "model.safetensors")
        change(tensors)
        broken = folder / "broken"
        broken.mkdir(exist_ok=True)
        save_file(tensors, broken / "model.safetensors", {"format": "pt"})
        (broken / "config.json").write_text((folder / "theirs" / "config.json").read_text())
        done = subprocess.run([TOOL, "logits", broken, "1"], capture_output=True, text=True)
        assert done.returncode == 2, done
        return done.stderr

    key = "model.layers.0.mlp.down_proj.weight"
    assert f"no tensor {key}" in said(lambda t: t.pop(key))
    assert "has shape (64, 71)" in said(lambda t: t.update({key: t[key][:, :-1].contiguous()}))
    assert "extra.weight is not known in family llama" in said(lambda t: t.update({"extra.weight": torch.zeros(3)}))
    assert "type I32" in said(lambda t: t.update({key: t[key].int()}))


def trained_from(name, folder):
    """A run over two ranks starts from a folder's weights and, at learning rate 0, exports them unchanged; at another it learns
    from them."""
    theirs, data = folder / "theirs", folder / "data"
    FAMILIES[name] = dict(FAMILIES[name], vocab_size=264)
    make(name).save_pretrained(theirs)
    subprocess.run([os.environ["WINDTUNNEL"], "data", "pack", "--text", "LICENSE", "-o", data, "--seq-len", "32"], check=True, stdout=subprocess.DEVNULL)
    for rate, unchanged in ((0.0, True), (0.003, False)):
        out, run = folder / f"exported-{rate}", folder / f"run-{rate}.yaml"
        run.write_text(json.dumps({
            "model": str(theirs), "load_path": str(theirs), "max_duration": "2ba", "max_seq_len": 32, "global_train_batch_size": 4,
            "device_train_microbatch_size": 2, "save": False, "train_loader": {"dataset": {"local": str(data)}},
            "optimizer": {"name": "adamw", "lr": rate, "weight_decay": 0.0}, "callbacks": {"hf_checkpointer": {"save_folder": str(out)}},
            "fsdp_config": {"data_parallel_shard_degree": 2, "expert_parallel_degree": 2}}))
        subprocess.run([os.environ["WINDTUNNEL_TRAIN"], "train", run, "-o", folder / f"out-{rate}"], check=True, stdout=subprocess.DEVNULL)
        before, after = load_file(theirs / "model.safetensors"), load_file(out / "model.safetensors")
        assert before.keys() == after.keys()
        same = all(torch.equal(before[key], after[key]) for key in before)
        assert same == unchanged, f"{name} at learning rate {rate}"


if __name__ == "__main__":
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        for name in FAMILIES:
            check(name, Path(scratch) / name)
        refused(Path(scratch) / "refused")
        trained_from("Qwen3Moe", Path(scratch) / "trained")
