/* SPDX-License-Identifier: BSD-2-Clause */
#include "world.h"

#include <prcb/stack.h>

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "array.h"
#include "comm.h"
#include "living.h"
#include "names.h"
#include "now.h"
#include "reach.h"
#include "table.h"

#define FRAMES_MAX    (1u << 19)    /* beyond, what is known is forgotten: ids may repeat a frame */
#define LINGER_NS     1000000000ull /* an ended thread may still be sampled */
#define NAME_BYTES    16
#define MAP_OF_KERNEL 1 /* row of the kernel in maps */

struct map {
    uint64_t start, end;
    uint64_t base; /* an address less this is a place in the file */
    uint64_t name; /* of the file: a hash of its last part */
    int64_t id;
    uint64_t inode;    /* of its file; 0: not known, or none */
    bool has_build_id; /* of its file */
    bool whole;        /* no second record of it comes */
};

struct process {
    int32_t pid;
    uint32_t threads;
    struct map *maps; /* by start; they do not overlap */
    size_t map_count, map_room;
    bool is_here; /* it sees the same files under their paths as we do */
    bool looked;  /* since it runs its program */
};

struct thread {
    int32_t pid, tid;
    int64_t id;
    uint64_t ended_ns; /* 0: it lives */
    char name[NAME_BYTES];
    bool counted; /* among its process's threads */
};

struct frame {
    int64_t caller, map;
    uint64_t address;
    int64_t id;
};

struct world {
    struct writer *writer;
    struct table threads, processes; /* by number */
    int64_t last_thread, last_map, last_frame;
    struct frame *frames;
    size_t frame_room, frame_count;
    struct table known; /* places of frames */
    uint64_t swept_ns;
};

int world_open(struct writer *writer, struct world **ret)
{
    struct writer_map kernel = {.id = MAP_OF_KERNEL, .file = "[kernel]", .uid = -1};
    struct world *world = calloc(1, sizeof(*world));
    int result;

    if (!world)
        return -ENOMEM;
    world->writer = writer;
    world->last_map = MAP_OF_KERNEL;
    result = writer_map(writer, &kernel);
    if (result) {
        world_close(world);
        return result;
    }
    *ret = world;
    return 0;
}

static void free_process(struct process *process)
{
    free(process->maps);
    free(process);
}

void world_close(struct world *world)
{
    if (!world)
        return;
    for (size_t i = 0; i < world->threads.room; i++)
        free(world->threads.slots[i].item);
    for (size_t i = 0; i < world->processes.room; i++) {
        if (world->processes.slots[i].item)
            free_process(world->processes.slots[i].item);
    }
    table_free(&world->threads);
    table_free(&world->processes);
    table_free(&world->known);
    free(world->frames);
    free(world);
}

/* ---- processes and threads ------------------------------------------------- */

static struct process *find_process(struct world *world, int32_t pid, bool make)
{
    struct process *process = table_find(&world->processes, (uint32_t)pid);

    if (process || !make)
        return process;
    process = calloc(1, sizeof(*process));
    if (process && table_put(&world->processes, (uint32_t)pid, process)) {
        free(process);
        return NULL;
    }
    if (process)
        process->pid = pid;
    return process;
}

static void remove_process(struct world *world, struct process *gone)
{
    table_remove(&world->processes, (uint32_t)gone->pid, gone);
    free_process(gone);
}

static struct thread *find_thread(const struct world *world, int32_t tid)
{
    return table_find(&world->threads, (uint32_t)tid);
}

static void forget(struct world *world, struct thread *gone)
{
    struct process *process = find_process(world, gone->pid, false);

    table_remove(&world->threads, (uint32_t)gone->tid, gone);
    if (process && gone->counted && !--process->threads)
        remove_process(world, process);
    free(gone);
}

/* Forgets the threads that ended a while ago. */
static void sweep(struct world *world, uint64_t now)
{
    if (now < world->swept_ns + LINGER_NS)
        return;
    world->swept_ns = now;
    for (size_t i = 0; i < world->threads.room;) {
        struct thread *thread = world->threads.slots[i].item;

        if (thread && thread->ended_ns && thread->ended_ns + LINGER_NS < now)
            forget(world, thread);
        else
            i++;
    }
}

