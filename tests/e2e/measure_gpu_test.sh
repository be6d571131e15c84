#!/usr/bin/env bash
# bench/measure_gpu.sh run, with programs that only say that they were called: every stage has its line, what fails or is too
# slow does not end the others, and the time for all of them is kept.
set -euo pipefail
root=$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/../..")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "FAILED: $1" >&2; sed 's/^/  /' "$scratch"/out/summary.txt >&2; exit 1; }

mkdir -p "$scratch"/{packed/bin,packed/lib,bin,site/torch/lib,site/nvidia/cu13/lib}
stub() { printf '#!/usr/bin/env bash\n%s\n' "$2" >"$1"; chmod +x "$1"; }
for program in unit_kernels_cuda unit_suites_cuda e2e_cuda; do stub "$scratch/packed/bin/$program" "echo 'All tests passed'"; done
stub "$scratch/packed/bin/unit_grouped_cuda" "echo 'one is wrong'; exit 42"
stub "$scratch/packed/bin/windtunnel" '[[ $2 != --rehearse ]] || grep -q "device: cuda" "$3"'
stub "$scratch/packed/bin/windtunnel-train" 'echo "name  median"; if [[ $2 == aims ]]; then echo "aim  reached"; echo "router  met"; fi; [[ $2 != storage ]] || sleep 30'
stub "$scratch/bin/nvidia-smi" 'for i in $GPUS; do echo "GPU $i: NVIDIA H200"; done'
stub "$scratch/bin/python3" "[[ \$1 == -c ]] && echo '$scratch/site' || echo compared"
tar -C "$scratch/packed" -czf "$scratch/packed/packed.tar.gz" bin lib

run() { PATH=$scratch/bin:$PATH "$root/bench/measure_gpu.sh" run "$scratch/out" "$scratch/packed" >/dev/null; }
says() { grep -Eq "$1" "$scratch/out/summary.txt" || fail "no line '$1'"; }

GPUS=0 WINDTUNNEL_GPU_SECONDS=20 run && fail 'exit status 0 although a test failed'
says '^device +ok'
says '^grouped +FAILED \(42\) .*one is wrong'
says '^aims +ok'
says '^collectives +left out .*found 1 GPU'
says '^rehearsal +left out .*no plan of dbrx-3072-h200'
[[ $(head -2 "$scratch/out/summary.txt" | cut -d' ' -f1 | paste -sd' ') == 'device rehearsal' ]] || fail 'the rehearsal does not come first'
says '^storage +TIMED OUT'
says '^profile +NO TIME'
says '^compare +NO TIME'
grep -q 'router  met' "$scratch/out/aims.txt" || fail 'the verdicts are not in aims.txt'
grep -q 'one is wrong' "$scratch/out/logs.txt" || fail 'the logs are not in one file'

stub "$scratch/packed/bin/unit_grouped_cuda" "exit 0"
stub "$scratch/packed/bin/windtunnel-train" 'echo "aim  reached"'
mkdir "$scratch/packed/plans" && echo 'run_name: x' >"$scratch/packed/plans/dbrx-3072-h200.yaml"
tar -C "$scratch/packed" -czf "$scratch/packed/packed.tar.gz" bin lib plans
GPUS='0 1' WINDTUNNEL_GPU_SECONDS=60 run || fail 'exit status not 0 although every stage ended well'
says '^collectives +ok'
says '^rehearsal +ok'
says '^profile +ok'
says '^compare +ok .*compared'

GPUS=0 WINDTUNNEL_GPU_STAGES='grouped aims' run || fail 'exit status not 0 although both stages ended well'
[[ $(cut -d' ' -f1 "$scratch/out/summary.txt" | sort | paste -sd' ') == 'aims collectives grouped' ]] || fail 'stages that were not asked for'
echo 'measure_gpu.sh: all stages have their lines'
