/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What stacks of well-known programs say of a wait: stacks as gdb shows them.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "idioms.h"

static const struct {
    const char *word; /* NULL: none */
    enum idiom_kind kind;
    const char *functions[12];
} stacks[] = {
    {"GIL",
     IDIOM_BLOCKED,
     {"__futex_abstimed_wait_common", "__pthread_cond_timedwait", "take_gil",
      "PyEval_RestoreThread", "time_sleep"}},
    {"Python lock",
     IDIOM_EITHER,
     {"__futex_abstimed_wait_common", "__new_sem_wait_slow64.constprop.0",
      "PyThread_acquire_lock_timed", "acquire_timed"}},
    /* Debian's python3: what its own functions are is not known. */
    {"GIL",
     IDIOM_BLOCKED,
     {"__futex_abstimed_wait_common", "__pthread_cond_timedwait", "python3.11",
      "_PyEval_EvalFrameDefault", "_PyFunction_Vectorcall"}},
    {"GIL",
     IDIOM_BLOCKED,
     {"__futex_abstimed_wait_common", "__pthread_cond_timedwait", "python3.11",
      "PyEval_RestoreThread", "_ssl.cpython-311-x86_64-linux-gnu.so"}},
    /* An extension's own condition is none. */
    {"condition variable",
     IDIOM_EITHER,
     {"__futex_abstimed_wait_common", "pthread_cond_wait", "worker.cpython-311-x86_64-linux-gnu.so",
      "_PyEval_EvalFrameDefault"}},
    {"name lookup",
     IDIOM_BLOCKED,
     {"__poll", "__res_context_send", "getaddrinfo", "_socket.cpython-311-x86_64-linux-gnu.so",
      "_PyEval_EvalFrameDefault", "Py_RunMain"}},
    {"child process (sync)",
     IDIOM_BLOCKED,
     {"epoll_pwait", "uv__io_poll", "uv_run",
      "node::SyncProcessRunner::TryInitializeAndRunLoop(v8::Local<v8::Value>)"}},
    {"mutex",
     IDIOM_BLOCKED,
     {"syscall", "std::sys::pal::unix::futex::futex_wait",
      "<std::sys::sync::mutex::futex::Mutex>::lock_contended", "app::work"}},
    /* As g++ 12 has them with -std=c++20. */
    {"latch",
     IDIOM_BLOCKED,
     {"syscall", "void std::__detail::__platform_wait<int>(int const*, int)",
      "void std::__atomic_wait_address<int, std::latch::wait() const::{lambda()#1}>(int const*)"}},
    {"barrier",
     IDIOM_BLOCKED,
     {"syscall", "void std::__detail::__platform_wait<int>(int const*, int)",
      "void std::__atomic_wait_address<std::__barrier_phase_t, "
      "std::__tree_barrier<std::x>::wait>"}},
    {"semaphore",
     IDIOM_EITHER,
     {"syscall", "void std::__detail::__platform_wait<int>(int const*, int)",
      "void std::__atomic_wait_address_bare<std::__atomic_semaphore::_M_acquire()::{lambda()#1}>"}},
    {"atomic value",
     IDIOM_EITHER,
     {"syscall", "void std::__detail::__platform_wait<int>(int const*, int)", "app::work"}},
    {"future",
     IDIOM_BLOCKED,
     {"syscall", "std::__atomic_futex_unsigned_base::_M_futex_wait_until(unsigned int*, bool)",
      "app::work"}},
    /* As rustc 1.95 has them, by its first mangling and its second. */
    {"condition variable",
     IDIOM_EITHER,
     {"syscall", "<std::sys::sync::condvar::futex::Condvar>::wait_optional_timeout", "app::work"}},
    {"channel",
     IDIOM_EITHER,
     {"syscall", "<std::thread::thread::Thread>::park_timeout",
      "<std::sync::mpmc::list::Channel<alloc::string::String>>::recv::{closure#0}",
      "<std::sync::mpmc::Receiver<alloc::string::String>>::recv_timeout", "app::work"}},
    {"channel",
     IDIOM_EITHER,
     {"syscall", "<std::thread::thread::Thread>::park",
      "std::sync::mpmc::context::Context::wait_until",
      "std::sync::mpmc::list::Channel<T>::recv::{{closure}}"}},
    {"full channel",
     IDIOM_BLOCKED,
     {"syscall", "<std::thread::thread::Thread>::park",
      "std::sync::mpmc::array::Channel<T>::send::{{closure}}", "app::work"}},
    {"park", IDIOM_EITHER, {"syscall", "std::thread::functions::park", "app::work"}},
    /* What a channel's iterator calls waits for something else. */
    {"park",
     IDIOM_EITHER,
     {"syscall", "std::thread::functions::park", "app::work", "app::each", "app::fold",
      "<std::sync::mpsc::Iter<T> as core::iter::traits::iterator::Iterator>::fold"}},
    {"join",
     IDIOM_BLOCKED,
     {"syscall", "<std::thread::thread::Thread>::park", "std::thread::scoped::scope", "app::work"}},
    {"barrier", IDIOM_BLOCKED, {"syscall", "<std::sync::barrier::Barrier>::wait", "app::work"}},
    {"one-time initialization",
     IDIOM_BLOCKED,
     {"syscall", "<std::sys::sync::once::futex::Once>::call", "app::work"}},
    {"sleep",
     IDIOM_EITHER,
     {"clock_nanosleep", "std::thread::functions::sleep", "app::load",
      "<std::sys::sync::once::futex::Once>::call", "app::work"}},
    {"tokio scheduler, tasks are not seen",
     IDIOM_EITHER,
     {"epoll_wait", "mio::poll::Poll::poll", "tokio::runtime::io::driver::Driver::turn",
      "tokio::runtime::scheduler::multi_thread::park::Inner::park"}},
    {NULL,
     IDIOM_BLOCKED,
     {"read", "app::handle", "tokio::runtime::scheduler::multi_thread::worker::Context::run_task"}},
    {"JVM operation",
     IDIOM_BLOCKED,
     {"__futex_abstimed_wait_common", "os::PlatformMonitor::wait(long)",
      "Monitor::wait(unsigned long)", "VMThread::wait_until_executed(VM_Operation*)",
      "VMThread::execute(VM_Operation*)", "JVM_GC"}},
    /* As OpenJDK 17 has them under load: who wants memory, and the VM's own for whom it waits. */
    {"JVM GC",
     IDIOM_BLOCKED,
     {"__futex_abstimed_wait_common", "pthread_cond_wait", "os::PlatformMonitor::wait(long)",
      "Monitor::wait(long)", "VMThread::wait_until_executed(VM_Operation*)",
      "VMThread::execute(VM_Operation*)", "G1CollectedHeap::attempt_allocation_slow(unsigned long)",
      "G1CollectedHeap::allocate_new_tlab(unsigned long, unsigned long, unsigned long*)"}},
    {"JVM GC",
     IDIOM_BLOCKED,
     {"__GI___lll_lock_wait", "__pthread_mutex_lock", "Mutex::lock_contended(Thread*)",
      "Mutex::lock(Thread*)", "ParallelScavengeHeap::mem_allocate(unsigned long, bool*)"}},
    {"JVM GC, waits for its threads",
     IDIOM_BLOCKED,
     {"__futex_abstimed_wait_common", "__new_sem_wait_slow64.constprop.0", "PosixSemaphore::wait()",
      "WorkGang::run_task(AbstractGangTask*, unsigned int)", "G1ConcurrentMark::mark_from_roots()",
      "G1ConcurrentMarkThread::phase_mark_loop()"}},
    {"JVM GC, its threads wait for a safepoint",
     IDIOM_BLOCKED,
     {"__futex_abstimed_wait_common", "pthread_cond_wait", "os::PlatformMonitor::wait(long)",
      "Monitor::wait_without_safepoint_check(long)", "SuspendibleThreadSet::join()",
      "G1ConcurrentRefineThread::run_service()", "ConcurrentGCThread::run()"}},
    {"JVM safepoint, waits for threads to stop",
     IDIOM_BLOCKED,
     {"clock_nanosleep", "__nanosleep", "os::naked_short_sleep(long)",
      "SafepointSynchronize::synchronize_threads(long, int, int*)", "SafepointSynchronize::begin()",
      "VMThread::inner_execute(VM_Operation*)", "VMThread::run()"}},
    {"JVM service thread",
     IDIOM_IDLE,
     {"__futex_abstimed_wait_common", "pthread_cond_timedwait", "os::PlatformMonitor::wait(long)",
      "Monitor::wait_without_safepoint_check(long)", "NMethodSweeper::sweeper_loop()",
      "JavaThread::thread_main_inner()"}},
    {"JVM service thread",
     IDIOM_IDLE,
     {"__futex_abstimed_wait_common", "pthread_cond_wait", "os::PlatformMonitor::wait(long)",
      "Monitor::wait(long)", "Threads::destroy_vm()", "jni_DestroyJavaVM", "JavaMain",
      "ThreadJavaMain"}},
    {"event loop",
     IDIOM_IDLE,
     {"epoll_wait", "WaitEventSetWait", "WaitLatch", "postgres", "StartAutoVacLauncher", "postgres",
      "__restore_rt", "__select", "postgres", "PostmasterMain"}},
    /* The first process was in select as it started this one, which is not. */
    {"epoll",
     IDIOM_EITHER,
     {"epoll_wait", "WaitEventSetWait", "WaitLatch", "pg_sleep", "postgres", "__restore_rt",
      "__select", "postgres", "PostmasterMain"}},
    /* 3.13, on Debian 13: a lock, and the end of a thread */
    {"Python lock",
     IDIOM_EITHER,
     {"__futex_abstimed_wait_common", "__new_sem_wait_slow64.constprop.0", "_PySemaphore_Wait",
      "_PyParkingLot_Park", "_PyObject_MakeTpCall", "_PyEval_EvalFrameDefault"}},
    {"Python event",
     IDIOM_EITHER,
     {"__new_sem_wait_slow64.constprop.0", "_PySemaphore_Wait", "_PyParkingLot_Park",
      "PyEvent_WaitTimed", "_PyEval_EvalFrameDefault"}},
    {"mutex", IDIOM_BLOCKED, {"__lll_lock_wait", "pthread_mutex_lock@@GLIBC_2.2.5", "cache_get"}},
    {"malloc arena", IDIOM_BLOCKED, {"__lll_lock_wait_private", "_int_free", "free", "worker"}},
    {"condition variable",
     IDIOM_EITHER,
     {"__futex_abstimed_wait_common", "pthread_cond_wait@@GLIBC_2.3.2", "consume"}},
    {"aio thread pool",
     IDIOM_IDLE,
     {"__futex_abstimed_wait_common", "__pthread_cond_timedwait", "handle_fildes_io",
      "start_thread", "clone3"}},
    {"event loop", IDIOM_IDLE, {"epoll_pwait", "uv__io_poll", "uv_run", "main"}},
    {"event loop", IDIOM_IDLE, {"epoll_wait", "redis-check-rdb", "aeMain", "main"}},
    {"jemalloc thread",
     IDIOM_IDLE,
     {"pthread_cond_wait", "libjemalloc.so.2", "libjemalloc.so.2", "start_thread"}},
    {"mutex", IDIOM_BLOCKED, {"__lll_lock_wait", "pthread_mutex_lock", "libjemalloc.so.2", "main"}},
    {"libuv thread pool",
     IDIOM_IDLE,
     {"__futex_abstimed_wait_common", "pthread_cond_wait", "uv_cond_wait", "worker",
      "start_thread"}},
    /* A function of that name that does not wait below libuv says nothing. */
    {"condition variable", IDIOM_EITHER, {"pthread_cond_wait", "worker", "start_thread"}},
    {"Go scheduler, goroutines are not seen",
     IDIOM_EITHER,
     {"runtime.futex.abi0", "runtime.futexsleep", "runtime.notesleep", "runtime.mPark",
      "runtime.stopm", "runtime.findRunnable"}},
    {"event loop",
     IDIOM_IDLE,
     {"epoll_wait", "ngx_epoll_process_events", "ngx_process_events_and_timers",
      "ngx_worker_process_cycle"}},
    {"PostgreSQL lock",
     IDIOM_BLOCKED,
     {"epoll_wait", "WaitEventSetWait", "WaitLatch", "ProcSleep", "LockAcquireExtended"}},
    {"select", IDIOM_EITHER, {"__select", "postgres", "PostmasterMain", "main"}},
    {"waiting for the client",
     IDIOM_IDLE,
     {"epoll_wait", "WaitEventSetWait", "secure_read", "pq_recvbuf", "PostgresMain"}},
    {"Java monitor",
     IDIOM_BLOCKED,
     {"__futex_abstimed_wait_common", "os::PlatformEvent::park()",
      "ObjectMonitor::enter(JavaThread*)"}},
    {"JVM safepoint",
     IDIOM_BLOCKED,
     {"__lll_lock_wait", "SafepointSynchronize::block(JavaThread*)"}},
    {"nginx thread pool",
     IDIOM_IDLE,
     {"pthread_cond_wait@@GLIBC_2.3.2", "ngx_thread_cond_wait", NULL, "start_thread"}},
    /* Debian's python3 has no names but those of its API. */
    {"event loop",
     IDIOM_IDLE,
     {"epoll_wait", NULL, NULL, "PyObject_Vectorcall", "_PyEval_EvalFrameDefault", "Py_RunMain"}},
    {"poll", IDIOM_EITHER, {"poll", NULL, "_PyEval_EvalFrameDefault", "Py_RunMain"}},
    {"epoll", IDIOM_EITHER, {"epoll_wait", NULL, "main"}},
    /* What an event loop or a pool serves waits as anything does. */
    {NULL,
     IDIOM_BLOCKED,
     {"__write", NULL, "ngx_http_free_request", NULL, "ngx_process_events_and_timers", NULL,
      "ngx_spawn_process", NULL, "ngx_master_process_cycle", "main"}},
    {"name lookup",
     IDIOM_BLOCKED,
     {"poll", "__res_context_send", "__res_context_query", "getaddrinfo", "ngx_parse_url",
      "ngx_epoll_process_events", "ngx_process_events_and_timers"}},
    {"mutex",
     IDIOM_BLOCKED,
     {"__lll_lock_wait", "pthread_mutex_lock", "cb", "uv__io_poll", "uv_run", "main"}},
    {NULL, IDIOM_BLOCKED, {"fdatasync", "bioProcessBackgroundJobs", "start_thread"}},
    {NULL, IDIOM_BLOCKED, {"fdatasync", "aof_fsync", "call", "aeProcessEvents", "aeMain", "main"}},
    {NULL, IDIOM_BLOCKED, {"pread64", "handle_fildes_io", "start_thread"}},
    {NULL, IDIOM_BLOCKED, {"read", "cb", "g_main_context_dispatch", NULL, "g_main_loop_run"}},
    {NULL, IDIOM_BLOCKED, {"read", "cb", "event_process_active_single_queue", "event_base_loop"}},
    {NULL,
     IDIOM_BLOCKED,
     {"read", "std::fs::read", "app::task", "tokio::runtime::task::raw::poll",
      "tokio::runtime::blocking::pool::Inner::run"}},
    {"epoll",
     IDIOM_EITHER,
     {"epoll_wait", "WaitEventSetWait", "WaitLatch", "shm_mq_send_bytes", "shm_mq_sendv",
      "tqueueReceiveSlot", "ParallelQueryMain", "StartBackgroundWorker"}},
    /* These themselves are idle. */
    {"nginx thread pool",
     IDIOM_IDLE,
     {"__GI___lll_lock_wait", "__pthread_mutex_cond_lock", "pthread_cond_wait",
      "ngx_thread_cond_wait"}},
    {"event loop", IDIOM_IDLE, {"epoll_wait", NULL, "ngx_process_events_and_timers", NULL, "main"}},
    {"event loop", IDIOM_IDLE, {"sigsuspend", "ngx_master_process_cycle", "main"}},
    {"event loop", IDIOM_IDLE, {"__poll", "libglib-2.0.so.0", "g_main_loop_run", "main"}},
    {"event loop",
     IDIOM_IDLE,
     {"epoll_wait", "WaitEventSetWait", "WaitLatch", "CheckpointerMain", "AuxiliaryProcessMain"}},
    {"Redis thread pool",
     IDIOM_IDLE,
     {"__futex_abstimed_wait_common", "pthread_cond_wait", "bioProcessBackgroundJobs",
      "start_thread"}},
    {"tokio thread pool",
     IDIOM_IDLE,
     {"syscall", "std::sys::pal::unix::futex::futex_wait",
      "std::sys::sync::condvar::futex::Condvar::wait_timeout",
      "tokio::runtime::blocking::pool::Inner::run"}},
    {"JVM service thread",
     IDIOM_IDLE,
     {"__futex_abstimed_wait_common", "os::PlatformMonitor::wait(long)",
      "Monitor::wait(unsigned long)", "VMThread::wait_for_vm_operation()", "VMThread::run()"}},
    {"JVM thread pool",
     IDIOM_IDLE,
     {"do_futex_wait", "__new_sem_wait_slow64", "PosixSemaphore::wait()",
      "WorkerTaskDispatcher::worker_run_task()", "WorkerThread::run()"}},
    {NULL, IDIOM_BLOCKED, {"read", "take_gillespie", "main"}},
    {NULL, IDIOM_BLOCKED, {NULL, "", "mutexes"}},
};

