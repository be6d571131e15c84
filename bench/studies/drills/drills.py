#!/usr/bin/env python3
"""The record of drawn drills: a row each, with the commit and the trainer that ran it.

drills.py                         sums up record.csv
drills.py FIRST COUNT [SEED]      runs `windtunnel drill random` of these numbers, ten at a time, and adds their rows;
                                  what a failed one wrote is kept in out/drills
drills.py --add DRILL.json        adds the rows of what `windtunnel drill random --json` printed, by the trainer that is built now
"""
import collections
import csv
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

RECORD = Path(__file__).parent / "record.csv"
ROOT = Path(__file__).resolve().parents[3]
WINDTUNNEL = ROOT / "windtunnel"
FIELDS = ["day", "commit", "trainer", "seed", "number", "strikes", "restarts", "relaunches", "steps_lost", "verdict", "difference"]
BATCH = 10  # an interrupted call loses at most this many


def built():
    """The commit that is checked out, and the first digits of the trainer's SHA-256, which tells builds of changed trees apart."""
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short=12", "HEAD"], check=True, capture_output=True, text=True)
    trainer = Path(os.environ.get("WINDTUNNEL_BUILD", ROOT / "build")) / "bin/windtunnel-train"
    return {"commit": commit.stdout.strip(), "trainer": hashlib.sha256(trainer.read_bytes()).hexdigest()[:12]}


def add(drill, record=RECORD):
    is_new = not record.exists()
    by = built()
    with open(record, "a", newline="") as out:
        writer = csv.DictWriter(out, FIELDS, lineterminator="\n")
        if is_new:
            writer.writeheader()
        for case in drill["cases"]:
            _, seed, number = case["name"].split("-")
            writer.writerow({"day": time.strftime("%Y-%m-%d", time.gmtime()), **by, "seed": seed, "number": number,
                             "strikes": len(case["struck"]), "restarts": sum(not r["relaunch"] for r in case["restarts"]),
                             "relaunches": case["relaunches"], "steps_lost": case["steps_lost"],
                             "verdict": "passed" if case["passed"] else "failed",
                             "difference": case["differences"][0] if case["differences"] else ""})


def run(first, count, seed):
    for number in range(first, first + count, BATCH):
        folder = ROOT / f"out/drills/{seed}-{number}"
        drill = subprocess.run([WINDTUNNEL, "drill", "random", "--count", str(min(BATCH, first + count - number)), "--first", str(number),
                                "--seed", str(seed), "--json", "-o", folder], capture_output=True, text=True)
        if drill.returncode not in (0, 1):  # 1: a drill failed, and is recorded as well
            sys.exit(drill.stderr)
        add(json.loads(drill.stdout))
        if drill.returncode == 0:
            shutil.rmtree(folder)


def show(record=RECORD):
    rows = list(csv.DictReader(open(record)))
    sums = {field: sum(int(row[field]) for row in rows) for field in ("strikes", "restarts", "relaunches", "steps_lost")}
    verdicts = collections.Counter(row["verdict"] for row in rows)
    print(f"{len(rows)} drills: {verdicts['passed']} passed, {verdicts['failed']} failed; {sums['strikes']} faults, {sums['restarts']} "
          f"restarts, {sums['relaunches']} relaunches, {sums['steps_lost']} steps done again")
    for (commit, trainer), number in collections.Counter((row["commit"], row["trainer"]) for row in rows).items():
        print(f"{number:6} by trainer {trainer} of commit {commit}")
    for row in rows:
        if row["verdict"] == "failed":
            print(f"random-{row['seed']}-{row['number']}: {row['difference']}")


if __name__ == "__main__":
    words = sys.argv[1:]
    if not words:
        show()
    elif words[0] == "--add":
        add(json.load(open(words[1])))
    else:
        run(int(words[0]), int(words[1]), int(words[2]) if len(words) > 2 else 1)
