# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: BSD-2-Clause
#
# ./dev deb, dist, html and roots: what is published, and fresh machines that try it. dev sources
# this.

# One of the source packages, and its binary packages: all of the tree is in it, and the folder of packaging/ in
# place as debian/. What that lacks is packaging/debian's: the changelog, under its own name, and who wrote what.
build_source() { # NAME FOLDER [PROFILES]: of dpkg-buildpackage, with commas
    local dir=$here/build-deb name=$1 version=$version source file
    source=$dir/$name-$version
    ln -f "$dir/tree.tar.xz" "$dir/${name}_$version.orig.tar.xz"
    mkdir "$source"
    tar -C "$source" --strip-components=1 -xf "$dir/tree.tar.xz"
    cp -r "$here/packaging/$2" "$source/debian"
    for file in copyright source; do
        if [[ ! -e $source/debian/$file ]]; then cp -r "$here/packaging/debian/$file" "$source/debian/"; fi
    done
    sed "s/^prcb (/$name (/" "$here/packaging/debian/changelog" >"$source/debian/changelog"
    # One package for each version of PostgreSQL that this Debian has.
    if [[ -e $source/debian/control.in ]]; then (cd "$source" && pg_buildext updatecontrol); fi
    (cd "$source" && DEB_BUILD_OPTIONS="parallel=$jobs ${DEB_BUILD_OPTIONS:-}" \
        dpkg-buildpackage -us -uc ${3:+-P"$3"})
}

# The Debian packages, from the files under version control as they are now. Nothing is fetched but by apt.
build_deb() { # [PROFILES [SOURCE]...]: source packages that are not always made
    local dir=$here/build-deb version stamp more
    version=$(sed -n "s/^ *version: '\(.*\)',$/\1/p;T;q" "$here/meson.build")
    stamp=$(dpkg-parsechangelog -l "$here/packaging/debian/changelog" -S Timestamp)
    rm -rf "$dir"
    mkdir "$dir"
    tracked '*' | tar -C "$here" --exclude='packaging/debian*' --transform="s,^,prcb-$version/," \
        --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$stamp" -cJf "$dir/tree.tar.xz" -T -
    build_source prcb debian "${1:-}"
    build_source prcb-windows debian-windows "${1:-}"
    for more in "${@:2}"; do
        build_source "prcb-$more" "debian-$more" "$1"
    done
    rm "$dir/tree.tar.xz"
    ls -l "$dir"/*.deb
}

# All of them, with lintian's opinion.
build_deb_all() {
    need "${packages_build[@]}" "${packages_deb[@]}" "${packages_deb_test[@]}" postgresql-server-dev-all
    if [[ $(uname -m) == x86_64 ]]; then need "${packages_wine[@]}"; fi
    build_deb "" postgresql
    echo "== lintian"
    # It closes no request for a package, for it goes to no archive.
    (cd "$here/build-deb" && lintian --allow-root --fail-on error --info \
        --suppress-tags initial-upload-closes-no-bugs ./*.changes)
}

# deb [--all | --test]: builds the packages but prcb-wine, with what that needs alone; --all: all, and looks
# at them; --test installs those that were built into a clean Debian.
command_deb() {
    case ${1:-} in
    '')
        need "${packages_build[@]}" "${packages_deb[@]}"
        build_deb pkg.prcb.nowine
        ;;
    --all) build_deb_all ;;
    --test)
        need "${packages_deb_test[@]}"
        if ! compgen -G "$here/build-deb/*.deb" >/dev/null; then build_deb_all; fi
        as_root "$here/tests/packaging/clean-root.sh" "$here/build-deb"
        ;;
    *)
        echo "dev deb: there is no option '$1', only --all and --test" >&2
        return 2
        ;;
    esac
}

# RPM packages of the files under version control, by Debian's rpmbuild: the spec is linted, and built without a look
# at dependencies, which have other names here.
command_rpm() { # [--test]
    local version dir=$here/build-rpm
    if [[ ${1:-} == --test ]]; then
        if ! compgen -G "$dir/RPMS/*/*.rpm" >/dev/null; then command_rpm build; fi
        as_root "$here/tests/packaging/rpm.sh" "$dir/RPMS"
        return
    fi
    version=$(sed -n "s/^ *version: '\(.*\)',$/\1/p;T;q" "$here/meson.build")
    need "${packages_build[@]}" "${packages_deb[@]}" "${packages_rpm[@]}"
    rpmlint -r "$here/packaging/rpm/prcb.rpmlintrc" "$here/packaging/rpm/prcb.spec"
    rm -rf "$dir"
    mkdir -p "$dir/SOURCES"
    tracked '*' | tar -C "$here" --transform="s,^,prcb-$version/," -cJf "$dir/SOURCES/prcb-$version.tar.xz" -T -
    rpmbuild --nodeps -ba --define "_topdir $dir" --define "_smp_mflags -j$jobs" --define "debug_package %{nil}" \
        "$here/packaging/rpm/prcb.spec"
    find "$dir/RPMS" "$dir/SRPMS" -name '*.rpm' -exec ls -l {} +
}

