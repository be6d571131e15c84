#!/usr/bin/env python3
"""Trains one run with several kinds of activation memory and prints what each costs and changes: peak tensor memory,
computation, and the loss against the run that keeps everything.

    bench/studies/activations/compare.py configs/runs/demo.yaml -o out/activations
    bench/studies/activations/compare.py configs/runs/demo.yaml -o out/activations block block/int8 --losses

A policy is what `windtunnel plan` prints (none, block, attention+experts, experts:first-2, block/int8). The run file must
hold a line `fsdp_config:` and none of the three keys that are set here. Standard library alone.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
POLICIES = ["none", "norm", "experts", "attention", "attention+experts", "attention+experts+norm", "block", "block/int8", "block/fp8"]


def keys_of(policy):
    """The three keys of fsdp_config, as lines of YAML."""
    rules, _, compression = policy.partition("/")
    if rules == "none":
        return ["activation_checkpointing: false"]
    modules = {}
    for rule in rules.split("+"):
        module, _, blocks = rule.partition(":")
        modules[module] = json.dumps(blocks) if blocks else "null"
    target = ", ".join(f"{module}: {blocks}" for module, blocks in modules.items())
    lines = ["activation_checkpointing: true", f"activation_checkpointing_target: {{{target}}}"]
    return lines + ([f"activation_compression: {compression}"] if compression else [])


def train(run_text, policy, folder):
    """Losses by step, peak bytes and computing seconds a step (both of the rank that has most) of one training."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = run_text.splitlines()
    at = lines.index("fsdp_config:") + 1
    run_file = folder / "run.yaml"
    run_file.write_text("\n".join(lines[:at] + ["  " + key for key in keys_of(policy)] + lines[at:] + ["save: false"]) + "\n")
    for old in ("metrics.jsonl", "summary.json"):
        (folder / old).unlink(missing_ok=True)
    program = os.environ.get("WINDTUNNEL_TRAIN", ROOT / "windtunnel")  # windtunnel-train itself, or the script that builds it
    done = subprocess.run([program, "train", run_file, "-o", folder], cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{policy}: training ended with {done.returncode}: {done.stderr.strip()}")
    losses = [json.loads(line)["loss"] for line in (folder / "metrics.jsonl").read_text().splitlines()]
    ranks = json.loads((folder / "summary.json").read_text())["ranks"]
    return losses, max(rank["peak_tensor_bytes"] for rank in ranks), max(rank["compute_cpu_s"] for rank in ranks)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True)
    parser.add_argument("--losses", action="store_true", help="also the loss of every step")
    parser.add_argument("--repeat", type=int, default=3, help="trainings a policy, interleaved; the smallest time counts")
    parser.add_argument("policies", nargs="*", metavar="POLICY")
    arguments = parser.parse_intermixed_args()  # policies behind options, too
    policies = ["none"] + [p for p in arguments.policies or POLICIES if p != "none"]
    text = arguments.run.read_text()
    if "fsdp_config:" not in text.splitlines():
        sys.exit(f"{arguments.run}: found no line 'fsdp_config:'; write one, with its keys below it")
    results = {}
    for repeat in range(arguments.repeat):
        for policy in policies:
            print(f"training {arguments.run.stem}, {policy}, {repeat + 1}/{arguments.repeat}", file=sys.stderr)
            losses, peak, compute_s = train(text, policy, arguments.output / policy.replace("/", "-").replace(":", "-"))
            before = results.get(policy, (losses, peak, compute_s))
            if before[0] != losses:
                sys.exit(f"{policy}: two trainings gave different losses; that is a defect")
            results[policy] = (losses, max(peak, before[1]), min(compute_s, before[2]))

    plain = results["none"]
    print(f"{'policy':<24} {'peak [MiB]':>10} {'saved [MiB]':>11} {'compute [ms]':>12} {'more [%]':>8} {'final loss':>10} {'largest loss difference':>23}")
    for policy in policies:
        losses, peak, compute_s = results[policy]
        worst = max(abs(a - b) for a, b in zip(losses, plain[0]))
        print(f"{policy:<24} {peak / 2**20:>10.1f} {(plain[1] - peak) / 2**20:>11.1f} {1e3 * compute_s:>12.1f} "
              f"{100 * (compute_s / plain[2] - 1):>8.1f} {losses[-1]:>10.5f} {worst if worst else 0:>23.2g}")
    if arguments.losses:
        print("\nstep " + "".join(f"{policy:>26}" for policy in policies))
        for step in range(len(plain[0])):
            print(f"{step + 1:>4} " + "".join(f"{results[p][0][step]:>15.6f} {results[p][0][step] - plain[0][step]:>+10.1e}" for p in policies))


if __name__ == "__main__":
    main()
