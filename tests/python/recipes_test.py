"""What windtunnel export writes is what the real packages read: torchtitan's and Automodel's parsers, Megatron-Core's configuration.

LLM Foundry and Megatron-Bridge do not install beside this PyTorch; their keys are checked against lists (tests/property/recipes.cpp).
The environment variable WINDTUNNEL names the program.
"""

import ast
import dataclasses
import os
import shlex
import subprocess
import sys
import tempfile
import types
from pathlib import Path

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
        print(f"Automodel reads {run}: {sizes}")


def flags_of(text):
    """{flag: values} of the command line in a shell file."""
    words = shlex.split("".join(line for line in text.splitlines(True) if not line.startswith("#")).replace("\\\n", " "))
    found = {}
    for word in words[words.index("pretrain_gpt.py") + 1:]:
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


def megatron_core(runs, folder):
    import torch
    from megatron.core import utils
    from megatron.core.transformer import MLATransformerConfig, TransformerConfig

    utils.get_te_version = lambda: utils.PkgVersion("2.9.0")  # as if Transformer Engine were installed
    for run, gpus in runs:
        flags = flags_of(export(run, "megatron-core"))
        kind = MLATransformerConfig if "--multi-latent-attention" in flags else TransformerConfig
        names = {f.name for f in dataclasses.fields(kind)}
        given = {"pipeline_dtype": torch.bfloat16, "add_bias_linear": "--disable-bias-linear" not in flags}
        for flag, values in flags.items():
            field = RENAMED.get(flag, flag[2:].replace("-", "_"))
            if field in names:
                given[field] = field_value(field, values)
        if "--swiglu" in flags:
            given.update(gated_linear_unit=True, activation_func=torch.nn.functional.silu)
        config = kind(**given)  # __post_init__ checks words and combinations
        assert config.num_layers > 0 and config.tensor_model_parallel_size * config.pipeline_model_parallel_size <= gpus
        print(f"Megatron-Core takes {run}: {len(given)} fields of {kind.__name__}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        staged = folder / "staged.yaml"
        staged.write_text(STAGED.format(model="qwen3-30b-a3b"))
        runs = [(RUNS / "dbrx-3072-h100.yaml", 3072), (RUNS / "llama3-8b-128-h100.yaml", 128), (RUNS / "deepseek-v3-2048-h800.yaml", 2048),
                (RUNS / "tiny-moe.yaml", 4), (staged, 64)]
        checked = 0
        for check in (torchtitan, automodel, megatron_core):
            try:
                check(runs, folder)
                checked += 1
            except ImportError as error:
                print(f"SKIPPED: {check.__name__} cannot be imported here: {error}")
        sys.exit(0 if checked else 77)
