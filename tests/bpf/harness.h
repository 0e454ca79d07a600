/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the tests of the bpf tier share: sessions, records by thread number, the
 * kernel's own figures to compare with, and children that never outlive a test.
 * For the test's main thread only; assertions are cmocka's, so a child that finds
 * something wrong says so by its exit status.
 */
#ifndef PRCB_TESTS_HARNESS_H
#define PRCB_TESTS_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include <cmocka.h>

#include <prcb/prcb.h>

/* Runs the tests, or says why eBPF cannot be used here and returns 77. Every test
 * needs test_end as its teardown: BPF_TEST. */
int bpf_run(const char *name, const struct CMUnitTest *tests, size_t count);
#define BPF_TEST(function)   cmocka_unit_test_teardown(function, test_end)
#define BPF_RUN(name, tests) bpf_run(name, tests, sizeof(tests) / sizeof((tests)[0]))
int test_end(void **state);

/* Leaves the running test, with the reason. */
#define skip_because(...) (printf("    not run: "), printf(__VA_ARGS__), printf("\n"), skip())

/* ---- sessions ---- */

/* A session on the bpf tier; closed by test_end. At most 4 at once. */
struct prcb *session_open(uint32_t max_threads);
/* With room for 1024. On an emulated machine, where loading the programs takes a second or
 * two, one for the whole program, with the accounts of ended threads given back. */
struct prcb *session_shared(void);
struct prcb *session_open_flags(uint32_t max_threads, uint32_t flags);

void must_profile_process(struct prcb *p, pid_t pid, unsigned follow);
void must_profile_thread(struct prcb *p, pid_t tid, unsigned follow);
struct prcb_thread *must_open(struct prcb *p, pid_t tid); /* 0: the calling thread */
struct prcb_account must_read(struct prcb_thread *t);

/* The account of the thread, the youngest where a number was reused. */
bool find_account(struct prcb *p, pid_t tid, struct prcb_account *ret);
struct prcb_account must_find(struct prcb *p, pid_t tid);

/* A copy of all accounts, in the order of the walk; freed by test_end. */
struct prcb_account *all_accounts(struct prcb *p, size_t *ret_count);

/* The same once all of them tell of their threads' end: a process can be waited for, and a
 * thread joined, a moment before its last switch. */
struct prcb_account *ended_accounts(struct prcb *p, size_t *ret_count);
/* Whether they do, for who may not assert: a child. */
bool all_ended(struct prcb *p, size_t *ret_count);

/* The laws that hold within every record: run + ready + waits + open == wall,
 * wait_ns == sum of waits, and each switch that was reported has one cause (born:
 * or all: of threads registered while off the processor too). */
void assert_laws(const struct prcb_account *a);
bool laws_hold(const struct prcb_account *a); /* quiet, for hot loops */
void print_account(const char *label, const struct prcb_account *a);

/* ---- the kernel's own figures ---- */

struct kernel_times {
    uint64_t run_ns;   /* sum_exec_runtime */
    uint64_t ready_ns; /* run_delay */
};

/* Voluntary + involuntary switches by /proc; false: no such thread. */
bool kernel_switches(pid_t pid, pid_t tid, uint64_t *ret_voluntary, uint64_t *ret_all);
uint64_t own_switches(void); /* getrusage(RUSAGE_THREAD) */
/* Exact while the thread is off the processor; the run time of a running one is as old
 * as the last tick. */
bool kernel_times(pid_t pid, pid_t tid, struct kernel_times *ret);
uint64_t own_run(void); /* exact run time of the calling thread: CLOCK_THREAD_CPUTIME_ID */
char kernel_state(pid_t pid, pid_t tid); /* the letter of /proc/PID/stat; 0: no such thread */

/* Off the processor, its last switch behind it: the kernel waits for that, as a thread that
 * is about to sleep or stop shows the state of one that does. */
bool kernel_off(pid_t pid, pid_t tid);
/* What a hypervisor took of all processors since the boot, in ns: whole ticks, of 10 ms mostly. */
uint64_t stolen_ns(void);
/* Not in a container, whose threads have numbers of their own. */
bool is_first_pid_ns(void);
/* Whether the kernel keeps time by the processor's counter; name: of what it does. */
bool kernel_uses_counter(char name[64]);

/* ---- time, processors ---- */

/* 10 where PRCB_TEST_SLOW=1 says that the machine is emulated, else 1: bounds of time are
 * multiplied by it, sizes divided. */
unsigned slowness(void);
/* What is repeated so that a race has its chance: a tenth where the machine is emulated, and under
 * a sanitizer, which looks at the code and not at its luck. Never none. */
unsigned repeated(unsigned times);

uint64_t mono_ns(void);
void sleep_ns(uint64_t ns);
/* The kernel's number of the cpu-th processor that the test may use, of the last where there are
 * fewer: some may be off line, or not allowed. */
unsigned cpu_number(unsigned cpu);
void pin_to(unsigned cpu); /* the calling thread, to the cpu-th it may use */
void pin_thread(pid_t tid, unsigned cpu);
void unpin(void); /* the calling thread; test_end does it too */
/* The calling thread, and what it starts from now on, before all others, where the kernel lets it;
 * until test_end. For what goes wrong by right when the test has no processor for long. */
void go_before_others(void);

/* Waits until the condition holds, looking every 200 us; false after 10 s (emulated: 100). */
#define wait_for(condition)                                                                        \
    __extension__({                                                                                \
        uint64_t give_up_ = mono_ns() + 10000000000ull * slowness();                               \
        bool held_;                                                                                \
        while (!(held_ = (condition)) && mono_ns() < give_up_)                                     \
            sleep_ns(200000);                                                                      \
        held_;                                                                                     \
    })

/* Takes processor 1 down or up, which disturbs all: only in a guest. False: it cannot be. */
bool processor_1_online(bool on);

/* True once the thread has switched out voluntarily more often than `before`. */
bool wait_switched_out(pid_t pid, pid_t tid, uint64_t before);

/* ---- children ---- */

/* A child process that runs fn(arg) and exits with what it returns. Killed by
 * test_end, and with the test. */
pid_t child_start(int (*fn)(void *arg), void *arg);
/* Waits for it. Exit status, or -signal. */
int child_wait(pid_t child);
void child_kill(pid_t child);
/* The test has waited for it itself. */
void child_gone(pid_t child);

/* Zeroed memory that children share; freed by test_end. */
void *shared_memory(size_t bytes);

/* A word on which one process at a time waits, asleep in FUTEX_WAIT. */
void gate_wait_while(uint32_t *word, uint32_t value);
void gate_set(uint32_t *word, uint32_t value);
uint32_t gate_get(const uint32_t *word);

#endif
