"""The words of NeMo Automodel 0.7.0, as configs/words/automodel.json: names and choices from its configuration classes and from
what its recipes ask for, verdicts from the table below. Prints the file. Nothing is imported.

automodel.py FOLDER: holds the unpacked wheel:
    python3 -m pip download --no-deps nemo-automodel==0.7.0 && python3 -m zipfile -e nemo_automodel-0.7.0*.whl FOLDER
"""
import ast
import json
import sys
from pathlib import Path

VERSION = "NeMo Automodel 0.7.0"
PARTS = "nemo_automodel/components/"
# Sections that are a class each: (section, file, class).
SECTIONS = [
    ("step_scheduler", "training/step_scheduler.py", "StepSchedulerConfig"),
    ("distributed", "distributed/mesh.py", "ParallelismSizes"),
    ("distributed", "distributed/config.py", "FSDP2Config"),
    ("distributed", "distributed/config.py", "MegatronFSDPConfig"),
    ("distributed", "distributed/config.py", "DDPConfig"),
    ("distributed.pipeline", "distributed/pipelining/config.py", "PipelineConfig"),
    ("distributed.moe", "distributed/config.py", "MoEParallelizerConfig"),
    ("checkpoint", "checkpoint/config.py", "CheckpointingConfig"),
    ("model.backend", "models/common/utils.py", "BackendConfig"),
    ("model.backend.te_fp8", "models/common/utils.py", "TEFp8Config"),
    ("model.backend.cuda_graph", "models/common/utils.py", "CudaGraphConfig"),
    ("lr_scheduler", "optim/optimizer.py", "LRSchedulerConfig"),
    ("compile", "utils/compile_utils.py", "CompileConfig"),
    ("fp8", "quantization/fp8.py", "FP8Config"),
    ("peft", "_peft/lora.py", "PeftConfig"),
    ("freeze_config", "utils/model_utils.py", "FreezeConfig"),
    ("prewarm", "training/prewarm.py", "PrewarmConfig"),
]
# PyTorch's MixedPrecisionPolicy and CPUOffloadPolicy; what recipes/_typed_config.py takes out of a section before its class sees it.
POLICY = "_target_ param_dtype reduce_dtype output_dtype cast_forward_inputs"
MORE = {
    "": "recipe recipe._target_ seed neftune.* nvtx moe_metrics moe_metrics.* kd_ratio kd_loss_fn.* teacher_model.* teacher_distributed.* "
        "offload_teacher_model separate_meshes temperature tool_call_eval.* mtp.* mfu.* domain_mixture.* embedding_row_repair "
        "embedding_row_repair.* benchmark.* wandb.* mlflow.* comet.* ci.* slurm.* skypilot.* launcher.* autonvtx.* processor.* tokenizer.* "
        "quantization.* qat.* model.* model.config.* dataset.* optimizer.* loss_fn.* rng.* "
        "validation_dataset.*",
    "distributed": "strategy activation_checkpointing _target_ _recursive_ _convert_ multimodal.*",
    "distributed.mp_policy": POLICY,
    "distributed.moe": "_target_",
    "distributed.pipeline": "_target_",
    "distributed.moe.mp_policy": POLICY,
    "distributed.offload_policy": "_target_ pin_memory",
    "model.backend": "_target_ mok.*",
    "model.backend.te_fp8": "_target_",
    "peft": "_target_",
    "compile": "_target_",
    "fp8": "_target_",
    "checkpoint": "_target_ restore_from",
    "step_scheduler": "_target_ local_batch_size",
    "lr_scheduler": "_target_",
    "freeze_config": "_target_ freeze_embeddings",
    "packed_sequence": "packed_sequence_size packing_strategy split_across_pack max_packs *",
    "dist_env": "backend timeout_minutes init_method master_port *",
    "clip_grad_norm": "max_norm backend foreach",
    "dataloader": "_target_ shuffle group_by_length shuffle_buffer_size batch_size num_workers pin_memory persistent_workers prefetch_factor "
                  "drop_last dataloader_type collate_fn collate_fn.* dataset.*",
}
MORE["validation_dataloader"] = MORE["dataloader"]
# As in torchtitan.py: the longest name that a key begins with counts; keys without one are modelled.
VERDICTS = {
    "ignored": {
        "": "ci wandb mlflow comet slurm skypilot launcher autonvtx nvtx benchmark mfu moe_metrics prewarm checkpoint step_scheduler "
            "validation_dataset validation_dataloader tool_call_eval dist_env compile rng tokenizer processor clip_grad_norm.backend "
            "clip_grad_norm.foreach distributed._target_ distributed._recursive_ distributed._convert_ distributed.moe "
            "distributed.multimodal distributed.mp_policy distributed.pipeline distributed.patch_is_packed_sequence distributed.autocast_dtype "
            "distributed.activation_checkpointing_scope distributed.megatron_fsdp_unit_modules distributed.init_fsdp_with_meta_device "
            "distributed.check_for_nan_in_grad distributed.average_in_collective distributed.calculate_per_token_loss "
            "model._target_ model.config._target_ model.trust_remote_code model.config.trust_remote_code model.output_hidden_states "
            "model.cache_dir model.use_cache model.use_sdpa_patching model.backend peft._target_ peft.use_triton "
            "peft.use_memory_efficient_lora fp8._target_ loss_fn",
        "data are taken as ready": "dataloader",
    },
    "learning": {
        "": "lr_scheduler peft.dropout peft.dropout_position peft.lora_A_init peft.moe_rank_scaling neftune mtp domain_mixture "
            "embedding_row_repair checkpoint.restore_from step_scheduler.start_step step_scheduler.start_epoch rng.ranked packed_sequence "
            "model.mtp_loss_scaling_factor model.load_base_model",
        "not judged: an argument of dataset._target_": "dataset",
        "not judged: an argument of optimizer._target_": "optimizer",
    },
    "assumed": {
        "not judged: an argument of model._target_, which may change the model": "model",
        "validations between steps are left out": "step_scheduler.val_every_steps",
        "the plan for tensor ranks is the model's own": "distributed.tp_plan",
        "kernels are those of the default": "model.attn_implementation model.use_liger_kernel model.backend.compile_attn "
                                             "model.backend.compile_norm model.backend.sparse_attn model.backend.te_grouped_tensor "
                                             "model.backend.mok model.sdpa_method",
        "the model's own code in transformers is simulated as Automodel's": "model.force_hf",
        "waits between exchanges and products are those of the default": "model.backend.dispatcher_async_dispatch "
                                                                          "model.backend.shared_expert_overlap",
        "the exchange has as many SMs as its default": "model.backend.dispatcher_num_sms",
        "permutation is a kernel of its own": "model.backend.dispatcher_hybridep_permute_fusion",
        "kernels are launched one by one": "model.backend.cuda_graph.modules",
        "routing is the model's": "model.backend.benchmark_static_routing model.backend.fake_gate_noise",
        "scales are computed weight by weight": "fp8.precompute_float8_dynamic_scale_for_fsdp",
        "weights in 8 bits are kept for backward": "fp8.force_recompute_fp8_weight_in_bwd",
        "adapters have the base's format": "peft.lora_dtype",
        "receive buffers are one set a microbatch": "distributed.pipeline.pp_recv_buffer_pool",
        "buffers are those of the default": "distributed.nccl_ub distributed.fsdp_double_buffer distributed.disable_bucketing "
                                            "distributed.keep_fp8_transpose_cache distributed.preserve_fp32_weights",
        "the check takes no time here": "distributed.report_nan_in_param_grad",
        "all weights get gradients": "freeze_config",
    },
    "refused": {
        "whose frozen weights have 4 or 8 bits, which is not simulated; leave the section out": "quantization.load_in_4bit "
                                                                                            "quantization.load_in_8bit",
        "quantization in training is not simulated; set it to false": "qat.enabled",
        "adapters with a magnitude are not simulated; set it to false": "peft.use_dora",
        "experts in 4 bits are not simulated; leave it out": "peft.expert_weight_format",
        "state in the host's memory is not simulated; leave it out": "distributed.offload_policy",
        "which orders microbatches in its own way; name a schedule with pp_schedule": "distributed.pipeline.pp_schedule_csv",
        "which emulates float8 without its speed; set it to false": "fp8.emulate",
        "a teacher's passes are not simulated; leave the section out": "teacher_model kd_ratio",
    },
}
MODELLED = """recipe seed rng.seed step_scheduler.global_batch_size step_scheduler.local_batch_size step_scheduler.max_steps step_scheduler.num_epochs
    step_scheduler.ckpt_every_steps model.pretrained_model_name_or_path model.config model.config.pretrained_model_name_or_path
    model.config.name_or_path model.torch_dtype model.dtype
    model.num_hidden_layers model.config.num_hidden_layers model.num_nextn_predict_layers model.config.num_nextn_predict_layers
    model.backend.attn model.backend.linear model.backend.experts model.backend.dispatcher model.backend.enable_deepep
    model.backend.fake_balanced_gate model.backend.te_fp8 distributed.mp_policy.param_dtype
    distributed.mp_policy.reduce_dtype distributed.moe.reshard_after_forward distributed.pipeline.pp_schedule
    distributed.pipeline.pp_microbatch_size distributed.pipeline.layers_per_stage distributed.pipeline.module_fqns_per_model_part
    optimizer._target_ optimizer.lr optimizer.betas
    optimizer.eps optimizer.weight_decay optimizer.master_weights optimizer.exp_avg_dtype optimizer.exp_avg_sq_dtype
    lr_scheduler.lr_warmup_steps lr_scheduler.lr_decay_style lr_scheduler.min_lr dataset._target_ dataset.seq_len dataset.seq_length
    dataset.max_length packed_sequence.packed_sequence_size checkpoint.enabled checkpoint.is_async checkpoint.max_recent_checkpoints
    dist_env.timeout_minutes clip_grad_norm.max_norm compile.enabled loss_fn._target_""".split()
