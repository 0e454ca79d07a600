#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Runs programs on another kernel: boots one of Debian's kernels in a software-emulated
# machine with an initramfs made for the purpose, runs the commands one after the
# other, prints what they print, and ends with counts. Needs no privilege but to
# install packages. See usage below.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

usage() {
    cat <<'USAGE'
usage: guest.sh [OPTION]... ARCH -- COMMAND [ARG]... [--- COMMAND [ARG]...]...

ARCH is x86_64 or arm64. A COMMAND that is a file on this machine, or the name of a
program that is built (prcb, test_bpf_laws), is taken along with the libraries it is
linked with; any other is a busybox applet or a program taken along with -f. The
console goes to build-guest/ARCH/console.log, results to
build-guest/ARCH/testlog.json. Exit status: 0 when no command failed.

  -t SECONDS   time limit for all commands together (120)
  -p NUMBER    processors (x86_64: 4, arm64: 2)
  -m MIB       memory (1024)
  -f FILE      take this file along, in the folder of the programs
  -k ARGUMENTS more arguments for the kernel
  -v KERNEL    boot this one of those that kernels.py lists (x86_64: oldest, arm64: 6.1)
  -i           count instructions (arm64: gives the guest a usable PMU; slower)
  -b DIR       keep files in this folder instead of build-guest/ARCH
USAGE
}

fail() {
    echo "guest: $*" >&2
    exit 2
}

limit=120 processors='' memory=1024 icount=() extra=() work='' arguments=''
while getopts t:p:m:f:k:b:v:ih option; do
    case $option in
    t) limit=$OPTARG ;;
    p) processors=$OPTARG ;;
    m) memory=$OPTARG ;;
    f) extra+=("$OPTARG") ;;
    k) arguments=$OPTARG ;;
    b) work=$OPTARG ;;
    v) GUEST_KERNEL=$OPTARG ;;
    i) icount=(-icount shift=3) ;;
    h) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
    esac
done
shift $((OPTIND - 1))
if [[ $# -lt 3 || $2 != -- ]]; then
    usage >&2
    exit 2
fi
arch=$1
shift 2
: "${work:=$here/../../build-guest/$arch${GUEST_KERNEL:+-$GUEST_KERNEL}}"
mkdir -p "$work"
work=$(cd "$work" && pwd)
# shellcheck source=/dev/null
source "$here/packages.sh"
# shellcheck source=/dev/null
source "$here/image.sh"
build=$(build_folder)

case $arch in
x86_64)
    # The emulated counters do run alike, but do not say so. How long the delay loop is and
    # whether the timer's interrupts arrive would be measured, for seconds on a busy machine, and
    # the counters' rate wrongly. They are this machine's, but where instructions are the clock.
    qemu=(qemu-system-x86_64 -cpu max -smp "${processors:-4}")
    arguments="console=ttyS0 tsc=reliable lpj=4000000 no_timer_check $arguments"
    if [[ $(uname -m) == x86_64 && ${#icount[@]} -eq 0 ]]; then
        ${CC:-cc} -O -o "$work/tsc_khz" "$here/tsc_khz.c" || fail "tsc_khz.c does not compile"
        arguments="tsc_early_khz=$("$work/tsc_khz") $arguments"
    fi
    ;;
arm64)
    # Signatures of return addresses by a cheap algorithm: by the real one, which is emulated too, the
    # kernel takes four times as long for everything.
    qemu=(qemu-system-aarch64 -M virt -cpu "max,pauth-impdef=on" -smp "${processors:-2}")
    arguments="console=ttyAMA0 $arguments"
    ;;
*) fail "no guest for '$arch': x86_64 or arm64" ;;
esac
for tool in "${qemu[0]}" cpio readelf python3; do
    command -v "$tool" >/dev/null || fail "$tool is not installed (./dev guest installs it)"
done

# The rest of the arguments: commands with "---" between them, one line of sh each.
add_command() {
    local program=$1 built
    shift
    if [[ $program != */* && -d $build ]]; then
        built=$(find "$build" -type f -perm -u+x -name "$program" -print -quit)
        program=${built:-$program}
    fi
    if [[ -f $program && -x $program ]]; then
        extra+=("$program")
        program=${program##*/}
    fi
    printf '%s\n' "${program@Q}${*:+ }${*@Q}" >>"$work/commands"
    printf '%s\n' "$arch $program${*:+ }$*" >>"$work/names"
}
: >"$work/commands"
: >"$work/names"
words=()
for word in "$@" ---; do
    if [[ $word != --- ]]; then
        words+=("$word")
    elif ((${#words[@]})); then
        add_command "${words[@]}"
        words=()
    fi
done

fetch_kernel
fetch_busybox
make_image "$work/initramfs" "$here/init" "$work/commands" "${extra[@]}"

# Software emulation always: results must not depend on what the machine offers. In one
# thread: with a thread for each processor the emulator may go on executing an instruction
# that another processor has replaced meanwhile (seen with 7.2: one boot in some twenty
# hung for ever at the breakpoint by which the kernel patches itself, and the programs of
# tracepoints are attached by such patches).
python3 "$here/console.py" "$work" "$limit" -- "${qemu[@]}" -accel tcg,thread=single "${icount[@]}" \
    -m "$memory" -no-reboot -nodefaults -display none -serial stdio -kernel "$work/vmlinuz" \
    -initrd "$work/initramfs" -append "panic=-1 $arguments"

python3 "$here/../tally.py" guest "$work/testlog.json" >"$work/results"
awk -F '\t' '{n[$1]++}
    $1 != "pass" {printf "%s  %s%s%s\n", $1 == "skip" ? "SKIPPED" : "FAILED ", $3, $4 == "" ? "" : ": ", $4}
    END {printf "%s: %d passed, %d failed, %d skipped\n", arch, n["pass"], n["fail"], n["skip"]
         exit n["fail"] > 0}' arch="$arch guest" "$work/results"
