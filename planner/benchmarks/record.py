#!/usr/bin/env python3
"""Results of bench_simulator as passes: one row a case, with its CPU seconds. docs/simulator.md shows passes.csv.

record.py RESULT.json... >planner/benchmarks/passes.csv
"""
import csv
import json
import sys

SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}


def cpu_model():
    with open("/proc/cpuinfo") as file:
        return next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown")


writer = csv.writer(sys.stdout, lineterminator="\n")
writer.writerow(["pass", "day", "machine", "load", "case", "cpu_s", "layouts", "resident_MB"])
for number, path in enumerate(sys.argv[1:], 1):
    with open(path) as file:
        result = json.load(file)
    context = result["context"]
    machine = f"{context['num_cpus']} cores of {cpu_model()}, {context['mhz_per_cpu'] / 1000:.1f} GHz"
    for row in result["benchmarks"]:
        if row.get("error_occurred"):
            sys.exit(f"{path}: {row['name']}: {row['error_message']}")
        # The counter cpu_s adds up all threads; cases without it have a single thread.
        seconds = row.get("cpu_s", row["cpu_time"] * SECONDS[row["time_unit"]])
        name = row["name"].split("/real_time")[0].split("/manual_time")[0].split("/iterations")[0]
        writer.writerow([number, context["date"][:10], machine, f"{context['load_avg'][0]:.0f}", name, f"{seconds:.6g}",
                         *(f"{row[key]:.0f}" if key in row else "" for key in ("layouts", "resident_MB"))])