static void test_words(void **state)
{
    for (size_t i = 0; i < sizeof(stacks) / sizeof(*stacks); i++) {
        const struct idiom *idiom = idiom_find(stacks[i].functions, 12);

        if (!stacks[i].word) {
            assert_null(idiom);
            continue;
        }
        assert_non_null(idiom);
        assert_string_equal(idiom->word, stacks[i].word);
        assert_int_equal(idiom->kind, stacks[i].kind);
    }
}

static void test_sources(void **state)
{
    static const char *const blocked[] = {"Store.load", "handler", "Handle._run", "run"},
                             *const files[] = {"/srv/app.py", "/srv/app.py",
                                               "/usr/lib/python3.11/asyncio/events.py",
                                               "/usr/lib/python3.11/asyncio/runners.py"},
                             *const pool[] = {"_worker", "Thread.run"},
                             *const pool_files[] = {
                                 "/usr/lib/python3.11/concurrent/futures/thread.py",
                                 "/usr/lib/python3.11/threading.py"};

    assert_int_equal(idiom_find_source(blocked, files, 4)->kind, IDIOM_BLOCKED);
    assert_null(idiom_find_source(blocked, files, 2));
    assert_null(idiom_find_source(blocked, pool_files, 2));
    assert_int_equal(idiom_find_source(pool, pool_files, 2)->kind, IDIOM_IDLE);
    assert_null(idiom_find_source(pool + 1, pool_files + 1, 1));
}

