#!/bin/sh
# One of four virtual nodes becomes slow during a real training. windtunnel watch finds it, has it excluded, and sees the pace
# recover. About three minutes on two idle cores.
#   run.sh FOLDER    FOLDER must not exist
set -eu
here=$(cd "$(dirname "$0")" && pwd) folder=$(realpath -m "$1")
export WINDTUNNEL="${WINDTUNNEL:-$here/../../../build/bin/windtunnel}" SLOW=2 FACTOR=4
root=$here/../../..
mkdir "$folder" "$folder/run"
"$WINDTUNNEL" data pack --text /usr/share/common-licenses -o "$folder/data" --seq-len 128 >"$folder/data.log"
sed "s/^max_duration: .*/max_duration: 600ba/; s/^save_interval: .*/save_interval: 40ba/; s|out/data/seq128|$folder/data|" \
  "$root/configs/runs/tiny-moe.yaml" >"$folder/run/watch.yaml"
# On shared cores steps vary more than the shipped rules allow for.
cat >"$folder/rules.yaml" <<EOF
every: 1s
window: 16
signals:
  - {name: slow steps, metric: step_s, above: 1.6, of: best, steps: 24}
  - {name: silence, metric: silence, above: 10, of: recent, at_least: 60s}
undecided: tell
sure: 0.99
most_excluded: 0.25
restarts: 3
rollback: {margin: 16, skip: 16}
verify: {steps: 24, within: 10m}
EOF
{
  echo 'spares: 1'
  for hook in save stop cordon uncordon; do
    echo "$hook: {command: [$here/site.sh, $hook, '{run}'], timeout: 5m}"
  done
  echo "sweep: {command: [$here/site.sh, sweep, '{run}', '{output}'], timeout: 5m}"
  echo "start: {command: [$here/site.sh, start, '{run}', '{excluded}'], timeout: 1m}"
} >"$folder/hooks.yaml"
"$here/site.sh" start "$folder/run" ""
while ! [ -s "$folder/run/metrics.jsonl" ]; do
  sleep 1
  kill -0 "$(cat "$folder/run/watch.pid")" || { tail "$folder/run/train.log" >&2; exit 1; }
done
"$WINDTUNNEL" watch "$folder/run" --rules "$folder/rules.yaml" --hooks "$folder/hooks.yaml" --act
