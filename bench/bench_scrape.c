/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a scrape of 20,000 threads costs: the made-up accounts of as many threads in 100 cgroups are
 * summed up and written for Prometheus, beside what exporters do that walk /proc: a file opened,
 * read and closed for each thread.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"
#include "exposition.h"

#define THREADS 20000
#define CGROUPS 100
#define ROUNDS  21

static struct prcb_account *accounts;
static uint64_t cgroups[CGROUPS];

static void make_accounts(const char *root)
{
    char path[256];
    struct stat st;

    accounts = calloc(THREADS, sizeof(*accounts));
    for (unsigned i = 0; i < CGROUPS; i++) {
        snprintf(path, sizeof(path), "%s/cri-containerd-%064x.scope", root, i);
        if (!accounts || mkdir(path, 0755) || stat(path, &st)) {
            perror(path);
            exit(1);
        }
        cgroups[i] = st.st_ino;
    }
    for (unsigned i = 0; i < THREADS; i++) {
        struct prcb_account *a = &accounts[i];

        *a = (struct prcb_account){.size = sizeof(*a), .key = i + 1, .present = ~0ull};
        a->cgroup = cgroups[i % CGROUPS];
        a->run_ns = a->ready_ns = 1000000ull * i;
        a->waits[PRCB_CAUSE_FUTEX].ns = a->waits[PRCB_CAUSE_EPOLL].ns = 1000000ull * i;
        a->open = (struct prcb_open){.cause = PRCB_CAUSE_EPOLL, .ns = 5000000};
        snprintf(a->comm, sizeof(a->comm), "worker-%u", i % 50);
    }
}

static void remove_cgroups(const char *root)
{
    char path[256];

    for (unsigned i = 0; i < CGROUPS; i++) {
        snprintf(path, sizeof(path), "%s/cri-containerd-%064x.scope", root, i);
        rmdir(path);
    }
    rmdir(root);
}

static double sum_up(struct metrics *m)
{
    uint64_t begin = bench_now();

    metrics_begin(m);
    for (unsigned i = 0; i < THREADS; i++) {
        accounts[i].run_ns += 1000;
        metrics_add(m, &accounts[i]);
    }
    metrics_end(m, NULL, NULL);
    return (double)(bench_now() - begin);
}

static double write_out(struct metrics *m)
{
    uint64_t begin = bench_now();
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (out) {
        exposition_write(out, EXPOSITION_OPENMETRICS, m);
        fclose(out);
    }
    free(text);
    return (double)(bench_now() - begin);
}

static double walk_proc(const char *path)
{
    uint64_t begin = bench_now();
    char text[4096];

    for (unsigned i = 0; i < THREADS; i++) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);

        if (fd < 0 || read(fd, text, sizeof(text)) < 0) {
            perror(path);
            exit(1);
        }
        close(fd);
    }
    return (double)(bench_now() - begin);
}

int main(void)
{
    char root[] = "/tmp/prcb-bench-XXXXXX";
    struct metrics_options options = {.tier = PRCB_TIER_BPF, .cgroup_root = root};
    double sum[ROUNDS], write_[ROUNDS], stat_[ROUNDS], schedstat[ROUNDS];
    struct prcb_error err;
    struct metrics *m;

    if (!mkdtemp(root) || metrics_open_fed(&options, &m, &err))
        return 1;
    make_accounts(root);
    bench_pin(0);
    for (int i = 0; i < ROUNDS; i++) {
        sum[i] = sum_up(m);
        write_[i] = write_out(m);
        stat_[i] = walk_proc("/proc/self/stat");
        schedstat[i] = walk_proc("/proc/self/schedstat");
    }
    printf("a scrape of %d threads in %d cgroups, median of %d interleaved rounds\n\n"
           "                                                ms   prcb is\n",
           THREADS, CGROUPS, ROUNDS);
    sum[0] = bench_median(sum, ROUNDS);
    write_[0] = bench_median(write_, ROUNDS);
    stat_[0] = bench_median(stat_, ROUNDS);
    schedstat[0] = bench_median(schedstat, ROUNDS);
    printf("accounts summed by cgroup                 %8.2f\n", sum[0] / 1e6);
    printf("written as OpenMetrics                    %8.2f\n", write_[0] / 1e6);
    printf("/proc/TID/stat, open+read+close of each   %8.2f  %7.1fx\n", stat_[0] / 1e6,
           stat_[0] / (sum[0] + write_[0]));
    printf("/proc/TID/schedstat, the same             %8.2f  %7.1fx\n", schedstat[0] / 1e6,
           schedstat[0] / (sum[0] + write_[0]));
    metrics_close(m);
    remove_cgroups(root);
    free(accounts);
    return 0;
}
