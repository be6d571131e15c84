# Runs stages within one limit of time for all together; sourced by measure_gpu.sh.
#   stages_begin OUT SECONDS     the clock starts
#   stage NAME LIMIT COMMAND...  its output in OUT/log.NAME.txt, a line in OUT/summary.txt; ended after LIMIT seconds or when the
#                                time for all is up. The next stage runs in any case. With
#                                WINDTUNNEL_GPU_STAGES='NAME...' only these stages run
#   stages_failed                whether any failed
#   left_out NAME WHY            adds a line for a stage that is not run on purpose, which is no failure
# A stage is ended by SIGINT first: windtunnel bench then keeps what it has measured.

stages_begin() {
  stages_out=$1 stages_end=$((SECONDS + $2))
  : >"$stages_out/summary.txt"
}

stages_line() {  # NAME STATE SECONDS TEXT
  printf '%-12s %-12s %4d s  %s\n' "$1" "$2" "$3" "$4" | tee -a "$stages_out/summary.txt"
}

stages_failed() { grep -Eq '^[^ ]+ +(FAILED|TIMED OUT|NO TIME)' "$stages_out/summary.txt"; }
left_out() { stages_line "$1" 'left out' 0 "$2"; }

stage() {
  local name=$1 limit=$2 begin=$SECONDS left=$((stages_end - SECONDS)) status=0 state=ok log; shift 2
  log=$stages_out/log.$name.txt
  [[ -z ${WINDTUNNEL_GPU_STAGES:-} || " $WINDTUNNEL_GPU_STAGES " == *" $name "* ]] || return 0
  if ((left < 1)); then
    stages_line "$name" 'NO TIME' 0 'the time for all stages was up'
    return 0
  fi
  ((limit <= left)) || limit=$left
  timeout --signal=INT --kill-after=5 "$limit" "$@" >"$log" 2>&1 || status=$?
  case $status in
    0) ;;
    124 | 137) state='TIMED OUT' ;;
    *) state="FAILED ($status)" ;;
  esac
  stages_line "$name" "$state" $((SECONDS - begin)) "$(tail -n 1 "$log" | cut -c1-140)"
}
