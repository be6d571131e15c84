"""The 25 recipes of LLM Foundry 0.22.0 (scripts/train/yamls) come over with `windtunnel import-run`: 23 load, the encoder-decoder is
refused, and so is the one that LLM Foundry's own parser refuses. The recipes are put together here from what each of them sets.
"""

import os
import subprocess
import tempfile
from pathlib import Path

import yaml

WINDTUNNEL = os.environ["WINDTUNNEL"]
GPUS = 8
REFUSED = {"finetune/t5-small_dolly_sft": "decoders alone", "finetune/mpt-30b-instruct": "no model of configs/models"}

NEOX, SEQ, SEED = "EleutherAI/gpt-neox-20b", "${variables.max_seq_len}", "${variables.global_seed}"
WORKERS = dict(drop_last=True, num_workers=8, pin_memory=False, prefetch_factor=2, persistent_workers=True, timeout=0)
FLASH = dict(attn_config=dict(attn_impl="flash", attn_uses_sequence_id=False))


def adamw(lr, beta2=0.95):
    return dict(name="decoupled_adamw", lr=lr, betas=[0.9, beta2], eps=1.0e-8, weight_decay=0.0)


def cosine():
    return dict(name="cosine_with_warmup", t_warmup="100ba", alpha_f=0.1)


def linear(warmup):
    return dict(name="linear_decay_with_warmup", t_warmup=warmup, alpha_f=0)


def sharded(recompute=False, **more):
    return dict(sharding_strategy="FULL_SHARD", mixed_precision="PURE", activation_checkpointing=recompute,
                activation_checkpointing_reentrant=False, activation_cpu_offload=False, limit_all_gathers=True, **more)


def tokenizer(name, **kwargs):
    return dict(name=name, kwargs=dict(model_max_length=SEQ, **kwargs))


def mpt(d_model, n_heads, n_layers, expansion_ratio=4, **more):
    return dict(name="mpt_causal_lm", init_device="meta", d_model=d_model, n_heads=n_heads, n_layers=n_layers, max_seq_len=SEQ,
                vocab_size=50368, expansion_ratio=expansion_ratio) | dict(attn_config=dict(attn_impl="flash")) | more


def pretrained(name, pretrained=True, **more):
    return dict(name="hf_causal_lm", pretrained_model_name_or_path=name, pretrained=pretrained, **more)


def text(split, shuffle, workers):
    data = dict(local="${variables.data_local}", remote="${variables.data_remote}", split=split, shuffle=shuffle, max_seq_len=SEQ,
                shuffle_seed=SEED)
    return dict(name="text", dataset=data, drop_last=shuffle, num_workers=workers)


def responses(name, split, shuffle=True, workers=WORKERS, **more):
    data = dict(hf_name=name, split=split, max_seq_len=SEQ, allow_pad_trimming=False, decoder_only_format=True, shuffle=shuffle)
    return dict(name="finetuning", dataset=data | more, **workers)


def recipe(seq, model, tokens, duration, batch, microbatch, optimizer, **more):
    """What all of them set."""
    return dict(variables=dict(global_seed=17, max_seq_len=seq), max_seq_len=SEQ, run_name=None, model=model, tokenizer=tokens,
                max_duration=duration, optimizer=optimizer, global_train_batch_size=batch, seed=SEED,
                device_train_microbatch_size=microbatch, device_eval_batch_size=microbatch, precision="amp_bf16",
                algorithms=dict(gradient_clipping=dict(clipping_type="norm", clipping_threshold=1.0)), progress_bar=False,
                log_to_console=True, console_log_interval="1ba", fsdp_config=sharded(),
                callbacks=dict(speed_monitor=dict(window_size=10), lr_monitor={}, memory_monitor={}, runtime_estimator={})) | more


def on_text(seq, model, tokens, duration, interval, batch, microbatch, optimizer, local="./my-copy-c4", splits=("train", "val"), workers=8,
            **more):
    out = recipe(seq, model, tokenizer(tokens), duration, batch, microbatch, optimizer, scheduler=cosine(), eval_interval=interval,
                 eval_first=False, eval_subset_num_batches=-1, train_loader=text(splits[0], True, workers),
                 eval_loader=text(splits[1], False, workers)) | more
    out["variables"] |= dict(data_local=local, data_remote=None, run_name=None)
    return out


