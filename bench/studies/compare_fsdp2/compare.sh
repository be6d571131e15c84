#!/usr/bin/env bash
# bench/studies/compare_fsdp2/compare.sh [--pairs N] [--models moe dense] [--ranks 1 2 4] [-o FIGURES.json]: see README.md here.
# Uses the programs that ./windtunnel setup has built, and makes the Python environment where it is missing.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
root=$(dirname "$(dirname "$(dirname "$here")")")
build=${WINDTUNNEL_BUILD:-$root/build}
export WINDTUNNEL=$build/bin/windtunnel WINDTUNNEL_TRAIN=$build/bin/windtunnel-train
[[ -x $WINDTUNNEL_TRAIN ]] || { echo "$WINDTUNNEL_TRAIN is not built; run ./windtunnel setup" >&2; exit 2; }
libtorch=$(sed -n 's/^WT_LIBTORCH:[A-Z]*=//p' "$build/CMakeCache.txt")
"$root/cmake/python-environment.sh" make "$libtorch" >/dev/null
exec "$root/cmake/python-environment.sh" run "$libtorch" "$here/compare.py" "$@"
