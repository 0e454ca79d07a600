/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What it takes to read the functions of a thread that waits in Python: for the thread and the file
 * that are named (of the program or libpython, as its /proc/PID/maps has it), so many times.
 *
 *   python_frames PID FILE BIAS TIMES
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "now.h"
#include "runtimes.h"

static struct runtime_answer answer;

static int open_of(const char *pid, const char *name)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%s/%s", pid, name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

int main(int argc, char **argv)
{
    const struct runtime_thread thread = {argc > 4 ? atoi(argv[1]) : 0};
    struct runtimes *runtimes;
    uint64_t least = UINT64_MAX, began, all;
    int file, times;
    Elf *elf;

    if (argc != 5)
        return 2;
    file = open(argv[2], O_RDONLY | O_CLOEXEC);
    times = atoi(argv[4]);
    elf_version(EV_CURRENT);
    elf = elf_begin(file, ELF_C_READ_MMAP, NULL);
    if (!elf || times < 1 || runtimes_open(&runtimes))
        return 1;
    runtimes_add(runtimes, elf, strtoull(argv[3], NULL, 16), strrchr(argv[2], '/') + 1);
    runtimes_set_memory(runtimes, open_of(argv[1], "mem"), open_of(argv[1], "pagemap"));
    all = now_ns();
    for (int i = 0; i < times; i++) {
        began = now_ns();
        runtimes_read(runtimes, &thread, &answer);
        began = now_ns() - began;
        least = began < least ? began : least;
    }
    all = now_ns() - all;
    printf("%u frames: %.1f us, least %.1f us\n", answer.count, (double)all / times / 1e3,
           (double)least / 1e3);
    runtimes_close(runtimes);
    return !answer.count;
}
