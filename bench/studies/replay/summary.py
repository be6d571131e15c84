#!/usr/bin/env python3
"""Predicted against measured: step times are means over a run's rounds, the other errors the largest of a round.

summary.py PASS.csv [PASS.csv ...]         passes of bench/studies/replay/replay.sh; of several, their median as well
summary.py --record COMPARE.json PASS.csv  writes a pass from what `windtunnel compare --json` says
"""
import csv
import json
import statistics
import sys

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


if sys.argv[1] == "--record":
    record(sys.argv[2], sys.argv[3])
else:
    passes = [show(path) for path in sys.argv[1:]]
    if len(passes) > 1:
        medians, largest = ([100 * of(errors) for errors in passes] for of in (statistics.median, max))
        print(f"{len(passes)} passes: median error {statistics.median(medians):.1f} % ({min(medians):.1f} to {max(medians):.1f}), "
              f"largest error {statistics.median(largest):.1f} % ({min(largest):.1f} to {max(largest):.1f})")
