"""Every C++ and CUDA source that git tracks is as .clang-format says. Exit status 77 (skipped) where there is no clang-format
of the major version that the tree was formatted with: others break lines elsewhere.

clang_format_test.py LIBTORCH   (clang-format is the one of the tests' Python environment, or else an installed one)
"""
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MAJOR = "14"
PATTERNS = ["*.cpp", "*.hpp", "*.h", "*.cu", "*.cuh"]


def of_python_environment(libtorch):
    # The binary itself: the script in bin/ names the folder that the environment was made in, and it was moved since.
    where = "import clang_format, pathlib; print(pathlib.Path(clang_format.__file__).parent / 'data/bin/clang-format')"
    run = subprocess.run([ROOT / "cmake/python-environment.sh", "run", libtorch, "-c", where], capture_output=True, text=True)
    return run.stdout.strip() if run.returncode == 0 else None


def clang_format(libtorch):
    seen = []
    for program in (of_python_environment(libtorch), shutil.which("clang-format-" + MAJOR), shutil.which("clang-format")):
        if not program or not Path(program).exists():
            continue
        version = re.search(r"version (\d+)\.", subprocess.run([program, "--version"], capture_output=True, text=True).stdout)
        if version and version[1] == MAJOR:
            return program
        seen.append(f"{program} is version {version[1] if version else 'unknown'}")
    print(f"SKIPPED: no clang-format {MAJOR}: {', '.join(seen) or 'none installed'}; ./windtunnel test fetches it, or "
          f"apt-get install clang-format-{MAJOR}")
    sys.exit(77)


def differing(program, arguments, text=None):
    """Files that would be changed, of those named or of `text`."""
    run = subprocess.run([program, "--style=file", "--dry-run", "--Werror", *arguments], cwd=ROOT, input=text,
                         capture_output=True, text=True)
    found = sorted({line.split(":")[0] for line in run.stderr.splitlines() if "-Wclang-format-violations" in line})
    if run.returncode != 0 and not found:
        sys.exit(f"{program} failed: {run.stderr}")
    return found


def self_test(program):
    planted = ["--assume-filename=planted.cpp"]
    if differing(program, planted, "int well() { return 1; }\n") or not differing(program, planted, "int  badly( ) {return 1 ;}\n"):
        sys.exit(f"{program} does not tell a well formatted line from a bad one; fix {__file__}")


def main():
    listed = subprocess.run(["git", "ls-files", *PATTERNS], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        print("SKIPPED: not a git checkout, so there are no tracked files")
        return 77
    program = clang_format(sys.argv[1])
    self_test(program)
    wrong = differing(program, [file for file in listed.stdout.splitlines() if (ROOT / file).exists()])
    for file in wrong:
        print(f"{file}: is not as .clang-format says; run: {program} -i {file}")
    return bool(wrong)


sys.exit(main())
