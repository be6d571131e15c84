#!/usr/bin/env python3
"""Predicted against measured: step times are means over a run's rounds, the other errors the largest of a round.

summary.py COMPARE.json (of bench/studies/replay/replay.sh)
"""
import json
import statistics
import sys

rounds = {}
with open(sys.argv[1]) as file:
    for row in json.load(file)["payload"]["comparisons"]:
        rounds.setdefault(row["run"], []).append(row)
worst = []
print(f"{'run':<18} {'layout':<14} {'predicted':>9} {'measured':>9} {'off by':>8}  exposed, of the step  peak    rounds' steps [ms]")
for name, rows in rounds.items():
    predicted, measured = (statistics.mean(row[f"{side}_step_s"] for row in rows) for side in ("predicted", "measured"))
    exposed = max((row["exposed_error"] for row in rows), key=abs)
    peak = max((row["peak_error"] for row in rows), key=abs)
    off = predicted / measured - 1
    seen = rows[0]["calibrated_on"]
    if not seen:
        worst.append(abs(off))
    steps = " ".join(f"{1e3 * row['measured_step_s']:.0f}" for row in rows)
    print(f"{name:<18} {rows[0]['layout']:<14} {1e3 * predicted:6.0f} ms {1e3 * measured:6.0f} ms {100 * off:+7.1f} %  "
          f"{100 * exposed:+19.1f} %  {100 * peak:+.2f} %  {steps}{' (calibrated on)' if seen else ''}")
print(f"step time of {len(worst)} unseen runs: median {100 * statistics.median(worst):.1f} % off, largest {100 * max(worst):.1f} %")
