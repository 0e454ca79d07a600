# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: BSD-2-Clause
#
# ./dev deb, dist, html and roots: what is published, and fresh machines that try it. dev sources
# this.

# The Debian packages, from the files under version control as they are now: the source as
# Debian wants it, the packages, lintian's opinion. Nothing is fetched but by apt.
build_deb() {
    local dir=$here/build-deb version stamp source
    version=$(sed -n "s/^ *version: '\(.*\)',$/\1/p;T;q" "$here/meson.build")
    stamp=$(dpkg-parsechangelog -l "$here/packaging/debian/changelog" -S Timestamp)
    source=$dir/prcb-$version
    rm -rf "$dir"
    mkdir -p "$source"
    tracked '*' | tar -C "$here" -cf - --exclude='packaging/debian*' -T - | tar -C "$source" -xf -
    tar -C "$dir" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$stamp" \
        -cJf "$dir/prcb_$version.orig.tar.xz" "prcb-$version"
    cp -r "$here/packaging/debian" "$source/debian"
    (cd "$source" && DEB_BUILD_OPTIONS="parallel=$jobs ${DEB_BUILD_OPTIONS:-}" \
        dpkg-buildpackage -us -uc)
    echo "== lintian"
    # It closes no request for a package, for it goes to no archive.
    (cd "$dir" && lintian --allow-root --fail-on error --info \
        --suppress-tags initial-upload-closes-no-bugs ./*.changes)
    ls -l "$dir"/*.deb
}

# deb [--test]: builds the packages; --test installs those that were built into a clean Debian.
command_deb() {
    need "${packages_build[@]}" "${packages_test[@]}" "${packages_deb[@]}"
    if [[ $(uname -m) == x86_64 ]]; then need "${packages_wine[@]}"; fi
    case ${1:-} in
    '') build_deb ;;
    --test)
        if ! compgen -G "$here/build-deb/*.deb" >/dev/null; then build_deb; fi
        as_root "$here/tests/packaging/clean-root.sh" "$here/build-deb"
        ;;
    *)
        echo "dev deb: there is no option '$1', only --test" >&2
        return 2
        ;;
    esac
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
    echo "$dir/prcb-$version.tar.xz"
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

# roots [SUITE]...: README's commands and the check in fresh Debians, which are made for it.
command_roots() {
    need "${packages_roots[@]}"
    as_root "$here/tests/roots/roots.sh" "$here" "$@"
}
