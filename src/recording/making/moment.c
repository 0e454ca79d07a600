/* SPDX-License-Identifier: BSD-2-Clause */
#include "moment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "array.h"
#include "caused.h"
#include "error.h"
#include "facts.h"
#include "kept.h"
#include "now.h"

struct account {
    pid_t pid, tid;
    uint64_t key, switches;
    char comm[16];
    struct writer_state state;
};

struct making {
    const struct moment_options *options;
    struct moment moment;
    struct account *accounts; /* of the threads that live */
    size_t account_count;
    uint64_t longest_ns; /* that one of them has been there */
    struct prcb_switch *records;
    size_t record_count, record_room;
    struct caused caused;
};

static struct writer_state off_for(uint32_t cause)
{
    const struct prcb_cause_info *info = prcb_cause_info(cause);

    if (!info || cause == PRCB_CAUSE_NONE)
        return (struct writer_state){.reason = -1};
    return (struct writer_state){.state = info->kind == PRCB_KIND_READY ? "ready" : "waiting",
                                 .cause = info->name,
                                 .reason = info->reason};
}

static const struct writer_state runs = {.state = "running", .reason = -1};

/* ---- what there is ---- */

static int take_account(const struct prcb_account *a, void *ctx)
{
    struct making *m = ctx;
    struct account account = {
        .pid = a->pid, .tid = a->tid, .key = a->key, .switches = a->switches, .state = runs};

    if (a->wall_ns > m->longest_ns)
        m->longest_ns = a->wall_ns;
    if (a->flags & (PRCB_ACCOUNT_EXITED | PRCB_ACCOUNT_ORPHAN) || !a->tid)
        return 0;
    if (!(a->flags & PRCB_ACCOUNT_RUNNING))
        account.state = off_for(a->present & PRCB_HAS_OPEN ? a->open.cause : PRCB_CAUSE_NONE);
    memcpy(account.comm, a->comm, sizeof(account.comm) - 1);
    return array_append(m->accounts, m->account_count, account);
}

static int take_record(const struct prcb_switch *record, void *ctx)
{
    struct making *m = ctx;

    if (record->time_ns < m->moment.from_ns || record->time_ns > m->moment.to_ns)
        return 0;
    if (array_reserve(m->records, m->record_count, m->record_room, 1))
        return -ENOMEM;
    m->records[m->record_count++] = *record;
    return 0;
}

static int by_time(const void *left, const void *right)
{
    const struct prcb_switch *a = left, *b = right;

    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns ? -1 : 1;
    return (a->cpu > b->cpu) - (a->cpu < b->cpu);
}

#ifdef HAVE_STACK

/* Where threads wait that do so now, too. */
static int take_stacks(struct making *m, struct prcb_error *err)
{
    struct kept *kept = m->options->kept;
    uint64_t next;

    if (!kept)
        return 0;
    kept_look(kept, true, &next, NULL); /* if it fails, with those that there are */
    return kept_begin(kept) ? prcb_fail(err, -ENOMEM, "out of memory") : 0;
}

/* The stack of the wait that a thread comes from. */
static int write_wait(struct making *m, const struct prcb_switch *s)
{
    uint64_t off = s->ready_ns + s->wait_ns;
    int64_t thread;

    if (!m->options->kept || !s->new_tid || !s->wait_ns || off > s->time_ns)
        return 0;
    thread = world_known_thread(m->caused.world, (int32_t)s->new_pid, (int32_t)s->new_tid);
    return thread ? kept_write(m->options->kept, m->caused.world, m->caused.writer, thread,
                               (pid_t)s->new_tid, s->time_ns - off, s->time_ns, m->moment.from_ns)
                  : 0;
}

/* That of the wait that it is in. */
static int write_open_wait(struct making *m, const struct account *a)
{
    int64_t thread = world_known_thread(m->caused.world, a->pid, a->tid);

    return m->options->kept && thread
               ? kept_write_open(m->options->kept, m->caused.world, m->caused.writer, thread,
                                 a->key, a->switches, m->moment.from_ns)
               : 0;
}

#else

