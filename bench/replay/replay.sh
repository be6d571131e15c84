#!/usr/bin/env bash
# How far off is the replay of our own trainer on this machine? Calibrates on the demo's run (four ranks) and benchmarks,
# then trains and predicts runs of 1, 2 and 4 ranks in other layouts, widths, depths and lengths that it has not seen, and
# at the end the first one again: by how much the two differ is the machine's doing.
#   bench/replay/replay.sh [FOLDER]     FOLDER (default out/replay) keeps everything; takes about five minutes
# Leave the machine alone meanwhile: other programs slow the measured side.
set -euo pipefail
root=$(dirname "$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")")
out=$(realpath -m "${1:-$root/out/replay}")
cd "$root"
mkdir -p "$out"
[[ -e $out/data ]] || ./windtunnel data pack --text /usr/share/common-licenses /usr/share/doc --seq-len 128 -o "$out/data" >/dev/null
base=configs/runs/demo.yaml
run() { # NAME SED-EXPRESSION: the demo's run, changed, into OUT/NAME
  sed -e "s#run_name: demo#run_name: $1#; s#out/data/seq128#$out/data#; /^save_interval/d" -e "${2:-}" $base >"$out/$1.yaml"
  rm -rf "${out:?}/$1"
  ./windtunnel train "$out/$1.yaml" -o "$out/$1" >/dev/null 2>"$out/$1.log" || { cat "$out/$1.log" >&2; exit 1; }
}
mesh() { echo "s/replicate_degree: .*/replicate_degree: $1/; s/parallel_shard_degree: .*/parallel_shard_degree: $2/; s/expert_parallel_degree: .*/expert_parallel_degree: $3/"; }
run calibration
./windtunnel bench --quick --run "$out/calibration.yaml" -o "$out/bench.json" >/dev/null 2>"$out/bench.log"
./windtunnel calibrate "$out/bench.json" "$out/calibration/profile.json" -o "$out/machine.json" >"$out/calibrate.txt"
run one-rank "$(mesh 1 1 1)"
run two-fsdp "$(mesh 1 2 1)"
run two-expert "$(mesh 1 2 2)"
run two-replicas "$(mesh 2 1 1)"
run four-fsdp "$(mesh 1 4 1)"
run four-expert "$(mesh 1 4 4)"
run four-replicas "$(mesh 4 1 1)"
run wider "s/d_model: .*/d_model: 256/; s/^  n_heads: .*/  n_heads: 8/; s/ffn_hidden_size: 384/ffn_hidden_size: 512/; s/n_layers: .*/n_layers: 3/"
run narrower "$(mesh 1 4 2); s/d_model: .*/d_model: 128/; s/^  n_heads: .*/  n_heads: 4/; s/ffn_hidden_size: 384/ffn_hidden_size: 256/; s/n_layers: .*/n_layers: 6/"
run calibration-again # how far the machine itself has moved meanwhile
./windtunnel compare "$out"/{calibration,one-rank,two-fsdp,two-expert,two-replicas,four-fsdp,four-expert,four-replicas,wider,narrower,calibration-again} \
  --calibrated-on "$out/calibration" --calibrated-on "$out/calibration-again" --machine "$out/machine.json" -o "$out/report.html"
