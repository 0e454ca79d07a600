/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A program that profiles itself through libprcb, for test_ladder.py to run as an
 * ordinary user: it gets the perf tier without asking and its figures are what
 * getrusage and its own clock say. Prints what does not hold, and fails.
 */
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <prcb/prcb.h>

#define ROUNDS 50

struct kernel {
    unsigned long long voluntary, switches, run_ns;
};

static struct kernel ask_kernel(void)
{
    struct timespec ts;
    struct rusage usage;
    struct kernel k;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    getrusage(RUSAGE_THREAD, &usage);
    k.voluntary = (unsigned long long)usage.ru_nvcsw;
    k.switches = k.voluntary + (unsigned long long)usage.ru_nivcsw;
    k.run_ns = (unsigned long long)ts.tv_sec * 1000000000 + (unsigned long long)ts.tv_nsec;
    return k;
}

static int failures;

static void check(const char *what, unsigned long long low, unsigned long long value,
                  unsigned long long high)
{
    if (value >= low && value <= high)
        return;
    printf("%s: %llu is not from %llu to %llu\n", what, value, low, high);
    failures++;
}

static void check_record(const struct prcb_account *a, const struct kernel k[4])
{
    check("tid", (unsigned)gettid(), (unsigned)a->tid, (unsigned)gettid());
    check("voluntary switches", k[2].voluntary - k[1].voluntary, a->voluntary_switches,
          k[3].voluntary - k[0].voluntary);
    check("switches", k[2].switches - k[1].switches, a->switches, k[3].switches - k[0].switches);
    check("run", k[2].run_ns - k[1].run_ns, a->run_ns, k[3].run_ns - k[0].run_ns);
    check("wait", ROUNDS * 1000000ull, a->wait_ns, a->wall_ns);
    check("waits", 0, a->present & PRCB_HAS_WAITS, 0);
}

int main(void)
{
    struct prcb_account record = {.size = sizeof(record)};
    struct prcb_error err = {0};
    struct prcb_thread *t;
    struct kernel k[4];
    struct prcb *p;

    if (prcb_open(NULL, &p, &err)) {
        printf("prcb_open: %s\n", err.text);
        return 1;
    }
    check("tier", PRCB_TIER_PERF, prcb_session_tier(p), PRCB_TIER_PERF);
    check("reason for the tier", 1, prcb_session_tier_reason(p) != NULL, 1);
    check("reason for no waits", 1, prcb_absent_reason(p, PRCB_HAS_WAITS) != NULL, 1);
    k[0] = ask_kernel();
    if (prcb_thread_open_self(p, &t, &err)) {
        printf("prcb_thread_open_self: %s\n", err.text);
        return 1;
    }
    k[1] = ask_kernel();
    for (int i = 0; i < ROUNDS; i++)
        usleep(1000);
    k[2] = ask_kernel();
    check("prcb_thread_read", 0, (unsigned)prcb_thread_read(t, &record), 0);
    k[3] = ask_kernel();
    check_record(&record, k);
    prcb_thread_close(t);
    prcb_close(p);
    return failures ? 1 : 0;
}
