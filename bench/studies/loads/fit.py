#!/usr/bin/env python3
"""What recordings say of the constants in sim/program/routing/trained_loads.cpp.

    python3 bench/studies/loads/fit.py
    python3 bench/studies/loads/fit.py out/loads/loss/routing.csv --tokens 512 --top-k 4

Without a file: of the recordings in configs/. With one: of a trainer's routing.csv with that many tokens a microbatch.

lasting   standard deviation of an expert's share of all tokens over the balanced share, divided by (1 - top_k / experts)
alike     variance of the same between samples of the tokens, times the tokens of a sample, divided by
          (1 - top_k / experts)^2, less what tokens would do that choose without regard to one another
"""
import argparse
import collections
import csv
import pathlib
import statistics

CONFIGS = pathlib.Path(__file__).resolve().parents[3] / "configs"


def rows_of(path):
    return csv.reader(line for line in open(path) if not line.startswith("#"))


def relative(counts):
    mean = sum(counts) / len(counts)
    return [count / mean for count in counts]


def split(samples, tokens, experts, top_k, held):
    """samples: [layer][step][sample][group of `held` experts], rows over the mean ones -> lasting, drift, alike."""
    lasting, drift, passing = [], [], []
    for steps in samples.values():
        steps = list(steps.values())
        groups = range(len(steps[0][0]))
        of_step = [[statistics.mean(sample[g] for sample in step) for g in groups] for step in steps]
        of_all = [statistics.mean(step[g] for step in of_step) for g in groups]
        within = statistics.mean(statistics.variance([sample[g] for sample in step]) for step in steps for g in groups)
        passing.append(within)
        lasting.append(statistics.mean((share - 1) ** 2 for share in of_all))
        drift.append(statistics.mean((step[g] - of_all[g]) ** 2 for step in of_step for g in groups) - within / len(steps[0]))
    # Variance of one expert's share from that of a sum of `held`, out of a finite number of experts.
    of_one = held * (experts - 1) / (experts - held)
    rarely = 1 - top_k / experts
    free = (experts / top_k - 1) / tokens
    root = lambda values: (max(0, statistics.mean(values)) * of_one) ** 0.5 / rarely
    return root(lasting), root(drift), (statistics.mean(passing) * of_one - free) * tokens / rarely**2


def laer():
    """Ranks hold fixed experts under FSDP+EP: groups of four ranks route 65,536 tokens each."""
    for model, experts, top_k in (("mixtral-8x7b-e8k2", 8, 2), ("mixtral-8x7b-e16k4", 16, 4)):
        samples = collections.defaultdict(dict)
        fullest = []
        for row in csv.DictReader(open(CONFIGS / "measurements/routing_rank_loads.csv")):
            if row["method"] == "FSDP" and row["model"] == model:
                ranks = [float(row[f"r{i}"]) for i in range(32)]
                groups = [relative(ranks[i : i + 4]) for i in range(0, 32, 4)]
                samples[row["layer"]][row["iter"]] = groups
                fullest += [max(group) for group in groups]
        lasting, drift, alike = split(samples, 65536, experts, top_k, experts // 4)
        fullest.sort()
        print(
            f"LAER {model}, not balanced: lasting {lasting:.2f} and {drift:.2f} between steps, alike {alike:,.0f} tokens; "
            f"fullest of 4 ranks: mean {statistics.mean(fullest):.2f}, p99 {fullest[int(0.99 * len(fullest))]:.2f}"
        )


def histograms():
    """Corpora of one kind: how uneven c4 is lasts, how other domains differ from it is what a document may be like."""
    for family, experts, top_k in (("olmoe", 64, 8), ("mixtral", 8, 2)):
        shares = collections.defaultdict(dict)
        for path in sorted((CONFIGS / "routing").glob(f"{family}-*.csv")):
            counts = collections.defaultdict(lambda: [0.0] * experts)
            for layer, expert, count, *_ in list(rows_of(path))[1:]:
                counts[layer][int(expert)] += float(count)
            for layer, row in counts.items():
                shares[layer][path.stem] = relative(row)
        for layer, domains in shares.items():
            web = domains[f"{family}-c4"]
            others = {name: statistics.pstdev(a - b for a, b in zip(row, web)) for name, row in domains.items()}
            rarely = 1 - top_k / experts
            said = ", ".join(f"{n.split('-')[1]} {v / rarely:.2f}" for n, v in others.items() if not n.endswith("c4"))
            print(f"{family} layer {layer}: lasting {statistics.pstdev(web) / rarely:.2f} (c4); beside c4: {said}")


def trainer(path, tokens, top_k):
    rows = list(rows_of(path))[1:]
    experts = len(rows[0]) - 4
    samples = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in rows:
        samples[row[2]][row[0]].append(relative([float(x) for x in row[4:]]))
    lasting, drift, alike = split(samples, tokens, experts, top_k, 1)
    print(f"{path}: lasting {lasting:.2f} and {drift:.2f} between steps, alike {alike:,.0f} tokens")


arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arguments.add_argument("recordings", nargs="*")
arguments.add_argument("--tokens", type=int, default=512)
arguments.add_argument("--top-k", type=int, default=4)
asked = arguments.parse_args()
for recording in asked.recordings:
    trainer(recording, asked.tokens, asked.top_k)
if not asked.recordings:
    laer()
    histograms()
