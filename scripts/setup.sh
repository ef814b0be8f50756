#!/usr/bin/env bash
# Makes .venv and installs the project with its locked dependencies. A second run starts at once.
#   bash scripts/setup.sh        what running needs
#   bash scripts/setup.sh dev    and what testing needs (any extra of pyproject.toml)
# PYTHON=/path/to/python chooses the interpreter that .venv is made from.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

extra=${1:-}
stamp=.venv/installed # "installing", or the digest of what is installed and its extras

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

digest=$({ pwd && cat pyproject.toml requirements.lock; } | cksum | tr ' ' '-')
installed='' extras=''
read -r installed extras 2> /dev/null < "$stamp" || true
if [[ -n $extra && ",$extras," != *",$extra,"* ]]; then
    extras=${extras:+$extras,}$extra
elif [ "$installed" = "$digest" ]; then
    exit 0
fi

if [ "$installed" = installing ]; then
    echo "The last installation did not finish: making .venv anew."
    rm -rf .venv
fi
if ! .venv/bin/python -m pip --version > /dev/null 2>&1; then
    python=$(find_python)
    echo "Making .venv with $("$python" --version)."
    rm -rf .venv
    mkdir .venv
    echo installing > "$stamp"
    "$python" -m venv .venv
fi

echo "Installing the packages of requirements.lock into .venv (some minutes, once)."
echo installing > "$stamp"
# What is imported is compiled then, and most of it never is.
.venv/bin/python -m pip install --quiet --quiet --disable-pip-version-check --no-compile \
    --constraint requirements.lock --editable ".${extras:+[$extras]}"
echo "$digest $extras" > "$stamp"
