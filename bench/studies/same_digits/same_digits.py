#!/usr/bin/env python3
"""Whether two builds predict, plan and report the same, to the last digit.

same_digits.py record -o FOLDER [--windtunnel BINARY] [--configs DIR]   runs every command below and keeps its JSON documents
same_digits.py compare BEFORE AFTER                                     two such folders; status 1 where a number or word differs

Commands: every preset study and model planned, every preset run simulated by every stack and on every cluster, every published
row predicted, and one of each other question. What a build says of itself (version, commit, time that a search took) is left out.
"""
import argparse
import json
import math
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
OF_THE_BUILD = {"version", "commit", "build", "built", "date", "created", "command", "elapsed_s", "cpu_s", "search_s", "wall_s", "windtunnel"}
ROUNDING = 1e-12  # sums and products in another order; reports print up to five digits
BIG_RUNS = ["dbrx-3072-h100", "deepseek-v3-2048-h800", "llama3-8b-128-h100"]


def names(configs, folder):
    return sorted(path.stem for path in (configs / folder).glob("*.yaml"))


def commands(configs):
    """(name, arguments) of every command; all print one JSON document."""
    for study in names(configs, "studies"):
        yield f"plan-{study}", ["plan", study]
    for model in names(configs, "models"):
        yield f"plan-model-{model}", ["plan", "--model", model, "--cluster", "hgx-h100", "--gpus", "256", "--set", "tokens=1T"]
    for run in BIG_RUNS:
        for stack in names(configs, "stacks"):
            yield f"simulate-{run}-{stack}", ["simulate", run, "--cluster", "hgx-h100", "--stack", stack]
    for cluster in names(configs, "clusters"):
        yield f"simulate-cluster-{cluster}", ["simulate", "llama3-8b-128-h100", "--cluster", cluster]
    yield "simulate-profile", ["simulate", "dbrx-3072-h100", "--cluster", "hgx-h200", "--profile", "h200-moe", "--stack", "windtunnel-train"]
    tables = configs / "measurements"
    yield "validate-runs", ["validate", "runs"]
    yield "validate-simulator", ["validate", "runs", str(tables / "simulator_tables.csv")]
    for kind, table in (("kernels", "kernel_times"), ("kernels", "kernel_rates"), ("collectives", "collectives"), ("memory", "training_runs"),
                        ("memory", "torchtitan_runs"), ("memory", "later_runs"), ("memory", "runs_2026"), ("memory", "outside_allocator"),
                        ("routing", "routing_step_times")):
        yield f"validate-{kind}-{table}", ["validate", kind, str(tables / f"{table}.csv")]
    yield "validate-plans", ["validate", "plans"]
    yield "whatif", ["whatif", "olmoe-256-h100", "--sweep", "cluster.nic.bandwidth=200Gb/s,400Gb/s"]
    yield "offers", ["compare-offers", "olmoe-256-h100", "made-up-h100", "made-up-h200"]
    yield "faults", ["faults", "compare", "dbrx-3072-h100"]


def without_build(document):
    if isinstance(document, dict):
        return {key: without_build(value) for key, value in document.items() if key not in OF_THE_BUILD}
    if isinstance(document, list):  # a report's provenance is a list of keys and values
        return [without_build(value) for value in document if not (isinstance(value, dict) and value.get("key") in OF_THE_BUILD)]
    return document


def record(options):
    configs = options.configs.resolve()
    environment = {**os.environ, "WINDTUNNEL_CONFIGS": str(configs)}
    options.output.mkdir(parents=True, exist_ok=True)
    for name, arguments in commands(configs):
        if options.only and options.only not in name:
            continue
        done = subprocess.run([options.windtunnel, *arguments, "--json"], env=environment, capture_output=True, text=True, cwd=configs.parent)
        try:
            printed = done.stdout.replace(str(configs), "configs")
            kept = {"status": done.returncode, "document": without_build(json.loads(printed))}
        except json.JSONDecodeError:
            kept = {"status": done.returncode, "text": done.stdout, "error": done.stderr.replace(str(configs), "configs")}
        (options.output / f"{name}.json").write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
        print(f"{name}: status {done.returncode}", file=sys.stderr)


def differences(before, after, where=""):
    if type(before) is not type(after):
        yield f"{where}: {before!r}, then {after!r}"
    elif isinstance(before, dict):
        for key in sorted(before.keys() | after.keys()):
            if key not in before or key not in after:
                yield f"{where}.{key}: only {'after' if key in after else 'before'}"
            else:
                yield from differences(before[key], after[key], f"{where}.{key}")
    elif isinstance(before, list):
        if len(before) != len(after):
            yield f"{where}: {len(before)} entries, then {len(after)}"
        for at, (one, other) in enumerate(zip(before, after)):
            yield from differences(one, other, f"{where}[{at}]")
    elif isinstance(before, float) and math.isclose(before, after, rel_tol=ROUNDING):
        return
    elif before != after:
        yield f"{where}: {before!r}, then {after!r}"


def compare(options):
    differing = 0
    files = {path.name for folder in (options.before, options.after) for path in folder.glob("*.json")}
    for name in sorted(files):
        sides = [folder / name for folder in (options.before, options.after)]
        missing = [str(side) for side in sides if not side.exists()]
        found = [f"missing: {side}" for side in missing] or list(differences(*(without_build(json.loads(side.read_text())) for side in sides)))
        for line in found[: options.lines]:
            print(f"{name}{line}")
        if len(found) > options.lines:
            print(f"{name}: and {len(found) - options.lines} more")
        differing += bool(found)
    print(f"{len(files)} documents, {differing} differ")
    return 1 if differing or not files else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    recorder = verbs.add_parser("record")
    recorder.add_argument("-o", "--output", type=pathlib.Path, required=True)
    recorder.add_argument("--windtunnel", default=str(ROOT / "build/bin/windtunnel"))
    recorder.add_argument("--configs", type=pathlib.Path, default=ROOT / "configs")
    recorder.add_argument("--only", help="commands whose name holds this word")
    comparer = verbs.add_parser("compare")
    comparer.add_argument("before", type=pathlib.Path)
    comparer.add_argument("after", type=pathlib.Path)
    comparer.add_argument("--lines", type=int, default=5, help="differences to print of each document")
    options = parser.parse_args()
    return record(options) if options.verb == "record" else compare(options)


sys.exit(main())
