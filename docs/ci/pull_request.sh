#!/usr/bin/env bash
# A/B of a pull or merge request: measures its base and this tree in turns, writes JUnit and a summary, and keeps one comment.
# Environment:
#   BASE           revision that the change goes into; measured is the commit that the change began at
#   GATE_BUILD     command that builds a tree (default: that of windtunnel gate run)
#   GATE_COMMAND   command that measures one (default: the same)
#   GATE_MINUTES   time to measure in (default 15)
#   GATE_OUT       folder for gate.json, gate.md, gate.xml and comment.md (default gate)
#   WINDTUNNEL     the program (default ./windtunnel)
set -euo pipefail

here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
out=${GATE_OUT:-gate}
base=${BASE:?is not set; set it to the revision that the change goes into}
base=$(git merge-base "$base" HEAD || echo "$base")
words=(gate run --base "$base" --new .
       --minutes "${GATE_MINUTES:-15}" -o "$out")
if [[ -n ${GATE_BUILD:-} ]]; then words+=(--build "$GATE_BUILD"); fi
if [[ -n ${GATE_COMMAND:-} ]]; then words+=(--command "$GATE_COMMAND"); fi

rm -f "$out"/gate.{json,md,xml} "$out/comment.md"
status=0
"${WINDTUNNEL:-./windtunnel}" "${words[@]}" || status=$?
if [[ -e $out/comment.md ]]; then  # it was measured
  if [[ -n ${GITHUB_STEP_SUMMARY:-} ]]; then cat "$out/gate.md" >>"$GITHUB_STEP_SUMMARY"; fi
  python3 "$here/comment.py" "$out/comment.md" || echo "pull_request.sh: the comment could not be kept" >&2
fi
exit "$status"
