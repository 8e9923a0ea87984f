# Sourced by the other scripts: how they speak, and how they get what the system lacks.

say() { printf '%s: %s\n' "$(basename "$0" .sh)" "$*"; }

die() {
    say "$*" >&2
    exit 1
}

# install_package PACKAGE WHY: from Debian's packages where that is allowed, else one line says what to install.
install_package() {
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        say "missing, $2: please install $1" >&2
        return 1
    fi
    say "installing the system package $1 ($2)"
    local said
    said=$({ apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q install --yes --no-install-recommends "$1"; } 2>&1) || {
        say "apt-get could not install $1 ($2): $(tail -n 1 <<<"$said")" >&2
        return 1
    }
}

# need CMD PACKAGE WHY: true once CMD can be run.
need() { command -v "$1" >/dev/null || install_package "$2" "$3"; }
