#!/usr/bin/env bash
# All methods on photographs with a background shortcut, over a pretrained ViT: frozen features for
# the methods that can use them, prompts for those that need pixels and for the first rows again.
# Usage: benchmarks/compare_photos.sh PHOTOS BACKBONE OUT. Killed, the same command goes on.
set -euo pipefail
photos=$1 backbone=$2 out=$3
size=(--preset photo-cpu --backbone "$backbone" --set debias.image_size=98 --set debias.resize=112
  --set 'debias.scheduler="step"' --set debias.scheduler_step=8 --seeds 3 --jobs 2)
d2cp compare "$photos" --out "$out/features" --tier features --budget 44000 --search 8 "${size[@]}"
mkdir -p "$out/prompts"
[ -e "$out/prompts/seeds" ] || cp -r "$out/features/seeds" "$out/prompts/seeds"  # the same concepts
d2cp compare "$photos" --out "$out/prompts" --methods erm,group_dro,resample,masktune,sas,d2cp \
  --budget 8800 "${size[@]}"
