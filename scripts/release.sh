#!/usr/bin/env bash
# Checks and builds a release: everything in dist/ comes from locked packages.
#   bash scripts/release.sh [VERB]
#
#   (none)   audit, pin, build
#   audit    compare the locked packages with the databases of known vulnerabilities (pip-audit)
#   pin      write the digest of the base image into the Dockerfile; fails if that changes it, so that it is committed
#   build    sdist and wheel in dist/, with SHA256SUMS
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
    sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' scripts/release.sh
}

tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT

install_tools() { # by hash, without a build environment of pip's own
    "${PYTHON:-python3.11}" -m venv "$tools"
    "$tools/bin/python" -m pip install --quiet --no-deps --require-hashes --only-binary :all: \
        --requirement requirements/release.lock
}

audit() { # torch-cpu.lock has the same torch, from an index that the databases do not know
    local name failed=0
    for name in service torch torch-cuda release; do
        echo "== requirements/$name.lock"
        "$tools/bin/pip-audit" --strict --disable-pip --require-hashes --requirement "requirements/$name.lock" || failed=1
    done
    [ $failed = 0 ] || {
        echo "The audit failed. For a known vulnerability: scripts/packaging/lock.py --upgrade, and test again." >&2
        return 1
    }
}

pin() {
    local before
    before=$(head -1 Dockerfile)
    bash scripts/image.sh pin
    [ "$before" = "$(head -1 Dockerfile)" ] || {
        echo "The base image has changed: build it (scripts/image.sh), commit Dockerfile, and run this again." >&2
        return 1
    }
}

build() {
    rm -rf dist
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) "$tools/bin/python" -m build --no-isolation
    (cd dist && sha256sum -- * > SHA256SUMS && cat SHA256SUMS)
}

verbs=(audit pin build)
case ${1:-} in
    "") ;;
    audit | pin | build) verbs=("$1") ;;
    -h | --help)
        usage
        exit 0
        ;;
    *)
        usage >&2
        exit 2
        ;;
esac
if [[ " ${verbs[*]} " == *" build "* && -n "$(git status --porcelain)" ]]; then # before the tools are installed
    echo "Files are not committed: a release is built from a commit." >&2
    git status --short >&2
    exit 1
fi
[ "${verbs[*]}" = pin ] || install_tools
for verb in "${verbs[@]}"; do "$verb"; done
