#!/usr/bin/env bash
# Builds the image without a registry of images: its base is made of Debian's packages by mmdebstrap, and buildah builds
# it as root without a daemon. In a checkout: bash docs/container/build.sh TAG
set -euo pipefail
cd "$(dirname "$0")/../.."
tag=${1:-construct-messages}
suite=${SUITE:-bookworm}
export BUILDAH_ISOLATION=${BUILDAH_ISOLATION:-chroot} STORAGE_DRIVER=${STORAGE_DRIVER:-vfs}

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
base=localhost/python-$suite
if ! buildah inspect --type image "$base" >/dev/null 2>&1; then
  # the mirrors of this machine, where it has some
  mmdebstrap --quiet --variant=minbase --include=ca-certificates,python3 \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' "$suite" "$place/base.tar"
  container=$(buildah from scratch)
  buildah add --quiet "$container" "$place/base.tar" / >/dev/null
  buildah commit --quiet --rm "$container" "$base" >/dev/null
fi
# machines whose packages come over a proxy have its certificate
trusted=/etc/ssl/certs/ca-certificates.crt
buildah build --quiet --format docker --network host --build-arg BASE="$base" --tag "$tag" \
  --volume "$trusted:$trusted:ro" --file docs/container/Containerfile .
