#!/bin/sh
# Prints the digests of compose.yaml's present images for .env. Docker then uses these builds until the lines are
# replaced: sh deploy/pin_images.sh >> .env
set -eu
cd "$(dirname "$0")/.."

sed -n 's/.*\${\([A-Z]*_IMAGE\):-\([^}]*\)}.*/\1 \2/p' compose.yaml | while read -r variable image; do
    digest=$(docker buildx imagetools inspect "$image" --format '{{.Manifest.Digest}}')
    case $digest in
        sha256:*) echo "$variable=$image@$digest" ;;
        *) echo "Error: $image has no digest that Docker tells." >&2 && exit 1 ;;
    esac
done