# The source tarball, which must build and pass its tests from itself, outside any checkout.
command_dist() {
    local version dir=$here/build-dist tests=(--suite unit --suite layout --suite dump --suite docs)
    need "${packages_build[@]}" "${packages_test[@]}"
    version=$(sed -n "s/^ *version: '\(.*\)',$/\1/p;T;q" "$here/meson.build")
    if ! git -C "$here" -c safe.directory="$here" diff --quiet HEAD; then
        echo "dev dist: there are uncommitted changes: the tarball will not contain them" >&2
    fi
    build_main
    rm -rf "$dir"
    mkdir "$dir"
    meson dist -C "$here/build" --no-tests --formats xztar --allow-dirty
    mv "$here/build/meson-dist/prcb-$version".tar.xz* "$dir"
    tar -C "$dir" -xf "$dir/prcb-$version.tar.xz"
    meson setup "$(bpf_option)" -Dman=enabled -Dtests=enabled "$dir/build" "$dir/prcb-$version"
    ninja -C "$dir/build" -j "$jobs"
    meson test -C "$dir/build" --no-rebuild --num-processes "$jobs" --print-errorlogs "${tests[@]}"
    need "${packages_static[@]}"
    build_static
    put_static build-static "$dir/prcb-$version-linux-$(uname -m)"
    if [[ $(uname -m) == x86_64 ]]; then
        need "${packages_cross[@]}"
        build_static_arm64
        put_static build-static-arm64 "$dir/prcb-$version-linux-aarch64"
    fi
    ls -l "$dir/prcb-$version".tar.xz "$dir/prcb-$version"-linux-*
}

put_static() { # FOLDER FILE: with its sum beside it
    cp "$here/$1/out/prcb" "$2"
    (cd "${2%/*}" && sha256sum "${2##*/}" >"$2.sha256sum")
}

# prcb as one file that opens no library. Without what Debian has no static library for, or what a
# single file is no use without: prcb serve, prcbd, the exporter, the libraries.
static_options=(-Ddefault_library=static -Dprefer_static=true --buildtype=release -Dman=disabled -Dtests=disabled
    -Dbench=false -Dexamples=false -Dwine=disabled -Dpython=disabled -Dpmda=disabled -Dserve=disabled
    -Dpush=disabled -Dexporter=disabled)
static_libraries=(libsqlite3-dev libncurses-dev libpfm4-dev libiberty-dev libprotobuf-c-dev libzstd-dev libbz2-dev)

strip_static() { # FOLDER STRIP
    local out=$here/$1/out/prcb
    mkdir -p "$here/$1/out"
    "$2" -o "$out" "$here/$1/src/tools/cli/prcb"
    echo "$out: $(stat -c %s "$out") bytes, as xz $(xz -9 <"$out" | wc -c)"
}

build_static() {
    configure build-static "$(bpf_option)" -Dc_link_args=-static "${static_options[@]}"
    compile build-static src/tools/cli/prcb
    strip_static build-static strip
}

# By Debian's cross compiler, with libraries that are unpacked and not installed.
build_static_arm64() (
    arch=arm64 work=$here/build-guest/arm64-static
    mkdir -p "$work"
    # shellcheck source=tests/guest/packages.sh
    source "$here/tests/guest/packages.sh"
    fetch_sysroot "${static_libraries[@]}"
    # As a part of the compiler's name the folder is looked through for libraries that pkg-config does not know.
    printf "[constants]\nsysroot = '%s'\n[binaries]\nc = ['aarch64-linux-gnu-gcc', '-B%s']\n" "$work/sysroot" \
        "$work/sysroot/usr/lib/aarch64-linux-gnu" >"$work/sysroot.cross"
    configure build-static-arm64 -Dbpf=enabled "${static_options[@]}" -Dc_link_args=-static \
        "-Dc_args=-idirafter$work/sysroot/usr/include" \
        --cross-file "$here/tests/guest/arm64.cross" --cross-file "$work/sysroot.cross"
    compile build-static-arm64 src/tools/cli/prcb
    strip_static build-static-arm64 aarch64-linux-gnu-strip
)

# The other machine's file, in an emulated one: what it prints is looked at, for commands end with 0 in vain.
try_static_arm64() {
    local out
    out=$("$here/tests/guest/guest.sh" -t 300 -f "$here/build-static-arm64/out/prcb" arm64 -- prcb --version \
        --- prcb stat -- sleep 0.1 --- sh -c 'sleep 100 & prcb why -p $! --for 0.5; kill $!' --- prcb doctor)
    printf '%s\n' "$out"
    for word in '^prcb [0-9]' '^sleep .*[0-9]' 'has been in sleep' '^thread-programs +present'; do
        grep -qE -- "$word" <<<"$out" || {
            echo "dev static: arm64: no line '$word'" >&2
            return 1
        }
    done
}

