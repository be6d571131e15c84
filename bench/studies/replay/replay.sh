#!/usr/bin/env bash
# How far off is the replay of our own trainer on this machine? Calibrates on the demo's run (four ranks) and benchmarks, and
# predicts runs of 1, 2 and 4 ranks in other layouts, widths, depths and lengths that it has not seen.
#   bench/studies/replay/replay.sh [FOLDER]     FOLDER (default out/replay) keeps everything until the next call; takes about twelve minutes
# A shared machine has slow phases of half a minute, longer than a run. So all runs are trained in turns, a few steps at a time,
# in ROUNDS (5). Each round begins with another run, so that slow phases affect the calibration as often as the predicted runs.
# Use the machine for nothing else meanwhile: other programs slow the measured side. bench/studies/replay/passes keeps FOLDER/pass.csv of
# every pass whose figure a page states.
set -euo pipefail
root=$(realpath "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../../..")
out=$(realpath -m "${1:-$root/out/replay}")
rounds=${ROUNDS:-5}
cd "$root"
mkdir -p "$out"
[[ -e $out/data ]] || ./windtunnel data pack --text /usr/share/common-licenses $(find /usr/share/doc -name copyright -type f | sort) --seq-len 128 -o "$out/data" >/dev/null

mesh() { echo "s/replicate_degree: .*/replicate_degree: $1/; s/parallel_shard_degree: .*/parallel_shard_degree: $2/; s/expert_parallel_degree: .*/expert_parallel_degree: $3/"; }
declare -A changed=( # the demo's run, changed
  [calibration]='' [calibration-again]=''
  [one-rank]=$(mesh 1 1 1)
  [two-fsdp]=$(mesh 1 2 1) [two-expert]=$(mesh 1 2 2) [two-replicas]=$(mesh 2 1 1)
  [four-fsdp]=$(mesh 1 4 1) [four-expert]=$(mesh 1 4 4) [four-replicas]=$(mesh 4 1 1)
  [wider]='s/d_model: .*/d_model: 256/; s/^  n_heads: .*/  n_heads: 8/; s/ffn_hidden_size: 384/ffn_hidden_size: 512/; s/n_layers: .*/n_layers: 3/'
  [narrower]="$(mesh 1 4 2); s/d_model: .*/d_model: 128/; s/^  n_heads: .*/  n_heads: 4/; s/ffn_hidden_size: 384/ffn_hidden_size: 256/; s/n_layers: .*/n_layers: 6/"
)
runs=(calibration one-rank two-fsdp two-expert two-replicas calibration-again four-fsdp four-expert four-replicas wider narrower)

for name in "${runs[@]}"; do rm -rf "$out/$name".[0-9]*/; done # of an earlier call
rm -f "$out"/bench.*.json{,.partial}

run() { # NAME ROUND: eleven steps of it into OUT/NAME.ROUND
  local folder=$out/$1.$2
  sed -e "s#run_name: demo#run_name: $1#; s#max_duration: .*#max_duration: 11ba#; s#out/data/seq128#$out/data#; /^save_interval/d" \
    -e "${changed[$1]}" configs/runs/demo.yaml >"$out/$1.yaml"
  rm -rf "$folder"
  ./windtunnel train "$out/$1.yaml" -o "$folder" >/dev/null 2>"$out/train.log" || { cat "$out/train.log" >&2; exit 1; }
}
bench() { ./windtunnel bench --quick --run "$out/calibration.yaml" --seed "$1" -o "$out/bench.$1.json" >/dev/null 2>"$out/bench.log"; }

for ((round = 1; round <= rounds; ++round)); do
  for ((i = 0; i < ${#runs[@]}; ++i)); do run "${runs[(i + 2 * (round - 1)) % ${#runs[@]}]}" "$round"; done
  if ((round == 1 || round == rounds)); then bench "$round"; fi
done
./windtunnel calibrate "$out"/bench.*.json "$out"/calibration{,-again}.*/profile.json -o "$out/machine.json" >"$out/calibrate.txt"
folders=()
for name in "${runs[@]}"; do for ((round = 1; round <= rounds; ++round)); do folders+=("$out/$name.$round"); done; done
seen=()
for folder in "$out"/calibration{,-again}.*/; do seen+=(--calibrated-on "$folder"); done
./windtunnel compare "${folders[@]}" "${seen[@]}" --machine "$out/machine.json" --json >"$out/compare.json"
python3 bench/studies/replay/summary.py --record "$out/compare.json" "$out/pass.csv"
python3 bench/studies/replay/summary.py "$out/pass.csv"