static int take_stacks(struct making *m, struct prcb_error *err)
{
    return 0;
}

static int write_wait(struct making *m, const struct prcb_switch *s)
{
    return 0;
}

static int write_open_wait(struct making *m, const struct account *a)
{
    return 0;
}

#endif

/* The threads first: one without a record until now did all the time what it does here. */
static int take_all(struct making *m, struct prcb *session, struct prcb_error *err)
{
    struct prcb_switch_room room = {.size = sizeof(room)};
    int result = take_stacks(m, err);
    uint64_t began;

    if (result)
        return result;
    result = -EAGAIN;
    for (int i = 0; i < 3 && result == -EAGAIN; i++) {
        m->account_count = 0;
        result = prcb_walk(session, take_account, m, err);
    }
    if (result && result != -EAGAIN)
        return result;
    m->moment.to_ns = now_ns();
    began = m->options->began_ns ? m->options->began_ns : m->moment.to_ns - m->longest_ns;
    m->moment.from_ns =
        m->moment.to_ns - (m->options->last_ns < m->moment.to_ns ? m->options->last_ns : 0);
    if (m->moment.from_ns < began)
        m->moment.from_ns = began;
    result = prcb_session_switches_rewind(session, err);
    if (result)
        return result;
    result = prcb_session_switches(session, take_record, m, &room, err);
    if (result)
        return prcb_fail(err, result, "the switches cannot be read: %s", strerror(-result));
    if (room.from_ns > m->moment.from_ns)
        m->moment.from_ns = room.from_ns;
    array_sort(m->records, m->record_count, by_time);
    return 0;
}

/* ---- into the file ---- */

static int add_thread(struct making *m, pid_t pid, pid_t tid, const char *comm, uint64_t start_ns,
                      const struct writer_state *state)
{
    int result = world_name(m->caused.world, pid, tid, comm, false, start_ns);

    return result || !state->state ? result : world_state(m->caused.world, pid, tid, state);
}

/* The first record of a thread tells what it did before. One that was off for less than the time
 * since the beginning has just been made. */
static int meet_old(struct making *m, const struct prcb_switch *s)
{
    if (!s->old_tid)
        return 0;
    if (world_known_thread(m->caused.world, (int32_t)s->old_pid, (int32_t)s->old_tid))
        return s->old_comm[0] ? world_name(m->caused.world, (int32_t)s->old_pid,
                                           (int32_t)s->old_tid, s->old_comm, false, s->time_ns)
                              : 0;
    return add_thread(m, (pid_t)s->old_pid, (pid_t)s->old_tid, s->old_comm, m->moment.from_ns,
                      &runs);
}

static int meet_new(struct making *m, const struct prcb_switch *s)
{
    const struct writer_state state = off_for(s->new_cause);
    uint64_t since = s->time_ns - s->ready_ns - s->wait_ns;

    if (!s->new_tid ||
        world_known_thread(m->caused.world, (int32_t)s->new_pid, (int32_t)s->new_tid))
        return 0;
    if (!s->new_cause || since < m->moment.from_ns || since > s->time_ns)
        since = m->moment.from_ns;
    return add_thread(m, (pid_t)s->new_pid, (pid_t)s->new_tid, s->new_comm, since, &state);
}

static int write_record(struct making *m, const struct prcb_switch *s)
{
    const struct prcb_cause_info *info = prcb_cause_info(s->cause);
    int result = meet_old(m, s);

    if (!result)
        result = meet_new(m, s);
    if (!result)
        result = write_wait(m, s);
    if (!result)
        result = caused_write(&m->caused, s);
    if (!result && s->old_tid && info && info->kind == PRCB_KIND_END)
        result = world_exit(m->caused.world, (int32_t)s->old_pid, (int32_t)s->old_tid, s->time_ns);
    return result;
}