/* The JVM's own threads idle while they wait for what is no longer used, and not in what they then
 * call, which is the program's. */
static void test_sources_of_java(void **state)
{
    static const char *const idle[] = {"java.lang.Object.wait",
                                       "java.lang.ref.ReferenceQueue.remove",
                                       "java.lang.ref.Finalizer$FinalizerThread.run"},
                             *const busy[] = {"java.lang.Object.wait", "shop.Order.finalize",
                                              "java.lang.ref.Finalizer$FinalizerThread.run"},
                             *const own[] = {"java.lang.Object.wait",
                                             "java.lang.ref.ReferenceQueue.remove",
                                             "shop.Cache.run"},
                             *const files[] = {"Object.java", "ReferenceQueue.java",
                                               "Finalizer.java"};

    assert_int_equal(idiom_find_source(idle, files, 3)->kind, IDIOM_IDLE);
    assert_null(idiom_find_source(busy, files, 3));
    assert_null(idiom_find_source(own, files, 3));
}

/* Functions as /proc/PID/stack of 6.18 shows them. */
static void test_kernel_words(void **state)
{
    const char *const supervised[] = {"seccomp_do_user_notification.isra.0", "__seccomp_filter",
                                      "syscall_trace_enter"};
    const char *const given[] = {"handle_userfault", "__handle_mm_fault", "read_zero"};
    const char *const lingers[] = {"wait_woken", "sk_stream_wait_close", "__tcp_close"};
    const char *const others[] = {"anon_pipe_write", NULL, "vfs_write"};

    assert_string_equal(idiom_kernel_word(supervised, 3), "supervisor (seccomp)");
    assert_string_equal(idiom_kernel_word(given, 3), "handler of userfaultfd");
    assert_string_equal(idiom_kernel_word(lingers, 3), "linger: data to be taken by the peer");
    assert_null(idiom_kernel_word(others, 3));
}

static void test_nothing(void **state)
{
    assert_null(idiom_find(NULL, 0));
    assert_null(idiom_kernel_word(NULL, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),           cmocka_unit_test(test_sources),
        cmocka_unit_test(test_sources_of_java), cmocka_unit_test(test_kernel_words),
        cmocka_unit_test(test_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
