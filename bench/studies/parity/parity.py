#!/usr/bin/env python3
"""How near the trainer comes to PyTorch and to transformers, as their tests print it; docs/accuracy.md shows parity.csv.

ctest --test-dir build -V -R 'python_(parity_(moe|dense)|hugging_face)$' |
  python3 bench/studies/parity/parity.py >bench/studies/parity/parity.csv
"""
import csv
import datetime
import re
import sys

WHAT = {r"worst relative difference of a loss over \d+ steps: (\S+),": "loss",
        r"(\d+) models: logits differ": "models",
        r": logits up to \S+ differ by at most (\S+)": "logits",
        r": gradients differ by at most (\S+) of": "gradients"}

most, test = {}, None
for line in sys.stdin:
    if started := re.search(r"Start +\d+: (\w+)", line):
        test = started[1]
    for pattern, what in WHAT.items():
        if found := re.search(pattern, line):
            most[test, what] = max(most.get((test, what), "0"), found[1], key=float)
    if re.search(r"\*\*\*|SKIPPED", line):
        sys.exit(f"found {line.strip()}, needs tests that pass")
if len(most) != 5:
    sys.exit(f"found {len(most)} figures of these tests, needs 5")
writer = csv.writer(sys.stdout, lineterminator="\n")
writer.writerow(["day", "test", "what", "most"])
for (name, what), figure in most.items():
    writer.writerow([datetime.date.today(), name, what, figure])
