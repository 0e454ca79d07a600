/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <elfutils/libdwfl.h>

/* DWARF's numbers of the registers that a frozen thread has. */
#if defined(__x86_64__)
enum { REGISTER_FP = 6, REGISTER_SP = 7, REGISTER_LR = -1 };
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
enum { REGISTER_FP = 29, REGISTER_SP = 31, REGISTER_LR = 30 };
#define MACHINE EM_AARCH64
#else
#error "no DWARF registers of this processor: add them here"
#endif

/* What lies further above the stack pointer is taken for no part of the stack. */
#define STACK_MOST (64u << 20)

/* libdw knows processes and threads; here both are the one frozen thread. */
#define THE_THREAD 1

struct image {
    Dwfl *dwfl;
    struct image_debug debug;
    const struct frozen *frozen; /* during image_unwind */
    uint64_t *frames;
    size_t count, room;
    bool beyond; /* something was wanted from behind the copy */
};

/* ---- what libdw asks for ------------------------------------------------------------ */

static pid_t next_thread(Dwfl *dwfl, void *ctx, void **at)
{
    bool first = !*at;

    (void)dwfl;
    *at = ctx;
    return first ? THE_THREAD : 0;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *ctx, void **at)
{
    (void)dwfl;
    *at = ctx;
    return tid == THE_THREAD;
}

static bool read_word(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *ret, void *ctx)
{
    struct image *image = ctx;
    const struct frozen *frozen = image->frozen;
    uint64_t at = address - frozen->low, word;

    (void)dwfl;
    if (address < frozen->low || at >= frozen->length || frozen->length - at < sizeof(word)) {
        image->beyond = image->beyond || (address >= frozen->low && at < STACK_MOST);
        return false;
    }
    memcpy(&word, frozen->bytes + at, sizeof(word));
    *ret = word;
    return true;
}

static bool set_register(Dwfl_Thread *thread, int number, uint64_t value)
{
    Dwarf_Word word = value;

    return !value || number < 0 || dwfl_thread_state_registers(thread, number, 1, &word);
}

static bool set_registers(Dwfl_Thread *thread, void *ctx)
{
    const struct frozen_registers *at = &((struct image *)ctx)->frozen->at;

    if (!set_register(thread, REGISTER_SP, at->sp) || !set_register(thread, REGISTER_FP, at->fp) ||
        !set_register(thread, REGISTER_LR, at->lr))
        return false;
    dwfl_thread_state_register_pc(thread, at->pc);
    return true;
}

/* ---- images ------------------------------------------------------------------------- */

static int find_debug(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
                      const char *file, const char *link, GElf_Word crc, char **ret)
{
    const struct image *image = *data;
    const unsigned char *id;
    GElf_Addr address;
    int length = dwfl_module_build_id(module, &id, &address);

    if (!image || !image->debug.open || length <= 0)
        return -1;
    return image->debug.open(image->debug.ctx, id, (size_t)length);
}

static int find_no_elf(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
                       char **file, Elf **elf)
{
    return -1;
}

int image_open(const struct image_debug *debug, struct image **ret)
{
    static const Dwfl_Callbacks callbacks = {
        .find_elf = find_no_elf,
        .find_debuginfo = find_debug,
        .section_address = dwfl_offline_section_address,
    };
    struct image *image = calloc(1, sizeof(*image));

    if (!image)
        return -ENOMEM;
    image->dwfl = dwfl_begin(&callbacks);
    if (!image->dwfl) {
        free(image);
        return -ENOMEM;
    }
    if (debug)
        image->debug = *debug;
    dwfl_report_begin(image->dwfl);
    *ret = image;
    return 0;
}

void image_close(struct image *image)
{
    if (!image)
        return;
    dwfl_end(image->dwfl);
    free(image);
}

/* Of this processor, and not compressed: elfutils would unpack an image of any size. */
static bool is_ours(int fd)
{
    Elf64_Ehdr head;

    return pread(fd, &head, sizeof(head), 0) == sizeof(head) &&
           !memcmp(head.e_ident, ELFMAG, SELFMAG) && head.e_ident[EI_CLASS] == ELFCLASS64 &&
           head.e_machine == MACHINE;
}

int image_add(struct image *image, const struct image_file *file)
{
    Dwfl_Module *module = NULL;
    void **data;

    /* The descriptor is libdw's where it takes the module. */
    if (is_ours(file->fd))
        module = dwfl_report_elf(image->dwfl, file->path, file->path, file->fd, file->start, false);
    if (!module) {
        close(file->fd);
        return -EINVAL;
    }
    dwfl_module_info(module, &data, NULL, NULL, NULL, NULL, NULL, NULL);
    *data = image;
    return 0;
}

int image_ready(struct image *image)
{
    static const Dwfl_Thread_Callbacks callbacks = {
        .next_thread = next_thread,
        .get_thread = get_thread,
        .memory_read = read_word,
        .set_initial_registers = set_registers,
    };

    if (dwfl_report_end(image->dwfl, NULL, NULL))
        return -ENOENT;
    return dwfl_attach_state(image->dwfl, NULL, THE_THREAD, &callbacks, image) ? 0 : -ENOENT;
}

/* ---- unwinding ---------------------------------------------------------------------- */

static int take_frame(Dwfl_Frame *frame, void *ctx)
{
    struct image *image = ctx;
    Dwarf_Addr pc;
    bool exact;

    if (!dwfl_frame_pc(frame, &pc, &exact))
        return DWARF_CB_ABORT;
    if (!exact && image->count)
        pc--; /* a return address: the call lies before it */
    image->frames[image->count++] = pc;
    return image->count < image->room ? DWARF_CB_OK : DWARF_CB_ABORT;
}

size_t image_unwind(struct image *image, const struct frozen *frozen, uint64_t *frames, size_t room,
                    enum stack_end *ret_end)
{
    int result;

    image->frozen = frozen;
    image->frames = frames;
    image->room = room;
    image->count = 0;
    image->beyond = false;
    result = dwfl_getthread_frames(image->dwfl, THE_THREAD, take_frame, image);
    if (!image->count)
        frames[image->count++] = frozen->at.pc;
    *ret_end = image->count == room ? STACK_DEEP
               /* libdw takes a return address that cannot be read for the stack's end. */
               : image->beyond ? STACK_SHORT
               : !result       ? STACK_COMPLETE
                               : STACK_BROKEN;
    image->frozen = NULL;
    return image->count;
}

void image_name(struct image *image, uint64_t address, char *ret, size_t size)
{
    Dwfl_Module *module = dwfl_addrmodule(image->dwfl, address);
    const char *name = module ? dwfl_module_addrname(module, address) : NULL;

    snprintf(ret, size, "%s", name ? name : "");
}
