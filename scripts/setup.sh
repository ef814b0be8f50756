#!/usr/bin/env bash
# Creates .venv and installs the project with its locked dependencies. A second run returns at once.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
    cat << 'END'
usage: bash scripts/setup.sh [EXTRA]

Creates .venv and installs mt-service in it, with the package versions of requirements/development.lock.
A second run returns at once. The extra `training` (plots, TensorBoard) is always installed.

  EXTRA    one more extra of pyproject.toml:
           interop   export of models to other toolkits
           corpora   download of the corpora of mtdata
           ray       several machines
           dev       everything that the tests need

  PYTHON=/path/to/python bash scripts/setup.sh    selects the Python interpreter (3.11 or newer)
END
}

case "${1:-}" in
    -h | --help)
        usage
        exit 0
        ;;
    -*)
        usage >&2
        exit 2
        ;;
esac
stamp=.venv/installed # holds "installing", or the digest of the installed versions and the extras

find_python() {
    local candidate candidates=(python3.11 python3.12 python3 python)
    if [ -n "${PYTHON:-}" ]; then
        candidates=("$PYTHON")
    fi
    for candidate in "${candidates[@]}"; do
        if "$candidate" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' > /dev/null 2>&1; then
            echo "$candidate"
            return
        fi
    done
    echo "No Python 3.11 or newer with venv and pip was found (tried: ${candidates[*]})." >&2
    echo "Install one, or name it: PYTHON=/path/to/python bash scripts/setup.sh" >&2
    return 1
}

digest=$({ pwd && cat pyproject.toml requirements/development.lock; } | cksum | tr ' ' '-')
installed='' extras=''
read -r installed extras 2> /dev/null < "$stamp" || true
complete=yes
for extra in training ${1:+"$1"}; do
    if [[ ",$extras," != *",$extra,"* ]]; then
        extras=${extras:+$extras,}$extra complete=no
    fi
done
if [ "$complete" = yes ] && [ "$installed" = "$digest" ]; then
    exit 0
fi

if [ "$installed" = installing ]; then
    echo "The last installation did not finish: creating .venv again."
    rm -rf .venv
elif [ -f .venv/bin/activate ] && ! grep -qF "$PWD/.venv" .venv/bin/activate; then
    echo "This checkout was moved: creating .venv again, because its programs name the old folder."
    rm -rf .venv
fi
if ! .venv/bin/python -m pip --version > /dev/null 2>&1; then
    python=$(find_python)
    echo "Creating .venv with $("$python" --version)."
    rm -rf .venv
    mkdir .venv
    echo installing > "$stamp"
    "$python" -m venv .venv
fi

echo "Installing the packages of requirements/development.lock into .venv (several minutes, once)."
echo installing > "$stamp"
# Versions without hashes: pip checks the hashes of all packages or of none, but the checkout has no hash, and the pip
# settings of this machine choose the build of torch. The image and the release tools are installed with hashes.
# --no-compile: Python compiles a module when it is first imported, and most modules are never imported.
.venv/bin/python -m pip install --quiet --quiet --disable-pip-version-check --no-compile \
    --constraint requirements/development.lock --editable ".[$extras]"
echo "$digest $extras" > "$stamp"
echo "Installed. Next: source .venv/bin/activate && mt-service --help"