# Debian 11's kernel has no room for eBPF: what is left there, and why, is looked at in an emulated machine.
try_static_debian11() {
    local out word
    out=$("$here/tests/guest/guest.sh" -t 200 -p 2 -v debian11 x86_64 -- "$here/build-static/out/prcb" --version \
        --- sh -c 'prcb doctor || true' --- prcb stat -- sleep 0.1 --- prcb top -b -n 1 -d 0.2 --- prcb cpu 0.2 1 \
        --- sh -c 'sleep 100 & prcb why -p $! --for 0.5; kill $!' \
        --- sh -c 'prcb record -a --for 0.2 -o /tmp/r.db; prcb report /tmp/r.db') || {
        printf '%s\n' "$out"
        return 1
    }
    for word in '^tier: perf: Linux 5\.10\..* is too old for the eBPF programs: it has no ' '^sleep .*ms' 'tier perf' \
        '^2 processors.*perf tier' 'has been in wait' ' samples of cpu-clock'; do
        grep -qE -- "$word" <<<"$out" || {
            printf '%s\n' "$out"
            echo "dev static: Debian 11's kernel: no line '$word'" >&2
            return 1
        }
    done
    echo "ok - Debian 11's kernel: $(sed -n 's/^tier: perf: \(Linux [^ ]*\).*/\1/p' <<<"$out"), perf tier"
}

# static [arm64] [--test]: builds it; --test tries it in roots that have nothing for it, or in a guest.
command_static() {
    local arch=
    if [[ ${1:-} == arm64 ]]; then
        arch=arm64
        need "${packages_cross[@]}"
        shift
    fi
    need "${packages_build[@]}" "${packages_static[@]}"
    case ${1:-}$arch in
    '') build_static ;;
    arm64) build_static_arm64 ;;
    --test)
        need "${packages_roots[@]}"
        build_static
        as_root "$here/tests/packaging/static.sh" "$here/build-static/out/prcb"
        if [[ $(uname -m) == x86_64 ]]; then
            need "${packages_guest[@]}"
            try_static_debian11
        fi
        ;;
    --testarm64)
        need "${packages_guest[@]}"
        build_static_arm64
        try_static_arm64
        ;;
    *)
        echo "dev static: there is no option '$1', only arm64 and --test" >&2
        return 2
        ;;
    esac
}

# A container image of prcbd, the exporter and prcb, and what they are linked with, of a release build.
command_image() { # [NAME:TAG]
    local version
    version=$(sed -n "s/^ *version: '\(.*\)',$/\1/p;T;q" "$here/meson.build")
    need "${packages_build[@]}" "${packages_deb[@]}" binutils
    configure build-image "$(bpf_option)" --buildtype=release -Dexporter=enabled -Dman=disabled -Dtests=disabled \
        -Dbench=false -Dexamples=false -Dwine=disabled -Dpython=disabled -Dpmda=disabled -Dpush=disabled
    compile build-image src/tools/cli/prcb src/services/daemon/prcbd src/services/exporter/prcb-exporter
    "$here/tools/image.py" "$here/build-image" "$here/build-image/prcb-$version-image-$(uname -m).tar" "${1:-prcb:$version}"
}

# The manual pages as HTML, with links between them.
command_html() {
    local dir=$here/build-html page name links=
    need "${packages_build[@]}" "${packages_html[@]}"
    build_main programs
    rm -rf "$dir"
    mkdir "$dir"
    for page in "$here"/build/man/*.[1-8]; do
        name=${page##*/}
        links+="s|<b>${name%.*}</b>(${name##*.})|<a href=\"$name.html\">&</a>|g;"
    done
    {
        printf '<!DOCTYPE html>\n<meta charset="utf-8">\n<title>prcb manual pages</title>\n<ul>\n'
        for page in "$here"/build/man/*.[1-8]; do
            name=${page##*/}
            mandoc -T html "$page" | sed "$links" >"$dir/$name.html"
            printf '<li><a href="%s.html">%s</a>\n' "$name" "$name"
        done
        printf '</ul>\n'
    } >"$dir/index.html"
    echo "$dir/index.html"
}

# roots [SUITE]...: README's commands and the check in fresh Debians, which are made for it; "static" is the static file
# in the userlands of Debian 11, 12 and 13, in BusyBox's, and in an empty root; "first" is from nothing to the first
# `prcb why` by that file, by packages and by a checkout.
command_roots() {
    if [[ ${1:-} == static ]]; then
        command_static --test
        return
    fi
    need "${packages_roots[@]}"
    if [[ ${1:-} == first ]]; then
        if [[ $# -lt 3 || " $* " == *" static_file "* ]]; then command_static; fi
        as_root "$here/tests/roots/first.sh" "$here" "${@:2}"
        return
    fi
    as_root "$here/tests/roots/roots.sh" "$here" "$@"
}
