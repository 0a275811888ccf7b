#!/usr/bin/env bash
# Makes the release of the last commit twice and compares the checksums. The two have
# neither folder, build cache, time zone nor file permissions in common.
set -euo pipefail
version=$(git describe --tags --always)
epoch=$(git log -1 --format=%ct)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# once NAME ZONE UMASK makes it in a folder of that name.
once() {
  mkdir -p "$dir/$1/source"
  (
    umask "$3"
    git archive HEAD | tar x --no-same-permissions -C "$dir/$1/source"
    TZ=$2 GOCACHE="$dir/$1/cache" make --no-print-directory -C "$dir/$1/source" release \
      GO="${GO:-go}" TOOLS="$TOOLS" VERSION="$version" EPOCH="$epoch" RELEASE="$dir/$1/out"
  )
}
once one UTC 022
once a-second-one Pacific/Auckland 077

(cd "$dir/one/out" && sha256sum --quiet -c SHA256SUMS)
if ! diff "$dir/one/out/SHA256SUMS" "$dir/a-second-one/out/SHA256SUMS"; then
  echo "two releases of $version differ" >&2
  exit 1
fi
echo "two releases of $version are the same:"
cat "$dir/one/out/SHA256SUMS"
