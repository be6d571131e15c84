"""Our models against Hugging Face transformers: small randomly initialised models of every family, saved by transformers and
loaded by us, give the same logits and gradients; and what we save of them loads there again, bit for bit. Modules of multi-token
prediction, which transformers leaves out, keep DeepSeek-V3's names. Rotary frequencies are those of
transformers and of the papers' formulas, worked out here."""

import json
import math
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
YARN = dict(rope_type="yarn", factor=40.0, original_max_position_embeddings=16)
# By class in transformers; after a dash, which variant.
FAMILIES = {
    "Mixtral": dict(LLAMA, num_local_experts=8, num_experts_per_tok=3, sliding_window=None),
    "Qwen3": dict(LLAMA, head_dim=24),
    "Qwen3Moe": dict(MOE, moe_intermediate_size=40, norm_topk_prob=True, head_dim=24),
    "Olmoe": dict(MOE, clip_qkv=0.5),
    "Dbrx": dict(vocab_size=96, d_model=64, n_heads=4, n_layers=2, max_seq_len=64, attn_config=dict(kv_n_heads=2, clip_qkv=0.3, rope_theta=5e5),
                 ffn_config=dict(ffn_hidden_size=72, moe_num_experts=8, moe_top_k=3)),
    "DeepseekV2": dict(LATENT, q_lora_rank=None, topk_method="greedy", norm_topk_prob=False, routed_scaling_factor=1.0),
    "DeepseekV3": dict(LATENT, q_lora_rank=32, n_group=4, topk_group=2, norm_topk_prob=True, routed_scaling_factor=2.5),
    "Llama": dict(LLAMA, rope_theta=20000.0),
    "Mpt": dict(vocab_size=96, d_model=72, n_heads=6, n_layers=2, max_seq_len=64),
    "Falcon": dict(FALCON, multi_query=True, parallel_attn=True, new_decoder_architecture=False),
    "Falcon-newer": dict(FALCON, num_kv_heads=2, new_decoder_architecture=True),
    # Biases, scaled positions and the groups of DeepSeek-V2; lengths so short that 24 tokens feel the scaling.
    "Qwen2": dict(LLAMA),
    "Olmoe-bias": dict(MOE, attention_bias=True),
    "Llama-linear": dict(LLAMA, attention_bias=True, rope_scaling=dict(rope_type="linear", factor=2.5)),
    "Llama-llama3": dict(LLAMA, rope_theta=100.0, max_position_embeddings=512,
                         rope_scaling=dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                                           original_max_position_embeddings=64)),
    "Mixtral-yarn": dict(LLAMA, head_dim=16, num_local_experts=8, num_experts_per_tok=3, sliding_window=None,
                         rope_scaling=dict(YARN, attention_factor=1.3, beta_fast=8.0, beta_slow=0.5, truncate=False)),
    "Qwen3Moe-yarn": dict(MOE, moe_intermediate_size=40, norm_topk_prob=True, head_dim=24, attention_bias=True,
                          rope_scaling=dict(YARN, factor=4.0, mscale=1.0, mscale_all_dim=0.5)),
    "DeepseekV2-lite": dict(LATENT, q_lora_rank=None, topk_method="greedy", n_group=1, topk_group=1, routed_scaling_factor=1.0,
                            rope_scaling=dict(YARN, mscale=0.707)),
    "DeepseekV2-groups": dict(LATENT, q_lora_rank=32, topk_method="group_limited_greedy", n_group=4, topk_group=2, routed_scaling_factor=4.0,
                              attention_bias=True, rope_scaling=dict(YARN, mscale=0.707, mscale_all_dim=0.707)),
    "DeepseekV3-yarn": dict(LATENT, q_lora_rank=32, n_group=4, topk_group=2, norm_topk_prob=True, routed_scaling_factor=2.5, attention_bias=True,
                            rope_scaling=dict(YARN, mscale=1.0, mscale_all_dim=1.0)),
    "DeepseekV3-modules": dict(LATENT, q_lora_rank=32, n_group=4, topk_group=2, norm_topk_prob=True, routed_scaling_factor=2.5,
                               num_nextn_predict_layers=2),
    # Attention windows shorter than the 24 tokens, sinks, biases and GPT-OSS's gate; layers with and without experts in turns.
    "GptOss": dict(LLAMA, num_hidden_layers=4, head_dim=16, num_local_experts=8, num_experts_per_tok=3, sliding_window=7, rope_scaling=None),
    "GptOss-yarn": dict(LLAMA, num_hidden_layers=3, head_dim=16, num_local_experts=8, num_experts_per_tok=3, sliding_window=7,
                        layer_types=["full_attention", "full_attention", "sliding_attention"], rope_scaling=dict(YARN, truncate=False)),
    "Mistral": dict(LLAMA, sliding_window=7),
    "Mixtral-window": dict(LLAMA, num_local_experts=8, num_experts_per_tok=3, sliding_window=7),
    "Qwen2-window": dict(LLAMA, num_hidden_layers=3, use_sliding_window=True, sliding_window=7, max_window_layers=1),
    "Qwen3Moe-window": dict(MOE, moe_intermediate_size=40, norm_topk_prob=True, head_dim=24, use_sliding_window=True, sliding_window=7),
    "Qwen3Moe-sparse": dict(MOE, moe_intermediate_size=40, norm_topk_prob=True, head_dim=24, num_hidden_layers=4, decoder_sparse_step=2,
                            mlp_only_layers=[3]),
    "Llama-bias": dict(LLAMA, attention_bias=True, mlp_bias=True),
    "Falcon-linear": dict(FALCON, num_kv_heads=2, new_decoder_architecture=True, rope_scaling=dict(rope_type="linear", factor=3.0)),
}
# Positions as published, beside the small ones.
PUBLISHED = {
    "Llama-3.1-8B": dict(hidden_size=4096, num_attention_heads=32, rope_theta=500000.0,
                         rope_scaling=dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                                           original_max_position_embeddings=8192)),
    "Qwen3Moe-235B-131072": dict(hidden_size=4096, num_attention_heads=64, head_dim=128, rope_theta=1000000.0,
                                 rope_scaling=dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=32768)),
    "DeepseekV2-Lite": dict(q_lora_rank=None, n_group=1, topk_group=1, n_routed_experts=64, num_experts_per_tok=6,
                            rope_scaling=dict(type="yarn", factor=40, beta_fast=32, beta_slow=1, mscale=0.707, mscale_all_dim=0.707,
                                              original_max_position_embeddings=4096)),
    "DeepseekV3-671B": dict(rope_scaling=dict(type="yarn", factor=40, beta_fast=32, beta_slow=1, mscale=1.0, mscale_all_dim=1.0,
                                              original_max_position_embeddings=4096)),
}


