#!/usr/bin/env bash
# Is the simulator slower than before? planner/benchmarks/compare.sh BASE [PROCESSES] builds bench_simulator of commit BASE and of
# this tree, runs them in turns, PROCESSES (default 3) a side, and asks windtunnel gate, whose exit status it is.
set -euo pipefail
root=$(realpath "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../../..")
base=$(git -C "$root" rev-parse --verify "${1:?the commit to compare with: planner/benchmarks/compare.sh BASE}^{commit}")
work=$(mktemp -d)
trap 'rm -rf "$work"; git -C "$root" worktree prune' EXIT
git -C "$root" worktree add -q --detach "$work/tree" "$base"
build() { # TREE FOLDER
  cmake -S "$1" -B "$2" -G Ninja -DCMAKE_BUILD_TYPE=Release -DWT_TRAINER=OFF >/dev/null
  cmake --build "$2" -j 2 --target bench_simulator >/dev/null
}
build "$work/tree" "$work/base"
build "$root" "$work/new"
for ((i = 0; i < ${2:-3}; ++i)); do
  for side in base new; do
    mkdir -p "$work/result/$side"
    WINDTUNNEL_CONFIGS=$([[ $side == base ]] && echo "$work/tree" || echo "$root")/configs "$work/$side/bin/bench_simulator" \
      --benchmark_filter='gpus:(64|3072|16384)/real_time$|bound._of|thousand' --benchmark_repetitions=5 \
      --benchmark_enable_random_interleaving=true --benchmark_out="$work/result/$side/$i.json" --benchmark_out_format=json >/dev/null
  done
done
"$root/windtunnel" gate "$work/result/base" "$work/result/new"
