"""The keys that each format takes, read out of the packages' sources: prints keys.json. Nothing is imported. Those of
Megatron-LM and Megatron-Bridge are in configs/words.

read_keys.py FOLDER: holds the unpacked wheels, in folders of the names below:
    for p in torchtitan==0.2.2 nemo-automodel==0.7.0 llm-foundry==0.22.0 mosaicml==0.32.1; do
      python3 -m pip download --no-deps -d wheels $p && python3 -m zipfile -e wheels/$(echo ${p%%=*} | tr - _)-*.whl FOLDER/${p%%=*}; done
"""
import ast
import json
import sys
import textwrap
from pathlib import Path

# megablocks/layers/arguments.py, which LLM Foundry hands ffn_config to.
MEGABLOCKS = """moe_num_experts moe_top_k moe_loss_weight moe_zloss_weight moe_normalize_expert_weights moe_jitter_eps
    moe_lbl_in_fp32 uniform_expert_assignment mlp_type mlp_impl memory_optimized_mlp""".split()


class Sources:
    def __init__(self, folder):
        self.folder = Path(folder)
        self.files = {}

    def node(self, file, name):
        if file not in self.files:
            self.files[file] = ast.parse((self.folder / file).read_text())
        tree = self.files[file]
        return next(n for n in tree.body if isinstance(n, (ast.ClassDef, ast.FunctionDef)) and n.name == name)

    def fields(self, file, name):
        """Of a dataclass, without those of its bases."""
        return [s.target.id for s in self.node(file, name).body if isinstance(s, ast.AnnAssign)]

    def arguments(self, file, name):
        """Of a function, or of a class's __init__."""
        node = self.node(file, name)
        if isinstance(node, ast.ClassDef):
            node = next(n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__")
        return [a.arg for a in node.args.args + node.args.kwonlyargs if a.arg != "self"]

    def entries(self, file, name):
        """Keys of a dict at the top of a file."""
        tree = ast.parse((self.folder / file).read_text())
        for n in tree.body:
            if isinstance(n, ast.AnnAssign) and n.target.id == name:
                return [key.value for key in n.value.keys]
        raise KeyError(name)


def under(section, names):
    return [f"{section}.{name}" for name in names]


def torchtitan(s):
    file = "torchtitan/torchtitan/config/job_config.py"
    tree = s.node(file, "JobConfig")
    keys = []
    for field in tree.body:
        if isinstance(field, ast.AnnAssign):
            keys += under(field.target.id, s.fields(file, field.annotation.id))
    for kind, classes in (("linear", ("Float8Linear", "MXLinear")), ("grouped_mm", ("Float8GroupedMM", "MXGroupedMM"))):
        for word, name in zip(("float8", "mx"), classes):
            keys += under(f"quantize.{kind}.{word}", s.fields(file, name))
    return keys


def automodel(s):
    parts = "nemo-automodel/nemo_automodel/components/"
    config = parts + "distributed/config.py"
    keys = under("distributed", ["strategy", "activation_checkpointing"] + s.fields(parts + "distributed/mesh.py", "ParallelismSizes") +
                 s.fields(config, "FSDP2Config"))
    keys += under("distributed.pipeline", s.fields(parts + "distributed/pipelining/config.py", "PipelineConfig"))
    keys += under("distributed.moe", s.fields(config, "MoEParallelizerConfig"))
    keys += under("distributed.mp_policy", ["param_dtype", "reduce_dtype", "output_dtype", "cast_forward_inputs"])  # PyTorch's
    keys += under("step_scheduler", ["local_batch_size"] + s.fields(parts + "training/step_scheduler.py", "StepSchedulerConfig"))
    keys += under("checkpoint", s.fields(parts + "checkpoint/config.py", "CheckpointingConfig"))
    keys += under("model.backend", s.fields(parts + "models/common/utils.py", "BackendConfig"))
    keys += under("lr_scheduler", s.fields(parts + "optim/optimizer.py", "LRSchedulerConfig"))
    keys += under("dataset", s.arguments(parts + "datasets/llm/mock_iterable_dataset.py", "MockIterableDataset"))
    keys += under("optimizer", ["lr", "betas", "eps", "weight_decay"])  # torch.optim.AdamW's
    keys += under("compile", s.fields(parts + "utils/compile_utils.py", "CompileConfig"))
    # recipes/llm/train_ft.py and _dist_utils.py ask for these by name; transformers takes the model's.
    return keys + ["seed", "dist_env.backend", "dist_env.timeout_minutes", "clip_grad_norm.max_norm", "model.torch_dtype",
                   "model.config.pretrained_model_name_or_path"]


def llm_foundry(s):
    here = "llm-foundry/llmfoundry/"
    mpt = here + "models/mpt/configuration_mpt.py"
    ffn = here + "models/layers/ffn.py"
    keys = s.fields(here + "utils/config_utils.py", "TrainConfig")
    keys += under("model", ["name", "activation_checkpointing_target", "loss_fn"] + s.arguments(mpt, "MPTConfig"))
    keys += under("model.attn_config", s.entries(here + "models/utils/config_defaults.py", "attn_config_defaults") +
                  s.arguments(here + "models/layers/attention.py", "GroupedQueryAttention"))
    keys += under("model.attn_config.rope_hf_config", ["type", "factor", "original_max_position_embeddings", "low_freq_factor",
                                                       "high_freq_factor"])
    keys += under("model.ffn_config", ["ffn_type", "ffn_act_fn.approximate", "ffn_act_fn.name", "moe_world_size"] + MEGABLOCKS + s.arguments(ffn, "MPTMLP"))
    keys += under("model.activation_checkpointing_target", ["mptblock", "grouped_query_attention"])
    keys += under("fsdp_config", s.fields("mosaicml/composer/utils/parallelism.py", "FSDPConfig"))
    keys += under("optimizer", ["name"] + s.arguments("mosaicml/composer/optim/decoupled_weight_decay.py", "DecoupledAdamW"))
    keys += under("scheduler", ["name"] + s.arguments("mosaicml/composer/optim/scheduler.py", "CosineAnnealingWithWarmupScheduler"))
    keys += under("algorithms.gradient_clipping", ["clipping_type", "clipping_threshold"])
    keys += under("train_loader.dataset", s.arguments(here + "data/text_data.py", "StreamingTextDataset"))
    return keys + ["tokenizer.name", "tokenizer.kwargs.model_max_length", "train_loader.name", "train_loader.drop_last",
                   "train_loader.num_workers"]


def flavors(s):
    """"model/flavor" of every dict of flavors in torchtitan's models."""
    found = []
    for file in sorted((s.folder / "torchtitan/torchtitan/models").glob("*/__init__.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Dict):
                found += [f"{file.parent.name}/{key.value}" for key in node.keys if isinstance(key, ast.Constant)]
    return found


def wrapped(words):
    return textwrap.wrap(" ".join(sorted(set(words))), 120, break_on_hyphens=False)


FORMATS = {"torchtitan": ("torchtitan 0.2.2", torchtitan), "automodel": ("NeMo Automodel 0.7.0", automodel),
           "llm-foundry": ("LLM Foundry 0.22.0", llm_foundry)}

if __name__ == "__main__":
    sources = Sources(sys.argv[1])
    lists = {name: {"version": version, "keys": wrapped(read(sources))} for name, (version, read) in FORMATS.items()}
    lists["torchtitan"]["models"] = wrapped(flavors(sources))
    print(json.dumps(lists, indent=1))
