"""The published jobs of torchtitan 0.3.0, as configs/words/torchtitan_jobs.json: what each function of models/*/config_registry.py
says, in the words of 0.2.2, which most of its fields still have. Prints the file. Nothing is imported: assignments and calls of
configuration classes are evaluated, and what a function says beside them is left out and listed under "unread".

torchtitan_jobs.py FOLDER: holds the unpacked wheel:
    python3 -m pip download --no-deps torchtitan==0.3.0 && python3 -m zipfile -e torchtitan-0.3.0*.whl FOLDER
"""
import ast
import json
import sys
from pathlib import Path

VERSION = "torchtitan 0.3.0"
LANGUAGE_MODELS = ["deepseek_v3", "gpt_oss", "llama3", "qwen3"]
CONVERTERS = {"Float8LinearConverter": "quantize.linear.float8", "Float8GroupedExpertsConverter": "quantize.grouped_mm.float8",
              "MXFP8LinearConverter": "quantize.linear.mx", "MXFP8GroupedExpertsConverter": "quantize.grouped_mm.mx"}
# Sections whose fields have the names of 0.2.2.
SECTIONS = ["training", "parallelism", "checkpoint", "lr_scheduler", "compile", "debug", "comm"]
RECOMPUTE = {"SelectiveAC": {"mode": "selective", "selective_ac_option": "op"}, "FullAC": {"mode": "full"},
             "MemoryBudgetAC": {"mode": "memory_budget"}}
MOVED = {"compile.enable_async_tensor_parallel": "parallelism.enable_async_tensor_parallel"}


class Unknown(Exception):
    pass


class Job:
    """Evaluates the functions of a module: {"class": name, field: value} for each call of a configuration class."""

    def __init__(self, file):
        self.functions = {n.name: n for n in ast.parse(file.read_text()).body if isinstance(n, ast.FunctionDef)}

    def run(self, name):
        names, unread = {}, []
        for statement in self.functions[name].body:
            if isinstance(statement, ast.Return):
                return self.value(statement.value, names), unread
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                try:
                    self.assign(statement.targets[0], self.value(statement.value, names), names)
                except Unknown:
                    unread.append(ast.unparse(statement).splitlines()[0])
            elif not isinstance(statement, (ast.Expr, ast.Assert, ast.ImportFrom, ast.FunctionDef)) or is_call(statement):
                unread.append(ast.unparse(statement).splitlines()[0])
        raise Unknown(name)

    def assign(self, target, value, names):
        if isinstance(target, ast.Name):
            names[target.id] = value
        else:
            place = self.value(target.value, names)
            if not isinstance(place, dict):
                raise Unknown
            place[target.attr] = value

    def value(self, node, names):
        if isinstance(node, ast.Name) and node.id in names:
            return names[node.id]
        if isinstance(node, ast.Attribute):
            place = self.value(node.value, names)
            if isinstance(place, dict):
                return place.setdefault(node.attr, {})
        if isinstance(node, (ast.List, ast.Tuple)):
            return [self.value(e, names) for e in node.elts]
        if isinstance(node, ast.Call):
            return self.call(node, names)
        try:
            return ast.literal_eval(node)
        except ValueError:
            raise Unknown from None

    def call(self, node, names):
        called = ast.unparse(node.func)
        if called in self.functions:
            return self.run(called)[0]
        fields = {}
        for position, argument in enumerate(node.args):
            fields[position] = self.value(argument, names)
        for keyword in node.keywords:
            try:
                fields[keyword.arg] = self.value(keyword.value, names)
            except Unknown:
                pass  # an expression of another field
        return {"class": called.removesuffix(".Config"), **fields}


def is_call(statement):
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)


def words(module, job):
    spec = job.get("model_spec", {})
    out = {"model.name": module, "model.flavor": spec.get(0, spec.get("flavor"))}
    converters = [CONVERTERS.get(c["class"], c["class"]) for c in spec.get("converters", [])]
    if converters:
        out["model.converters"] = converters
        for c, word in zip(spec["converters"], converters):
            if word.startswith("quantize.grouped_mm"):
                out[word + ".fqns"] = ["experts"]
    if spec.get("moe_comm_backend", "standard") != "standard":
        out["parallelism.expert_parallel_comm_backend"] = spec["moe_comm_backend"]
    if "lr" in job.get("optimizer", {}):
        out["optimizer.lr"] = job["optimizer"]["lr"]
    for section in SECTIONS:
        for field, value in job.get(section, {}).items():
            key = f"{section}.{field}"
            if field != "class" and not isinstance(value, dict):
                out[MOVED.get(key, key)] = value
    recompute = job.get("activation_checkpoint", {"class": "SelectiveAC"})
    for field, value in (RECOMPUTE[recompute["class"]] if recompute else {"mode": "none"}).items():
        out["activation_checkpoint." + field] = value
    out["loss.chunked"] = job.get("loss", {}).get("class") == "ChunkedLossWrapper"
    out["model.mtp_layers"] = spec.get("num_mtp_layers", 0)
    return out


def jobs(folder):
    for module in LANGUAGE_MODELS:
        source = Job(Path(folder) / "torchtitan/models" / module / "config_registry.py")
        for name in source.functions:
            try:
                job, unread = source.run(name)
            except Unknown:
                continue
            if isinstance(job, dict) and job.get("class") == "Trainer":
                yield f"{module}/{name}", {"words": words(module, job), **({"unread": unread} if unread else {})}


if __name__ == "__main__":
    print(json.dumps({"version": VERSION, "jobs": dict(jobs(sys.argv[1]))}, indent=1, sort_keys=True))
