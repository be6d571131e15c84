"""Tokens/s of this trainer over those of PyTorch FSDP2 (eager, Python) on the same model, data and machine.

Both trainings of a case are alive all the time and run in turns: one is stopped (SIGSTOP) while the other does a few whole
steps, so that what else happens on the machine meets both. A pair is one such turn of each, the order alternating; the ratio
of a case is the median over the pairs, with the interval that order statistics give (binomial, at least 95 %).
"""

import argparse
import datetime
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
import yaml

from model import ModelShape
from side import HERE, fsdp2_side, trainer_side

ROOT = HERE.parents[2]
WARM_UP_STEPS = 4
H100_BF16_FLOPS = 989.4e12  # dense, H100 and H200 SXM (NVIDIA's data sheets); MFU is a share of it
WINDOW_S = 1.0  # steps of a turn: as many as fit, at least 3


def median_interval(values, confidence=0.95):
    """(median, low, high, coverage): the closest symmetric order statistics whose binomial coverage reaches the confidence."""
    values, n = sorted(values), len(values)
    coverage = 0.0
    for k in range((n - 1) // 2, -1, -1):
        coverage = 1 - 2 * sum(math.comb(n, i) for i in range(k + 1)) / 2**n
        if coverage >= confidence:
            return statistics.median(values), values[k], values[n - 1 - k], coverage
    return statistics.median(values), values[0], values[-1], coverage


def write_run(base, ranks, precision, device, scratch, file):
    run = yaml.safe_load((HERE / base).read_text())
    run["global_train_batch_size"] = ranks * run["device_train_microbatch_size"]
    run["precision"], run["device"] = precision or run["precision"], device
    run["fsdp_config"] = {"data_parallel_replicate_degree": 1, "data_parallel_shard_degree": ranks}
    data = scratch / f"data-{run['max_seq_len']}"
    if not data.exists():
        texts = [str(ROOT / "LICENSE"), str(ROOT / "README.md")]
        subprocess.run([os.environ["WINDTUNNEL"], "data", "pack", "--text", *texts, "-o", data, "--seq-len", str(run["max_seq_len"])], check=True, stdout=subprocess.DEVNULL)
    run["train_loader"] = {"dataset": {"local": str(data)}}
    file.write_text(yaml.safe_dump(run))
    return run


def machine_cpu_s():
    """CPU seconds that all programs of the machine have used since it started."""
    fields = [int(word) for word in open("/proc/stat").readline().split()[1:]]
    idle, iowait, steal = fields[3], fields[4], fields[7]
    return (sum(fields[:8]) - idle - iowait - steal) / os.sysconf("SC_CLK_TCK")


def model_flops_per_token(run):
    """6 a parameter that a token meets (matrices only, the embedding's look-up not) and 6 S D a layer for causal attention; nothing for recompute."""
    m, s = ModelShape.of_run(run), run["max_seq_len"]
    attention = m.width * m.head_dim * (2 * m.heads + 2 * m.kv_heads)
    ffn = 3 * m.width * m.ffn * max(m.top_k, 1) + m.width * m.experts
    return 6 * (m.layers * (attention + ffn) + m.width * m.vocab) + m.layers * 6 * s * m.heads * m.head_dim


def compare(case, ranks, pairs, precision, device, scratch, unsharded):
    file, folder = scratch / f"{case}-{ranks}.yaml", scratch / f"{case}-{ranks}"
    run = write_run(f"{case}.yaml", ranks, precision, device, scratch, file)
    tokens = run["global_train_batch_size"] * run["max_seq_len"]
    sides = []
    try:
        seconds, turns = [[], []], []
        for start in (lambda: trainer_side(file, folder.with_suffix(".windtunnel")), lambda: fsdp2_side(file, folder.with_suffix(".fsdp2"), ranks, unsharded)):
            sides.append(start())
            sides[-1].run_steps(WARM_UP_STEPS)
            turns.append(max(3, math.ceil(WINDOW_S / sides[-1].run_steps(3))))
        begin, others_s = time.monotonic(), machine_cpu_s() - sum(side.cpu_s() for side in sides)
        for pair in range(pairs):
            for side in (0, 1) if pair % 2 == 0 else (1, 0):
                seconds[side].append(sides[side].run_steps(turns[side]))
            if sys.stderr.isatty():
                print(f"\r{case}, {ranks} ranks: pair {pair + 1} of {pairs} ", end="\r", file=sys.stderr)
        others_s, wall_s = machine_cpu_s() - sum(side.cpu_s() for side in sides) - others_s, time.monotonic() - begin
    finally:
        for side in sides:
            side.end()
    ratios = [fsdp2 / ours for ours, fsdp2 in zip(*seconds)]
    ratio, low, high, coverage = median_interval(ratios)
    mfu = {}
    if device == "cuda":
        mfu = {"mfu": tokens / ranks / statistics.median(seconds[0]) * model_flops_per_token(run) / H100_BF16_FLOPS}
    return mfu | {"case": case, "ranks": ranks, "precision": run["precision"], "device": device, "pairs": pairs, "ratio": ratio, "low": low, "high": high, "coverage": coverage,
            "windtunnel_tokens_per_s": tokens / statistics.median(seconds[0]), "fsdp2_tokens_per_s": tokens / statistics.median(seconds[1]),
            "steps_a_turn": turns, "cores_used_by_others": others_s / wall_s, "wall_s": wall_s, "pair_ratios": [round(r, 4) for r in ratios]}


HEADER = "| case | ranks | ratio, median [95 % interval] | windtunnel, tokens/s | FSDP2, tokens/s | pairs | cores used by others | MFU |\n|---|---|---|---|---|---|---|---|"


def row(r):
    return (f"| {r['case']} | {r['ranks']} | {r['ratio']:.3f} [{r['low']:.3f}, {r['high']:.3f}] | {r['windtunnel_tokens_per_s']:.0f} | "
            f"{r['fsdp2_tokens_per_s']:.0f} | {r['pairs']} | {r['cores_used_by_others']:.2f} | " + (f"{r['mfu']:.3f} |" if "mfu" in r else "- |"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=31)
    parser.add_argument("--models", nargs="+", help="run files of this folder")
    parser.add_argument("--ranks", nargs="+", type=int)
    parser.add_argument("--precision", choices=["fp32", "amp_bf16"], help="instead of the run files' own")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"], help="cuda: by default moe-gpu on one rank")
    parser.add_argument("--unsharded", action="store_true", help="one rank: compare with plain modules instead of FSDP2")
    parser.add_argument("-o", "--output", help="JSON file for the figures")
    options = parser.parse_args()
    options.models = options.models or (["moe", "dense"] if options.device == "cpu" else ["moe-gpu"])
    options.ranks = options.ranks or ([1, 2, 4] if options.device == "cpu" else [1])
    if options.unsharded and options.ranks != [1]:
        parser.error("--unsharded compares one rank; add --ranks 1")
    scratch = Path(tempfile.mkdtemp(prefix="windtunnel-compare-"))
    try:
        results = []
        print(HEADER, flush=True)
        for model in options.models:
            for ranks in options.ranks:
                results.append(compare(model, ranks, options.pairs, options.precision, options.device, scratch, options.unsharded))
                print(row(results[-1]), flush=True)
    finally:
        shutil.rmtree(scratch)
    if options.output:
        machine = next(line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name"))
        machine = torch.cuda.get_device_name() if options.device == "cuda" else f"{machine}, {os.cpu_count()} cores"
        Path(options.output).write_text(json.dumps({"date": datetime.date.today().isoformat(), "machine": machine, "torch": torch.__version__, "cases": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