def config_of(name, keys):
    return getattr(transformers, name.split("-")[0] + "Config")(**keys)


def m(factor, weight):
    """yarn_get_mscale of DeepSeek's modeling code; Peng et al. 2023, eq. 22, for weight 1."""
    return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1.0


def as_deepseek_has_it(model):
    """transformers 4.57 leaves out of DeepSeek-V2 what mscale_all_dim does to the softmax, which its V3 and DeepSeek's own code
    of both have."""
    config = model.config
    if config.model_type == "deepseek_v2" and config.rope_scaling and config.rope_scaling.get("mscale_all_dim"):
        for layer in model.model.layers:
            assert layer.self_attn.scaling == layer.self_attn.qk_head_dim**-0.5, "transformers has it now: remove this"
            layer.self_attn.scaling *= m(config.rope_scaling["factor"], config.rope_scaling["mscale_all_dim"]) ** 2
    return model


def make(name):
    torch.manual_seed(7)
    config = config_of(name, FAMILIES[name])
    model = as_deepseek_has_it(getattr(transformers, name.split("-")[0] + "ForCausalLM")(config).eval())
    with torch.no_grad():  # gains and biases that are not 1 and 0, so that mistaken ones show
        for key, value in model.named_parameters():
            if value.dim() == 1 or key.endswith("_bias"):
                value.add_(0.1 * torch.randn(value.shape))
            else:
                value.mul_(20 if key.endswith("gate_up_proj") else 2)  # so much that GPT-OSS's limits are met
        for key, value in model.named_buffers():
            if "correction_bias" in key:
                value.add_(0.05 * torch.randn(value.shape))
    return model


def save_theirs(name, model, folder, **shards):
    """As transformers saves it; with modules of multi-token prediction, as DeepSeek-V3's README_WEIGHTS.md has them: a block as the
    last one, norms and a projection of their own, and embedding and head once more."""
    model.save_pretrained(folder, **shards)
    modules = FAMILIES[name].get("num_nextn_predict_layers", 0)
    if not modules:
        return
    tensors, layers, width = load_file(folder / "model.safetensors"), model.config.num_hidden_layers, model.config.hidden_size
    last = f"model.layers.{layers - 1}."
    block = {key[len(last):]: value for key, value in tensors.items() if key.startswith(last)}
    for module in range(layers, layers + modules):
        own = {key: torch.randn(value.shape) for key, value in block.items()}
        own |= {f"{norm}.weight": torch.randn(width) for norm in ("enorm", "hnorm", "shared_head.norm")}
        own |= {"eh_proj.weight": torch.randn(width, 2 * width), "embed_tokens.weight": tensors["model.embed_tokens.weight"].clone(),
                "shared_head.head.weight": tensors["lm_head.weight"].clone()}
        tensors |= {f"model.layers.{module}.{key}": value for key, value in own.items()}
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})


