#!/usr/bin/env python3
"""Predicted against measured: step times are means over a run's rounds, the other errors the largest of a round.

summary.py PASS.csv [PASS.csv ...]         passes of bench/studies/replay/replay.sh, by the date of their recording
summary.py --record COMPARE.json PASS.csv  writes a pass from what `windtunnel compare --json` says

Exits with 1 where the step times of a pass are further off than the bounds: 5 % in the median, 15 % for one run.
"""
import csv
import json
import pathlib
import statistics
import sys

# The worst committed pass has 2.8 and 12.3 %, on a machine whose speed changes by a fifth within half a minute.
MEDIAN_BOUND, LARGEST_BOUND = 0.05, 0.15
FIELDS = ["run", "layout", "calibrated_on", "predicted_step_s", "measured_step_s", "exposed_error", "peak_error"]


def record(compare, path):
    with open(compare) as file, open(path, "w", newline="") as out:
        writer = csv.DictWriter(out, FIELDS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        for row in json.load(file)["payload"]["comparisons"]:
            writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()})


def show(path):
    """Prints one pass; returns the step times' errors of its unseen runs."""
    rounds, errors = {}, []
    with open(path) as file:
        for row in csv.DictReader(file):
            rounds.setdefault(row["run"], []).append(row)
    print(f"{path}\n{'run':<18} {'layout':<14} {'predicted':>9} {'measured':>9} {'off by':>8}  exposed, of the step  peak    rounds' steps [ms]")
    for name, rows in rounds.items():
        predicted, measured = (statistics.mean(float(row[f"{side}_step_s"]) for row in rows) for side in ("predicted", "measured"))
        exposed, peak = (max((float(row[f"{what}_error"]) for row in rows), key=abs) for what in ("exposed", "peak"))
        off = predicted / measured - 1
        seen = rows[0]["calibrated_on"] == "True"
        if not seen:
            errors.append(abs(off))
        steps = " ".join(f"{1e3 * float(row['measured_step_s']):.0f}" for row in rows)
        print(f"{name:<18} {rows[0]['layout']:<14} {1e3 * predicted:6.0f} ms {1e3 * measured:6.0f} ms {100 * off:+7.1f} %  "
              f"{100 * exposed:+19.1f} %  {100 * peak:+.2f} %  {steps}{' (calibrated on)' if seen else ''}")
    print(f"step time of {len(errors)} unseen runs: median {100 * statistics.median(errors):.1f} % off, largest {100 * max(errors):.1f} %\n")
    return errors


def judge(paths):
    """Prints what all passes together say; the exit status."""
    passes = {path: show(path) for path in paths}
    medians = [statistics.median(errors) for errors in passes.values()]
    worst = max(passes, key=lambda path: max(passes[path]))
    print(f"{len(passes)} passes: median error {100 * statistics.median(medians):.1f} % "
          f"({100 * min(medians):.1f} to {100 * max(medians):.1f}), largest error {100 * max(passes[worst]):.1f} % "
          f"({pathlib.Path(worst).stem})")
    regressed = [path for path, errors in passes.items()
                 if statistics.median(errors) > MEDIAN_BOUND or max(errors) > LARGEST_BOUND]
    for path in regressed:
        print(f"{path}: found a median error of {100 * statistics.median(passes[path]):.1f} %, the largest "
              f"{100 * max(passes[path]):.1f} %; allowed are {100 * MEDIAN_BOUND:.0f} and {100 * LARGEST_BOUND:.0f} %",
              file=sys.stderr)
    return 1 if regressed else 0


if sys.argv[1] == "--record":
    record(sys.argv[2], sys.argv[3])
else:
    sys.exit(judge(sys.argv[1:]))
