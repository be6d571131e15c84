#!/usr/bin/env bash
# Prints how long the first batch of MPT-30B's 488,894 shards takes in every order. About ten minutes, 20 GB for naive.
# Usage: bench/studies/streaming_start/run.sh [BUILD]
set -euo pipefail
program=${1:-build}/bin/streaming_start
for algorithm in none py1e py1br py1s py2s naive; do
  "$program" "$algorithm" whole
done
for nodes in 1 64; do "$program" py1e proportions 488894 "$nodes"; done
