#!/usr/bin/env bash
# Runs the core tests, shortly, on the supported Pythons that .venv is not: those that are installed.
# An environment for each is kept in .venv-VERSION. COMPAT names other versions.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/system.sh

VERSIONS=${COMPAT:-3.11 3.12 3.13}
FOLDERS="tests/queue tests/store tests/conformance tests/client"
export PIP_DISABLE_PIP_VERSION_CHECK=1 HYPOTHESIS_PROFILE=quick

# Prints how to run Python $1. A command of that name may be only pyenv's stand-in for a version not switched on.
find_python() {
    local name=python$1 installed
    if "$name" -c '' 2>/dev/null; then
        command -v "$name"
    elif command -v pyenv >/dev/null; then
        installed=$(pyenv versions --bare | grep "^${1//./\\.}\.[0-9]*$" | sort -V | tail -n 1)
        [ -n "$installed" ] && echo "$(pyenv prefix "$installed")/bin/python"
    else
        return 1
    fi
}

# prepare VERSION PYTHON: .venv-VERSION as pyproject.toml and the lock want it; false if that cannot be had.
prepare() {
    local venv=.venv-$1 stamp=.venv-$1/.installed
    if [ "$stamp" -nt pyproject.toml ] && [ "$stamp" -nt requirements-dev.lock ]; then return; fi
    say "Python $1: making $venv"
    "$2" -m venv --clear "$venv" || return
    "$venv/bin/python" -m pip install --quiet --only-binary :all: --constraint requirements-dev.lock --editable '.[test]' \
        >"$venv/setup.log" 2>&1 || {
        say "Python $1: skipped, not every package is to be had for it: $(grep -m 1 ERROR "$venv/setup.log")"
        return 1
    }
    touch "$stamp"
}

current=$(.venv/bin/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
folders=$(ls -d $FOLDERS 2>/dev/null || true)
[ -n "$folders" ] || { say "skipped, there are no core tests"; exit; }
for version in $VERSIONS; do
    [ "$version" != "$current" ] || continue
    python=$(find_python "$version") || { say "Python $version: skipped, not installed"; continue; }
    prepare "$version" "$python" || continue
    say "Python $version: core tests"
    ".venv-$version/bin/python" -m pytest -q -n auto --dist worksteal -p no:cacheprovider -m "not long" $folders
done
