#!/usr/bin/env bash
# Makes .venv from requirements-dev.lock, with bucketq itself installed editable.
# `make` calls it only when pyproject.toml, the lock or this file changed. PYTHON names the interpreter.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/system.sh

PYTHON=${PYTHON:-python3}
LOCK=requirements-dev.lock
LOG=.venv/setup.log
export PIP_DISABLE_PIP_VERSION_CHECK=1

# pip's many words go to the log; a person sees one line a package.
pip_install() {
    local n=0
    .venv/bin/python -m pip install "$@" 2>&1 | tee -a "$LOG" | while read -r word what _; do
        if [ "$word" = Collecting ] || [ "$word" = Processing ]; then
            n=$((n + 1))
            what=$(basename "$what" | sed -E 's/(==|-)([0-9][^-; ]*).*/ \2/')
            say "  $n. $what"
        fi
    done || { tail -n 20 "$LOG" >&2; die "pip could not install; all it said is in $LOG"; }
}

command -v "$PYTHON" >/dev/null || die "$PYTHON is not here: install Python 3.11 or newer"
version=$("$PYTHON" -c 'import platform; print(platform.python_version())') || die "$PYTHON does not run"
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    die "$PYTHON is Python $version, and 3.11 or newer is needed: make setup PYTHON=/path/to/a/newer/python"
"$PYTHON" -c 'import ensurepip, venv' 2>/dev/null || install_package python3-venv "to make .venv" || exit 1

# What a part of the project needs beyond Python goes here, one line each:
#   need CMD PACKAGE WHY || say "skipped: WHAT"

if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    say "making .venv with Python $version"
    "$PYTHON" -m venv --clear .venv
fi
: >"$LOG"
say "installing what is not here yet of the $(grep -c == "$LOCK") packages in $LOCK"
pip_install -r "$LOCK"
say "installing bucketq, editable"
pip_install --no-deps --no-build-isolation --editable .
touch .venv/.installed
say "ready in $SECONDS s"
