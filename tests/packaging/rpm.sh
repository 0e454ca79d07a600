#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# RPM packages in a root that holds a shell and ldconfig alone: installed with their scripts, compared with what
# Debian's packages hold, run there, put over themselves with a changed configuration, removed.
#     rpm.sh FOLDER-WITH-RPMS     (./dev rpm --test; as root)
# shellcheck disable=SC2317 # functions are called by name, through check
set -euo pipefail

mapfile -t packages < <(find "$(cd "$1" && pwd)" -name '*.rpm' ! -name '*.src.rpm' | sort)
here=$(cd "$(dirname "$0")/../.." && pwd)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
failed=0

check() { # WHAT COMMAND...
    local what=$1
    shift
    if "$@" >"$root/said" 2>&1; then
        echo "ok - $what"
    else
        echo "not ok - $what"
        sed 's/^/#   /' "$root/said"
        failed=1
    fi
}

# Copies programs with the libraries that the machine's loader finds for them.
bring() { # PROGRAM...
    local file
    while read -r file; do
        [[ $file == "$root"/* ]] || install -D "$file" "$root$file"
    done < <(printf '%s\n' "$@"
             LD_LIBRARY_PATH=$root/usr/lib:$root/usr/lib64 ldd "$@" | grep -o '/[^ :()]*' | sort -u)
}

in_rpm() {
    rpm --root "$root" "$@" 2> >(grep -v -e 'should not be used directly' -e 'knows what you are doing' -e 'However assuming' >&2)
}

# Each file of Debian's packages, as this root has it; what no RPM package holds is left out.
files_of_debian() {
    local pattern
    while read -r pattern _; do
        # shellcheck disable=SC2016 # debhelper's words
        pattern=${pattern/'${env:UNITS}'/usr/lib/systemd/system}
        pattern=${pattern/'usr/lib/*/'/usr/lib*/}
        case $pattern in *pcp* | *pmdaprcb* | *dist-packages* | *wine* | */prcb-windows | '#'* | '') continue ;; esac
        compgen -G "$root/$pattern" >/dev/null || compgen -G "$root/$pattern.gz" >/dev/null || echo "$pattern"
    done < <(cat "$here"/packaging/debian/*.install "$here"/packaging/debian-windows/*.install)
}

nothing() { # COMMAND...: says nothing
    local said
    said=$("$@")
    [[ -z $said ]] || { echo "$said"; return 1; }
}

left() { # what is left of the packages: neither the shell nor rpm's own
    (cd "$root" && find etc usr -name '*prcb*' 2>/dev/null | sort)
}

mkdir -p "$root/usr/bin" "$root/usr/sbin" "$root/usr/lib" "$root/usr/lib64" "$root/etc" "$root/tmp"
for folder in bin sbin lib lib64; do ln -s "usr/$folder" "$root/$folder"; done
bring /bin/sh /sbin/ldconfig
printf '%s\n' /usr/lib64 >"$root/etc/ld.so.conf" # where the loader of distributions with RPM looks by itself
in_rpm --initdb
check "they install, with their scripts" in_rpm -i --nodeps "${packages[@]}"
check "the database holds each" test "$(in_rpm -qa | wc -l)" = "${#packages[@]}"
check "files are as packed" in_rpm -Va --nodeps
check "they hold what Debian's packages hold" nothing files_of_debian
bring "$root"/usr/bin/prcb "$root"/usr/sbin/prcbd "$root"/usr/sbin/prcb-exporter
for program in prcb prcbd prcb-exporter; do
    check "$program runs there" chroot "$root" "$program" --version
done
echo '# mine' >>"$root/etc/prcb/prcbd.conf"
check "they go over themselves" in_rpm -U --replacepkgs --nodeps "${packages[@]}"
check "a changed configuration stays" grep -q '^# mine' "$root/etc/prcb/prcbd.conf"
mapfile -t names < <(in_rpm -qa)
check "they are removed" in_rpm -e --nodeps "${names[@]}"
check "the changed configuration is kept aside" rm "$root/etc/prcb/prcbd.conf.rpmsave"
rmdir "$root/etc/prcb"
check "and nothing of them stays" nothing left
exit "$failed"
