#!/usr/bin/env bash
# History on the main branch: measures the tree that is checked out and adds it to the history, a branch of its own.
# Environment:
#   GATE_BUILD       command that builds the tree (default: builds windtunnel and its trainer)
#   GATE_COMMAND     command that writes a profile to the file {output}, or prints one (default: windtunnel bench kernels)
#   GATE_PROCESSES   processes that measure (default 5)
#   GATE_BRANCH      branch of the history at origin (default gate-history)
#   GATE_OUT         folder for history.html and history.md (default gate)
#   WINDTUNNEL       the program (default ./windtunnel)
set -euo pipefail

program=${WINDTUNNEL:-./windtunnel}
branch=${GATE_BRANCH:-gate-history}
out=${GATE_OUT:-gate}
command=${GATE_COMMAND:-build/bin/windtunnel bench kernels --quick -o {output\}}
commit=$(git rev-parse HEAD)
work=$(mktemp -d)
trap 'git worktree remove --force "$work/history" 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir -p "$work/profiles" "$out"

bash -c "${GATE_BUILD:-WINDTUNNEL_TRAINER=1 ./windtunnel --help >/dev/null}"
windtunnel=$(command -v "$program") || { echo "history.sh: there is no program $program" >&2; exit 2; }
windtunnel=$(readlink -f "$windtunnel")
for process in $(seq "${GATE_PROCESSES:-5}"); do
  profile=$work/profiles/$process.json
  if [[ $command == *"{output}"* ]]; then bash -c "${command//\{output\}/"$profile"}"; else bash -c "$command" >"$profile"; fi
done

mine=(-c user.name=windtunnel -c user.email=windtunnel@localhost)
history() { git -C "$work/history" "${mine[@]}" "$@"; }
if git fetch --quiet origin "$branch" 2>/dev/null; then
  first=$(git rev-parse FETCH_HEAD)
else
  first=$(git "${mine[@]}" commit-tree -m "An empty history" "$(git hash-object -t tree -w /dev/null)")
fi
git worktree add --quiet --detach "$work/history" "$first"
# Another host may push first: then ours is added to what it left. A record that is there already is not added twice.
# Status 1 is a new change for the worse: it is pushed like any other, and this script ends with it.
for attempt in 1 2 3 4 5; do
  found=0
  "$windtunnel" gate record "$work/profiles" --history "$work/history" --commit "$commit" | tee "$work/news" || found=${PIPESTATUS[0]}
  if [[ $found -gt 1 ]]; then exit "$found"; fi
  history add -A
  history commit --quiet --allow-empty -m "Timings of ${commit:0:12}"
  if history push --quiet origin "HEAD:refs/heads/$branch"; then break; fi
  if [[ $attempt -eq 5 ]]; then echo "history.sh: $branch could not be pushed" >&2; exit 4; fi
  history fetch --quiet origin "$branch"
  history reset --quiet --hard FETCH_HEAD
done

status=0
{
  printf '```\n%s\n```\n\n' "$(<"$work/news")"  # what is new; the history knows it by now
  "$windtunnel" gate history "$work/history" --markdown -o "$out/history.html" || status=$?
} >"$out/history.md"
if [[ -n ${GITHUB_STEP_SUMMARY:-} ]]; then cat "$out/history.md" >>"$GITHUB_STEP_SUMMARY"; fi
if [[ $status -ne 0 ]]; then exit "$status"; fi
exit "$found"
