"""What windtunnel export writes is what the real packages read: parsers and configurations of every format's framework.

recipes_test.py [CHECK..]: each in a process of its own, because Megatron-Bridge and LLM Foundry import packages that are stood for here
(absent_packages.py), which the others would find. The environment variable WINDTUNNEL names the program. A package that is missing is a
failure: cmake/python-environment.sh, which says of the environment as a whole whether it is there (77), installs all of them.
"""

import ast
import dataclasses
import importlib
import os
import shlex
import subprocess
import sys
import tempfile
import types
from pathlib import Path

from absent_packages import AbsentPackages

RUNS = Path("configs/runs")
# 64 GPUs of everything: stages in chunks, tensor groups, whole experts, DeepEP, recompute of modules.
STAGED = """
run_name: staged
model: {model}
max_duration: 100ba
max_seq_len: 4096
global_train_batch_size: 64
device_train_microbatch_size: 1
precision: amp_bf16
device: cuda
fsdp_config:
  data_parallel_shard_degree: 8
  context_parallel_degree: 2
  context_parallel_ring: true
  expert_parallel_degree: 16
  expert_tensor_parallel_degree: 1
  tensor_parallel_degree: 2
  sequence_parallel: true
  pipeline_parallel_degree: 4
  virtual_pipeline_degree: 2
  reshard_after_forward: false
  gradient_reduction: step
  token_dispatcher: deepep
  activation_checkpointing: true
  activation_checkpointing_target: [norm, core]
"""
# What LLM Foundry runs: data and experts sharded, attention of some blocks and others as a whole computed again.
SHARDED = """
run_name: sharded
model: mixtral-8x7b
max_duration: 100ba
max_seq_len: 4096
global_train_batch_size: 128
device_train_microbatch_size: 1
precision: amp_bf16
device: cuda
fsdp_config:
  data_parallel_shard_degree: 64
  expert_parallel_degree: 8
  activation_checkpointing: true
  activation_checkpointing_target: {attention: 'first-4, last-2', block: range-6-9}
"""
# A warm-up that ends inside of a batch, several sets to evaluate on, names with dots.
LISTED = SHARDED.replace("sharded", "listed") + """
scheduler: {name: cosine_with_warmup, t_warmup: 1000001tok, alpha_f: 0.1}
train_loader: {dataset: {streams: {en.wiki: {local: ./wiki}, code: {local: ./code, split: train}}}}
eval_loader:
- {label: books, dataset: {local: ./books}}
- {label: code, dataset: {streams: {the.stack: {local: ./stack}}}}
eval_interval: 10ba
loggers: {tensorboard: {log_dir: ./logs}, mlflow: {experiment_name: moe, tags: {mlflow.note: x}}}
"""


def export(run, target):
    asked = subprocess.run([os.environ["WINDTUNNEL"], "export", str(run), "--to", target], capture_output=True, text=True)
    assert asked.returncode == 0, asked.stderr
    return asked.stdout


def bare_package(name):
    """A package whose own __init__ is not run: torchtitan's registers kernels that need Triton."""
    module = types.ModuleType(name)
    module.__path__ = [str(Path(p, *name.split("."))) for p in sys.path if Path(p, *name.split(".")).is_dir()]
    if not module.__path__:
        raise ImportError(f"no package {name}")
    sys.modules[name] = module


def torchtitan(runs, folder):
    for name in ("torchtitan", "torchtitan.distributed"):
        bare_package(name)
    from torchtitan.config import ConfigManager
    from torchtitan.distributed.parallel_dims import ParallelDims

    for run, gpus in runs:
        file = folder / "job.toml"
        file.write_text(export(run, "torchtitan"))
        job = ConfigManager().parse_args(["--job.config_file", str(file)])
        p = job.parallelism
        dims = ParallelDims(dp_replicate=p.data_parallel_replicate_degree, dp_shard=p.data_parallel_shard_degree, cp=p.context_parallel_degree,
                            tp=p.tensor_parallel_degree, pp=p.pipeline_parallel_degree, ep=p.expert_parallel_degree,
                            etp=p.expert_tensor_parallel_degree, world_size=gpus)
        assert dims.world_size == gpus
        data = dims.dp_replicate * dims.dp_shard
        assert job.training.global_batch_size % (job.training.local_batch_size * data) == 0, run
        assert job.compile.enable and job.optimizer.implementation == "fused" and job.checkpoint.async_mode == "async", run
        assert not p.enable_async_tensor_parallel and not job.training.enable_cpu_offload, run
        print(f"torchtitan reads {run}: {dims}")


