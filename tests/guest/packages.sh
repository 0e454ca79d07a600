# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
#
# What a guest is made of, from Debian's archive: kernel, busybox, and for a foreign
# architecture the libraries to build against. Packages are downloaded and unpacked
# under $work, never installed, so nothing can conflict with the host's. What is there
# already is not fetched again, but for a kernel of which the archive has a newer one. Functions return non-zero at the first step that fails, also
# where the shell does not stop for it. Sourced by guest.sh, build.sh and check.sh.
: "${arch:?}" "${work:?}" # x86_64 or arm64; the folder to keep things in

deb_arch() {
    case $1 in
    x86_64) echo amd64 ;;
    *) echo "$1" ;;
    esac
}

# Where the programs for the guest are built: with this machine's own where it is alike.
build_folder() {
    local root
    root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
    if [[ -n ${GUEST_CLANG:-} ]]; then
        echo "$root/build-guest/$arch-$GUEST_CLANG/build"
    elif [[ $(deb_arch "$arch") == "$(dpkg --print-architecture)" ]]; then
        echo "$root/build"
    else
        echo "$root/build-guest/$arch/build"
    fi
}

# Lets apt find packages of the guest's architecture.
know_architecture() {
    local deb
    deb=$(deb_arch "$arch")
    if [[ $deb != "$(dpkg --print-architecture)" ]] &&
        ! dpkg --print-foreign-architectures | grep -qx "$deb"; then
        dpkg --add-architecture "$deb" || return
    fi
    if ! apt-cache show "busybox-static:$deb" >/dev/null 2>&1; then
        apt-get -qq update
    fi
}

# Which of kernels.py's.
kernel_name() {
    if [[ -n ${GUEST_KERNEL:-} ]]; then
        echo "$GUEST_KERNEL"
    elif [[ $arch == x86_64 ]]; then
        echo oldest
    else
        echo 6.1
    fi
}

# download PACKAGE...: leaves each as $work/PACKAGE.deb. All at once: apt reads its lists, some seconds
# long, each time that it is started.
download() {
    local part=$work/download file name
    know_architecture || return
    rm -rf "$part"
    mkdir -p "$part"
    # by root apt would want to drop to a user who may not write here
    (cd "$part" && apt-get -qq -o APT::Sandbox::User=root download "${@/%/:$(deb_arch "$arch")}") ||
        return
    for file in "$part"/*.deb; do
        name=${file##*/}
        mv "$file" "$work/${name%%_*}.deb"
    done
}

# Looks at most once a day whether the name is another kernel's by now. What is there does where the
# archive cannot be reached.
fetch_kernel() {
    local folder kernel
    kernel=$(readlink -f "$work/vmlinuz") # lent to a second boot by a link
    if [[ -s $kernel && $(find "$kernel.looked" -mmin -1440 2>/dev/null) ]]; then
        return
    fi
    folder=$(dirname "${BASH_SOURCE[0]}")
    # one at a time: the lists of packages are shared
    (
        flock 9
        python3 "$folder/kernels.py" "$folder/../../build-guest/apt-$arch" "$arch" \
            "$(kernel_name)" "$kernel" 9>&-
    ) 9>"$folder/../../build-guest/apt-$arch.lock" && touch "$kernel.looked" && return
    if [[ ! -s $kernel ]]; then
        return 1
    fi
    echo "guest: the archive's kernels cannot be looked at: going on with the one that is there" >&2
}

fetch_busybox() {
    if [[ ! -x $work/busybox/bin/busybox ]]; then
        download busybox-static || return
        dpkg -x "$work/busybox-static.deb" "$work/busybox"
        if [[ ! -e $work/busybox/bin ]]; then # from Debian 13 on
            ln -s usr/bin "$work/busybox/bin"
        fi
    fi
}

# What prcb is linked with, headers and libraries.
fetch_sysroot() { # [PACKAGE]...: and these
    local package libelf=(libelf1 libdw1) wanted=()
    know_architecture || return
    if apt-cache show "libelf1t64:$(deb_arch "$arch")" >/dev/null 2>&1; then
        libelf=(libelf1t64 libdw1t64 libzstd-dev libzstd1) # from Debian 13 on
    fi
    for package in libbpf-dev libbpf1 libelf-dev libdw-dev "${libelf[@]}" zlib1g-dev zlib1g liblzma-dev \
        liblzma5 libbz2-1.0 libjson-c-dev libjson-c5 libcmocka-dev libcmocka0 "$@"; do
        if [[ ! -f $work/$package.deb ]]; then
            wanted+=("$package")
        fi
    done
    if ((${#wanted[@]})); then
        download "${wanted[@]}" || return
    fi
    for package in "${wanted[@]}"; do
        dpkg -x "$work/$package.deb" "$work/sysroot" || return
    done
}

# A line: the libraries whose version matters most.
built_with() {
    local file
    printf '%s guest: built with' "$arch"
    for file in "$work"/lib{bpf1,dw1}*.deb; do
        # shellcheck disable=SC2016 # dpkg-deb fills these in
        dpkg-deb -W --showformat=' ${Package} ${Version},' "$file"
    done
    dpkg-query -W --showformat=' ${Package} ${Version}\n' "libc6-$(deb_arch "$arch")-cross"
}
