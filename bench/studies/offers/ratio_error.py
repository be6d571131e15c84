"""How far off is a predicted ratio of two step times? Pairs of GPUs with published runs of one model and one stack, and pairs of
runs of one model on the same GPU.

windtunnel validate runs configs/measurements/training_runs.csv --rows --json | python3 bench/studies/offers/ratio_error.py
"""
import collections
import itertools
import json
import math
import re
import statistics
import sys

GPU = re.compile(r" x ([A-Za-z0-9-]+)")  # "MPT-70b, 64 x H100-80GB, dp 64 ..."

errors = collections.defaultdict(lambda: collections.defaultdict(list))  # log(predicted / measured)
for row in json.load(sys.stdin)["rows"]:
    gpu = GPU.search(row["name"])
    if gpu and row.get("predicted_s") and row.get("measured_s"):
        of = (row["group"].split(" | ")[0], row["name"].split(",")[0])
        errors[of][gpu[1]].append(math.log(row["predicted_s"] / row["measured_s"]))

ratios, models = [], set()
for of, by_gpu in errors.items():
    means = [statistics.mean(each) for each in by_gpu.values()]
    for a, b in itertools.combinations(means, 2):
        ratios.append(a - b)
        models.add(of)
rms = math.sqrt(statistics.mean(each * each for each in ratios))
alike = []  # by model and GPU: root mean square over its pairs of runs
for by_gpu in errors.values():
    for each in by_gpu.values():
        if len(each) > 1:
            alike.append(math.sqrt(statistics.mean((a - b) ** 2 for a, b in itertools.combinations(each, 2))))
print(f"{len(ratios)} pairs of GPUs, {len(models)} models: the log of predicted over measured ratio has a root mean square of {rms:.2f}")
print(f"{len(alike)} models on one GPU: of the ratio of two of their runs {statistics.median(alike):.2f}, in the median over these models")