# Words of the main branch of August 2026 that change neither time nor memory.
LATER = ["autocast.*", "longalign", "performance.*"]
# Words whose off state is not that of a class.
USUAL = {"quantization.load_in_4bit": False, "quantization.load_in_8bit": False, "qat.enabled": False, "model.use_liger_kernel": False,
         "model.force_hf": False, "model.attn_implementation": "flash_attention_2"}
# Words of releases before 0.3 that have no successor (others are renamed: planner/recipes/automodel_releases.cpp).
OTHERS = {"NeMo Automodel before 0.4": "distributed.use_hf_tp_plan distributed.backend distributed.world_size distributed.nccl_ub_sym"}


class Sources:
    def __init__(self, folder):
        self.folder, self.trees = Path(folder), {}

    def node(self, file, name):
        if file not in self.trees:
            self.trees[file] = ast.parse((self.folder / PARTS / file).read_text())
        return next(n for n in ast.walk(self.trees[file]) if isinstance(n, ast.ClassDef) and n.name == name)

    def fields(self, file, name):
        for s in self.node(file, name).body:
            if isinstance(s, ast.AnnAssign):
                yield s.target.id, s.annotation, s.value


def literal(value):
    try:
        return ast.literal_eval(value)
    except (ValueError, TypeError):
        return None  # what is installed decides, or a class


