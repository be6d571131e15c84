#!/usr/bin/env bash
# The CUDA side compiles, warnings as errors, where there is no GPU: every kernel by nvcc, and by the host's compiler every .cpp
# that has WT_CUDA in it. Exit status 77 where there is no nvcc.
#   cuda_compiles_test.sh BUILD LIBTORCH
set -euo pipefail
root=$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/../..")
build=$1 libtorch=$2
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null) || { echo 'SKIPPED: no nvcc on this machine'; exit 77; }

cmake --preset cuda -S "$root" -B "$build" "-DCMAKE_CUDA_COMPILER=$nvcc" "-DWT_LIBTORCH=$libtorch" >/dev/null
targets=(wt_kernels)
if grep -q '^build bin/windtunnel-train:' "$build/build.ninja"; then
  while read -r source; do targets+=("$root/$source^"); done < <(cd "$root" && grep -rl --include='*.cpp' -e WT_CUDA -e USE_C10D_NCCL trainer bench tests)
else
  echo 'LibTorch is not there: the kernels alone'
fi
ninja -C "$build" -j 2 "${targets[@]}"