def dbrx(lr, batch, **model):
    name, data = "databricks/dbrx-instruct", "mosaicml/dolly_hhrlhf"
    workers = {key: value for key, value in WORKERS.items() if key != "timeout"} | dict(pin_memory=True)
    exported = dict(overwrite=True, precision="bfloat16", save_folder="./{run_name}/checkpoints", save_interval="1dur")
    out = recipe(4096, pretrained(name, init_device="mixed", use_auth_token=True, config_overrides={}, use_flash_attention_2=True, **model),
                 tokenizer(name, trust_remote_code=True), "2ep", batch, 1,
                 dict(name="decoupled_lionw", lr=lr, betas=[0.9, 0.95], weight_decay=1.0e-6),
                 scheduler=dict(name="cosine_with_warmup", t_warmup="0.02dur", alpha_f=0), eval_interval="1ep", eval_first=False,
                 train_loader=responses(data, "train", workers=workers, eos_token_id=0, packing_ratio="auto"),
                 eval_loader=responses(data, "test", False, workers, packing_ratio=None), autoresume=True, dist_timeout=3600,
                 icl_seq_len=1024, fsdp_config=sharded(True, state_dict_type="sharded"))
    out["callbacks"] |= dict(speed_monitor=dict(window_size=1), hf_checkpointer=exported)
    return out


