/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A prcbd of the benchmark's own: its socket and pins are nobody else's. One at a time.
 */
#ifndef PRCB_BENCH_DAEMON_H
#define PRCB_BENCH_DAEMON_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <prcb/prcb.h>

#ifdef BENCH_PRCBD

static char bench_folder[32], bench_socket[64], bench_pins[64], bench_config[64];
static pid_t bench_prcbd;

static inline pid_t bench_run_prcbd(const char *option)
{
    pid_t pid = fork();

    if (pid)
        return pid;
    bench_pin(1); /* where it measures nothing */
    if (!freopen("/dev/null", "w", stderr))
        _exit(126);
    execl(BENCH_PRCBD, "prcbd", "--config", bench_config, "--socket", bench_socket,
          "--pin-directory", bench_pins, "--user", "", option, NULL);
    _exit(127);
}

static inline struct prcb *bench_daemon_session_flags(uint32_t flags)
{
    struct prcb_options options = {
        .size = sizeof(options), .tier = PRCB_TIER_DAEMON, .max_threads = 64, .flags = flags};
    struct prcb *p = NULL;

    for (int i = 0; i < 1000 && prcb_open(&options, &p, NULL); i++)
        usleep(10000);
    return p;
}

static inline struct prcb *bench_daemon_session(void)
{
    return bench_daemon_session_flags(0);
}

/* True: it serves, and PRCB_SOCKET names it. settings: further lines of its configuration. */
static inline bool bench_daemon_begin_with(const char *settings)
{
    FILE *config;
    struct prcb *p;

    memcpy(bench_folder, "/tmp/prcbd-bench-XXXXXX", sizeof("/tmp/prcbd-bench-XXXXXX"));
    if (!mkdtemp(bench_folder) || chmod(bench_folder, 0755)) /* for other users as well */
        return false;
    snprintf(bench_socket, sizeof(bench_socket), "%s/socket", bench_folder);
    snprintf(bench_pins, sizeof(bench_pins), "/sys/fs/bpf/%s", bench_folder + 5);
    snprintf(bench_config, sizeof(bench_config), "%s/conf", bench_folder);
    config = fopen(bench_config, "we");
    if (!config || fprintf(config, "profile_all = all\n%s", settings) < 0 || fclose(config))
        return false;
    setenv("PRCB_SOCKET", bench_socket, 1);
    bench_prcbd = bench_run_prcbd(NULL);
    p = bench_daemon_session();
    prcb_close(p);
    return p;
}

static inline bool bench_daemon_begin(void)
{
    return bench_daemon_begin_with("");
}

static inline void bench_daemon_end(void)
{
    pid_t clean;

    kill(bench_prcbd, SIGKILL);
    waitpid(bench_prcbd, NULL, 0);
    clean = bench_run_prcbd("--cleanup");
    waitpid(clean, NULL, 0);
    unlink(bench_socket);
    unlink(bench_config);
    rmdir(bench_folder);
    usleep(200000); /* the kernel takes programs out of their places a while after */
}

#endif
#endif
