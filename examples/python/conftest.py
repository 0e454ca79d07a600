# SPDX-License-Identifier: BSD-2-Clause
"""For pytest-benchmark: what the test's thread ran, was ready and waited, in the benchmark's JSON
(`--benchmark-json`, extra_info) beside its times. Put it beside the tests."""

import prcb
import pytest


@pytest.fixture(autouse=True)
def parts(request):
    if "benchmark" not in request.fixturenames:
        yield
        return
    benchmark = request.getfixturevalue("benchmark")
    with prcb.measure() as m:
        yield
    # Figures that this tier does not have are None: null in the JSON.
    benchmark.extra_info["prcb"] = {
        "run_ns": m.run_ns, "ready_ns": m.ready_ns,
        "waits_ns": None if m.waits is None else {cause: wait.ns for cause, wait in m.waits.items()}}
