"""Imports every job file of a folder and prints, by format, how many were read and why others were refused. Not a test: what is right
of a file is not known by machine.

survey.py WINDTUNNEL FOLDER.. [--list REASON]: WINDTUNNEL is the program. A file whose refusal names a flag that supplies what it lacks is
imported again with that flag. --list prints the files of a reason with their errors. As rows of a table:

    read               with what the file says
    read with a flag   after --gpus, --seq-len or --vocab, which the error named
    another model      its shape is not known: the error names --model
    not simulated      the error names a setting of the format
    other format       the error says that no format that is read here fits
    unknown word       a word that the format does not have
    unclear            anything else
    crashed            no error of ours
"""
import argparse
import collections
import re
import subprocess
from pathlib import Path

ENDINGS = {".toml", ".yaml", ".yml", ".json", ".sh", ".py", ".slurm", ".sbatch"}
GPUS = ["8", "64", "256", "1024"]  # the first with which the degrees and the batch agree
FLAGS = {"--gpus N": ["--gpus", "8"], "--seq-len N": ["--seq-len", "4096"], "--vocab N": ["--vocab", "32000"]}
REASONS = [
    ("other format", r"none of the formats that are read here"),
    ("unknown word", r"found a (word|key) that .* (does not have|has not)|found a word of "),
    ("another model", r"no model of configs/models|which is no flavor|changes the model's shape|give --model|with --model"),
    ("not simulated", r": found .*(needs|allowed|which|whose|not simulated)|does not divide|is only simulated|linear mixers"),
]
ROWS = ["read", "read with a flag", "another model", "not simulated", "other format", "unknown word", "unclear", "crashed"]


def imported(program, file, flags):
    done = subprocess.run([program, "import-run", str(file), *flags], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr.strip()


def outcome(program, file):
    flags = []
    while True:
        code, error = imported(program, file, flags)
        if code == 0:
            return ("read with a flag" if flags else "read"), ""
        wanted = [value for named, value in FLAGS.items() if named in error and value[0] not in flags]
        if wanted and code == 2:
            flags += wanted[0]
            continue
        place = flags.index("--gpus") + 1 if "--gpus" in flags else 0
        if not place or flags[place] == GPUS[-1] or code != 2:
            break
        flags[place] = GPUS[GPUS.index(flags[place]) + 1]
    if code != 2:
        return "crashed", error
    return next((name for name, pattern in REASONS if re.search(pattern, error)), "unclear"), error


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--list")
    chosen = parser.parse_args()
    print(f"| files | {' | '.join(ROWS)} |\n|---{'|---' * len(ROWS)}|")
    for folder in chosen.folders:
        counts = collections.Counter()
        for file in sorted(f for f in Path(folder).rglob("*") if f.is_file() and f.suffix in ENDINGS):
            reason, error = outcome(chosen.program, file)
            counts[reason] += 1
            if reason == chosen.list:
                print(f"  {file}: {error}")
        print(f"| {Path(folder).name}, {sum(counts.values())} | {' | '.join(str(counts[row]) for row in ROWS)} |")


if __name__ == "__main__":
    main()
