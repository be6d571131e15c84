#!/usr/bin/env bash
# bench/studies/history/record.sh [COMMIT...]: builds bench_simulator and bench_kernels of each commit (of HEAD without any), runs them,
# and records their ratios in the history beside this script. About five minutes a commit on two cores, of which one measures.
# PROCESSES (3): runs a commit. JOBS (2): of the compiler.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
root=$(realpath "$here/../../..")
work=$(mktemp -d)
trap 'rm -rf "$work"; git -C "$root" worktree prune' EXIT
cd "$root"
for commit in "${@:-HEAD}"; do
  commit=$(git rev-parse --verify "$commit^{commit}")
  if [[ -d $work/tree ]]; then git -C "$work/tree" checkout -q --detach "$commit"; else git worktree add -q --detach "$work/tree" "$commit"; fi
  cmake -S "$work/tree" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DWT_TRAINER=OFF -DWT_UNITY=ON >/dev/null
  cmake --build "$work/build" -j "${JOBS:-2}" --target bench_simulator bench_kernels >/dev/null
  for ((i = 0; i < ${PROCESSES:-3}; ++i)); do
    WINDTUNNEL_CONFIGS=$work/tree/configs "$work/build/bin/bench_simulator" --benchmark_min_time=0.1 \
      --benchmark_filter='gpus:(3072|16384)/real|microbatches:(1|32)/|layers:(10|320)/|unfolded/gpus:(64|1024)/|bound._of|bound0_just|thousand_runs$' \
      --benchmark_out="$work/simulator$i.json" --benchmark_out_format=json >/dev/null
    "$work/build/bin/bench_kernels" --benchmark_filter='^(permute|combine|swiglu|rmsnorm|quantize_fp8)/(fp32|bf16)/avx2/threads:1/' \
      --benchmark_out="$work/kernels$i.json" --benchmark_out_format=json >/dev/null
  done
  for what in simulator kernels; do
    python3 "$here/profile.py" $what "$work"/$what?.json -o "$work/$what.json"
    "${WINDTUNNEL:-$root/windtunnel}" gate record "$work/$what.json" --history "$here/ratios" --commit "${commit:0:12}" || [[ $? == 1 ]]
  done
done