static struct thread *add_thread(struct world *world, int32_t parent_pid, int32_t pid, int32_t tid,
                                 const char *name, uint64_t time_ns, const char *state)
{
    struct thread *thread = find_thread(world, tid);
    struct process *process;

    sweep(world, time_ns);
    if (thread)
        forget(world, thread); /* the number is used again */
    process = find_process(world, pid, true);
    thread = calloc(1, sizeof(*thread));
    if (!process || !thread || table_put(&world->threads, (uint32_t)tid, thread)) {
        free(thread);
        return NULL;
    }
    thread->pid = pid;
    thread->tid = tid;
    thread->id = ++world->last_thread;
    thread->counted = true;
    process->threads++;
    snprintf(thread->name, sizeof(thread->name), "%s", name);
    if (writer_thread(world->writer, thread->id, pid, tid, parent_pid, *name ? name : NULL, time_ns,
                      state)) {
        forget(world, thread);
        return NULL;
    }
    return thread;
}

int64_t world_thread(struct world *world, int32_t pid, int32_t tid, uint64_t time_ns,
                     const char *state)
{
    struct thread *thread = find_thread(world, tid);

    if (!thread || thread->pid != pid)
        thread = add_thread(world, 0, pid, tid, pid ? "" : "idle", time_ns, state);
    return thread ? thread->id : 0;
}

int64_t world_known_thread(const struct world *world, int32_t pid, int32_t tid)
{
    const struct thread *thread = find_thread(world, tid);

    return thread && thread->pid == pid ? thread->id : 0;
}

bool world_knows_process(struct world *world, int32_t pid)
{
    return find_process(world, pid, false) != NULL;
}

int world_state(struct world *world, int32_t pid, int32_t tid, const struct writer_state *state)
{
    int64_t id = world_known_thread(world, pid, tid);

    return id ? writer_thread_state(world->writer, id, state) : 0;
}

static int copy_maps(struct world *world, int32_t from, struct process *to)
{
    const struct process *parent = find_process(world, from, false);

    if (!parent || parent == to)
        return 0;
    to->is_here = parent->is_here;
    if (!parent->map_count)
        return 0;
    free(to->maps);
    to->maps = malloc(parent->map_count * sizeof(*to->maps));
    to->map_count = to->map_room = to->maps ? parent->map_count : 0;
    if (!to->maps)
        return -ENOMEM;
    memcpy(to->maps, parent->maps, parent->map_count * sizeof(*to->maps));
    return 0;
}

int world_fork(struct world *world, int32_t parent_pid, int32_t parent_tid, int32_t pid,
               int32_t tid, uint64_t time_ns)
{
    const struct thread *parent = find_thread(world, parent_tid);
    struct thread *thread;
    char name[NAME_BYTES] = "";

    if (parent)
        memcpy(name, parent->name, sizeof(name));
    thread =
        add_thread(world, parent_pid == pid ? 0 : parent_pid, pid, tid, name, time_ns, "ready");
    if (!thread)
        return -ENOMEM;
    return parent_pid == pid ? 0 : copy_maps(world, parent_pid, find_process(world, pid, true));
}

int world_exit(struct world *world, int32_t pid, int32_t tid, uint64_t time_ns)
{
    struct thread *thread = find_thread(world, tid);

    if (!thread || thread->ended_ns)
        return 0;
    thread->ended_ns = time_ns;
    return writer_thread_end(world->writer, thread->id, time_ns);
}

