#!/usr/bin/env bash
# ./windtunnel says what it waits for while another call builds, and goes on waiting.
set -euo pipefail
root=$(dirname "$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
exec 7>"$work/.windtunnel.lock"
flock 7
WINDTUNNEL_BUILD=$work "$root/windtunnel" --version 2>"$work/said" 7>&- &
waiting=$!
for ((i = 0; i < 600; ++i)); do  # at most a minute
  grep -q "waiting for another ./windtunnel that builds in $work" "$work/said" && break
  sleep 0.1
done
kill "$waiting" || { echo "it did not go on waiting; it said:"; cat "$work/said"; exit 1; }
wait "$waiting" || true
[[ $i -lt 600 ]] || { echo "nothing was said of the lock; found:"; cat "$work/said"; exit 1; }
