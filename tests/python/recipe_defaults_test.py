"""Importers know the frameworks' own defaults: a file without a key is read as one that gives the key its default. The defaults are read
out of the packages' configurations, and every key of an export is left out in turn. Megatron-LM's own parser is in no package; of its
flags those are checked that are fields of Megatron-Core.

recipe_defaults_test.py [CHECK..]: each in a process of its own, as in recipes_test.py. WINDTUNNEL names the program.
"""

import dataclasses
import inspect
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from absent_packages import AbsentPackages
from recipes_test import RUNS, SHARDED, STAGED, bare_package, export

MISSING = object()
# A name, what has another default without GPUs, and a default of which the import says that later versions have another.
LEFT_ALONE = {"job.description", "model.backend.attn", "model.backend.linear", "model.backend.experts", "model.backend.dispatcher",
              "--data-parallel-sharding-strategy"}


def imported(text, name, gpus, model):
    """What import-run reads, or its refusal."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, name)
        file.write_text(text)
        asked = subprocess.run([os.environ["WINDTUNNEL"], "import-run", str(file), "--gpus", str(gpus), "--model", model, "--json"],
                               capture_output=True, text=True)
    if asked.returncode != 0:
        return "refused"
    read = json.loads(asked.stdout)
    return read["run"], sorted(line.replace("found none, which means ", "found ") for line in read["assumed"])


def flat(tree, prefix=""):
    out = {}
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            out.update(flat(value, prefix + key + "."))
        else:
            out[prefix + key] = value
    return out


def nested(values):
    out = {}
    for key, value in values.items():
        at = out
        *sections, name = key.split(".")
        for section in sections:
            at = at.setdefault(section, {})
        at[name] = value
    return out


def toml_text(values):
    sections = {}
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        sections.setdefault(section, []).append(f"{name} = {json.dumps(value)}")
    return "".join(f"[{section}]\n" + "\n".join(lines) + "\n" for section, lines in sections.items())


def yaml_text(values):
    import yaml

    return yaml.safe_dump(nested(values), sort_keys=False)


def means_its_default(values, default_of, text_of, name, gpus, model):
    """Checks every key whose default is known and is not what the export says."""
    checked, wrong = [], []
    for key, value in values.items():
        default = MISSING if key in LEFT_ALONE else default_of(key)
        if default is MISSING or default is None or default == value:
            continue
        files = [text_of(v) for v in ({k: v for k, v in values.items() if k != key}, values | {key: default})]
        with ThreadPoolExecutor() as pool:
            left_out, said = pool.map(lambda text: imported(text, name, gpus, model), files)
        if left_out != said:
            wrong.append(f"{key}: left out is {left_out}\n  with its default {default!r}: {said}")
        checked.append(key)
    assert not wrong, "\n".join(wrong)
    return checked


def attribute(tree, key):
    for name in key.split("."):
        tree = getattr(tree, name, MISSING)
    return tree


def torchtitan(runs):
    for name in ("torchtitan", "torchtitan.distributed"):
        bare_package(name)
    import tomllib

    from torchtitan.config import JobConfig

    for run, gpus, model in runs:
        values = flat(tomllib.loads(export(run, "torchtitan")))
        checked = means_its_default(values, lambda key: attribute(JobConfig(), key), toml_text, "job.toml", gpus, model)
        assert {"compile.enable", "checkpoint.async_mode", "parallelism.data_parallel_shard_degree"} <= set(checked), checked
        print(f"torchtitan: {len(checked)} defaults of {run} are known")


def automodel(runs):
    import yaml
    from nemo_automodel.components.checkpoint.config import CheckpointingConfig
    from nemo_automodel.components.distributed.config import FSDP2Config, MoEParallelizerConfig
    from nemo_automodel.components.distributed.mesh import ParallelismSizes
    from nemo_automodel.components.distributed.pipelining.config import PipelineConfig
    from nemo_automodel.components.models.common.utils import BackendConfig
    from nemo_automodel.components.utils.compile_utils import CompileConfig

    places = {"distributed.pipeline": [PipelineConfig()], "distributed.moe": [MoEParallelizerConfig()],
              "distributed": [FSDP2Config(), ParallelismSizes()], "checkpoint": [CheckpointingConfig()], "compile": [CompileConfig()],
              "model.backend": [BackendConfig()]}

    def default_of(key):
        section, _, name = key.rpartition(".")
        found = [getattr(config, name) for config in places.get(section, []) if hasattr(config, name)]
        return found[0] if found and isinstance(found[0], (bool, int, float, str)) else MISSING

    for run, gpus, model in runs:
        values = flat(yaml.safe_load(export(run, "automodel")))
        checked = means_its_default(values, default_of, yaml_text, "recipe.yaml", gpus, model)
        assert {"distributed.enable_fsdp2_prefetch", "checkpoint.is_async"} <= set(checked), checked
        print(f"Automodel: {len(checked)} defaults of {run} are known")


def llm_foundry(runs):
    AbsentPackages("PIL", "bs4", "coolname", "cpuinfo", "datasets", "einops", "git", "importlib_metadata", "mcli", "megablocks", "mlflow",
                   "pkg_resources", "psutil", "streaming", "tabulate", "tenacity", "torchmetrics", "torchvision")
    import yaml
    from composer.optim import CosineAnnealingWithWarmupScheduler, DecoupledAdamW
    from composer.utils.parallelism import FSDPConfig
    from llmfoundry.models.mpt.configuration_mpt import MPTConfig
    from llmfoundry.models.utils.config_defaults import attn_config_defaults
    from llmfoundry.utils.config_utils import TrainConfig

    def arguments(callable_):
        return {name: p.default for name, p in inspect.signature(callable_).parameters.items()}

    places = {"": {f.name: f.default for f in dataclasses.fields(TrainConfig)}, "fsdp_config": vars(FSDPConfig) | FSDPConfig().__dict__,
              "model": arguments(MPTConfig.__init__), "model.attn_config": attn_config_defaults,
              "optimizer": arguments(DecoupledAdamW.__init__), "scheduler": arguments(CosineAnnealingWithWarmupScheduler.__init__)}

    def default_of(key):
        section, _, name = key.rpartition(".")
        default = places.get(section, {}).get(name, MISSING)
        return default if isinstance(default, (bool, int, float, str)) and default != "???" else MISSING

    for run, gpus, model in runs:
        values = flat(yaml.safe_load(export(run, "llm-foundry")))
        checked = means_its_default(values, default_of, yaml_text, "recipe.yaml", gpus, model)
        assert {"optimizer.weight_decay", "save_interval"} <= set(checked), checked
        # Our trainer has its own ways of these, so that the file's are only written.
        assert (values["fsdp_config.backward_prefetch"], values["fsdp_config.forward_prefetch"]) == ("BACKWARD_PRE", True), values
        print(f"LLM Foundry: {len(checked)} defaults of {run} are known")


def megatron_core(runs):
    from megatron.core.distributed import DistributedDataParallelConfig
    from megatron.core.transformer import TransformerConfig

    fields = {f.name: f.default for config in (TransformerConfig, DistributedDataParallelConfig) for f in dataclasses.fields(config)}
    for run, gpus, model in runs:
        lines = export(run, "megatron-core").splitlines(True)
        checked = []
        for i, line in enumerate(lines):
            flag, _, value = line.strip().rstrip("\\").strip().partition(" ")
            default = MISSING if flag in LEFT_ALONE else fields.get(flag.removeprefix("--").replace("-", "_"), MISSING)
            if not flag.startswith("--") or value in ("", str(default)) and default is not False or not isinstance(default, (bool, str)):
                continue
            without = lines[:i] + lines[i + 1:]
            if default is False:  # no word says it: the import does, of what is simulated in another way
                left_out = imported("".join(without), "pretrain.sh", gpus, model)
                assert left_out != "refused", flag
                if not any(line.startswith(flag[2:] + ": found false, taken as true") for line in left_out[1]):
                    continue
            else:
                said = lines[:i] + [line.replace(value, default)] + lines[i + 1:]
                assert imported("".join(without), "pretrain.sh", gpus, model) == imported("".join(said), "pretrain.sh", gpus, model), flag
            checked.append(flag)
        assert {"--overlap-grad-reduce", "--overlap-param-gather", "--cross-entropy-loss-fusion", "--cross-entropy-fusion-impl"} <= set(checked), checked
        print(f"Megatron-Core: {len(checked)} defaults of {run} are known")


def check(name):
    with tempfile.TemporaryDirectory() as folder:
        staged, sharded = (Path(folder, f"{name}.yaml") for name in ("staged", "sharded"))
        staged.write_text(STAGED.format(model="qwen3-30b-a3b"))
        sharded.write_text(SHARDED)
        dense = (RUNS / "llama3-8b-128-h100.yaml", 128, "llama3-8b")
        CHECKS[name]([dense, (sharded, 64, "mixtral-8x7b")] if name == "llm_foundry" else [dense, (staged, 64, "qwen3-30b-a3b")])


CHECKS = {c.__name__: c for c in (torchtitan, automodel, llm_foundry, megatron_core)}

if __name__ == "__main__":
    if len(sys.argv) == 2:
        check(sys.argv[1])
        sys.exit(0)
    ended = [subprocess.run([sys.executable, __file__, name]).returncode for name in sys.argv[1:] or CHECKS]
    sys.exit(max(ended, key=abs))
