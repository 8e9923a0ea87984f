#!/usr/bin/env bash
# Writes requirements-dev.lock: exact versions of the core and of the dev extra, for every system and every Python
# from 3.11 on. Versions in it are kept where they still fit; UPGRADE=1 takes the newest of each.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/system.sh

LOCK=requirements-dev.lock
export PIP_DISABLE_PIP_VERSION_CHECK=1

[ -x .venv-lock/bin/uv ] || {
    say "making .venv-lock, with uv in it"
    "${PYTHON:-python3}" -m venv --clear .venv-lock
    .venv-lock/bin/python -m pip install --quiet uv
}
say "resolving"
.venv-lock/bin/uv pip compile --quiet --universal --python-version 3.11 --extra dev --no-emit-package bucketq \
    --no-header --no-annotate --no-emit-index-url --no-emit-find-links ${UPGRADE:+--upgrade} \
    pyproject.toml --output-file "$LOCK"
# An address would tie the lock to one place to download from.
! grep -nE '://|^-' "$LOCK" || die "$LOCK names a place to download from"
say "$LOCK holds $(grep -c == "$LOCK") packages"
