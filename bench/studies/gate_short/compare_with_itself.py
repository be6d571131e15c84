"""How often `windtunnel gate` finds a regression in short benchmarks that did not change: one program is measured many times, and its
processes are compared with each other, taken in turns.

compare_with_itself.py WINDTUNNEL FOLDER [PROCESSES]   builds the program with g++ and Google Benchmark, measures it into FOLDER where the
                                                       files are not there yet, and prints the table of docs/gate.md
"""
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

COMPARISONS = 200
HERE = Path(__file__).parent


def measure(folder, processes):
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "short_benchmarks"
    if not program.exists():
        subprocess.run(["g++", "-O2", "-std=c++17", HERE / "short_benchmarks.cpp", "-lbenchmark", "-lpthread", "-o", program], check=True)
    files = [folder / f"{i}.json" for i in range(processes)]
    for file in files:
        if not file.exists():
            flags = ["--benchmark_format=json", "--benchmark_min_time=0.02", "--benchmark_repetitions=5"]
            file.write_bytes(subprocess.run([program, *flags], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)
    return files


def fails(windtunnel, files, flags):
    """Whether a comparison of every second file with the others has a finding."""
    with tempfile.TemporaryDirectory() as scratch:
        for side in (0, 1):
            folder = Path(scratch) / str(side)
            folder.mkdir()
            for i, file in enumerate(files[side::2]):
                (folder / f"{i}.json").symlink_to(file.resolve())
        command = [windtunnel, "gate", f"{scratch}/0", f"{scratch}/1", "--json", *flags]
        return json.loads(subprocess.run(command, stdout=subprocess.PIPE).stdout)["counts"]["slower"] > 0


def main():
    windtunnel, folder = sys.argv[1], Path(sys.argv[2])
    files = measure(folder, int(sys.argv[3]) if len(sys.argv) > 3 else 60)
    print("| processes a side | floor | comparisons that fail, wall clock | CPU clock |\n|---|---|---|---|")
    for side in (9, 4):
        for floor in ("3%", "20%"):
            cells = []
            for clock in ("real", "cpu"):
                draw = random.Random(1)
                found = 0
                for _ in range(COMPARISONS):
                    first = draw.randrange(len(files) - 2 * side + 1)
                    chosen = files[first:first + 2 * side]
                    if draw.random() < 0.5:
                        chosen = [file for pair in zip(chosen[1::2], chosen[::2]) for file in pair]
                    found += fails(windtunnel, chosen, ["--floor", floor, "--clock", clock])
                cells.append(f"{found} of {COMPARISONS}")
            print(f"| {side} | {floor.replace('%', ' %')} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