int world_name(struct world *world, int32_t pid, int32_t tid, const char *name, bool exec,
               uint64_t time_ns)
{
    struct thread *thread = find_thread(world, tid);
    struct process *process = find_process(world, pid, false);

    if (exec && process) {
        process->map_count = 0;
        process->looked = false;
    }
    if (thread && exec) {
        int result = writer_thread_end(world->writer, thread->id, time_ns);

        if (result)
            return result;
        /* The new thread is made before the old one is forgotten, or the process would go with
         * its last thread. */
        if (process)
            process->threads++;
        forget(world, thread);
        thread = add_thread(world, 0, pid, tid, name, time_ns, "running");
        if (process)
            process->threads--;
        return thread ? 0 : -ENOMEM;
    }
    if (!thread)
        return add_thread(world, 0, pid, tid, name, time_ns, exec ? "running" : NULL) ? 0 : -ENOMEM;
    if (!strcmp(thread->name, name))
        return 0;
    snprintf(thread->name, sizeof(thread->name), "%s", name);
    return writer_thread_name(world->writer, thread->id, name);
}

/* ---- maps ------------------------------------------------------------------ */

/* Finds the first map that ends behind an address. */
static size_t first_behind(const struct process *process, uint64_t address)
{
    return array_front(i, process->map_count, process->maps[i].end <= address);
}

/* Puts count maps in the place of those from first to last. */
static int replace(struct process *process, size_t first, size_t last, const struct map *with,
                   size_t count)
{
    if (array_reserve(process->maps, process->map_count, process->map_room, count))
        return -ENOMEM;
    memmove(process->maps + first + count, process->maps + last,
            (process->map_count - last) * sizeof(*with));
    memcpy(process->maps + first, with, count * sizeof(*with));
    process->map_count += count - (last - first);
    return 0;
}

/* Inserts a map, which takes the place of what it covers; parts of old maps outside of it stay. */
static int insert(struct process *process, struct map map)
{
    size_t first = first_behind(process, map.start), last = first, count = 0;
    struct map with[3];

    if (first < process->map_count && process->maps[first].start < map.start) {
        with[count] = process->maps[first];
        with[count++].end = map.start;
    }
    with[count++] = map;
    while (last < process->map_count && process->maps[last].start < map.end)
        last++;
    if (last > first && process->maps[last - 1].end > map.end) {
        with[count] = process->maps[last - 1];
        with[count++].start = map.end;
    }
    return replace(process, first, last, with, count);
}

/* Returns the user of a process, while it exists: a list of its code's names must belong to the
 * same user. */
static int64_t owner_of(int64_t pid)
{
    struct stat about;
    char path[32];

    snprintf(path, sizeof(path), "/proc/%d", (int)living_thread((pid_t)pid));
    return stat(path, &about) ? -1 : (int64_t)about.st_uid;
}

/* Looks whether a process has our mount namespace and root: else another file may be under the
 * path of its own. One that has ended is taken to see what its parent saw. */
static void look_where(struct process *process)
{
    char path[64], ours[64] = "", its[64] = "", root[4] = "";
    pid_t living = living_thread(process->pid);

    process->looked = true;
    snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)living);
    if (readlink(path, its, sizeof(its) - 1) <= 0 ||
        readlink("/proc/self/ns/mnt", ours, sizeof(ours) - 1) <= 0)
        return;
    snprintf(path, sizeof(path), "/proc/%d/root", (int)living);
    process->is_here =
        !strcmp(its, ours) && readlink(path, root, sizeof(root) - 1) > 0 && !strcmp(root, "/");
}

/* The last part of a path: folders may be called otherwise in another root. */
static uint64_t hash_of_name(const char *path)
{
    static const char deleted[] = " (deleted)";
    const char *slash = path ? strrchr(path, '/') : NULL, *name = slash  ? slash + 1
                                                                  : path ? path
                                                                         : "";
    char text[256];
    char *end;

    snprintf(text, sizeof(text), "%s", name);
    end = strstr(text, deleted);
    if (end && !end[strlen(deleted)])
        *end = '\0';
    return table_hash_text(text);
}

/* Two records tell of one mapping: one has the file's build id, the other its numbers; if there is
 * no build id, both say the same. Finds what the first one made; NULL: this is the first. */
static struct map *other_record_of(const struct process *process, const struct writer_map *map)
{
    size_t at = first_behind(process, map->start);
    struct map *found = at < process->map_count ? &process->maps[at] : NULL;

