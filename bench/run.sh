#!/usr/bin/env bash
# Runs every bench and writes bench/RESULTS.md; exit 1 when a bar was missed. Options go to each:
#   bench/run.sh --runs 3 --dir /var/tmp
set -uo pipefail
cd "$(dirname "$0")/.."

status=0
for name in scale weights extract torch_side_by_side; do
    python3 "bench/$name.py" --save "$@" || status=1
done
exit $status