def automodel(runs, folder):
    import yaml
    from nemo_automodel.recipes._dist_utils import parse_distributed_section

    for run, gpus in runs:
        job = yaml.safe_load(export(run, "automodel"))
        parsed = parse_distributed_section(job["distributed"])
        sizes = parsed["parallelism_sizes"]
        assert sizes.dp_size * sizes.tp_size * sizes.pp_size * sizes.cp_size == gpus, (run, sizes)
        assert (parsed["pipeline_config"] is not None) == (sizes.pp_size > 1)
        assert isinstance(job["optimizer"]["eps"], float), job["optimizer"]  # 1e-8 without a point is a text for PyYAML
        strategy = parsed["strategy_config"]
        assert strategy.enable_fsdp2_prefetch and strategy.fsdp2_backward_prefetch_depth == 1, strategy
        assert not strategy.enable_async_tensor_parallel and not strategy.enable_compile, strategy
        print(f"Automodel reads {run}: {sizes}")


def words_behind(script, text):
    """Of the command line in a shell file."""
    words = shlex.split("".join(line for line in text.splitlines(True) if not line.startswith("#")).replace("\\\n", " "))
    return words[words.index(script) + 1:]


def flags_of(text):
    """{flag: values} of Megatron-LM's command line."""
    found = {}
    for word in words_behind("pretrain_gpt.py", text):
        if word.startswith("--"):
            values = found.setdefault(word, [])
        else:
            values.append(word)
    return found


def field_value(field, values):
    """As Megatron-LM's own parser: no value is true, of an inverse flag false; patterns are expressions."""
    if not values:
        return True
    if field in ("moe_layer_freq", "window_attn_skip_freq"):
        assert set(values[0]) <= set("0123456789[]()+*,"), values
        return eval(values[0])
    if field == "window_size":
        return tuple(int(v) for v in values[0].split(","))
    read = []
    for v in values:
        try:
            read.append(ast.literal_eval(v))
        except (ValueError, SyntaxError):
            read.append(v)
    return read if field in ("recompute_modules", "cuda_graph_scope") else read[0]


# Flags that set a field of another name (argparse_meta of the dataclasses, core_transformer_config_from_args).
RENAMED = {"--num-experts": "num_moe_experts", "--norm-epsilon": "layernorm_epsilon", "--fp8-format": "fp8", "--fp4-format": "fp4"}


def megatron_fields(run):
    """The class of Megatron-Core's configuration, and the fields that the flags set."""
    import torch
    from megatron.core.transformer import MLATransformerConfig, TransformerConfig

    flags = flags_of(export(run, "megatron-core"))
    kind = MLATransformerConfig if "--multi-latent-attention" in flags else TransformerConfig
    names = {f.name for f in dataclasses.fields(kind)}
    given = {"pipeline_dtype": torch.bfloat16, "add_bias_linear": "--disable-bias-linear" not in flags}
    for flag, values in flags.items():
        field = RENAMED.get(flag, flag[2:].replace("-", "_"))
        if field in names:
            given[field] = field_value(field, values)
    given.pop("moe_permute_fusion", None)  # __post_init__ would import Transformer Engine's kernel
    if "--swiglu" in flags:
        given.update(gated_linear_unit=True, activation_func=torch.nn.functional.silu)
    return kind, given


