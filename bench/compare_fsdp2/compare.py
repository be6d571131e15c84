"""Tokens/s of this trainer over those of PyTorch FSDP2 (eager, Python) on the same model, data and machine.

Both trainings of a case are alive all the time and run in turns: one is stopped (SIGSTOP) while the other does a few whole
steps, so that what else happens on the machine meets both. A pair is one such turn of each, the order alternating; the ratio
of a case is the median over the pairs, with the interval that order statistics give (binomial, at least 95 %).
"""

import argparse
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

from side import HERE, fsdp2_side, trainer_side

ROOT = HERE.parents[1]
SEQUENCES_PER_RANK = 8
WARM_UP_STEPS = 4
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


def write_run(base, ranks, precision, data, file):
    run = yaml.safe_load((HERE / base).read_text())
    run["global_train_batch_size"], run["device_train_microbatch_size"] = ranks * SEQUENCES_PER_RANK, SEQUENCES_PER_RANK
    run["precision"] = precision
    run["fsdp_config"] = {"data_parallel_replicate_degree": 1, "data_parallel_shard_degree": ranks}
    run["train_loader"] = {"dataset": {"local": str(data)}}
    file.write_text(yaml.safe_dump(run))
    return run


def machine_cpu_s():
    """CPU seconds that all programs of the machine have used since it started."""
    fields = [int(word) for word in open("/proc/stat").readline().split()[1:]]
    idle, iowait, steal = fields[3], fields[4], fields[7]
    return (sum(fields[:8]) - idle - iowait - steal) / os.sysconf("SC_CLK_TCK")


def compare(case, ranks, pairs, precision, data, scratch, unsharded):
    file, folder = scratch / f"{case}-{ranks}.yaml", scratch / f"{case}-{ranks}"
    run = write_run(f"{case}.yaml", ranks, precision, data, file)
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
    return {"case": case, "ranks": ranks, "precision": precision, "pairs": pairs, "ratio": ratio, "low": low, "high": high, "coverage": coverage,
            "windtunnel_tokens_per_s": tokens / statistics.median(seconds[0]), "fsdp2_tokens_per_s": tokens / statistics.median(seconds[1]),
            "steps_a_turn": turns, "cores_used_by_others": others_s / wall_s, "wall_s": wall_s, "pair_ratios": [round(r, 4) for r in ratios]}


HEADER = "| case | ranks | ratio, median [95 % interval] | windtunnel, tokens/s | FSDP2, tokens/s | pairs | cores used by others |\n|---|---|---|---|---|---|---|"


def row(r):
    return (f"| {r['case']} | {r['ranks']} | {r['ratio']:.3f} [{r['low']:.3f}, {r['high']:.3f}] | {r['windtunnel_tokens_per_s']:.0f} | "
            f"{r['fsdp2_tokens_per_s']:.0f} | {r['pairs']} | {r['cores_used_by_others']:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=31)
    parser.add_argument("--models", nargs="+", default=["moe", "dense"], help="run files of this folder")
    parser.add_argument("--ranks", nargs="+", type=int, default=[1, 2, 4])
    parser.add_argument("--precision", default="fp32", choices=["fp32", "amp_bf16"])
    parser.add_argument("--unsharded", action="store_true", help="one rank: compare with plain modules instead of FSDP2")
    parser.add_argument("-o", "--output", help="JSON file for the figures")
    options = parser.parse_args()
    if options.unsharded and options.ranks != [1]:
        parser.error("--unsharded compares one rank; add --ranks 1")
    scratch = Path(tempfile.mkdtemp(prefix="windtunnel-compare-"))
    try:
        data = scratch / "data"
        texts = [str(ROOT / "LICENSE"), str(ROOT / "README.md")]
        subprocess.run([os.environ["WINDTUNNEL"], "data", "pack", "--text", *texts, "-o", data, "--seq-len", "128"], check=True, stdout=subprocess.DEVNULL)
        results = []
        print(HEADER, flush=True)
        for model in options.models:
            for ranks in options.ranks:
                results.append(compare(model, ranks, options.pairs, options.precision, data, scratch, options.unsharded))
                print(row(results[-1]), flush=True)
    finally:
        shutil.rmtree(scratch)
    if options.output:
        machine = next(line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name"))
        Path(options.output).write_text(json.dumps({"machine": f"{machine}, {os.cpu_count()} cores", "torch": torch.__version__, "cases": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