def recipes():
    out = {}
    sizes = {  # d_model, heads, layers, lr, batches, batches between evaluations, batch, microbatch, recompute
        "125m": (768, 12, 12, 6.0e-4, 4800, 500, 256, 16, False), "350m": (1024, 16, 24, 3.0e-4, 13400, 1000, 256, 8, False),
        "760m": (1536, 12, 24, 2.5e-4, 29000, 2000, 256, 4, False), "1b": (2048, 16, 24, 2.0e-4, 24800, 2000, 512, 4, False),
        "3b": (2560, 20, 32, 1.6e-4, 51500, 5000, 512, 8, True), "7b": (4096, 32, 32, 1.2e-4, 63900, 5000, 1024, 8, True),
        "13b": (5120, 40, 40, 1.0e-4, 124000, 5000, 1024, 8, True), "30b": (7168, 56, 48, 1.0e-4, 143100, 10000, 2048, 8, True),
        "70b": (8192, 64, 80, 8.0e-5, 333800, 10000, 2048, 4, True)}
    for size, (d_model, heads, layers, lr, batches, interval, batch, microbatch, recompute) in sizes.items():
        out[f"pretrain/mpt-{size}"] = on_text(2048, mpt(d_model, heads, layers), NEOX, f"{batches}ba", f"{interval}ba", batch, microbatch,
                                              adamw(lr), fsdp_config=sharded(recompute))
    slow = dict(attn_config=dict(attn_impl="torch"), loss_fn="torch_crossentropy")
    experts = dict(ffn_type="mb_dmoe", memory_optimized_mlp=True, moe_lbl_in_fp32=False, moe_loss_weight=0.01, moe_num_experts=4,
                   moe_top_k=2, moe_world_size=1, moe_weight_parallelism=False, uniform_expert_assignment=False)
    out["pretrain/mpt-small-cpu"] = on_text(
        128, mpt(16, 4, 4, 5, **slow, init_device="cpu"), NEOX, "10ba", "5ba", 256, 16, adamw(6.0e-4), workers=2,
        run_name="mpt_causal_lm_cpu", precision="fp32", eval_subset_num_batches=5, autoresume=False, save_overwrite=True,
        save_num_checkpoints_to_keep=1)
    out["pretrain/testing"] = on_text(128, mpt(128, 2, 2, **slow), NEOX, "200ba", "100ba", 256, 16, adamw(6.0e-4))
    out["pretrain/testing-moe"] = on_text(128, mpt(128, 2, 2, 1, **slow, ffn_config=experts), NEOX, "200ba", "100ba", 256, 16,
                                          adamw(6.0e-4))
    neo = "EleutherAI/gpt-neo-125M"
    of_neo = on_text(2048, pretrained(neo, False, config_overrides=dict(max_position_embeddings=SEQ)), neo, "4800ba", "500ba", 256, 4,
                     adamw(6.0e-4))
    out["pretrain/gpt-neo-125m"] = of_neo
    out["pretrain/gpt-neo-125m_eval"] = of_neo | dict(icl_tasks="eval/yamls/tasks.yaml", icl_subset_num_batches=2, icl_seq_len=1024,
                                                      eval_gauntlet="eval/yamls/eval_gauntlet.yaml")
    out["pretrain/gpt2-small"] = on_text(2048, pretrained("gpt2", False, config_overrides=dict(n_positions=SEQ)), "gpt2", "33696ba",
                                         "1000ba", 256, 4, adamw(6.0e-4))
    out["pretrain/opt-3b"] = on_text(256, pretrained("facebook/opt-2.7b"), "facebook/opt-2.7b", "4800ba", "500ba", 256, 4, adamw(6.0e-4))

    dolly = "HuggingFaceH4/databricks_dolly_15k"
    out["finetune/7b_dolly_sft"] = recipe(
        2048, mpt(4096, 32, 32, **FLASH), tokenizer(NEOX), "1ep", 64, 8, adamw(1.0e-5, 0.999), scheduler=linear("0ba"), eval_interval=1,
        train_loader=responses(dolly, "train"), fsdp_config=sharded(True), load_weights_only=True,
        load_path="oci://my-bucket/my-folder/mpt-7b/checkpoints/some_checkpoint.pt")
    source = dict(hf_name="json", hf_kwargs=dict(data_dir="/path/to/data"), preprocessing_fn="my.import.path:my_preprocessing_fn")
    train = responses(source, "train")
    train["dataset"] = {"<<": source} | {key: value for key, value in train["dataset"].items() if key != "hf_name"}
    out["finetune/1b_local_data_sft"] = recipe(  # merges of one map into another, several levels deep
        2048, mpt(2048, 16, 24), tokenizer(NEOX), "1ep", 128, 4, adamw(1.0e-5, 0.999), scheduler=linear("0ba"), eval_interval="50ba",
        eval_first=False, eval_subset_num_batches=-1, train_loader=train,
        eval_loader={"<<": train, "dataset": {"<<": source, "split": "validation"}}, load_path="oci://my-bucket/x.pt")
    out["finetune/t5-small_dolly_sft"] = recipe(
        1024, dict(name="hf_t5", pretrained_model_name_or_path="t5-small", pretrained=True), dict(name="t5-small"), "1ep", 64, 8,
        adamw(1.0e-5, 0.999), scheduler=linear("0ba"), eval_interval=1, fsdp_config=sharded(True), load_weights_only=True,
        train_loader=responses(dolly, "train", decoder_only_format=False))
    out["finetune/gpt2-arc-easy--cpu-streaming-dataset"] = recipe(
        512, pretrained("gpt2"), tokenizer("gpt2"), "1ep", 8, 8, adamw(6.0e-4), scheduler=cosine(), eval_interval=1, precision="fp32",
        train_loader=dict(name="finetuning", drop_last=True, num_workers=8,
                          dataset=dict(streams=dict(my_data=dict(remote=None, local="./my_data", split="train")), shuffle=True,
                                       max_seq_len=SEQ, decoder_only_format=True)))
    out["finetune/dbrx-full-ft"] = dbrx(1.0e-6, 64)
    out["finetune/dbrx-lora-ft"] = dbrx(1.0e-4, 16, peft_config=dict(r=64, peft_type="LORA", task_type="CAUSAL_LM", lora_alpha=128,
                                                                     lora_dropout=0.05, target_modules=["Wqkv"]))
    hhrlhf, mpt_7b = "mosaicml/dolly_hhrlhf", "mosaicml/mpt-7b"
    out["finetune/mpt-7b_dolly_sft"] = recipe(
        2048, pretrained(mpt_7b, config_overrides=FLASH), tokenizer(mpt_7b), "2ep", 48, 8, adamw(5.0e-6, 0.999), scheduler=linear("50ba"),
        eval_interval="1ep", eval_first=True, train_loader=responses(hhrlhf, "train"), eval_loader=responses(hhrlhf, "test"),
        fsdp_config=sharded(True))
    out["finetune/mpt-7b_domain_adapt"] = on_text(
        4096, pretrained(mpt_7b, config_overrides=FLASH), mpt_7b, "3195ba", "500ba", 1024, 8, adamw(5.0e-5), local="./my-adaptation-data",
        splits=("train_small", "val_small"), fsdp_config=sharded(True), save_interval="1000ba", save_num_checkpoints_to_keep=1,
        save_folder="./{run_name}/checkpoints")
    mpt_30b, task = "mosaicml/mpt-30b", dict(label="piqa", dataset_uri=None, num_fewshot=[0], icl_task_type="multiple_choice")
    out["finetune/mpt-30b-instruct"] = recipe(
        8192, pretrained(mpt_30b, init_device="mixed", config_overrides=FLASH | dict(max_seq_len=SEQ)), tokenizer(mpt_30b), "8ep", 72, 1,
        adamw(9.65e-6), scheduler=linear("50ba"), eval_interval="1ep", eval_first=True, load_weights_only=False, autoresume=False,
        train_loader=responses("mosaicml/instruct-v3", "train", packing_ratio=9), python_log_level="debug", icl_max_seq_len=2048,
        eval_loader=responses("mosaicml/instruct-v3", "test", packing_ratio=9), fsdp_config=sharded(True, sync_module_states=True),
        icl_tasks=[task])
    return out