def megatron_overlaps(run):
    """Megatron-Core's configuration of data parallelism, as far as the flags set it."""
    from megatron.core.distributed import DistributedDataParallelConfig

    names = {f.name for f in dataclasses.fields(DistributedDataParallelConfig)}
    fields = {flag[2:].replace("-", "_"): values for flag, values in flags_of(export(run, "megatron-core")).items()}
    return DistributedDataParallelConfig(**{name: field_value(name, values) for name, values in fields.items() if name in names})


def megatron_core(runs, folder):
    from megatron.core import utils

    utils.get_te_version = lambda: utils.PkgVersion("2.9.0")  # as if Transformer Engine were installed
    for run, gpus in runs:
        kind, given = megatron_fields(run)
        config = kind(**given)  # __post_init__ checks words and combinations
        assert config.cross_entropy_loss_fusion and config.cross_entropy_fusion_impl == "te" and not config.tp_comm_overlap, run
        assert config.cp_comm_type in (None, "p2p", "all_gather"), config.cp_comm_type
        overlaps = megatron_overlaps(run)
        assert overlaps.overlap_grad_reduce, run
        assert overlaps.overlap_param_gather == (overlaps.use_distributed_optimizer or overlaps.use_megatron_fsdp), run
        assert config.num_layers > 0 and config.tensor_model_parallel_size * config.pipeline_model_parallel_size <= gpus
        print(f"Megatron-Core takes {run}: {len(given)} fields of {kind.__name__}")


# The model's own, which a recipe of Megatron-Bridge takes from Hugging Face.
SHAPE = ("num_layers", "mtp_num_layers", "hidden_size", "num_attention_heads", "num_query_groups", "ffn_hidden_size", "num_moe_experts",
         "moe_ffn_hidden_size", "moe_router_topk", "moe_layer_freq", "moe_shared_expert_intermediate_size", "moe_grouped_gemm",
         "multi_latent_attention", "kv_lora_rank", "q_lora_rank")


def megatron_bridge(runs, folder):
    AbsentPackages("PIL", "datasets", "einops", "megatron.energon", "rich", "six", "transformer_engine", "triton")
    bare_package("megatron.bridge.recipes")  # its own __init__ imports models of images, too
    import torch
    from megatron.bridge.models import AutoBridge, GPTModelProvider
    from megatron.bridge.models.mla_provider import MLAModelProvider
    from megatron.bridge.training import config as training_config
    from megatron.bridge.training.utils.omegaconf_utils import process_config_with_overrides

    from transformer_engine.pytorch import optimizers

    def fused_adam(master_weight_dtype, exp_avg_dtype, exp_avg_sq_dtype, use_decoupled_grad):
        """What Megatron-Core asks Transformer Engine's FusedAdam for."""

    optimizers.FusedAdam = fused_adam
    torch.cuda.get_device_properties = lambda *_: types.SimpleNamespace(name="NVIDIA H100 80GB HBM3", major=9, minor=0)
    folders = [Path(p) for p in sys.modules["megatron.bridge.recipes"].__path__]
    for run, gpus in runs:
        words = words_behind("scripts/training/run_recipe.py", export(run, "megatron-bridge"))
        recipe = words[words.index("--recipe") + 1]
        kind, given = megatron_fields(run)
        provider = (MLAModelProvider if kind.__name__.startswith("MLA") else GPTModelProvider)
        model = provider(**{name: given[name] for name in SHAPE if name in given})
        AutoBridge.from_hf_pretrained = lambda *_, **__: types.SimpleNamespace(to_megatron_provider=lambda *_, **__: model)
        family = next(f.parent.name for d in folders for f in d.glob("*/__init__.py") if recipe in f.read_text())
        config = getattr(importlib.import_module("megatron.bridge.recipes." + family), recipe)()
        process_config_with_overrides(config, cli_overrides=[w for w in words if "=" in w])  # refuses unknown keys
        training_config.get_world_size_safe = lambda: gpus
        training_config.runtime_config_update(config)  # precision, overlap, then every check
        assert isinstance(config.optimizer.exp_avg_dtype, torch.dtype), config.optimizer.exp_avg_dtype
        # What the recipe, mixed_precision and comm_overlap have made of it.
        assert config.ddp.overlap_grad_reduce and config.ddp.overlap_param_gather and config.optimizer.overlap_param_gather, run
        assert config.model.cross_entropy_loss_fusion and config.model.cross_entropy_fusion_impl == "te", run
        assert not config.model.tp_comm_overlap and config.comm_overlap is None, run
        assert config.checkpoint.load == config.checkpoint.save == "checkpoints", run
        assert config.checkpoint.async_save == (not config.ddp.use_megatron_fsdp), run
        chunks = config.model.virtual_pipeline_model_parallel_size or 1
        if config.model.pipeline_model_parallel_size > 1:
            assert config.model.overlap_p2p_comm == (chunks > 1) == (not config.model.batch_p2p_comm), run
        assert config.train.global_batch_size % (config.train.micro_batch_size * config.data_parallel_size) == 0, run
        print(f"Megatron-Bridge takes {run}: {recipe}, {config.data_parallel_size} data-parallel ranks")


