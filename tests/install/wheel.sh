#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# `pip install .` of a checkout, into a virtual environment and without a network: what was
# installed measures, with the libraries that came with it. Prints TAP.
#
#   wheel.sh [MESON-OPTION]    -Dbpf_objects=FOLDER, say
# shellcheck disable=SC2317 # the functions are called by name, through check
set -u
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/tap.sh
source "$source_dir/tests/tap.sh"
python=/usr/bin/python3
settings=("${@/#/--config-settings=setup-args=}")

if ! "$python" -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
    [[ ! -e $("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h ]]; then
    skip "pip install" "needs Python 3.11, its headers (python3-dev) and python3-venv"
    echo "1..$number"
    exit 0
fi

# Not optimised: how it is made, and how it finds its libraries, does not change with that.
installs() {
    "$python" -m venv "$work/venv" &&
        CFLAGS=-O0 "$work/venv/bin/pip" install --no-index --disable-pip-version-check "${settings[@]}" "$source_dir"
}

# What is loaded comes from the environment, libraries too.
measures() {
    cat >"$work/measure.py" <<'PYTHON'
import os, sys, time, prcb, prcb.web
with prcb.measure() as m:
    time.sleep(0.01)
prcb.layout("KPRCB", "10.0.19041")
try:
    import prcb._stack
except ImportError as error:
    print("no stacks in this build:", error)
    assert not os.path.exists(os.path.dirname(prcb.__file__) + "/_stack.abi3.so"), error
with open("/proc/self/maps", encoding="utf-8") as maps:
    loaded = {line.split()[-1] for line in maps if "prcb" in line and ".so" in line}
print(*sorted(loaded), sep="\n")
assert len(loaded) >= 4 and all(path.startswith(sys.prefix) for path in loaded)
assert m.switches >= 1
print(prcb.default_session().tier, prcb.explain(m))
PYTHON
    (cd "$work" && env -u PYTHONPATH -u LD_LIBRARY_PATH "$work/venv/bin/python" measure.py)
}

uninstalls() {
    "$work/venv/bin/pip" uninstall -y prcb && ! find "$work/venv" -name '*prcb*' | grep .
}

check "pip install of the checkout" installs
check "the installed package measures" measures
check "pip uninstall leaves nothing" uninstalls
echo "1..$number"
exit "$failed"