def tool(*words):
    done = subprocess.run([TOOL, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def check(name, folder):
    model = make(name)
    shards = {"max_shard_size": "100KB"} if name == "Mixtral" else {}  # several files and an index
    save_theirs(name, model, folder / "theirs", **shards)
    assert not shards or (folder / "theirs" / "model.safetensors.index.json").exists()
    with torch.no_grad():
        expected = model(TOKENS, use_cache=False).logits[0]
    said = tool("logits", folder / "theirs", *TOKENS[0].tolist())
    found = torch.tensor([[float(word) for word in line.split()] for line in said.splitlines()])
    worst = (found - expected).abs().max().item()
    print(f"{name}: logits up to {expected.abs().max():.2f} differ by at most {worst:.1e}")
    assert worst <= TOLERANCE, name
    windows_are_felt(name, folder, expected)
    gradients_agree(name, folder, model)
    if model.config.to_dict().get("rope_scaling"):  # and would differ, were the scaling left out
        plain = json.loads((folder / "theirs" / "config.json").read_text())
        plain.pop("rope_scaling")
        (folder / "plain").mkdir()
        (folder / "plain" / "config.json").write_text(json.dumps(plain))
        (folder / "plain" / "model.safetensors").symlink_to(folder / "theirs" / "model.safetensors")
        said = tool("logits", folder / "plain", *TOKENS[0].tolist())
        unscaled = torch.tensor([[float(word) for word in line.split()] for line in said.splitlines()])
        assert (unscaled - expected).abs().max().item() > 20 * TOLERANCE, name

    tool("save", folder / "theirs", folder / "ours")
    if FAMILIES[name].get("num_nextn_predict_layers"):
        theirs, ours = (load_file(folder / side / "model.safetensors") for side in ("theirs", "ours"))
        assert theirs.keys() == ours.keys() and all(torch.equal(theirs[key], ours[key]) for key in theirs), name
        assert json.loads((folder / "ours" / "config.json").read_text())["num_nextn_predict_layers"] == 2
    again = type(model).from_pretrained(folder / "ours", dtype=torch.float32)
    differing = [key for key, value in again.state_dict().items() if not torch.equal(value, model.state_dict()[key])]
    assert not differing and again.state_dict().keys() == model.state_dict().keys(), (name, differing)
    with torch.no_grad():
        torch.testing.assert_close(as_deepseek_has_it(again.eval())(TOKENS, use_cache=False).logits[0], expected, rtol=1e-5, atol=1e-5)
    return worst


def windows_are_felt(name, folder, expected):
    """Of a file with a window the logits would be others without."""
    config = json.loads((folder / "theirs" / "config.json").read_text())
    if not config.get("sliding_window"):
        return
    without = dict(config, sliding_window=64)
    (folder / "all").mkdir()
    (folder / "all" / "config.json").write_text(json.dumps(without))
    (folder / "all" / "model.safetensors").symlink_to(folder / "theirs" / "model.safetensors")
    said = tool("logits", folder / "all", *TOKENS[0].tolist())
    found = torch.tensor([[float(word) for word in line.split()] for line in said.splitlines()])
    assert (found - expected).abs().max().item() > 20 * TOLERANCE, name


def gradients_agree(name, folder, model):
    """Of the mean cross entropy of the next tokens, for every weight."""
    tool("gradients", folder / "theirs", folder / "gradients", *TOKENS[0].tolist())
    found = load_file(folder / "gradients" / "model.safetensors")
    logits = model(TOKENS[:, :-1], use_cache=False).logits[0]
    torch.nn.functional.cross_entropy(logits, TOKENS[0, 1:]).backward()
    worst = 0.0
    for key, value in model.named_parameters():
        expected = torch.zeros_like(value) if value.grad is None else value.grad
        off = (found[key] - expected).abs().max().item() / max(expected.abs().max().item(), 1e-6)
        assert off <= TOLERANCE, (name, key, off)
        worst = max(worst, off)
    print(f"{name}: gradients differ by at most {worst:.1e} of each weight's largest")


def by_paper(scaling, theta, dim):
    """Frequencies and amplitude in double: Su et al. 2021; Chen et al. 2023 (linear); apply_scaling of Meta's Llama 3.1 code; Peng et
    al. 2023 with the ramp over pairs of its code and DeepSeek's (yarn)."""
    plain = [theta ** (-2.0 * i / dim) for i in range(dim // 2)]
    factor, kind = scaling["factor"], scaling.get("rope_type", scaling.get("type"))
    if kind == "linear":
        return [f / factor for f in plain], 1.0
    length = scaling["original_max_position_embeddings"]
    if kind == "llama3":
        low, high, out = scaling["low_freq_factor"], scaling["high_freq_factor"], []
        for f in plain:
            wavelength = 2 * math.pi / f
            smooth = (length / wavelength - low) / (high - low)
            out.append(f if wavelength < length / high else f / factor if wavelength > length / low else (1 - smooth) * f / factor + smooth * f)
        return out, 1.0
    first, last = (dim * math.log(length / (scaling.get(key, usual) * 2 * math.pi)) / (2 * math.log(theta))
                   for key, usual in (("beta_fast", 32), ("beta_slow", 1)))
    if scaling.get("truncate", True):
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, dim - 1)
    kept = [1 - min(max((i - first) / (last - first), 0), 1) for i in range(dim // 2)]
    weights = scaling.get("mscale"), scaling.get("mscale_all_dim")
    amplitude = scaling.get("attention_factor") or (m(factor, weights[0]) / m(factor, weights[1]) if all(weights) else m(factor, 1))
    return [f / factor * (1 - k) + f * k for f, k in zip(plain, kept)], amplitude


def positions(name, keys, folder):
    """The frequencies that we say are transformers' (which works in fp32) and the papers'."""
    config = config_of(name, keys)
    config.save_pretrained(folder)
    frequencies, rest = tool("positions", folder).splitlines()
    found, (amplitude, softmax) = [float(word) for word in frequencies.split()], map(float, rest.split())
    scaling, latent = keys["rope_scaling"], "Deepseek" in name
    dim = config.qk_rope_head_dim if latent else getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    expected, expected_amplitude = by_paper(scaling, config.rope_theta, dim)
    theirs, their_amplitude = transformers.modeling_rope_utils.ROPE_INIT_FUNCTIONS[scaling.get("rope_type", scaling.get("type"))](config, "cpu")
    assert len(found) == len(expected) == dim // 2
    worst = max(abs(f / e - 1) for f, e in zip(found, expected))
    assert worst < 1e-14 and abs(amplitude / expected_amplitude - 1) < 1e-14, (name, worst, amplitude)
    in_fp32 = max(abs(f / e - 1) for f, e in zip(found, theirs.tolist()))
    assert in_fp32 < 5e-6 and abs(amplitude / their_amplitude - 1) < 1e-14, (name, in_fp32, amplitude)
    head = config.qk_nope_head_dim + dim if latent else dim
    assert math.isclose(softmax, head**-0.5 * (m(scaling["factor"], scaling.get("mscale_all_dim", 0)) ** 2 if latent else 1)), name
    print(f"{name}: frequencies within {worst:.1e} of the formula, {in_fp32:.1e} of transformers' fp32")


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
    bias = "model.layers.0.self_attn.q_proj.bias"
    assert f"{bias} is not known in family llama" in said(lambda t: t.update({bias: torch.zeros(64)}))


def trained_from(name, folder):
    """A run over two ranks starts from a folder's weights and, at learning rate 0, exports them unchanged; at another it learns
    from them."""
    theirs, data = folder / "theirs", folder / "data"
    FAMILIES[name] = dict(FAMILIES[name], vocab_size=264)
    save_theirs(name, make(name), theirs)
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
        same = all(torch.equal(before[key], after[key]) for key in before if "correction_bias" not in key)  # moved at any rate
        assert same == unchanged, f"{name} at learning rate {rate}"


if __name__ == "__main__":
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()  # it warns of lengths that are this short
    with tempfile.TemporaryDirectory() as scratch:
        for name, keys in [*FAMILIES.items(), *PUBLISHED.items()]:
            if keys.get("rope_scaling"):
                positions(name, keys, Path(scratch) / "positions" / name)
        worst = max(check(name, Path(scratch) / name) for name in FAMILIES)
        print(f"{len(FAMILIES)} models: logits differ by at most {worst:.1e}")
        refused(Path(scratch) / "refused")
        for name in ("Qwen3Moe-yarn", "GptOss", "DeepseekV3-modules"):
            trained_from(name, Path(scratch) / "trained" / name)