def llm_foundry(runs, folder):
    AbsentPackages("PIL", "bs4", "coolname", "cpuinfo", "datasets", "einops", "git", "importlib_metadata", "mcli", "megablocks", "mlflow",
                   "pkg_resources", "psutil", "streaming", "tabulate", "tenacity", "torchmetrics", "torchvision")
    import torch
    from composer.core import Time, Timestamp
    from composer.utils import create_interval_scheduler
    from composer.optim import CosineAnnealingWithWarmupScheduler, DecoupledAdamW
    from composer.utils.parallelism import FSDPConfig
    from llmfoundry.models.layers.blocks import MPTBlock
    from llmfoundry.models.mpt.configuration_mpt import MPTConfig
    from llmfoundry.models.utils.act_ckpt import build_act_ckpt_mod_to_blocks, check_mapping_blocks_overlap
    from llmfoundry.utils.config_utils import TRAIN_CONFIG_KEYS, TrainConfig, make_dataclass_and_log_config
    from omegaconf import OmegaConf

    listed = runs[-1][0]
    for run, gpus in runs:
        job = make_dataclass_and_log_config(OmegaConf.create(export(run, "llm-foundry")), TrainConfig, TRAIN_CONFIG_KEYS, transforms="all")[1]
        model, optimizer, scheduler = dict(job.model), dict(job.optimizer), dict(job.scheduler)
        target = model.pop("activation_checkpointing_target", None)
        assert (model.pop("name"), optimizer.pop("name"), scheduler.pop("name")) == ("mpt_causal_lm", "decoupled_adamw", "cosine_with_warmup")
        layers = MPTConfig(**model).n_layers
        blocks = build_act_ckpt_mod_to_blocks(target, MPTBlock, layers - 1)
        check_mapping_blocks_overlap(blocks, layers - 1)
        assert all(isinstance(module, type) for module in blocks), blocks  # modules are looked for by isinstance()
        fsdp = FSDPConfig(**job.fsdp_config)
        assert fsdp.backward_prefetch == "BACKWARD_PRE" and fsdp.forward_prefetch and job.compile_config is None, fsdp
        assert fsdp.data_parallel_shard_degree * fsdp.data_parallel_replicate_degree == gpus, fsdp
        DecoupledAdamW([torch.nn.Parameter(torch.zeros(1))], **optimizer)
        whole, tokens = Time.from_timestring(job.max_duration), job.global_train_batch_size * job.max_seq_len
        rate = CosineAnnealingWithWarmupScheduler(**scheduler)
        for batch, wanted in ((0, 0.0), (100, 0.1)):  # of 100 batches; schedules whose units are mixed are refused here
            state = types.SimpleNamespace(max_duration=whole, dataloader_len=None, timestamp=Timestamp(batch=batch, token=batch * tokens))
            assert abs(rate(state) - wanted) < 1e-9 or run != listed, (rate(state), wanted)
        create_interval_scheduler(job.eval_interval)
        if run == listed:
            assert (whole.unit.value, whole.value) == ("tok", 100 * tokens), whole
            assert [one["label"] for one in job.eval_loaders] == ["books", "code"], job.eval_loaders
            assert job.eval_loaders[1]["dataset"]["streams"]["the.stack"]["local"] == "./stack", job.eval_loaders
            assert list(job.train_loader["dataset"]["streams"]) == ["en.wiki", "code"], job.train_loader
            assert job.loggers["mlflow"]["tags"] == {"mlflow.note": "x"}, job.loggers
        assert job.global_train_batch_size % (job.device_train_microbatch_size * gpus) == 0, run
        print(f"LLM Foundry takes {run}: {fsdp.sharding_strategy}, recompute {({m.__name__: b for m, b in blocks.items()})}")