    if (!found || found->whole || found->start != map->start ||
        found->end != map->start + map->length || found->base != map->start - map->file_offset ||
        found->name != hash_of_name(map->file))
        return NULL;
    if (map->build_id || found->has_build_id)
        return (map->build_id ? !found->has_build_id : !found->inode) ? found : NULL;
    return found->inode == map->inode ? found : NULL;
}

static int add_map(struct world *world, const struct writer_map *map, bool whole)
{
    struct process *process = find_process(world, (int32_t)map->pid, true);
    struct writer_map row = *map;
    struct map *known;
    int result;

    if (!process || map->start + map->length < map->start)
        return process ? 0 : -ENOMEM;
    known = whole ? NULL : other_record_of(process, map);
    if (known) {
        row.id = known->id;
        known->whole = true;
        return known->has_build_id || map->build_id ? writer_map_file(world->writer, &row) : 0;
    }
    row.id = ++world->last_map;
    row.uid = names_is_anonymous(map->file) ? owner_of(map->pid) : -1;
    if (!process->looked)
        look_where(process);
    if (process->is_here)
        row.here_ns = (int64_t)(now_by(CLOCK_REALTIME) - (now_ns() - map->time_ns));
    result = insert(process, (struct map){
                                 .start = map->start,
                                 .end = map->start + map->length,
                                 .base = map->start - map->file_offset,
                                 .name = hash_of_name(map->file),
                                 .id = row.id,
                                 .inode = row.inode,
                                 .has_build_id = row.build_id != NULL,
                                 .whole = whole,
                             });
    return result ? result : writer_map(world->writer, &row);
}

int world_map(struct world *world, const struct writer_map *map)
{
    return add_map(world, map, false);
}

/* ---- from /proc ------------------------------------------------------------ */

static int look_at_maps(struct world *world, int32_t pid, uint64_t time_ns)
{
    char path[64], *text, *rest, *line;
    int result = 0;

    snprintf(path, sizeof(path), "/proc/%d/maps", (int)living_thread(pid));
    reach_text(pid, path, &text);
    rest = text;
    while (!result && rest && (line = strsep(&rest, "\n"))) {
        struct writer_map map = {.pid = pid, .time_ns = time_ns};
        unsigned long long start, end, offset;
        unsigned int major_number, minor_number;
        char mode[8];
        int name = 0;

        if (sscanf(line, "%llx-%llx %7s %llx %x:%x %" SCNu64 " %n", &start, &end, mode, &offset,
                   &major_number, &minor_number, &map.inode, &name) < 7 ||
            !strchr(mode, 'x') || end <= start)
            continue;
        map.device = makedev(major_number, minor_number);
        map.start = start;
        map.length = end - start;
        map.file_offset = offset;
        map.file = name && line[name] ? line + name : "//anon";
        result = add_map(world, &map, true);
    }
    free(text);
    return result;
}

static int look_at_thread(struct world *world, int32_t pid, int32_t tid, uint64_t time_ns)
{
    char name[64];

    if (find_thread(world, tid) || !comm_read(pid, tid, name, sizeof(name)))
        return 0;
    return add_thread(world, 0, pid, tid, name, time_ns, NULL) ? 0 : -ENOMEM;
}

int world_look_at_thread(struct world *world, int32_t pid, int32_t tid, bool maps, uint64_t time_ns)
{
    int result = look_at_thread(world, pid, tid, time_ns);

    return result || !maps ? result : look_at_maps(world, pid, time_ns);
}

static int look_at_process(struct world *world, int32_t pid, uint64_t time_ns)
{
    struct dirent *entry;
    char path[64];
    int result = 0;
    DIR *tasks;

    snprintf(path, sizeof(path), "/proc/%d/task", pid);
    tasks = opendir(path);
    if (!tasks)
        return 0;
    while (!result && (entry = readdir(tasks))) {
        int32_t tid = isdigit((unsigned char)entry->d_name[0]) ? atoi(entry->d_name) : 0;

        if (tid)
            result = look_at_thread(world, pid, tid, time_ns);
    }
    closedir(tasks);
    return result ? result : look_at_maps(world, pid, time_ns);
}

