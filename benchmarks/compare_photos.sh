#!/usr/bin/env bash
# All methods on photographs with a background shortcut, over a pretrained ViT at 98 px, three seeds.
# `features` (default): the methods that can use frozen features, settings searched on validation.
# `prompts`: ERM, Group DRO, D2CP and the methods that need pixels; slow without an accelerator.
# Usage: benchmarks/compare_photos.sh PHOTOS BACKBONE OUT [features|prompts [OPTIONS]]; OPTIONS go to
# `d2cp compare`. Killed, the same command goes on.
set -euo pipefail
shared=(--preset photo-cpu --backbone "$2" --seeds 3 --set debias.image_size=98
  --set debias.resize=112 --set 'debias.scheduler="step"' --set debias.scheduler_step=8)
if [ "${4:-features}" = prompts ]; then
  tier=(--methods erm,group_dro,masktune,sas,d2cp --budget 8800)
else
  tier=(--tier features --budget 44000 --search 8)
fi
exec d2cp compare "$1" --out "$3" "${tier[@]}" "${shared[@]}" "${@:5}"