def launch(runs, folder):
    """The batch script of Megatron-LM and the lines in an LLM Foundry recipe, with programs of Slurm that only tell their words."""
    stubs = {"scontrol": "echo node0; echo node1", "srun": 'for i in 0 1; do SLURM_NODEID=$i "$@"; done', "torchrun": 'echo "torchrun $*"',
             "composer": 'echo "composer $*"'}
    for name, body in stubs.items():
        Path(folder, name).write_text(f"#!/bin/bash\n{body}\n")
        Path(folder, name).chmod(0o755)

    def started(script):
        return subprocess.run(["bash", "-euc", script], capture_output=True, text=True, check=True,
                              env=os.environ | {"PATH": f"{folder}:{os.environ['PATH']}", "SLURM_JOB_NODELIST": "node[0-1]"}).stdout.splitlines()

    sharded = folder / "two_nodes.yaml"
    sharded.write_text(SHARDED.replace("shard_degree: 64", "shard_degree: 16"))
    script = export(sharded, "megatron-core")
    assert script.splitlines()[1].startswith("#SBATCH --nodes=2 --ntasks-per-node=1 --gpus-per-node=8"), script
    for line in started(script):
        assert line.startswith("torchrun --nnodes 2 --nproc-per-node 8 --rdzv-backend c10d --rdzv-endpoint node0:29500 pretrain_gpt.py --num"), line
    lines = [line.removeprefix("#   ") for line in export(sharded, "llm-foundry").splitlines() if line.startswith(("#   export", "#   srun"))]
    ranks = [line.split("--base_rank ")[1].split(" --master_port")[0] for line in started("\n".join(lines))]
    assert ranks == ["0 --node_rank 0 --master_addr node0", "8 --node_rank 1 --master_addr node0"], ranks
    print("two nodes start torchrun and composer")


def check(name):
    with tempfile.TemporaryDirectory() as folder:
        staged, sharded, listed = (Path(folder, f"{name}.yaml") for name in ("staged", "sharded", "listed"))
        staged.write_text(STAGED.format(model="qwen3-30b-a3b"))
        sharded.write_text(SHARDED)
        listed.write_text(LISTED)
        dense = (RUNS / "llama3-8b-128-h100.yaml", 128)
        runs = [(RUNS / "dbrx-3072-h100.yaml", 3072), dense, (RUNS / "deepseek-v3-2048-h800.yaml", 2048), (RUNS / "tiny-moe.yaml", 4),
                (staged, 64)]
        try:
            CHECKS[name]([dense, (sharded, 64), (listed, 64)] if name == "llm_foundry" else runs, Path(folder))
        except ImportError as error:
            sys.exit(f"FAILED: {name} cannot be imported by {sys.executable}: {error}; the environment of cmake/python-packages.txt and "
                     "python-sources.txt has it: remove that folder, and run ./windtunnel test -R python_recipes, which makes it anew")


CHECKS = {c.__name__: c for c in (torchtitan, automodel, megatron_core, megatron_bridge, llm_foundry, launch)}

if __name__ == "__main__":
    if len(sys.argv) == 2:
        check(sys.argv[1])
        sys.exit(0)
    ended = [subprocess.run([sys.executable, __file__, name]).returncode for name in sys.argv[1:] or CHECKS]
    if set(ended) == {77}:
        sys.exit(77)
    sys.exit(max(ended, key=abs))  # where others are here, one that cannot be imported is a failure
