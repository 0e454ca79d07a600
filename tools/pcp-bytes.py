#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""How much of a disk pmlogger needs for what src/services/pmda/pmlogconf names, on this machine, or (--replay)
on the one whose looks `prcb export --record` wrote: bytes a record, from the difference of two
archives, and so a host and day. docs/fleet.md says what it said. Runs the built agent (PMDA, PMNS)
under the PCP of tests/pmda/pcp.py; as root on the bpf tier, else through prcbd."""
import argparse
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
os.environ.setdefault("PCP_ROOT", str(ROOT / "build-pcp/root"))
sys.path.insert(0, str(ROOT / "tests/pmda"))

import pcp  # noqa: E402


def archive(own, metrics, records):
    """Bytes of an archive of so many records."""
    folder = own.folder / f"archive/{records}"
    folder.mkdir()
    conf = own.folder / "bytes.conf"
    conf.write_text("log mandatory on 100 msec { %s }\n" % " ".join(metrics), encoding="utf-8")
    own.give()
    own.run("pmlogger", "-h", own.host, "-c", conf, "-l", folder / "log", "-s", str(records), "-y",
            folder / "one")
    return sum(path.stat().st_size for path in folder.glob("one.*"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replay", metavar="FILE", help="looks in place of this machine's")
    parser.add_argument("--records", type=int, default=20, help="records that are compared")
    options = parser.parse_args()
    if pcp.missing():
        print(f"pcp-bytes: {pcp.missing()}", file=sys.stderr)
        return 1
    build = ROOT / "build/src/services/pmda"
    agent = [os.environ.get("PMDA", str(build / "pmdaprcb"))]
    if not options.replay and os.geteuid() == 0:
        agent += ["-t", "bpf"]
    own = pcp.Pcp(agent, os.environ.get("PMNS", str(build / "pmns")),
                  environment={"PRCB_REPLAY": os.path.abspath(options.replay)} if options.replay else {})
    try:
        own.pmcd()
        pcp.wait_for("figures", lambda: own.values("prcb.up") == {("prcb.up", None): "1"})
        lines = (ROOT / "src/services/pmda/pmlogconf").read_text(encoding="utf-8").splitlines()
        metrics = [line.strip() for line in lines if line.startswith("\t")]
        values = own.values(*metrics)
        cgroups = {instance for name, instance in values if name == "prcb.cgroup.run"}
        least = archive(own, metrics, 1)
        record = (archive(own, metrics, 1 + options.records) - least) / options.records
    finally:
        own.stop()
    print(f"{len(cgroups)} cgroups, {len(values)} values: {record:.0f} bytes a record, "
          f"{record * 8640 / 1e6:.1f} MB a day at one each 10 s, {record * 1440 / 1e6:.1f} MB at one a minute")
    return 0


if __name__ == "__main__":
    sys.exit(main())