int world_look(struct world *world, int32_t pid, uint64_t time_ns)
{
    struct dirent *entry;
    int result = 0;
    DIR *proc;

    if (pid)
        return look_at_process(world, pid, time_ns);
    proc = opendir("/proc");
    if (!proc)
        return -errno;
    while (!result && (entry = readdir(proc))) {
        if (isdigit((unsigned char)entry->d_name[0]))
            result = look_at_process(world, atoi(entry->d_name), time_ns);
    }
    closedir(proc);
    return result;
}

/* ---- frames ---------------------------------------------------------------- */

static uint64_t key_of(const struct frame *frame)
{
    return table_mix(table_mix(frame->address, (uint64_t)frame->caller), (uint64_t)frame->map);
}

/* If there are too many, or no memory is left, all are forgotten. */
static void keep_frame(struct world *world, const struct frame *frame)
{
    if (world->frame_count < FRAMES_MAX &&
        !array_add(world->frames, world->frame_count, world->frame_room, *frame) &&
        !table_put_number(&world->known, key_of(frame), world->frame_count))
        return;
    table_clear(&world->known);
    world->frame_count = 0;
}

static const struct map *map_at(struct world *world, int32_t pid, uint64_t address)
{
    const struct process *process = find_process(world, pid, false);
    size_t at;

    if (!process)
        return NULL;
    at = first_behind(process, address);
    return at < process->map_count && process->maps[at].start <= address ? &process->maps[at]
                                                                         : NULL;
}

static int64_t map_of(struct world *world, int32_t pid, uint64_t address)
{
    const struct map *map = map_at(world, pid, address);

    return map ? map->id : 0;
}

bool world_has_at(struct world *world, int32_t pid, const struct prcb_frame *frame)
{
    const struct map *map = map_at(world, pid, frame->address);

    return map && frame->address - map->base == frame->place &&
           map->name == hash_of_name(frame->file);
}

/* name: NULL, or instead of an address; file and line: of its source, if that is known. */
static int64_t add_frame(struct world *world, struct frame wanted, bool kernel, const char *name,
                         const char *file, uint64_t line)
{
    const struct table_slot *slot = NULL;

    while ((slot = table_next(&world->known, key_of(&wanted), slot))) {
        const struct frame *frame = &world->frames[slot->number - 1];

        if (frame->address == wanted.address && frame->caller == wanted.caller &&
            frame->map == wanted.map)
            return frame->id;
    }
    wanted.id = ++world->last_frame;
    if (writer_stack(world->writer, wanted.id, wanted.caller, kernel, file ? 0 : wanted.map,
                     name ? 0 : wanted.address, name, file, line))
        return 0;
    keep_frame(world, &wanted);
    return wanted.id;
}

int64_t world_frame(struct world *world, int32_t pid, int64_t caller, bool kernel, uint64_t address)
{
    const struct frame wanted = {
        .caller = caller,
        .address = address,
        .map = kernel ? MAP_OF_KERNEL : map_of(world, pid, address),
    };

    return add_frame(world, wanted, kernel, NULL, NULL, 0);
}

int64_t world_kernel_frame(struct world *world, int64_t caller, const char *name)
{
    /* The kernel's addresses are never the same as ours. */
    const struct frame wanted = {
        .caller = caller,
        .address = (uint64_t)(uintptr_t)name,
        .map = MAP_OF_KERNEL,
    };

    return add_frame(world, wanted, true, name, NULL, 0);
}

int64_t world_source_frame(struct world *world, int64_t caller, const struct prcb_frame *frame)
{
    /* No mapping has such a number. */
    uint64_t place = (uint64_t)(uintptr_t)frame->file << 16 | (frame->place & 0xffff);
    const struct frame wanted = {
        .caller = caller,
        .address = (uint64_t)(uintptr_t)frame->function,
        .map = (int64_t)(place | 1ull << 63),
    };

    return add_frame(world, wanted, false, frame->function, frame->file, frame->place);
}
