"""Writes configs/words/megatron-bridge.json, the fields of Megatron-Bridge's ConfigContainer, each with what a run of ours makes
of it, and configs/words/megatron-bridge-recipes.json, what each of its recipes sets.

    for r in NVIDIA-NeMo/Megatron-Bridge NVIDIA/Megatron-LM; do git clone https://github.com/$r; done
    python3 planner/recipes/words/megatron_bridge.py Megatron-Bridge Megatron-LM configs/words

configs/words/megatron-core.json comes first (megatron.py): a field that is a flag there has its verdict. Recipes are read, not
run: their assignments of literal values, in their order.
"""
import ast
import json
import sys
import tomllib
from pathlib import Path

from megatron import verdict_of, verdicts
from megatron_sources import Release, calls, literal

BRIDGE, CORE = "v0.3.1", "core_v0.16.1"
RECIPES = "src/megatron/bridge/recipes"
SECTIONS = {"rng": ["RNGConfig"], "rerun_state_machine": ["RerunStateMachineConfig"], "train": ["TrainingConfig"], "logger": ["LoggerConfig"],
            "checkpoint": ["CheckpointConfig"], "dist": ["DistributedInitConfig"], "ft": ["FaultToleranceConfig"], "scheduler": ["SchedulerConfig"],
            "straggler": ["StragglerDetectionConfig"], "nvrx_straggler": ["NVRxStragglerDetectionConfig"], "profiling": ["ProfilingConfig"],
            "comm_overlap": ["CommOverlapConfig"], "mixed_precision": ["MixedPrecisionConfig"], "tensor_inspect": ["TensorInspectConfig"],
            "inprocess_restart": ["InProcessRestartConfig"], "tokenizer": ["TokenizerConfig"], "ddp": ["DistributedDataParallelConfig"],
            "optimizer": ["OptimizerConfig"], "peft": ["LoRA", "DoRA", "CanonicalLoRA"],
            "dataset": ["GPTDatasetConfig", "GPTFIMDatasetConfig", "MockGPTDatasetConfig", "FinetuningDatasetConfig", "HFDatasetConfig",
                        "BlendedMegatronDatasetConfig"]}
RUN_RECIPE = ["recipe", "mode", "step_func", "peft_scheme", "packed_sequence", "seq_length"]  # scripts/training/run_recipe.py
# Fields whose flag is not their name with dashes (planner/recipes/megatron_keys.cpp); their verdicts are in the .toml.


class Sources:
    """Classes of Megatron-Bridge, with their bases in Megatron-Core."""

    def __init__(self, bridge, core):
        self.bridge, self.core = Release(bridge, BRIDGE), Release(core, CORE)

    def fields(self, name, seen=()):
        out = set()
        for release in (self.bridge, self.core):
            node = release.class_(name)
            if node is None or (release.tag, name) in seen:
                continue
            for base in node.bases:
                bare = base.id if isinstance(base, ast.Name) else base.attr if isinstance(base, ast.Attribute) else ""
                out |= self.fields(bare.removeprefix("MCore"), (*seen, (release.tag, name)))
            out |= {line.target.id for line in node.body if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)}
        return out

    def providers(self):
        lines = self.bridge.git("grep", "-h", "-o", "-E", r"^class [A-Za-z0-9]*(Provider[A-Za-z0-9]*|TransformerConfig)\b", BRIDGE, "--", "src/megatron/bridge/models")
        return sorted({line.split()[1] for line in lines.splitlines()})


def value_of(node, names=None):
    """A literal, "torch.X", the value of a name, or None; the second says whether it could be read."""
    if isinstance(node, ast.Name) and node.id in (names or {}):
        return names[node.id], True
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "torch":
        return f"torch.{node.attr}", True
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Add)):
        (left, a), (right, b) = value_of(node.left, names), value_of(node.right, names)
        if a and b and isinstance(left, int) and isinstance(right, int):
            return (left * right if isinstance(node.op, ast.Mult) else left + right), True
    try:
        return ast.literal_eval(node), True
    except (ValueError, TypeError, SyntaxError):
        return None, False


def lists_of(node, last_layer):
    """Sums and products of lists of words, with the name last_layer."""
    if isinstance(node, ast.BinOp):
        left, right = lists_of(node.left, last_layer), lists_of(node.right, last_layer)
        return left + right if isinstance(node.op, ast.Add) else left * right
    if isinstance(node, ast.List):
        return [lists_of(one, last_layer) for one in node.elts]
    return last_layer if isinstance(node, ast.Name) else literal(node)


