# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The guest's file system: an initramfs of busybox, the programs to run and the shared
# libraries they need, and a list of commands. Sourced by guest.sh.
: "${arch:?}" "${work:?}" # x86_64 or arm64; the folder to keep things in

# Where the loader would look, after a program's own run path.
library_dirs() {
    case $arch in
    x86_64) printf '%s\n' /lib/x86_64-linux-gnu /usr/lib/x86_64-linux-gnu ;;
    arm64) printf '%s\n' "$work"/sysroot/lib/aarch64-linux-gnu \
        "$work"/sysroot/usr/lib/aarch64-linux-gnu /usr/aarch64-linux-gnu/lib ;;
    esac
}

# Paths out of a program's dynamic section, $ORIGIN resolved.
run_path() { # FILE
    readelf -d "$1" | sed -n 's/.*(R.*PATH).*\[\(.*\)\]/\1/p' | tr ':' '\n' |
        sed "s|\$ORIGIN|$(dirname "$1")|"
}

# copy_libraries ROOT FILE: what FILE is linked with, and what that is linked with, goes to
# ROOT/lib; the loader to where the program asks for it.
copy_libraries() {
    local root=$1 file=$2 loader name dir found
    loader=$(readelf -l "$file" 2>/dev/null | sed -n 's/.*program interpreter: \(.*\)\]/\1/p')
    for name in $(readelf -d "$file" 2>/dev/null | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
        if [[ -e $root/lib/$name ]]; then
            continue
        fi
        found=
        while IFS= read -r dir; do
            if [[ -e $dir/$name ]]; then
                found=$dir/$name
                break
            fi
        done < <(run_path "$file" && library_dirs)
        if [[ -z $found ]]; then
            echo "guest: $file needs $name, which is nowhere to be found" >&2
            return 1
        fi
        cp -L "$found" "$root/lib/$name"
        copy_libraries "$root" "$found"
    done
    if [[ -n $loader && ! -e $root$loader ]]; then
        mkdir -p "$root$(dirname "$loader")"
        while IFS= read -r dir; do
            if [[ -e $dir/${loader##*/} ]]; then
                cp -L "$dir/${loader##*/}" "$root$loader"
                return
            fi
        done < <(library_dirs)
        echo "guest: the loader $loader of $file is nowhere to be found" >&2
        return 1
    fi
}

# Programs go to /t, next to each other, as some look for a neighbour.
copy_program() { # ROOT FILE
    cp -L "$2" "$1/t/"
    copy_libraries "$1" "$2"
}

# make_image OUT INIT COMMANDS FILE...: COMMANDS has one command a line, for sh. Not compressed: this
# machine would compress it, and the guest, ten times as slow, expand it.
make_image() {
    local out=$1 init=$2 commands=$3 root=$work/root file
    shift 3
    rm -rf "$root"
    mkdir -p "$root"/{bin,dev,etc,lib,proc,sys,t,tmp,root}
    cp "$work/busybox/bin/busybox" "$root/bin/"
    ln -s busybox "$root/bin/sh"
    cp "$init" "$root/init"
    cp "$commands" "$root/t/commands"
    printf '%s\n' root:x:0:0:root:/root:/bin/sh nobody:x:65534:65534:nobody:/:/bin/sh \
        >"$root/etc/passwd"
    for file in "$@"; do
        copy_program "$root" "$file"
    done
    (cd "$root" && find . -print0 | cpio --quiet --null -o -H newc -R 0:0) >"$out"
}