static int write_reason(struct writer *w, const struct moment_reason *reason)
{
    const struct prcb_cause_info *info = prcb_cause_info(reason->cause);
    int result = writer_fact(w, "saved_by", "%s", reason->text);

    if (!result && reason->time_ns)
        result = writer_fact(w, "saved_at_ns", "%llu", (unsigned long long)reason->time_ns);
    if (result || !reason->tid)
        return result;
    writer_fact(w, "saved_thread", "%d", (int)reason->tid);
    writer_fact(w, "saved_process", "%d", (int)reason->pid);
    writer_fact(w, "saved_name", "%s", reason->comm);
    writer_fact(w, "saved_cause", "%s", reason->cause && info ? info->name : "ready");
    return writer_fact(w, "saved_for_ns", "%llu", (unsigned long long)reason->ns);
}

static int write_facts(struct making *m)
{
    struct writer *w = m->caused.writer;

    writer_fact(w, "prcb_version", "%s", PRCB_VERSION);
    writer_fact(w, "format_version", "%d", RECORD_VERSION);
    facts_write_machine(w);
    facts_write_clock(w, "ended");
    writer_fact(w, "clock", "CLOCK_MONOTONIC");
    writer_fact(w, "event", "none");
    writer_fact(w, "stacks", "0");
    writer_fact(w, "scope", "%s", m->options->all ? "system" : "processes");
    writer_fact(w, "user_only", "0");
    writer_fact(w, "sample_source", "none");
    writer_fact(w, "switch_source", "flight recorder");
    writer_fact(w, "wakers", "1");
    writer_fact(w, "wait_stacks", "%d", m->options->kept != NULL);
    writer_fact(w, "start_ns", "%llu", (unsigned long long)m->moment.from_ns);
    writer_fact(w, "end_ns", "%llu", (unsigned long long)m->moment.to_ns);
    return write_reason(w, &m->options->reason);
}

static int write_rows(struct making *m)
{
    int result = write_facts(m);

    for (size_t i = 0; i < m->record_count && !result; i++) {
        /* The rings have some from before the one that had to be cut off the most. */
        if (m->records[i].time_ns >= m->moment.from_ns)
            result = write_record(m, &m->records[i]);
    }
    for (size_t i = 0; i < m->account_count && !result; i++) {
        const struct account *a = &m->accounts[i];

        if (!world_known_thread(m->caused.world, a->pid, a->tid))
            result = add_thread(m, a->pid, a->tid, a->comm, m->moment.from_ns, &a->state);
        if (!result)
            result = write_open_wait(m, a);
    }
    return result ? result : writer_fact(m->caused.writer, "complete", "1");
}

/* path: of the part. */
static int write_file(struct making *m, const char *path, struct prcb_error *err)
{
    int result = writer_create(path, &m->caused.writer, err), closed;

    if (result)
        return result;
    result = world_open(m->caused.writer, &m->caused.world);
    m->caused.wakers = wakers_open(m->caused.writer);
    if (!result)
        result = m->caused.wakers ? write_rows(m) : -ENOMEM;
    if (result && writer_error(m->caused.writer)->code && err)
        *err = *writer_error(m->caused.writer);
    else if (result)
        prcb_fail(err, result, "%s: %s", path, strerror(-result));
    wakers_close(m->caused.wakers);
    world_close(m->caused.world);
    closed = writer_close(m->caused.writer, result ? NULL : err);
    return result ? result : closed;
}

static void remove_part(const char *part)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    char path[4096 + 16];

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        snprintf(path, sizeof(path), "%s%s", part, ends[i]);
        unlink(path);
    }
}

int moment_write(struct prcb *session, const struct moment_options *options, struct moment *ret,
                 struct prcb_error *err)
{
    struct making m = {.options = options, .caused = {.all = true}};
    char part[4096];
    int result;

    if ((size_t)snprintf(part, sizeof(part), "%s" MOMENT_PART, options->path) >= sizeof(part))
        return prcb_fail(err, -ENAMETOOLONG, "%s: the name is too long", options->path);
    result = take_all(&m, session, err);
    if (!result)
        result = write_file(&m, part, err);
    if (!result && rename(part, options->path))
        result = prcb_fail(err, -errno, "%s: %s", options->path, strerror(errno));
    if (result)
        remove_part(part);
    m.moment.switches = m.caused.switches;
    if (!result)
        *ret = m.moment;
    free(m.accounts);
    free(m.records);
    return result;
}
