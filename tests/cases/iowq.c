/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Two requests of io_uring that its workers are asked to do: opening a FIFO that nobody writes to,
 * in which the worker blocks, and a read of a pipe, after which the worker has nothing to do.
 * Prints its number. The argument is the FIFO's name.
 */
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static char bytes[64];

int main(int argc, char **argv)
{
    struct io_uring_params params;
    struct io_uring_sqe *entries;
    unsigned *array, *tail;
    int ends[2], ring;
    char *queue;

    alarm(60);
    memset(&params, 0, sizeof(params));
    ring = (int)syscall(SYS_io_uring_setup, 8, &params);
    if (ring < 0 || argc != 2 || pipe(ends) || mkfifo(argv[1], 0600)) {
        puts("0");
        return 0;
    }
    queue = mmap(NULL, params.sq_off.array + params.sq_entries * 4, PROT_READ | PROT_WRITE,
                 MAP_SHARED, ring, IORING_OFF_SQ_RING);
    entries = mmap(NULL, params.sq_entries * sizeof(*entries), PROT_READ | PROT_WRITE, MAP_SHARED,
                   ring, IORING_OFF_SQES);
    if (queue == MAP_FAILED || (void *)entries == MAP_FAILED)
        return 1;
    tail = (unsigned *)(void *)(queue + params.sq_off.tail);
    array = (unsigned *)(void *)(queue + params.sq_off.array);
    for (unsigned i = 0; i < 2; i++) {
        entries[i].flags = IOSQE_ASYNC;
        array[i] = i;
    }
    entries[0].opcode = IORING_OP_READ;
    entries[0].fd = ends[0];
    entries[0].addr = (unsigned long)bytes;
    entries[0].len = 1;
    entries[0].off = -1ull;
    entries[1].opcode = IORING_OP_OPENAT;
    entries[1].fd = AT_FDCWD;
    entries[1].addr = (unsigned long)argv[1];
    entries[1].open_flags = O_RDONLY;
    __atomic_store_n(tail, 2, __ATOMIC_RELEASE);
    printf("%d\n", (int)getpid());
    fflush(stdout);
    syscall(SYS_io_uring_enter, ring, 2, 1, IORING_ENTER_GETEVENTS, NULL, 0);
    return 0;
}
