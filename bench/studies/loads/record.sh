#!/usr/bin/env bash
# Trains the router of run.yaml balanced by loss, by bias and not at all, and prints what the recordings say
# (fit.py). Ten minutes a training on a core.
#     bench/studies/loads/record.sh [TEXT FOLDER...]
set -euo pipefail
cd "$(dirname "$0")/../../.."
out=out/loads
mkdir -p "$out"
./windtunnel data pack --overwrite --text "${@:-/usr/share/common-licenses}" -o "$out/data" --seq-len 128
train() { # NAME ROUTER
  sed "s/moe_loss_weight: 0.01/$2/" bench/studies/loads/run.yaml > "$out/$1.yaml"
  ./windtunnel train "$out/$1.yaml" -o "$out/$1"
}
train loss "moe_loss_weight: 0.01"
train bias "moe_loss_weight: 0, moe_bias_update_rate: 0.001, moe_score_function: sigmoid"
train none "moe_loss_weight: 0"
python3 bench/studies/loads/fit.py "$out"/{loss,bias,none}/routing.csv --tokens 512 --top-k 4