def signature(function):
    """{argument: default} of a function, the literal ones."""
    arguments = function.args.args
    defaults = function.args.defaults
    pairs = zip(arguments[len(arguments) - len(defaults):], defaults)
    return {a.arg: value_of(d)[0] for a, d in pairs}


class Recipes:
    def __init__(self, release):
        self.release = release
        self.functions, self.constants = {}, {}
        for path in release.files(RECIPES):
            if path.endswith(".py"):
                for node in release.tree(path).body:
                    if isinstance(node, ast.FunctionDef):
                        self.functions.setdefault(node.name, node)
                    elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value and value_of(node.value)[1]:
                        self.constants[ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)] = value_of(node.value)[0]

    def call(self, section, node, out):
        """cfg.SECTION = Class(field=value, ...)."""
        for keyword in node.keywords:
            value, known = value_of(keyword.value)
            if known:
                out[f"{section}.{keyword.arg}"] = value

    def optimizer(self, call, out):
        function = self.functions[call.func.id]
        said = {**signature(function), **{k.arg: value_of(k.value)[0] for k in call.keywords}}
        rows = {"max_lr": "optimizer.lr", "min_lr": "optimizer.min_lr", "weight_decay": "optimizer.weight_decay", "adam_beta1": "optimizer.adam_beta1",
                "adam_beta2": "optimizer.adam_beta2", "adam_eps": "optimizer.adam_eps", "clip_grad": "optimizer.clip_grad",
                "lr_warmup_iters": "scheduler.lr_warmup_iters", "lr_decay_iters": "scheduler.lr_decay_iters"}
        out.update({key: said[argument] for argument, key in rows.items() if argument in said})
        out["optimizer.optimizer"] = "dist_muon" if "muon" in function.name else "adam"

    def statement(self, call, out):
        """Calls that change the configuration."""
        name = ast.unparse(call.func)
        if name == "apply_flex_dispatcher_backend" and out.get("model.moe_flex_dispatcher_backend"):
            # flex_dispatcher_backend.py: so on GPUs of compute capability 8 to 10, without overlap of shared experts
            out.update({"model.moe_token_dispatcher_type": "flex", "model.moe_shared_expert_overlap": False})
        if name == "set_deepseek_v3_pipeline_model_parallel_layout":
            out["model.pipeline_model_parallel_layout"] = self.deepseek_layout(out)

    def deepseek_layout(self, out):
        """The row of the function's map for the recipe's stages, in Megatron-Core's letters: E, t, m, L."""
        function = self.functions["set_deepseek_v3_pipeline_model_parallel_layout"]
        rows = next(n.value for n in function.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "layout_map")
        last = ["mtp"] * (out.get("model.mtp_num_layers") or 0) + ["loss"]
        stages = (out["model.pipeline_model_parallel_size"], out.get("model.virtual_pipeline_model_parallel_size") or 1)
        row = next((value for key, value in zip(rows.keys, rows.values) if literal(key) == stages), None)
        letters = {"embedding": "E", "decoder": "t", "mtp": "m", "loss": "L"}
        return row and "|".join("".join(letters[part] for part in stage) for stage in lists_of(row, last))

    def model(self, node, out, names):
        """AutoBridge.from_hf_pretrained("ORG/NAME"), or a provider with fields."""
        for call in calls(node, "from_hf_pretrained"):
            out["model"] = value_of(call.args[0], names)[0]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            out["model"] = node.func.id
            self.call("model", node, out)

    def read(self, name):
        out, names = {}, {**self.constants, **signature(self.functions[name])}
        for line in self.functions[name].body:  # without branches
            if isinstance(line, ast.Return) and isinstance(line.value, ast.Call) and isinstance(line.value.func, ast.Name):
                if line.value.func.id in self.functions:
                    out.update(self.read(line.value.func.id))
            if isinstance(line, ast.Expr) and isinstance(line.value, ast.Call):
                self.statement(line.value, out)
            if not isinstance(line, ast.Assign):
                continue
            target, node = ast.unparse(line.targets[0]), line.value
            if isinstance(line.targets[0], ast.Name) and value_of(node, names)[1]:
                names[target] = value_of(node, names)[0]
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("float", "int"):
                continue
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in self.functions and target in ("cfg", "config"):
                out.update(self.read(node.func.id))
            elif isinstance(node, ast.Call) and target == "cfg":  # ConfigContainer(...)
                for keyword in node.keywords:
                    if isinstance(keyword.value, ast.Call) and not calls(keyword.value, "default_squad_config"):
                        self.call(keyword.arg, keyword.value, out)
                    elif value_of(keyword.value)[1] and keyword.arg != "model":
                        out[keyword.arg] = value_of(keyword.value)[0]
            elif target.startswith(("opt_cfg, ", "(opt_cfg, ", "cfg.optimizer, ", "(cfg.optimizer, ")):
                self.optimizer(node, out)
            elif target == "cfg.model":
                self.model(node, out, names)
            elif target == "cfg.peft" and literal(node) is None and ast.unparse(node) != "None":
                out["peft"] = True
            elif target.startswith("cfg.") and isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                out[target[4:]] = node.func.id if node.func.id != "MixedPrecisionConfig" else None
                self.call(target[4:], node, out)
            elif target.startswith("cfg.") and value_of(node, names)[1]:
                out[target[4:]] = value_of(node, names)[0]
            elif target.startswith("cfg."):
                out.setdefault("unread", []).append(target[4:])
        return out

    def all(self):
        names = [n for n in self.functions if "_pretrain_config" in n or n.endswith(("_sft_config", "_peft_config", "_finetune_config"))]
        return {name: self.read(name) for name in sorted(names) if not name.startswith(("_", "default"))}


