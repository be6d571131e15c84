#!/usr/bin/env bash
# Everything that needs a GPU, in one go and within ten minutes on one device:
#   bench/measure_gpu.sh pack [FOLDER]  builds for CUDA here (nvcc, no GPU needed) and puts the programs and the libraries that a
#                                       bare machine lacks into FOLDER/packed.tar.gz (default build/gpu; at most 64 MiB)
#   bench/measure_gpu.sh run OUT        on the machine with the GPU, in this tree with FOLDER in build/gpu: device tests, kernel
#                                       profile, training, rehearsal and the comparison with PyTorch; logs and results in OUT
# The GPU machine needs python3 with PyTorch 2.11 (cu130) and the driver, no packages and no network. What fails is said in
# OUT/summary.txt and by the exit status; the rest still runs.
set -euo pipefail
root=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
cd "$root"

pack() {
  local to=${1:-build/gpu} build=build/cuda program library
  WINDTUNNEL_TRAINER=1 ./windtunnel help >/dev/null  # Debian packages and LibTorch, where they are not there yet
  cmake --preset cuda >/dev/null
  cmake --build $build --target windtunnel windtunnel-train unit_kernels_cuda unit_grouped_cuda unit_suites_cuda e2e_cuda
  rm -rf "$to" && mkdir -p "$to/bin" "$to/lib"
  for program in windtunnel windtunnel-train unit_kernels_cuda unit_grouped_cuda unit_suites_cuda e2e_cuda; do
    strip -o "$to/bin/$program" "$build/bin/$program"
    # LibTorch and NVIDIA's libraries are over there; so are those of the C and C++ runtimes.
    ldd "$build/bin/$program" |
      awk '$3 ~ /^\// && $3 !~ /\/(torch|nvidia|cuda[^\/]*)\/|\/lib(c|m|dl|rt|util|pthread|gcc_s|stdc\+\+|cuda|nvidia)[.-]/ {print $3}' |
      while read -r library; do cp -Lu "$library" "$to/lib/"; done
  done
  strip --strip-unneeded "$to"/lib/*
  tar -C "$to" -czf "$to/packed.tar.gz" bin lib
  rm -r "$to/bin" "$to/lib"
  du -h "$to/packed.tar.gz"
  (( $(stat -c %s "$to/packed.tar.gz") <= 64 << 20 )) || { echo "$to/packed.tar.gz: more than the 64 MiB that can be carried" >&2; return 1; }
}

run() {
  local out packages failed=0
  mkdir -p "$1"
  out=$(readlink -f "$1")
  tar -C build/gpu -xzf build/gpu/packed.tar.gz
  packages=$(python3 -c 'import pathlib, torch; print(pathlib.Path(torch.__file__).parents[1])')
  LD_LIBRARY_PATH=$root/build/gpu/lib:$packages/torch/lib:$(find "$packages/nvidia" -maxdepth 2 -name lib -printf '%p:')${LD_LIBRARY_PATH:-}
  export LD_LIBRARY_PATH WINDTUNNEL_CONFIGS=$root/configs PATH=$root/build/gpu/bin:$PATH
  export WINDTUNNEL=$root/build/gpu/bin/windtunnel WINDTUNNEL_TRAIN=$root/build/gpu/bin/windtunnel-train
  local scratch; scratch=$(mktemp -d)
  : >"$out/summary.txt"
  # stage NAME LIMIT COMMAND...: its output in OUT/NAME.log
  stage() {
    local name=$1 limit=$2 begin=$SECONDS status=0; shift 2
    timeout "$limit" "$@" >"$out/log.$name.txt" 2>&1 || status=$?
    [[ $status -eq 0 ]] || failed=1
    printf '%-12s %s  %4d s  %s\n' "$name" "$([[ $status -eq 0 ]] && echo ok || echo "FAILED ($status)")" $((SECONDS - begin)) \
      "$(tail -n 1 "$out/log.$name.txt" | cut -c1-140)" | tee -a "$out/summary.txt"
  }
  stage device 20 nvidia-smi
  stage kernels 60 unit_kernels_cuda
  stage grouped 120 unit_grouped_cuda
  stage suites 60 unit_suites_cuda
  stage trainer 180 e2e_cuda
  stage bench 120 windtunnel-train bench kernels --device cuda --quick --run configs/runs/demo.yaml -o "$out/profile.json"
  stage health 60 windtunnel health --fabric --quick --storage "$scratch" -o "$out/fleet.json"
  stage profile 20 windtunnel profile show "$out/profile.json"
  stage plan 30 windtunnel plan dbrx-3072-h100 -o "$scratch/plan"
  echo 'rehearsal: {device: cuda}' >>"$scratch/plan/plan.yaml"
  stage rehearsal 120 windtunnel train --rehearse "$scratch/plan/plan.yaml" -o "$scratch/rehearsal"
  cp "$scratch/rehearsal/report.md" "$out/rehearsal.md" 2>/dev/null || true
  cp "$scratch/rehearsal/profile.json" "$out/rehearsal-profile.json" 2>/dev/null || true
  stage compare 180 python3 bench/compare_fsdp2/compare.py --device cuda --pairs 31 -o "$out/compare.json"
  rm -rf "$scratch"
  # Few files travel back from some machines: the logs in one.
  tail -n +1 "$out"/log.*.txt >"$out/logs.txt" && rm "$out"/log.*.txt
  cat "$out/summary.txt"
  return $failed
}

case ${1:-} in
  pack) pack "${2:-}" ;;
  run) run "${2:?where the results go: bench/measure_gpu.sh run OUT}" ;;
  *) sed -n '2,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
