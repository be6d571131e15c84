#!/usr/bin/env bash
# The batch script of docs/train.md, with stand-ins for Slurm's commands: which exit statuses are queued again, and that a
# notice reaches the ranks. slurm_script_test.sh needs no build.
set -euo pipefail

root=$(dirname "$(dirname "$(dirname "$(readlink -f "$0")")")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

sed -n '/^#!\/bin\/bash$/,/^```$/p' "$root/docs/train.md" | grep -v '^```$' >"$work/job.sh"
grep -q '^srun ' "$work/job.sh" || { echo "docs/train.md has no batch script"; exit 1; }

mkdir "$work/bin"
cat >"$work/bin/srun" <<'STUB'
#!/usr/bin/env bash
trap 'exit 75' USR1
echo $$ >"$WORK/srun.pid"
[[ $STATUS == wait ]] || exit "$STATUS"
while :; do sleep 0.05; done
STUB
printf '#!/usr/bin/env bash\necho "$*" >>"$WORK/scancel"\nkill -USR1 "$(cat "$WORK/srun.pid")"\n' >"$work/bin/scancel"
printf '#!/usr/bin/env bash\nif [[ $1 == show ]]; then echo node-1; echo node-2; else echo "$*" >>"$WORK/scontrol"; fi\n' >"$work/bin/scontrol"
chmod +x "$work"/bin/*
export WORK=$work PATH=$work/bin:$PATH SLURM_JOB_ID=7 SLURM_JOB_NODELIST='node-[1-2]'

check() {  # check WHAT FOUND EXPECTED
  [[ $2 == "$3" ]] || { echo "$1: found '$2', expected '$3'"; exit 1; }
}
requeued() { cat "$work/scontrol" 2>/dev/null || true; rm -f "$work/scontrol"; }

for status in 0 2 93; do
  ended=0; STATUS=$status bash "$work/job.sh" || ended=$?
  check "status $status of the ranks, of the job" "$ended" "$status"
  check "status $status of the ranks, queued again" "$(requeued)" ""
done
for status in 1 4 75 137; do
  STATUS=$status bash "$work/job.sh"
  check "status $status of the ranks, queued again" "$(requeued)" "requeue 7"
done

STATUS=wait bash "$work/job.sh" &
job=$!
until [[ -s $work/srun.pid ]] && kill -0 "$(cat "$work/srun.pid")" 2>/dev/null; do sleep 0.05; done
sleep 0.2  # the trap is set after srun is started
kill -USR1 "$job"
wait "$job"
check "a notice, to the ranks" "$(cat "$work/scancel")" "--signal=USR1 7.0"
check "a notice, queued again" "$(requeued)" "requeue 7"