def main(bridge, core, folder):
    folder = Path(folder)
    sources = Sources(bridge, core)
    rows = verdicts(tomllib.loads((Path(__file__).parent / "megatron_bridge.toml").read_text()))
    exact, patterns = {w: v for w, v in rows if "*" not in w}, [row for row in rows if "*" in row[0]]
    flags = json.loads((folder / "megatron-core.json").read_text())["words"]
    fields = {f"{section}.{name}" for section, classes in SECTIONS.items() for c in classes for name in sources.fields(c)}
    fields |= {f"model.{name}" for provider in [*sources.providers(), "MLATransformerConfig"] for name in sources.fields(provider)}
    fields |= {"mixed_precision", "comm_overlap", "peft", "dataset", "dataset.sequence_length", "dataset.packed_sequence_specs.*", "ddp.use_megatron_fsdp", *RUN_RECIPE}
    words = {}
    for word in sorted(fields):
        bare = word.rsplit(".", 1)[-1].replace("_", "-")
        flag = next((flags[name] for name in (bare, "no-" + bare, "disable-" + bare) if name in flags), None) if "." in word else None
        own = exact.get(word)
        if own is None and flag is not None:
            own = {key: flag[key] for key in ("is", "why") if key in flag}
        own = own or verdict_of(word, patterns)
        if own is None:
            sys.exit(f"no verdict in megatron_bridge.toml: {word}")
        words[word.replace("_", "-") if word in RUN_RECIPE else word] = own
    words["launch.*"] = {"is": "modelled"}
    lines = ",\n".join(f"  {json.dumps(word)}: {json.dumps(entry)}" for word, entry in words.items())
    (folder / "megatron-bridge.json").write_text(f'{{"version": "Megatron-Bridge {BRIDGE[1:]}", "words": {{\n{lines}}}}}\n')
    recipes = Recipes(sources.bridge).all()
    kept = {"model", "mixed_precision", "comm_overlap", "peft", "unread"}
    for values in recipes.values():
        for key, value in list(values.items()):
            verdict = words.get(key, {"is": "ignored"})["is"]
            tokenizer = key.startswith("tokenizer.")  # the model says the vocabulary
            if key not in kept and (verdict != "modelled" or tokenizer) and not (verdict == "assumed" and value and "num_sms" not in key):
                del values[key]
        values["unread"] = [key for key in values.pop("unread", []) if words.get(key, {"is": "ignored"})["is"] == "modelled" and not key.startswith("tokenizer.")]
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(values)}" for name, values in recipes.items())
    (folder / "megatron-bridge-recipes.json").write_text(f'{{"version": "Megatron-Bridge {BRIDGE[1:]}", "recipes": {{\n{lines}}}}}\n')


if __name__ == "__main__":
    main(*sys.argv[1:4])
