#!/bin/sh
# Hooks of windtunnel watch for virtual nodes of one rank each, one of them slow, and a spare. run.sh calls it with
# SLOW (the node) and FACTOR in the environment; WINDTUNNEL is the program.
#   site.sh start RUN EXCLUDED   node SLOW computes FACTOR times slower, from step 80 or the next one on, unless it is excluded:
#                                then the spare has its rank
#   site.sh sweep RUN OUTPUT     a short training with the same slow node; what its ranks took, as a fleet
#   site.sh save|stop RUN        as configs/watch/local.sh
set -eu
here=$(dirname "$0") action=$1 run=$2
faults=$run/faults.yaml

# An event on the slow node at the beginning of a step.
scenario() { # STEP WHAT
  cat <<EOF
name: watched
run: $run/watch.yaml
nodes: {ranks: 1, spares: 1}
policy: {on_loss: [spare, restart]}
events:
  - {who: {domain: node, index: $SLOW}, when: {step: $1}, what: $2}
EOF
}
slow="{kind: slow, factor: $FACTOR}"

case $action in
start)
  next=80
  if [ -e "$run/checkpoints/latest" ]; then next=$(($(sed 's/step-0*//' "$run/checkpoints/latest") + 1)); fi
  if [ -e "$run/strikes.jsonl" ]; then cat "$run/strikes.jsonl" >>"$run/struck.jsonl" && rm "$run/strikes.jsonl"; fi
  # The agent has no list of nodes to leave out: it loses an excluded one at its first step, and takes the spare.
  if [ -n "$3" ]; then what='{kind: kill}'; else what=$slow; fi
  scenario "$next" "$what" >"$faults"
  setsid "$WINDTUNNEL" train "$run/watch.yaml" -o "$run" --faults "$faults" >>"$run/train.log" 2>&1 </dev/null &
  echo $! >"$run/watch.pid"
  ;;
sweep)
  sed 's/^max_duration: .*/max_duration: 12ba/; s/^device_train_microbatch_size: .*/device_train_microbatch_size: 1/; /^save/d' "$run/watch.yaml" >"$run/sweep.yaml"
  echo 'save: false' >>"$run/sweep.yaml"
  scenario 1 "$slow" >"$run/sweep-faults.yaml"
  rm -rf "$run/sweep"
  "$WINDTUNNEL" train "$run/sweep.yaml" -o "$run/sweep" --faults "$run/sweep-faults.yaml" >>"$run/train.log" 2>&1
  python3 "$here/fleet.py" "$run/sweep/timeline.json" >"$3"
  ;;
save | stop) "$here/../../../configs/watch/local.sh" "$action" "$run" ;;
*) exit 0 ;;
esac
