#!/usr/bin/env bash
# bench/studies/history/record.sh [COMMIT...]: builds bench_simulator and bench_kernels of each commit (of HEAD without any), runs them,
# and records their ratios in the history beside this script. About five minutes a commit on two idle cores.
# WHAT ("simulator kernels"): set it to one of the two to run only that. PROCESSES (3): runs per commit. JOBS (2): of the compiler.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
root=$(realpath "$here/../../..")
what=(${WHAT:-simulator kernels})
work=$(mktemp -d)
trap 'rm -rf "$work"; git -C "$root" worktree prune' EXIT
cd "$root"
for commit in "${@:-HEAD}"; do
  commit=$(git rev-parse --verify "$commit^{commit}")
  if [[ -d $work/tree ]]; then git -C "$work/tree" checkout -q --detach "$commit"; else git worktree add -q --detach "$work/tree" "$commit"; fi
  cmake -S "$work/tree" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DWT_TRAINER=OFF -DWT_UNITY=ON >/dev/null
  cmake --build "$work/build" -j "${JOBS:-2}" --target "${what[@]/#/bench_}" >/dev/null
  for ((i = 0; i < ${PROCESSES:-3}; ++i)); do
    for each in "${what[@]}"; do
      case $each in
        simulator) filter='gpus:(3072|16384)/real|microbatches:(1|32)/|layers:(10|320)/|unfolded/gpus:(64|1024)/|bound._of|bound0_just|thousand_runs$' ;;
        kernels) filter='^(permute|combine|swiglu|rmsnorm|quantize_fp8)/(fp32|bf16)/avx2/threads:1/' ;;
      esac
      WINDTUNNEL_CONFIGS=$work/tree/configs "$work/build/bin/bench_$each" --benchmark_min_time=0.1 --benchmark_filter="$filter" \
        --benchmark_out="$work/$each-$i.json" --benchmark_out_format=json >/dev/null
    done
  done
  for each in "${what[@]}"; do
    python3 "$here/profile.py" "$each" "$work/$each"-*.json -o "$work/$each.json"
    "${WINDTUNNEL:-$root/windtunnel}" gate record "$work/$each.json" --history "$here/ratios" --commit "${commit:0:12}" || [[ $? == 1 ]]
  done
done
