"""Ratios of bench_simulator, bench_kernels or compare_fsdp2 as a profile that `windtunnel gate record` takes. Ratios of two
times of one moment depend less on the machine and on what else it does than times do.

profile.py simulator RESULT.json... -o PROFILE.json     a sample a result: those of ratios.py
profile.py kernels RESULT.json... -o PROFILE.json       a sample a row: copy time over kernel time
profile.py fsdp2 FIGURES.json -o PROFILE.json           a sample a pair: our tokens/s over PyTorch's
"""
import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "simulator"))
import ratios  # noqa: E402


def measurement(name, samples, smaller_is_better, unit="ratio"):
    return {"kernel": name, "pass": "", "dtype": "", "shape": {}, "clock": "wall", "unit": unit, "samples": samples,
            "counters": {}, "smaller_is_better": smaller_is_better, "evidence": {"kind": "measured", "source": "bench/studies/history"}}


def simulator(files):
    """Ratios of CPU times, except for the last figure, which is in megabytes. Smaller is better."""
    runs = [ratios.figures(ratios.read([file])) for file in files]
    return [measurement("simulator: " + run[0][0], [figure for _, figure, _ in run], True, "MB" if "[MB]" in run[0][0] else "ratio")
            for run in zip(*runs)]


def kernels(files):
    samples = {}
    for row in (row for file in files for row in json.load(open(file))["benchmarks"]):
        if row.get("error_occurred"):
            sys.exit(f"{row['name']}: {row['error_message']}")
        if row.get("run_type") != "aggregate":
            samples.setdefault(row["name"].split("/iterations")[0], []).append(row["of_copy"])
    return [measurement("kernels: " + name, values, False) for name, values in samples.items()]


def fsdp2(files):
    return [measurement(f"compare_fsdp2: {case['case']}, {case['ranks']} ranks", case["pair_ratios"], False)
            for file in files for case in json.load(open(file))["cases"]]


def facts(of, file):
    document = json.load(open(file))
    if of == "fsdp2":
        return {"cpu_model": document["machine"], "torch": document["torch"]}
    cpu = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "unknown")
    return {"cpu_model": cpu, "cores": str(document["context"]["num_cpus"]), "host": document["context"]["host_name"],
            "date": document["context"]["date"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("of", choices=["simulator", "kernels", "fsdp2"])
    parser.add_argument("files", nargs="+")
    parser.add_argument("-o", required=True)
    o = parser.parse_args()
    profile = {"schema": "windtunnel.profile/1", "fingerprint": facts(o.of, o.files[0]),
               "measurements": {"simulator": simulator, "kernels": kernels, "fsdp2": fsdp2}[o.of](o.files)}
    Path(o.o).write_text(json.dumps(profile, indent=1) + "\n")


main()
