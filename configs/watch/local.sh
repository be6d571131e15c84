#!/bin/sh
# Hooks of windtunnel watch for a run on this machine.
#   local.sh start RUN [RUN.yaml]   the run file, else RUN/watch.yaml; in the background
#   local.sh save RUN               SIGUSR1: saves and ends
#   local.sh stop RUN               SIGKILL: what is worth a save was saved before
#   local.sh sweep RUN OUTPUT       windtunnel health of this machine
#   local.sh cordon RUN NODE REASON, local.sh uncordon RUN NODE: a line of RUN/cordoned
# RUN/watch.pid is the agent's process, RUN/watch.yaml the run file that was given last. A layout-N.yaml, which the watch
# writes, is for its start alone, so that the run can go back. $WINDTUNNEL is the program; else it is found in PATH.
set -eu
action=$1 run=$2 windtunnel=${WINDTUNNEL:-windtunnel}

# A zombie that nobody waits for has ended.
runs() { [ -s "$run/watch.pid" ] && grep -qs '^State:.[^ZX]' "/proc/$(cat "$run/watch.pid")/status"; }
wait_for_end() { # SECONDS
  left=$1
  while runs; do
    [ "$left" -gt 0 ] || return 1
    sleep 1
    left=$((left - 1))
  done
}

case $action in
start)
  mkdir -p "$run"
  file=${3:-$run/watch.yaml}
  case $file in
  "$run"/layout-[0-9]*.yaml) ;;
  *)
    [ "$file" -ef "$run/watch.yaml" ] || cp "$file" "$run/watch.yaml"
    file=$run/watch.yaml
    ;;
  esac
  setsid "$windtunnel" train "$file" -o "$run" >>"$run/train.log" 2>&1 </dev/null &
  echo $! >"$run/watch.pid"
  sleep 1
  # A run file that is refused ends at once.
  runs || wait $!
  ;;
save)
  runs || exit 0
  kill -USR1 "$(cat "$run/watch.pid")"
  wait_for_end 240
  ;;
stop)
  runs || exit 0
  kill -KILL "-$(cat "$run/watch.pid")" # the agent and all of its session
  wait_for_end 60
  ;;
sweep) "$windtunnel" health --quick --storage "$run" -o "$3" || [ $? -eq 1 ] ;;
cordon) printf '%s\t%s\n' "$3" "$4" >>"$run/cordoned" ;;
uncordon)
  awk -F '\t' -v node="$3" '$1 != node' "$run/cordoned" >"$run/cordoned.new"
  mv "$run/cordoned.new" "$run/cordoned"
  ;;
*)
  echo "local.sh: found '$action', allowed start, save, stop, sweep, cordon, uncordon" >&2
  exit 2
  ;;
esac
