#!/usr/bin/env bash
# Everything that needs a GPU, in one go and within ten minutes on one device:
#   bench/measure_gpu.sh pack [FOLDER]  builds for CUDA here (nvcc, no GPU needed), plans DBRX, and puts programs, plans and the
#                                       libraries that a bare machine lacks into FOLDER/packed.tar.gz (default build/gpu; at most
#                                       64 MiB)
#   bench/measure_gpu.sh run OUT [FOLDER]  on the machine with the GPU, in this tree with FOLDER (build/gpu): one rank of DBRX's plan
#                                       at full width, device tests, trainings, the profiles of DBRX's shapes and of a small MoE,
#                                       what the kernels reach of their aims, DBRX's GEMM staircase, over several GPUs collectives,
#                                       health, storage and the comparison with PyTorch. Tests share the GPU; timed stages have it
#                                       alone. Most valuable first; WINDTUNNEL_GPU_SECONDS (570) for all together,
#                                       WINDTUNNEL_GPU_STAGES='dbrx aims' for those alone. Logs and results in OUT
# The GPU machine needs python3 with PyTorch 2.11 (cu130) and the driver, no packages and no network. Failures are listed in
# OUT/summary.txt and set the exit status; later stages still run.
set -euo pipefail
root=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
cd "$root"
source bench/measure_gpu_stages.sh

pack() {
  local to=${1:-build/gpu} build=build/cuda program library study
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
  for study in dbrx-3072-h100 dbrx-3072-h200; do  # here: a plan takes a minute, which a borrowed GPU would wait
    $build/bin/windtunnel plan $study -o "$to/plan" --set stack=windtunnel-train >/dev/null
    mkdir -p "$to/plans" && mv "$to/plan/plan.yaml" "$to/plans/$study.yaml" && rm -r "$to/plan"
  done
  mkdir -p "$to/share/windtunnel"
  git describe --always --dirty --abbrev=12 '--exclude=*' >"$to/share/windtunnel/commit"  # which profiles name
  tar -C "$to" -czf "$to/packed.tar.gz" bin lib share plans
  rm -r "$to/bin" "$to/lib" "$to/share" "$to/plans"
  du -h "$to/packed.tar.gz"
  (( $(stat -c %s "$to/packed.tar.gz") <= 64 << 20 )) || { echo "$to/packed.tar.gz: more than the 64 MiB that can be carried" >&2; return 1; }
}

run() {
  local out folder packages gpus scratch study
  mkdir -p "$1"
  out=$(readlink -f "$1") folder=$(readlink -f "${2:-build/gpu}")
  stages_begin "$out" "${WINDTUNNEL_GPU_SECONDS:-570}"
  tar -C "$folder" -xzf "$folder/packed.tar.gz"
  packages=$(python3 -c 'import pathlib, torch; print(pathlib.Path(torch.__file__).parents[1])')
  LD_LIBRARY_PATH=$folder/lib:$packages/torch/lib:$(find "$packages/nvidia" -maxdepth 2 -name lib -printf '%p:')${LD_LIBRARY_PATH:-}
  export LD_LIBRARY_PATH WINDTUNNEL_CONFIGS=$root/configs PATH=$folder/bin:$PATH
  export WINDTUNNEL=$folder/bin/windtunnel WINDTUNNEL_TRAIN=$folder/bin/windtunnel-train
  scratch=$(mktemp -d)
  gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU') || true
  study=dbrx-3072-h200
  [[ $(nvidia-smi -L 2>/dev/null) != *H100* ]] || study=dbrx-3072-h100
  stage device 10 nvidia-smi
  if [[ -f $folder/plans/$study.yaml ]]; then
    cp "$folder/plans/$study.yaml" "$scratch/plan.yaml"
    echo 'rehearsal: {device: cuda}' >>"$scratch/plan.yaml"
    stage rehearsal 120 windtunnel train --rehearse "$scratch/plan.yaml" -o "$scratch/rehearsal"
    cp "$scratch/rehearsal/report.md" "$out/rehearsal.md" 2>/dev/null || true
    cp "$scratch/rehearsal/profile.json" "$out/rehearsal-profile.json" 2>/dev/null || true
  else
    left_out rehearsal "no plan of $study was packed"
  fi
  stage kernels 120 unit_kernels_cuda &
  stage grouped 120 unit_grouped_cuda &
  stage suites 120 unit_suites_cuda &
  stage trainer 180 e2e_cuda &  # some 60 trainings
  wait
  local run file
  for run in moe fine-experts dense moe-long moe-recompute coarse-experts; do  # calibrated on the first, the others unseen
    windtunnel data pack --overwrite --text LICENSE README.md -o "$scratch/$run-data" \
      --seq-len "$(awk '/^max_seq_len/ {print $2}' bench/studies/gpu_steps/$run.yaml)" >/dev/null 2>&1 || true
    cp bench/studies/gpu_steps/$run.yaml "$scratch"
    printf 'train_loader: {dataset: {local: %s}}\n' "$scratch/$run-data" >>"$scratch/$run.yaml"
    stage steps-$run 60 windtunnel-train train "$scratch/$run.yaml" -o "$scratch/steps-$run"
    for file in metrics.jsonl summary.json timeline.json profile.json routing.csv; do
      cp "$scratch/steps-$run/$file" "$out/steps-$run-$file" 2>/dev/null || true
    done
  done
  stage dbrx 120 windtunnel bench --for $study --device cuda --quick -o "$out/dbrx.json"
  stage bench 60 windtunnel-train bench kernels --device cuda --quick --run bench/studies/gpu_steps/moe.yaml -o "$out/profile.json"
  stage aims 150 windtunnel-train bench aims --device cuda -o "$out/aims.json"
  sed -n '/^aim /,$p' "$out/log.aims.txt" >"$out/aims.txt" 2>/dev/null || true
  stage staircase 60 windtunnel-train bench staircase --models dbrx --device cuda --quick -o "$out/staircase.json"
  if ((${gpus:-0} > 1)); then
    stage collectives 90 windtunnel-train bench collectives --device cuda -o "$out/collectives.json"
  else
    left_out collectives "found ${gpus:-0} GPU, NCCL's are measured between two or more"
  fi
  stage health 40 windtunnel health --fabric --quick --storage "$scratch" -o "$out/fleet.json"
  stage storage 60 windtunnel-train bench storage --quick -o "$out/storage.json"
  stage profile 20 windtunnel profile show "$out/profile.json"
  # Last: where it is cut short its trainings may stay on the GPU.
  stage compare 150 python3 bench/studies/compare_fsdp2/compare.py --device cuda --pairs 15 -o "$out/compare.json"
  rm -rf "$scratch"
  # Few files travel back from some machines: the logs in one.
  tail -n +1 "$out"/log.*.txt >"$out/logs.txt" && rm "$out"/log.*.txt
  cat "$out/summary.txt" "$out/aims.txt"
  ! stages_failed
}

case ${1:-} in
  pack) pack "${2:-}" ;;
  run) run "${2:?where the results go: bench/measure_gpu.sh run OUT}" "${3:-}" ;;
  *) sed -n '2,14s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
