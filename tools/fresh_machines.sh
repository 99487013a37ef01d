#!/usr/bin/env bash
# Run `make test` and `make demo` on fresh machines, in a clone of the last commit.
#
# Usage: tools/fresh_machines.sh [bookworm|trixie|sid]...
#
# Each machine is a folder of build/machines with Debian's packages, made by debootstrap from the mirror
# that apt uses. pip gets its variables and certificates from the environment. All mounts are in their own
# namespace, so that none remains if the script is killed.
set -euo pipefail
cd "$(dirname "$0")/.."

# Machine, Python, user, folder of the clone, mode of this folder, umask.
MACHINES="\
bookworm 3.11 root /root 700 022
trixie   3.13 root /srv  755 022
sid      3.14 user /home/user 700 077"

skip() { echo "SKIPPED: fresh machines need $*"; exit 0; }

if [ "${1:-}" != --run ]; then
    [ "$(id -u)" = 0 ] || skip "root"
    command -v debootstrap >/dev/null || skip "debootstrap"
    unshare --mount --pid --fork --kill-child true || skip "namespaces"
    [ $# -gt 0 ] || set -- bookworm trixie sid
    for name in "$@"; do
        unshare --mount --pid --fork --kill-child bash "$PWD/tools/fresh_machines.sh" --run "$name"
    done
    exit
fi

read -r name version user home mode umask < <(grep "^$2 " <<<"$MACHINES")
root=$PWD/build/machines/$name
printf '\n== %s: Python %s, %s, umask %s\n' "$name" "$version" "$user" "$umask"

if [ ! -e "$root.made" ]; then
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Label: Debian' 'Component: main' | sort -u)
    rm -rf "$root"
    mkdir -p "$root"
    # shellcheck disable=SC2086 # without a configured mirror, there is no argument
    debootstrap --variant=minbase --include=python3,python3-venv,make,git "$name" "$root" ${mirror%%$'\n'*} \
        >"$root.log" || { tail -20 "$root.log"; exit 1; }
    [ "$user" = root ] || chroot "$root" useradd --home-dir "$home" "$user"
    touch "$root.made"
fi
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mkdir -p build/machines/pip "$root/var/cache/pip"
chmod -R a+rwX build/machines/pip
mount --bind build/machines/pip "$root/var/cache/pip"
cp -L /etc/resolv.conf /etc/hosts "$root/etc/"

settings=(PIP_CACHE_DIR=/var/cache/pip)
while IFS='=' read -r key value; do
    settings+=("$key=$value")
    [ ! -f "$value" ] || install -D -m 644 "$value" "$root$value"
done < <(env | grep -E '^(PIP_(CERT|CLIENT_CERT|INDEX_URL|EXTRA_INDEX_URL|TRUSTED_HOST|PROXY|DEFAULT_TIMEOUT)|SSL_CERT_FILE|https?_proxy|no_proxy)=')

rm -rf "${root:?}$home/cudaredist"
install -d -m "$mode" "$root$home"
git clone -q "file://$PWD" "$root$home/cudaredist"
chroot "$root" chown -R "$user:" "$home"
chroot --userspec="$user" "$root" env -i "${settings[@]}" HOME="$home" PATH=/usr/bin:/bin sh -euc "
    umask $umask
    cd $home/cudaredist
    python3 --version | grep -F ' $version.'
    make setup
    make test
    make demo >/dev/null"
