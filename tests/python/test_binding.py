#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The package prcb on every tier: perf, bpf (root), daemon (as nobody, through a prcbd of the
test's own). Witnesses are getrusage, the thread's clock and the wall clock, read on both sides.

PRCBD names the daemon, PRCB the program; PYTHONPATH has the built package."""
import gc
import os
import pathlib
import re
import resource
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "daemon"), str(ROOT / "tests" / "dump")]

import prcb  # noqa: E402

MS = 1000000
PRCBD = os.environ.get("PRCBD", "")


def can(tier):
    try:
        prcb.session(tier).close()
        return None
    except prcb.Error as error:
        return f"no {tier} tier here: {error}"


def switches():
    usage = resource.getrusage(resource.RUSAGE_THREAD)
    return usage.ru_nvcsw + usage.ru_nivcsw


class Laws:
    """What holds on each tier; a class below names it."""
    tier = None

    def setUp(self):
        self.session = prcb.session(self.tier)
        self.addCleanup(self.session.close)

    def test_tier(self):
        self.assertEqual(self.session.tier, self.tier)
        self.assertIsNone(self.session.tier_reason)

    def test_run_time_is_enclosed_by_the_threads_clock(self):
        outer = time.thread_time_ns()
        with self.session.measure() as m:
            inner = time.thread_time_ns()
            sum(range(300000))
            inner = time.thread_time_ns() - inner
        outer = time.thread_time_ns() - outer
        # The clocks are read one after the other; the kernel's is one tick behind at most.
        self.assertLessEqual(inner, m.run_ns + 10 * MS)
        self.assertLessEqual(m.run_ns, outer + 10 * MS)

    def test_switches_are_the_kernels(self):
        outer = switches()
        with self.session.measure() as m:
            inner = switches()
            for _ in range(5):
                time.sleep(0.001)
            inner = switches() - inner
        outer = switches() - outer
        self.assertLessEqual(inner, m.switches)
        self.assertLessEqual(m.switches, outer)
        self.assertGreater(m.switches, 0)

    def test_waits_have_their_cause_or_are_none(self):
        start = time.monotonic_ns()
        with self.session.measure() as m:
            time.sleep(0.02)
        wall = time.monotonic_ns() - start
        if m.waits is None:
            self.assertEqual(self.tier, "perf")
            self.assertIn("waited for", self.session.absent_reason("waits"))
            return
        self.assertIsNone(self.session.absent_reason("waits"))
        # A thread that has no processor for as long is not asleep.
        self.assertLessEqual(m.waits["sleep"].count, 1)
        self.assertGreaterEqual(m.waits["sleep"].ns + m.ready_ns + m.run_ns, 19 * MS)
        self.assertEqual(m.waits["child"], (0, 0))
        self.assertNotIn("child", m.waits)
        with self.assertRaises(KeyError):
            m.waits["no such cause"]
        self.assertLessEqual(m.wall_ns, wall + MS)
        if m.waits["sleep"].count:
            self.assertIn("asleep", prcb.explain(m))

    def test_parts_sum_to_wall(self):
        with self.session.measure() as m:
            time.sleep(0.005)
            sum(range(100000))
        a = m.account()
        if a.open is None:
            self.assertEqual(self.tier, "perf")
            self.assertEqual(sum(ns for _, ns in prcb.measuring.parts(a)), a.wall_ns)
            return
        self.assertEqual(a.run_ns + a.ready_ns + a.wait_ns + a.open.ns, a.wall_ns)
        if a.waits is not None:
            self.assertEqual(sum(wait.ns for wait in a.waits.values()), a.wait_ns)

    def test_a_measurement_grows_while_it_is_open(self):
        with self.session.measure() as m:
            first = m.run_ns
            sum(range(200000))
            second = m.run_ns
        self.assertLessEqual(first, second)
        self.assertLessEqual(second, m.run_ns)
        self.assertEqual(m.run_ns, m.run_ns)  # closed: it stays

    def test_measurements_nest(self):
        with self.session.measure() as outer:
            with self.session.measure() as inner:
                time.sleep(0.002)
        self.assertLessEqual(inner.switches, outer.switches)
        self.assertLessEqual(inner.run_ns, outer.run_ns)

    def test_another_threads_account(self):
        stop, ready, tid = threading.Event(), threading.Event(), []

        def other():
            tid.append(threading.get_native_id())
            ready.set()
            stop.wait(30)
        thread = threading.Thread(target=other)
        thread.start()
        ready.wait(30)
        try:
            self.session.profile_process(os.getpid(), "threads")
            with self.session.thread(tid[0]) as handle:
                self.assertEqual(handle.read().tid, tid[0])
                with self.session.measure(handle) as m:
                    time.sleep(0.005)
                self.assertIsNotNone(m.run_ns)
                self.assertIn(tid[0], [a.tid for a in self.session.accounts()])
            with self.assertRaises(ValueError):
                handle.read()
        finally:
            stop.set()
            thread.join()

    def test_a_child_from_its_exec_on(self):
        child = self.session.spawn(["sh", "-c", "exit 3"])
        self.session.refresh()
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 3)
        with self.assertRaises(prcb.Error) as caught:
            self.session.spawn(["/no/such/program"])
        self.assertIn("/no/such/program", str(caught.exception))

    def test_errors_are_exceptions_with_words(self):
        with self.assertRaises(prcb.Error) as caught:
            self.session.profile_thread(2 ** 22 + 1)
        self.assertIsInstance(caught.exception, OSError)
        self.assertIn(str(2 ** 22 + 1), str(caught.exception))
        for call in (lambda: self.session.profile_thread(1, "sideways"),
                     lambda: self.session.absent_reason("colour")):
            with self.assertRaises(ValueError):
                call()
        for call in (lambda: self.session.profile_thread("1"), lambda: self.session.measure(1),
                     lambda: self.session.thread(1, key=1)):
            with self.assertRaises(TypeError):
                call()

    def test_closing(self):
        session = prcb.session(self.tier)
        thread, m, before = session.thread(), session.measure(), session.measure()
        with before:
            pass
        m.__enter__()
        session.close()
        session.close()
        self.assertTrue(session.closed and thread.closed)
        for call in (session.accounts, session.status, session.thread, thread.read, m.account,
                     lambda: m.__exit__(None, None, None), lambda: session.tier):
            with self.assertRaises(ValueError):
                call()
        self.assertIsNotNone(before.run_ns)  # what was measured is a value
        thread.close()

    def test_collection_closes(self):
        def descriptors():
            return len(os.listdir("/proc/self/fd"))
        prcb.session(self.tier).close()
        before = descriptors()
        for _ in range(3):
            session = prcb.session(self.tier)
            handle = session.thread()
            handle.read()
            del session  # the handle keeps it
            handle.read()
            del handle
        gc.collect()
        self.assertEqual(descriptors(), before)

    def test_threads_have_handles_of_their_own(self):
        failures = []

        def work():
            total = 0
            try:
                for _ in range(50):
                    outer = switches()
                    with self.session.measure() as m:
                        inner = switches()
                        time.sleep(0.0005)
                        inner = switches() - inner
                    self.assertLessEqual(m.switches, switches() - outer)
                    self.assertLessEqual(inner, m.switches)
                    total += m.switches
                self.assertGreaterEqual(total, 25)  # a sleep may be over before it begins
            except BaseException:
                failures.append(traceback.format_exc())
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_a_measurement_belongs_to_its_thread(self):
        m, errors = self.session.measure(), []
        m.__enter__()

        def leave():
            for call in (lambda: m.run_ns, lambda: m.__exit__(None, None, None)):
                try:
                    call()
                except RuntimeError as error:
                    errors.append(str(error))
        thread = threading.Thread(target=leave)
        thread.start()
        thread.join()
        self.assertEqual(len(errors), 2)
        self.assertIn("another thread", errors[0])
        fresh = self.session.measure()
        with self.assertRaises(RuntimeError):
            fresh.run_ns
        with fresh, self.assertRaises(RuntimeError):
            fresh.__enter__()

    def test_a_child_process_is_told_to_open_another(self):
        with self.session.measure() as m:
            pid = os.fork()
            if not pid:
                status = 1
                try:
                    for call in (self.session.accounts, lambda: m.run_ns):
                        try:
                            call()
                            raise SystemExit
                        except prcb.Error as error:
                            assert "open another" in str(error), error
                    self.session.close()  # the parent's goes on
                    with prcb.session(self.tier) as own, own.measure() as mine:
                        sum(range(1000))
                    assert mine.run_ns is not None
                    status = 0
                except BaseException:
                    traceback.print_exc()
                finally:
                    os._exit(status)
            self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.assertIsNotNone(m.run_ns)
        self.assertGreater(self.session.status().threads, 0)

    def test_programs_that_were_not_run(self):
        """Counted where there are programs."""
        misses = self.session.status().recursion_misses
        if self.session.tier == "bpf":
            self.assertGreaterEqual(misses, 0)
            self.assertLess(misses, 2 ** 32)
        elif self.session.tier == "perf":
            self.assertIsNone(misses)

    def test_processors(self):
        with prcb.processors(self.tier) as view:
            self.assertEqual(view.tier, self.tier)
            number = min(os.sched_getaffinity(0))
            time.sleep(0.05)
            view.refresh()
            cpu = view.read(number)
            self.assertEqual(cpu.number, number)
            self.assertTrue(cpu.online)
            if self.tier != "perf":
                self.assertEqual(cpu.wall_ns, cpu.idle_ns + cpu.user_ns + cpu.kernel_ns +
                                 cpu.dpc_ns + cpu.interrupt_ns + (cpu.steal_ns or 0))
            self.assertEqual(len(view.times()), len(view))
            for name in prcb.Processor.__match_args__:
                if getattr(cpu, name) is None and name not in ("idle_state", "tid"):
                    self.assertIsNotNone(view.absent_reason(name), name)
            for number in (len(view), -1):
                with self.assertRaises(prcb.Error):
                    view.read(number)
        with self.assertRaises(ValueError):
            view.read(0)


class PerfTier(Laws, unittest.TestCase):
    tier = "perf"


@unittest.skipIf(can("bpf"), can("bpf"))
class BpfTier(Laws, unittest.TestCase):
    tier = "bpf"


class AsNobody(unittest.TestCase):
    """The same through prcbd: the daemon is root's, the tests are nobody's."""

    def test_daemon_tier(self):
        import wire
        if os.geteuid():
            self.skipTest("needs root: it starts prcbd and becomes nobody")
        if not PRCBD or not os.path.exists("/sys/kernel/btf/vmlinux"):
            self.skipTest("no eBPF: this build has no prcbd, or the kernel no BTF")
        if not os.path.ismount("/sys/fs/bpf"):
            self.skipTest("/sys/fs/bpf is not mounted")
        daemon = wire.Daemon(PRCBD)
        self.addCleanup(daemon.stop)

        def tests():
            os.environ["PRCB_SOCKET"] = daemon.socket

            class DaemonTier(Laws, unittest.TestCase):
                tier = "daemon"
            suite = unittest.defaultTestLoader.loadTestsFromTestCase(DaemonTier)
            result = unittest.TestResult()
            suite.run(result)
            return result.testsRun, [str(case[0]) + "\n" + case[1]
                                     for case in result.failures + result.errors]
        run, failed = wire.as_user(wire.NOBODY, tests)
        self.assertEqual(failed, [])
        self.assertGreater(run, 10)


class Module(unittest.TestCase):
    def test_the_default_session_is_opened_anew_in_a_child(self):
        with prcb.measure():
            pass
        first = prcb.default_session()
        self.assertIs(first, prcb.default_session())
        pid = os.fork()
        if not pid:
            status = 1
            try:
                with prcb.measure() as m:
                    sum(range(1000))
                assert m.run_ns is not None and prcb.default_session() is not first
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)

    def test_one_build_for_all_python(self):
        for name in ("_prcb", "_stack", "_windows"):
            module = __import__("prcb." + name, fromlist=[name])
            self.assertTrue(module.__file__.endswith(".abi3.so"), module.__file__)
        stable = subprocess.run(["nm", "-D", "--undefined-only", prcb._prcb.__file__],
                                capture_output=True, text=True, check=False)
        if not stable.returncode:
            private = [line for line in stable.stdout.split() if line.startswith("_Py_")
                       and line not in ("_Py_Dealloc", "_Py_NoneStruct", "_Py_TrueStruct",
                                        "_Py_FalseStruct", "_Py_IncRef", "_Py_DecRef")]
            self.assertEqual(private, [])

    def test_measured(self):
        seen = []

        @prcb.measured(report=lambda name, m: seen.append((name, m.run_ns)))
        def work(n):
            if n < 0:
                raise KeyError(n)
            return n + 1
        self.assertEqual(work(1), 2)
        with self.assertRaises(KeyError):
            work(-1)
        self.assertEqual([name.rsplit(".")[-1] for name, _ in seen], ["work", "work"])
        with self.assertLogs("prcb", "DEBUG") as logs:
            prcb.measured(len)("abc")
        self.assertIn("len", logs.output[0])
        for lazy in (lambda: (yield), ):
            with self.assertRaises(TypeError):
                prcb.measured(lazy)

        async def coroutine():
            pass
        with self.assertRaises(TypeError):
            prcb.slow(1)(coroutine)

    def test_slow_calls(self):
        seen = []

        @prcb.slow(0.05, report=seen.append, stacks=True, keep=2)
        def work(long):
            # A call that is watched lasts until its stack was taken: by a thread that needs a processor for it.
            end = time.monotonic() + 0.2
            while long and (time.monotonic() < end or
                            prcb.measuring.watcher.calls and time.monotonic() < end + 30):
                time.sleep(0.01)  # here it is slow
        work(False)
        for _ in range(3):
            work(True)
        calls = work.slow_calls
        self.assertEqual((calls.calls, calls.measured), (4, 4))
        self.assertEqual(calls.slow, len(seen))
        self.assertGreaterEqual(calls.slow, 3)
        self.assertEqual(len(calls.last), 2)
        self.assertTrue(any("# here it is slow" in call.python_stack for call in seen if call.python_stack))

        @prcb.slow(1, every=3)
        def other():
            return 7
        self.assertEqual([other() for _ in range(7)], [7] * 7)
        self.assertEqual((other.slow_calls.calls, other.slow_calls.measured), (7, 2))

    def test_layouts(self):
        layout = prcb.layout("PROCESSOR_POWER_STATE", "10.0.19041", "x64")
        data = bytearray(len(layout))
        layout.put(data, "IdleTimeTotal", 0x123456789)
        self.assertEqual(layout.get(data, "IdleTimeTotal"), 0x123456789)
        field = layout.lookup("IdleTimeTotal")
        self.assertEqual(struct.unpack_from("<Q", data, field.offset)[0], 0x123456789)
        self.assertEqual(layout.decode(data)["IdleTimeTotal"], 0x123456789)
        self.assertIn("IdleTimeTotal", layout.definition())
        self.assertIn("IdleTimeTotal", [member.name for member in layout.members])
        with self.assertRaises(prcb.Error) as caught:
            layout.get(data[:8], "IdleTimeTotal")
        self.assertEqual(caught.exception.offset, field.offset)
        with self.assertRaises(prcb.Error):
            prcb.layout("NO_SUCH", "10.0.19041")
        self.assertIn("KPRCB", prcb.layout_structures())
        self.assertGreater(len(prcb.layout_versions()), 20)

    def test_dumps(self):
        import mkdump
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "test.dmp")
            text = (ROOT / "tests" / "dump" / "session.dump").read_text(encoding="utf-8")
            path.write_bytes(mkdump.make(text))
            with prcb.dump(path) as dump:
                self.assertIsNotNone(dump.info.container)
                self.assertGreater(len(dump.processors), 0)
                for cpu in dump.processors:
                    for value in cpu.items.values():
                        self.assertEqual(value.value is None, value.absent is not None)
                with self.assertRaises(IndexError):
                    dump.thread(len(dump.processors))
            with self.assertRaises(ValueError):
                dump.info
            path.write_bytes(path.read_bytes()[:100])
            with self.assertRaises(prcb.Error):
                prcb.dump(path)
            with self.assertRaises(prcb.Error):
                prcb.dump(pathlib.Path(folder, "none"))


class Waiting(unittest.TestCase):
    """Stacks of one's own threads."""

    def setUp(self):
        try:
            import prcb._stack  # noqa: F401
        except ImportError as error:
            self.skipTest(f"this build reads no stacks: {error}")

    def found(self, matches):
        """The first waiting thread that matches; None after 20 seconds."""
        deadline = time.monotonic() + 20
        with prcb.session(registers=True) as session:
            session.profile_process(os.getpid())
            while time.monotonic() < deadline:
                for waiting in prcb.waiting(session):
                    if matches(waiting):
                        return waiting
        return None

    def test_a_lock(self):
        lock, tid, up = threading.Lock(), [], threading.Event()

        def waiter():
            tid.append(threading.get_native_id())
            up.set()
            with lock:
                pass
        with lock:
            thread = threading.Thread(target=waiter)
            thread.start()
            up.wait(30)
            waiting = self.found(lambda w: w.account.tid == tid[0] and w.stack is not None)
        thread.join()
        self.assertIsNotNone(waiting, "no stack of a thread that waits for a lock in 20 s")
        # Of Python 3.13's functions with a symbol, the one that parks threads is the nearest.
        self.assertTrue(any(re.search("lock|_PyParkingLot_Park", frame.function or "")
                            for frame in waiting.stack.frames), waiting)
        self.assertIn("lock", str(waiting))

    def test_the_gil_by_name(self):
        stop = threading.Event()

        def spin():
            while not stop.is_set():
                sum(range(100))
        switch = sys.getswitchinterval()
        sys.setswitchinterval(0.2)  # they wait for it long enough to be read
        self.addCleanup(sys.setswitchinterval, switch)
        threads = [threading.Thread(target=spin) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            word = self.found(lambda w: w.word == "GIL")
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        self.assertIsNotNone(word, "no thread was seen waiting for the GIL in 20 s")


if __name__ == "__main__":
    unittest.main(verbosity=2)
