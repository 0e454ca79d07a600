/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The system information calls on any class, group, length and address. The buffer ends at a page
 * that faults; what lies before it shows writes where none belong: beyond what is told as written,
 * or any at all by a call that fails (but the two classes that fill what fits). Over processors
 * of three groups.
 */
#include <assert.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/timex.h>
#include <unistd.h>

#include "fake_processors.h"
#include "view.h"

#define PAGE       4096u
#define PAGES      4u
#define FILLER     0xa5
#define PROCESSORS 130 /* three groups */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned char *arena; /* PAGES, then one that faults */
static int caller_cpu;

int sched_getcpu(void)
{
    return caller_cpu;
}

/* The clock of the machine is not a toy. */
int adjtimex(struct timex *buffer)
{
    buffer->tick = 10000;
    buffer->freq = 0;
    return 0;
}

struct input {
    uint8_t call, tier, cpu, unused;
    uint32_t number; /* class or level */
    uint32_t length;
    uint16_t offset; /* of the buffer before the end of the arena */
    uint16_t group;
    uint8_t input_length, flags;
    uint16_t lacking;
};
enum { NO_BUFFER = 1, NO_TOLD = 2, NO_INPUT = 4, BAD_READ = 8, ODD_INPUT = 16 };

static void set_up(void)
{
    static char root[] = "/tmp/prcb-fuzz-nt-XXXXXX";
    struct prcb_processors_options options = {.size = sizeof(options), .root = root};
    char name[64];
    FILE *file;

    arena =
        mmap(NULL, (PAGES + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (arena == MAP_FAILED || mprotect(arena + PAGES * PAGE, PAGE, PROT_NONE) || !mkdtemp(root))
        abort();
    snprintf(name, sizeof(name), "%s/proc", root);
    mkdir(name, 0755);
    strcat(name, "/stat");
    file = fopen(name, "w");
    if (!file)
        abort();
    fputs("cpu 0 0 0 0\nctxt 1\n", file);
    fclose(file);
    prcb_nt_set_processors(&options);
    fake_fill(PROCESSORS);
    prcb_nt_processors_tier(); /* opens it: the tree is not wanted again */
    unlink(name);
    *strrchr(name, '/') = '\0';
    rmdir(name);
    rmdir(root);
}

static NTSTATUS call(const struct input *in, void *buffer, uint32_t *told)
{
    uint16_t words[64] = {in->group};
    void *input = in->flags & NO_INPUT ? NULL : (char *)words + (in->flags & ODD_INPUT ? 1 : 0);
    uint32_t input_length = in->input_length % 100;

    switch (in->call % 5) {
    case 0:
        return prcb_NtQuerySystemInformation(in->number, buffer, in->length, told);
    case 1:
        return prcb_NtQuerySystemInformationEx(in->number, input, input_length, buffer, in->length,
                                               told);
    case 2:
        return prcb_NtPowerInformation(in->number, input, input_length, buffer, in->length);
    case 3:
        return prcb_nt_set_system_information(in->number & 1 ? 0x1c : 0x1f, buffer, in->length,
                                              (enum prcb_nt_mode)(in->flags & 1));
    default:
        prcb_nt_absent(in->number, in->length);
        prcb_nt_member(in->number, in->length);
        return STATUS_NOT_SUPPORTED;
    }
}

/* Nothing but [buffer, buffer + written) has changed. */
static void check_untouched(const unsigned char *buffer, size_t written)
{
    for (size_t i = 0; i < PAGES * PAGE; i++) {
        if (arena + i < buffer || arena + i >= buffer + written)
            assert(arena[i] == FILLER);
    }
}

static void check(const struct input *in, const unsigned char *buffer, NTSTATUS status,
                  uint32_t told)
{
    bool query = in->call % 5 < 2, power = in->call % 5 == 2;
    bool cycles = query && (in->number == 0x53 || in->number == 0x6c);
    size_t written = 0;

    if (query && !status && !(in->flags & NO_TOLD))
        written = told;
    else if ((query && !status) || (power && !status) || cycles)
        written = in->length;
    assert(written <= in->length || !written);
    check_untouched(buffer, written);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in;
    unsigned char *buffer;
    uint32_t told = 0;
    NTSTATUS status;

    if (size < sizeof(in))
        return 0;
    if (!arena)
        set_up();
    memcpy(&in, data, sizeof(in));
    fake.tier = in.tier & 1 ? PRCB_TIER_PERF : PRCB_TIER_BPF;
    fake.read_error = in.flags & BAD_READ ? -EAGAIN : 0;
    fake.lacking = in.lacking;
    caller_cpu = in.cpu % PROCESSORS;
    memset(arena, FILLER, PAGES * PAGE);
    buffer = in.flags & NO_BUFFER ? NULL : arena + PAGES * PAGE - in.offset % (PAGES * PAGE + 1);
    status = call(&in, buffer, in.flags & NO_TOLD ? NULL : &told);
    /* A buffer that reaches into the page behind: refused. */
    if (buffer && in.call % 5 < 3 && in.length && buffer + in.length > arena + PAGES * PAGE)
        assert(status);
    check(&in, buffer ? buffer : arena, status, told);
    return 0;
}
