#!/usr/bin/env bash
# The CUDA side compiles, warnings as errors, where there is no GPU: every kernel by nvcc, and by the host's compiler every .cpp
# that has WT_CUDA in it (its syntax: no program is built). Exit status 77 where there is no nvcc.
#   cuda_compiles_test.sh BUILD LIBTORCH
set -euo pipefail
root=$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/../..")
build=$1 libtorch=$2
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null) || { echo 'SKIPPED: no nvcc on this machine'; exit 77; }

cmake --preset cuda -S "$root" -B "$build" "-DCMAKE_CUDA_COMPILER=$nvcc" "-DWT_LIBTORCH=$libtorch" >/dev/null
ninja -C "$build" -j 2 wt_kernels
commands=$(python3 - "$build/compile_commands.json" <<'EOF'
import json
import os
import sys

for entry in json.load(open(sys.argv[1])):
    if entry["file"].endswith(".cpp") and os.path.exists(entry["file"]) and "WT_CUDA" in open(entry["file"]).read():
        print(f"echo {entry['file']} && cd {entry['directory']} && {entry['command']} -fsyntax-only")
EOF
)
[[ $commands == *nccl_communicators.cpp* ]] || { echo 'FAILED: the files of the trainer are not among them'; exit 1; }
xargs -d '\n' -P 2 -I{} bash -c {} <<<"$commands"
