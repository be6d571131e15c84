"""Ratios of the CPU time of bench_simulator's cases, and its memory, against their limits: what must not get worse whatever
machine runs it, and however busy it is. Of several runs the least time of a case counts. Exit status 1 where a ratio is beyond
its limit. For times on one machine: windtunnel gate, planner/benchmarks/compare.sh.

ratios.py RESULT.json...
"""
import json
import sys


def read(files):
    """The rows of Google Benchmark's results by name; of several results the one with the least CPU time."""
    rows = {}
    for row in (row for file in files for row in json.load(open(file))["benchmarks"]):
        if row.get("error_occurred"):
            sys.exit(f"{row['name']}: {row['error_message']}")
        name = row["name"].replace("/real_time", "").replace("/manual_time", "").replace("/iterations:1", "")
        rows[name] = min(row, rows.get(name, row), key=lambda each: each["cpu_s"])
    return rows


def figures(rows):
    """What, figure, limit (twice what was measured, or the aim)."""
    time = lambda name: rows[name]["cpu_s"]
    per_op = lambda name: time(name) / rows[name]["ops"]
    per_layout = lambda name: time(name) / rows[name]["layouts"]
    step = "step_by_gpus/gpus:3072"
    return [
        ("folded step, 16,384 over 3,072 GPUs", time("step_by_gpus/gpus:16384") / time(step), 2 / 0.3),
        ("an op of 32 microbatches over one of 1", per_op("step_by_microbatches/microbatches:32") / per_op("step_by_microbatches/microbatches:1"), 2),
        ("an op of 320 layers over one of 10", per_op("step_by_layers/layers:320") / per_op("step_by_layers/layers:10"), 2),
        ("an op of every one of 64 GPUs over one of a folded step", per_op("step_unfolded/gpus:64") / per_op(step), 2),
        ("an op of every one of 1,024 GPUs over one of 64", per_op("step_unfolded/gpus:1024") / per_op("step_unfolded/gpus:64"), 2),
        ("folded step over bound 1 of a layout", time(step) / per_layout("bound1_of_space"), 40),
        ("1,000 bounds 0, just built, over a folded step", 1000 * per_layout("bound0_just_built") / time(step), 1.2),
        ("bound 1 over bound 0 of a layout", per_layout("bound1_of_space") / per_layout("bound0_of_space"), 250),
        ("1,000 runs of 90 days over a folded step", time("thousand_runs") / time(step), 8),
        ("memory of a folded step on 16,384 GPUs [MB]", rows["step_by_gpus/gpus:16384"]["resident_MB"], 300),
    ]


def main():
    checks = figures(read(sys.argv[1:]))
    for what, figure, limit in checks:
        print(f"{'ok      ' if figure <= limit else 'TOO MUCH'} {what}: {figure:.3g}, at most {limit:.3g}")
    return any(figure > limit for _, figure, limit in checks)


if __name__ == "__main__":
    sys.exit(main())
