#!/usr/bin/env bash
# All methods on the coloured digits, embedded backbone, preset settings, three seeds.
# Usage: benchmarks/compare_cmnist.sh OUT [METHODS]. Killed, the same command goes on.
set -euo pipefail
exec d2cp compare cmnist --methods "${2:-all}" --out "$1" --seeds 3 --jobs 2 \
  --budget 24000 --selection val_true_groups --set test_limit=0 --set debias.evaluate_per_group=200
