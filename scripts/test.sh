#!/usr/bin/env bash
# Sets up the project and runs every check: style, types, tests.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

usage() {
    cat << 'END'
usage: bash scripts/test.sh [--all]

Sets up the project and runs every check: ruff, mypy, shellcheck, pytest.

  --all    also the tests that are slow, need a GPU, or attack the service; new random examples for properties

MT_TEST_CORPORA names a folder of real corpora; without it the tests that read them are skipped.
END
}

case "${1:-}" in
    "") selection=(-m "not slow and not gpu and not attack") ;;
    --all) selection=(--hypothesis-profile=new_examples) ;;
    -h | --help)
        usage
        exit 0
        ;;
    *)
        usage >&2
        exit 2
        ;;
esac
bash scripts/setup.sh dev || exit
unset PYTHONDONTWRITEBYTECODE # hundreds of test processes import torch, and each would compile it again

failed=()
check() {
    echo "== $*"
    if ! command -v "$1" > /dev/null; then
        echo "SKIPPED: $1 is not installed"
    elif ! "$@"; then
        failed+=("$*")
    fi
}

export PATH="$PWD/.venv/bin:$PATH"
check ruff check
check ruff format --check
check mypy --num-workers auto
check shellcheck scripts/*.sh .ci/run
check pytest -ra --numprocesses 3 --dist loadfile --no-loadscope-reorder "${selection[@]}"

if [ ${#failed[@]} -gt 0 ]; then
    printf '\nFAILED: %s\n' "${failed[@]}" >&2
    exit 1
fi
printf '\nEvery check passed.\n'