def under(name, key):
    return key == name or key.startswith(name + ".")


def verdict_of(key):
    best = ("modelled", "", "")
    for verdict, reasons in VERDICTS.items():
        for why, names in reasons.items():
            for name in names.split():
                if under(name, key) and len(name) > len(best[2]):
                    best = (verdict, why, name)
    return ("modelled", "", key) if key in MODELLED else best


def words(folder):
    out, sources = {}, Sources(folder)

    def add(key, default=None):
        verdict, why, _ = verdict_of(key.removesuffix(".*"))
        entry = {"is": verdict}
        usual = USUAL.get(key, default)
        if verdict != "modelled" and usual is not None:
            entry["usual"] = usual
        if why:
            entry["why"] = why
        out[key] = entry

    for section, file, name in SECTIONS:
        for field, _, default in sources.fields(file, name):
            add(f"{section}.{field}", literal(default) if default else None)
    for section, names in MORE.items():
        for name in names.split():
            add(f"{section}.{name}" if section else name)
    for key in LATER:
        out[key] = {"is": "ignored", "release": "main, August 2026"}
    for key in list(MODELLED) + [name for reasons in VERDICTS.values() for names in reasons.values() for name in names.split()]:
        if "." in key and key not in out and not any(other.startswith(key + ".") for other in out):
            add(key)
    return out


if __name__ == "__main__":
    others = {word: owner for owner, names in OTHERS.items() for word in names.split()}
    print(json.dumps({"version": VERSION, "words": words(sys.argv[1]), "others": others}, indent=1, sort_keys=True))