def check_imported(name, recipe, run):
    """The run file says what the recipe says."""
    assert run["max_seq_len"] == recipe["variables"]["max_seq_len"], name
    assert run["global_train_batch_size"] == recipe["global_train_batch_size"], name
    of_rank = recipe["global_train_batch_size"] // GPUS
    assert run["device_train_microbatch_size"] == min(of_rank, recipe["device_train_microbatch_size"]), name
    if not recipe["max_duration"].endswith("ep"):
        assert run["max_duration"] == recipe["max_duration"], name
    found, wanted = run["optimizer"], recipe["optimizer"]
    assert float(found["lr"]) == wanted["lr"] and [found["beta1"], found["beta2"]] == wanted["betas"], (name, found)
    fsdp = run["fsdp_config"]
    assert fsdp["data_parallel_replicate_degree"] * fsdp["data_parallel_shard_degree"] == GPUS, (name, fsdp)
    recompute = recipe["fsdp_config"]["activation_checkpointing"]
    assert bool(fsdp.get("activation_checkpointing", False)) == recompute, (name, fsdp)
    if recipe["model"]["name"] == "mpt_causal_lm":
        for key in ("d_model", "n_heads", "n_layers", "vocab_size"):
            assert run["model"][key] == recipe["model"][key], (name, key)
        assert run["model"]["ffn_config"]["ffn_hidden_size"] == recipe["model"]["expansion_ratio"] * recipe["model"]["d_model"], name
    assert ("peft_config" in run["model"]) == ("peft_config" in recipe["model"]), name


def main():
    stock = recipes()
    assert len(stock) == 25
    with tempfile.TemporaryDirectory() as folder:
        for name, recipe in stock.items():
            given, out = Path(folder) / "recipe.yaml", Path(folder) / f"{name.replace('/', '-')}.yaml"
            given.write_text(yaml.safe_dump(recipe, sort_keys=False).replace("'<<'", "<<"))
            done = subprocess.run([WINDTUNNEL, "import-run", given, "--gpus", str(GPUS), "-o", out], capture_output=True, text=True)
            said = done.stdout + done.stderr
            if name in REFUSED:
                assert done.returncode == 2 and REFUSED[name] in said and not out.exists(), (name, said)
                continue
            assert done.returncode == 0, (name, said)
            check_imported(name, recipe, yaml.safe_load(out.read_text()))
    print(f"{len(stock) - len(REFUSED)} of {len(stock)} recipes are imported")


main()
