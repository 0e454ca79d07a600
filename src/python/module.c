/* SPDX-License-Identifier: BSD-2-Clause
 *
 * prcb._prcb: sessions, threads, measuring. Account and processor records are named tuples.
 *
 * Lifetime  What hangs on a session (handles on threads, readers of stacks) is in its list of
 *           children and is closed before it; using it afterwards is a ValueError.
 * Threads   Handles are used with the GIL held, so by one thread at a time. measure() keeps a
 *           handle for each thread and session in thread-local storage; it is closed when the
 *           thread ends, which may be without the GIL: the lists have a lock of their own.
 * Fork      In a child, sessions of the parent are refused (-ECHILD) and never closed, for some
 *           share a socket with it. measure() opens a new default session.
 */
#include "module.h"

#include <prcb/span.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct session {
    PyObject_HEAD struct prcb *p; /* NULL: closed */
    unsigned generation;          /* of the process that opened it */
    unsigned busy;                /* calls that run without the GIL */
    uint64_t id;                  /* never used again */
    struct child *children;
};

/* A handle on a thread's account. */
struct handle {
    struct child child; /* first */
    struct prcb_thread *t;
};

struct thread {
    PyObject_HEAD struct session *session;
    struct handle handle;
};

/* This thread's own handles, one a session: measure() finds them here. */
struct own {
    struct own *next;
    uint64_t session_id;
    struct handle handle;
};

struct measure {
    PyObject_HEAD struct session *session; /* NULL: the default one, once entered */
    struct thread *thread;                 /* NULL: the thread that enters */
    struct own *own;                       /* while open: the handle of the thread that entered */
    enum { MEASURE_NEW, MEASURE_OPEN, MEASURE_DONE } state;
    struct prcb_account begin, end; /* not zeroed: valid by state */
};

static pthread_mutex_t children_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned generation; /* forks between the first process and this one */
static uint64_t last_session_id;
static pthread_key_t own_key;
static __thread struct own *own_handles;
static struct session *default_session;
static PyTypeObject *session_type, *thread_type, *measure_type;
static PyTypeObject *account_type, *times_type, *wait_type, *open_type, *status_type, *cause_type;
static PyObject *waits_class;

/* ---- children of sessions --------------------------------------------------- */

static void child_add(struct session *s, struct child *child)
{
    pthread_mutex_lock(&children_lock);
    child->next = s->children;
    child->at = &s->children;
    if (child->next)
        child->next->at = &child->next;
    s->children = child;
    pthread_mutex_unlock(&children_lock);
}

static void child_unlink(struct child *child)
{
    if (child->next)
        child->next->at = child->at;
    *child->at = child->next;
    child->at = NULL;
}

/* Closes it if it is open. Needs no GIL. */
static void child_close(struct child *child)
{
    pthread_mutex_lock(&children_lock);
    if (child->at) {
        child_unlink(child);
        child->close(child);
    }
    pthread_mutex_unlock(&children_lock);
}

static void handle_close(struct child *child)
{
    struct handle *h = (struct handle *)child;

    prcb_thread_close(h->t);
    h->t = NULL;
}

/* A thread has ended: its handles are closed. */
static void own_free(void *first)
{
    struct own *next;

    for (struct own *own = first; own; own = next) {
        next = own->next;
        child_close(&own->handle.child);
        free(own);
    }
    own_handles = NULL;
}

static void forked(void)
{
    generation++;
    pthread_mutex_init(&children_lock, NULL); /* a thread that is not here may have held it */
    for (struct own *own = own_handles; own; own = own->next) {
        own->session_id = 0; /* the parent's */
        own->handle.child.at = NULL;
    }
}

/* ---- sessions ------------------------------------------------------------- */

static const struct name_row tiers[] = {{"auto", PRCB_TIER_AUTO},
                                        {"perf", PRCB_TIER_PERF},
                                        {"bpf", PRCB_TIER_BPF},
                                        {"daemon", PRCB_TIER_DAEMON},
                                        {NULL, 0}};
static const struct name_row follows[] = {{"none", PRCB_FOLLOW_NONE},
                                          {"threads", PRCB_FOLLOW_THREADS},
                                          {"children", PRCB_FOLLOW_CHILDREN},
                                          {"all", PRCB_FOLLOW_ALL},
                                          {NULL, 0}};

int tier_value(const char *name, unsigned *ret)
{
    return name_value(tiers, "tier", name, ret);
}

/* The open session; NULL: an exception is set. */
static struct prcb *session_use(struct session *s)
{
    if (!s->p) {
        PyErr_SetString(PyExc_ValueError, "the session is closed");
        return NULL;
    }
    if (s->generation != generation) {
        raise_code(-ECHILD, "the session belongs to the process that forked this one: open "
                            "another with prcb.session()");
        return NULL;
    }
    return s->p;
}

static void session_shut(struct session *s)
{
    struct prcb *p = s->p;

    if (!p)
        return;
    s->p = NULL;
    if (s->generation != generation)
        return; /* the parent's */
    pthread_mutex_lock(&children_lock);
    while (s->children) {
        struct child *child = s->children;

        child_unlink(child);
        child->close(child);
    }
    pthread_mutex_unlock(&children_lock);
    Py_BEGIN_ALLOW_THREADS;
    prcb_close(p);
    Py_END_ALLOW_THREADS;
}

static PyObject *session_open(const struct prcb_options *opts)
{
    struct session *s = new_object(session_type, sizeof(*s));
    struct prcb_error err;
    int result;

    if (!s)
        return NULL;
    s->generation = generation;
    s->id = ++last_session_id;
    Py_BEGIN_ALLOW_THREADS;
    result = prcb_open(opts, &s->p, &err);
    Py_END_ALLOW_THREADS;
    if (result) {
        s->p = NULL;
        Py_DECREF(s);
        return raise_error(&err);
    }
    return (PyObject *)s;
}

static PyObject *session_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"tier",        "max_threads", "locks", "ktime",
                            "interrupted", "registers",   NULL};
    struct prcb_options opts = {.size = sizeof(opts)};
    const char *tier = NULL;
    unsigned int value, max_threads = 0;
    int locks = 1, ktime = 0, interrupted = 0, registers = 0;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|z$Ipppp:session", names, &tier, &max_threads,
                                     &locks, &ktime, &interrupted, &registers) ||
        tier_value(tier, &value))
        return NULL;
    opts.tier = value;
    opts.max_threads = max_threads;
    opts.flags = (locks ? 0 : PRCB_OPEN_NO_LOCKS) | (ktime ? PRCB_OPEN_KTIME : 0) |
                 (interrupted ? PRCB_OPEN_INTERRUPTED : 0) | (registers ? PRCB_OPEN_REGISTERS : 0);
    return session_open(&opts);
}

static void session_dealloc(PyObject *self)
{
    session_shut((struct session *)self);
    free_object(self);
}

static PyObject *session_close(PyObject *self, PyObject *args)
{
    struct session *s = (struct session *)self;

    if (s->busy)
        return raise_code(-EBUSY, "the session cannot be closed: another thread is in a call of "
                                  "it");
    session_shut(s);
    Py_RETURN_NONE;
}

/* Runs a call of the library without the GIL; close() is refused meanwhile. */
#define WITHOUT_GIL(session, call)                                                                 \
    do {                                                                                           \
        (session)->busy++;                                                                         \
        Py_BEGIN_ALLOW_THREADS;                                                                    \
        call;                                                                                      \
        Py_END_ALLOW_THREADS;                                                                      \
        (session)->busy--;                                                                         \
    } while (0)

static PyObject *session_profile(PyObject *self, PyObject *args, const char *format,
                                 int (*profile)(struct prcb *, pid_t, unsigned,
                                                struct prcb_error *),
                                 PyObject *kwargs, char **names, const char *usual)
{
    struct session *s = (struct session *)self;
    const char *follow = usual;
    struct prcb_error err;
    unsigned value;
    int number, result;
    struct prcb *p;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, format, names, &number, &follow) ||
        name_value(follows, "follow", follow, &value) || !(p = session_use(s)))
        return NULL;
    WITHOUT_GIL(s, result = profile(p, number, value, &err));
    if (result)
        return raise_error(&err);
    Py_RETURN_NONE;
}

static PyObject *session_profile_thread(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"tid", "follow", NULL};

    return session_profile(self, args, "i|s:profile_thread", prcb_profile_thread, kwargs, names,
                           "none");
}

static PyObject *session_profile_process(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"pid", "follow", NULL};

    return session_profile(self, args, "i|s:profile_process", prcb_profile_process, kwargs, names,
                           "threads");
}

static PyObject *session_profile_cgroup(PyObject *self, PyObject *arg)
{
    struct session *s = (struct session *)self;
    struct prcb_error err;
    PyObject *bytes;
    int result;
    struct prcb *p;

    if (!PyUnicode_FSConverter(arg, &bytes))
        return NULL;
    p = session_use(s);
    if (!p) {
        Py_DECREF(bytes);
        return NULL;
    }
    WITHOUT_GIL(s, result = prcb_profile_cgroup(p, PyBytes_AsString(bytes), &err));
    Py_DECREF(bytes);
    if (result)
        return raise_error(&err);
    Py_RETURN_NONE;
}

/* Calls that take nothing but the session. */
static PyObject *session_plain(PyObject *self, int (*call)(struct prcb *, struct prcb_error *))
{
    struct session *s = (struct session *)self;
    struct prcb *p = session_use(s);
    struct prcb_error err;
    int result;

    if (!p)
        return NULL;
    WITHOUT_GIL(s, result = call(p, &err));
    if (result < 0)
        return raise_error(&err);
    return PyLong_FromLong(result);
}

static PyObject *session_profile_all(PyObject *self, PyObject *args)
{
    PyObject *result = session_plain(self, prcb_profile_all);

    Py_XDECREF(result);
    return result ? Py_NewRef(Py_None) : NULL;
}

static PyObject *session_refresh(PyObject *self, PyObject *args)
{
    PyObject *result = session_plain(self, prcb_refresh);

    Py_XDECREF(result);
    return result ? Py_NewRef(Py_None) : NULL;
}

static PyObject *session_release_exited(PyObject *self, PyObject *args)
{
    return session_plain(self, prcb_release_exited);
}

static PyObject *session_release(PyObject *self, PyObject *arg)
{
    struct session *s = (struct session *)self;
    unsigned long long key = PyLong_AsUnsignedLongLong(arg);
    struct prcb_error err;
    struct prcb *p;

    if (PyErr_Occurred() || !(p = session_use(s)))
        return NULL;
    if (prcb_release(p, key, &err))
        return raise_error(&err);
    Py_RETURN_NONE;
}

static PyObject *session_spawn(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"argv", "follow", NULL};
    struct session *s = (struct session *)self;
    PyObject *list, *bytes = NULL;
    const char *follow = "all";
    struct prcb_error err;
    char **argv = NULL;
    unsigned value;
    int result = -1;
    Py_ssize_t n = 0;
    struct prcb *p;
    pid_t child;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|s:spawn", names, &list, &follow) ||
        name_value(follows, "follow", follow, &value) || !(p = session_use(s)))
        return NULL;
    list = PySequence_List(list);
    bytes = list ? PyList_New(0) : NULL;
    n = bytes ? PyList_Size(list) : 0;
    argv = bytes ? calloc((size_t)n + 1, sizeof(*argv)) : NULL;
    for (Py_ssize_t i = 0; argv && i < n; i++) {
        PyObject *word;

        if (!PyUnicode_FSConverter(PyList_GetItem(list, i), &word) || !list_take(bytes, word))
            goto out;
        argv[i] = PyBytes_AsString(PyList_GetItem(bytes, i));
    }
    if (!argv) {
        if (!PyErr_Occurred())
            PyErr_NoMemory();
        goto out;
    }
    WITHOUT_GIL(s, result = prcb_spawn(p, argv, value, &child, &err));
    if (result)
        raise_error(&err);
out:
    free(argv);
    Py_XDECREF(bytes);
    Py_XDECREF(list);
    return result ? NULL : PyLong_FromLong(child);
}

/* ---- records ------------------------------------------------------------ */

/* clang-format off */
static const struct field wait_fields[] = {
    {"count", FIELD_U64, offsetof(struct prcb_wait, count), 0, 0, NULL},
    {"ns", FIELD_U64, offsetof(struct prcb_wait, ns), 0, 0, NULL},
    {NULL, 0, 0, 0, 0, NULL},
};

static PyObject *make_cause(const void *base)
{
    const struct prcb_cause_info *info = prcb_cause_info(((const struct prcb_open *)base)->cause);

    return field_text(info ? info->name : NULL);
}

static const struct field open_fields[] = {
    {"cause", FIELD_OWN, 0, 0, 0, make_cause},
    {"ns", FIELD_U64, offsetof(struct prcb_open, ns), 0, 0, NULL},
    {NULL, 0, 0, 0, 0, NULL},
};

static PyObject *make_open(const void *base)
{
    return record_new(open_type, open_fields, &((const struct prcb_account *)base)->open, 0);
}

static PyObject *make_tier(const void *base)
{
    return field_text(prcb_tier_name(((const struct prcb_account *)base)->tier));
}

/* Causes that occurred; prcb._types.Waits answers for the others. */
static PyObject *make_waits(const void *base)
{
    const struct prcb_account *a = base;
    PyObject *waits = PyObject_CallNoArgs(waits_class);

    for (uint32_t cause = 1; waits && cause < PRCB_CAUSE_MAX; cause++) {
        const struct prcb_cause_info *info = prcb_cause_info(cause);
        PyObject *wait;

        if (!info || (!a->waits[cause].count && !a->waits[cause].ns))
            continue;
        wait = record_new(wait_type, wait_fields, &a->waits[cause], 0);
        if (!wait || PyDict_SetItemString(waits, info->name, wait))
            Py_CLEAR(waits);
        Py_XDECREF(wait);
    }
    return waits;
}

#define A(member) offsetof(struct prcb_account, member)
static const struct field account_fields[] = {
    {"key", FIELD_U64, A(key), 0, 0, NULL},
    {"tid", FIELD_TID, A(tid), 0, 0, NULL},
    {"pid", FIELD_TID, A(pid), 0, 0, NULL},
    {"comm", FIELD_CHARS, A(comm), 0, 0, NULL},
    {"tier", FIELD_OWN, 0, 0, 0, make_tier},
    {"wall_ns", FIELD_U64, A(wall_ns), PRCB_HAS_WALL, 0, NULL},
    {"run_ns", FIELD_U64, A(run_ns), PRCB_HAS_RUN, 0, NULL},
    {"ready_ns", FIELD_U64, A(ready_ns), PRCB_HAS_READY, 0, NULL},
    {"wait_ns", FIELD_U64, A(wait_ns), PRCB_HAS_WAIT, 0, NULL},
    {"waits", FIELD_OWN, 0, PRCB_HAS_WAITS, 0, make_waits},
    {"switches", FIELD_U64, A(switches), PRCB_HAS_SWITCHES, 0, NULL},
    {"voluntary_switches", FIELD_U64, A(voluntary_switches), PRCB_HAS_SWITCHES, 0, NULL},
    {"missed_switches", FIELD_U64, A(missed_switches), PRCB_HAS_WAITS, 0, NULL},
    {"unclear_wakes", FIELD_U64, A(unclear_wakes), PRCB_HAS_WAITS, 0, NULL},
    {"migrations", FIELD_U64, A(migrations), PRCB_HAS_MIGRATIONS, 0, NULL},
    {"tsc_cycles", FIELD_U64, A(tsc_cycles), PRCB_HAS_CYCLES, 0, NULL},
    {"interrupted_ns", FIELD_U64, A(interrupted_ns), PRCB_HAS_INTERRUPTED, 0, NULL},
    {"open", FIELD_OWN, 0, PRCB_HAS_OPEN, 0, make_open},
    {"last_syscall", FIELD_I32, A(last_syscall), PRCB_HAS_SYSCALL, 0, NULL},
    {"cgroup", FIELD_U64, A(cgroup), PRCB_HAS_CGROUP, 0, NULL},
    {"exited", FIELD_FLAG, A(flags), 0, PRCB_ACCOUNT_EXITED, NULL},
    {"running", FIELD_FLAG, A(flags), 0, PRCB_ACCOUNT_RUNNING, NULL},
    {"kthread", FIELD_FLAG, A(flags), 0, PRCB_ACCOUNT_KTHREAD, NULL},
    {"orphan", FIELD_FLAG, A(flags), 0, PRCB_ACCOUNT_ORPHAN, NULL},
    {NULL, 0, 0, 0, 0, NULL},
};
#undef A

#define T(member) offsetof(struct prcb_times, member)
static const struct field times_fields[] = {
    {"run_ns", FIELD_U64, T(run_ns), PRCB_HAS_RUN, 0, NULL},
    {"switches", FIELD_U64, T(switches), PRCB_HAS_SWITCHES, 0, NULL},
    {"interrupted_ns", FIELD_U64, T(interrupted_ns), PRCB_HAS_INTERRUPTED, 0, NULL},
    {NULL, 0, 0, 0, 0, NULL},
};
#undef T

#define S(member) offsetof(struct prcb_status, member)
static PyObject *make_misses(const void *base)
{
    uint64_t misses = ((const struct prcb_status *)base)->recursion_misses;

    return misses == UINT64_MAX ? Py_NewRef(Py_None) : PyLong_FromUnsignedLongLong(misses);
}

static const struct field status_fields[] = {
    {"max_threads", FIELD_U32, S(max_threads), 0, 0, NULL},
    {"threads", FIELD_U32, S(threads), 0, 0, NULL},
    {"untracked_threads", FIELD_U64, S(untracked_threads), 0, 0, NULL},
    {"missed_switches", FIELD_U64, S(missed_switches), 0, 0, NULL},
    {"short_threads_missed", FIELD_BOOL, S(short_threads_missed), 0, 0, NULL},
    {"recursion_misses", FIELD_OWN, 0, 0, 0, make_misses},
    {NULL, 0, 0, 0, 0, NULL},
};
#undef S

static PyObject *make_kind(const void *base)
{
    static const char *const kinds[] = {"ready", "wait", "end"};

    return field_text(kinds[((const struct prcb_cause_info *)base)->kind]);
}

static PyObject *make_reason(const void *base)
{
    return field_text(prcb_wait_reason_name(((const struct prcb_cause_info *)base)->reason));
}

static const struct field cause_fields[] = {
    {"name", FIELD_TEXT, offsetof(struct prcb_cause_info, name), 0, 0, NULL},
    {"words", FIELD_TEXT, offsetof(struct prcb_cause_info, words), 0, 0, NULL},
    {"kind", FIELD_OWN, 0, 0, 0, make_kind},
    {"reason", FIELD_OWN, 0, 0, 0, make_reason},
    {NULL, 0, 0, 0, 0, NULL},
};

/* Members that can be absent, by the names that records have. */
static const struct name_row members[] = {
    {"wall_ns", PRCB_HAS_WALL},          {"run_ns", PRCB_HAS_RUN},
    {"ready_ns", PRCB_HAS_READY},        {"wait_ns", PRCB_HAS_WAIT},
    {"waits", PRCB_HAS_WAITS},           {"switches", PRCB_HAS_SWITCHES},
    {"voluntary_switches", PRCB_HAS_SWITCHES}, {"missed_switches", PRCB_HAS_WAITS},
    {"unclear_wakes", PRCB_HAS_WAITS},
    {"migrations", PRCB_HAS_MIGRATIONS}, {"tsc_cycles", PRCB_HAS_CYCLES},
    {"interrupted_ns", PRCB_HAS_INTERRUPTED}, {"open", PRCB_HAS_OPEN},
    {"last_syscall", PRCB_HAS_SYSCALL},  {"cgroup", PRCB_HAS_CGROUP},
    {NULL, 0},
};
/* clang-format on */

static PyObject *session_absent_reason(PyObject *self, PyObject *args)
{
    struct prcb *p;
    const char *name;
    unsigned member;

    if (!PyArg_ParseTuple(args, "s:absent_reason", &name) ||
        name_value(members, "member that can be absent:", name, &member) ||
        !(p = session_use((struct session *)self)))
        return NULL;
    return field_text(prcb_absent_reason(p, member));
}

static PyObject *session_status(PyObject *self, PyObject *args)
{
    struct prcb *p = session_use((struct session *)self);
    struct prcb_status status = {.size = sizeof(status)};
    int result;

    if (!p)
        return NULL;
    result = prcb_session_status(p, &status);
    if (result)
        return raise_code(result, "the session's status cannot be read");
    return record_new(status_type, status_fields, &status, 0);
}

static PyObject *session_accounts(PyObject *self, PyObject *args)
{
    struct session *s = (struct session *)self;
    struct copies copies = {NULL, 0, 0};
    struct prcb_error err;
    struct prcb *p = session_use(s);
    PyObject *list = NULL;
    int result;

    if (!p)
        return NULL;
    WITHOUT_GIL(s, result = copy_accounts(p, &copies, &err));
    if (result)
        raise_error(&err);
    else
        list = PyList_New(0);
    for (size_t i = 0; list && i < copies.count; i++) {
        if (!list_take(list, record_new(account_type, account_fields, &copies.rows[i],
                                        copies.rows[i].present)))
            Py_CLEAR(list);
    }
    free(copies.rows);
    return list;
}

/* ---- threads ------------------------------------------------------------ */

static PyObject *session_thread(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"tid", "key", NULL};
    struct session *s = (struct session *)self;
    PyObject *tid = Py_None, *key = Py_None;
    struct prcb_error err;
    struct thread *thread;
    struct prcb *p;
    int result;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$O:thread", names, &tid, &key) ||
        !(p = session_use(s)))
        return NULL;
    if (tid != Py_None && key != Py_None) {
        PyErr_SetString(PyExc_TypeError, "thread() takes a tid or a key, not both");
        return NULL;
    }
    thread = new_object(thread_type, sizeof(*thread));
    if (!thread)
        return NULL;
    if (key != Py_None) {
        unsigned long long number = PyLong_AsUnsignedLongLong(key);

        result = PyErr_Occurred() ? 1 : prcb_thread_open_key(p, number, &thread->handle.t, &err);
    } else if (tid != Py_None) {
        long number = PyLong_AsLong(tid);

        result = PyErr_Occurred() ? 1 : prcb_thread_open(p, (pid_t)number, &thread->handle.t, &err);
    } else {
        result = prcb_thread_open_self(p, &thread->handle.t, &err);
    }
    if (result) {
        thread->handle.t = NULL;
        Py_DECREF(thread);
        return result < 0 ? raise_error(&err) : NULL;
    }
    thread->session = (struct session *)Py_NewRef(self);
    thread->handle.child.close = handle_close;
    child_add(s, &thread->handle.child);
    return (PyObject *)thread;
}

static void thread_dealloc(PyObject *self)
{
    struct thread *t = (struct thread *)self;

    if (t->session && t->session->generation == generation)
        child_close(&t->handle.child);
    Py_XDECREF((PyObject *)t->session);
    free_object(self);
}

static PyObject *thread_close(PyObject *self, PyObject *args)
{
    struct thread *t = (struct thread *)self;

    if (t->session->generation == generation)
        child_close(&t->handle.child);
    Py_RETURN_NONE;
}

static struct prcb_thread *thread_use(struct thread *t)
{
    if (!session_use(t->session))
        return NULL;
    if (!t->handle.t)
        PyErr_SetString(PyExc_ValueError, "the handle on the thread is closed");
    return t->handle.t;
}

static void read_failed(int result)
{
    raise_code(result, result == -ESTALE   ? "the thread's account was released"
                       : result == -EAGAIN ? "the account stayed inconsistent for 20 ms: the "
                                             "processor that writes it was descheduled; try again"
                       : result == -ESRCH  ? "the thread has ended"
                                           : "the account cannot be read");
}

static PyObject *thread_read(PyObject *self, PyObject *args)
{
    struct prcb_thread *t = thread_use((struct thread *)self);
    struct prcb_account a;
    int result;

    if (!t)
        return NULL;
    a.size = sizeof(a);
    result = prcb_thread_read(t, &a);
    if (result) {
        read_failed(result);
        return NULL;
    }
    return record_new(account_type, account_fields, &a, a.present);
}

static PyObject *thread_times(PyObject *self, PyObject *args)
{
    struct prcb_thread *t = thread_use((struct thread *)self);
    struct prcb_times times = {.size = sizeof(times)};
    int result;

    if (!t)
        return NULL;
    result = prcb_thread_times(t, &times);
    if (result) {
        read_failed(result);
        return NULL;
    }
    return record_new(times_type, times_fields, &times, times.present);
}

/* ---- measuring ---------------------------------------------------------- */

/* The calling thread's own handle of a session; NULL: an exception is set. */
static struct own *own_open(struct session *s)
{
    struct prcb *p = session_use(s);
    struct prcb_error err;
    struct own *own;
    int result;

    if (!p)
        return NULL;
    for (struct own **at = &own_handles; (own = *at);) { /* of sessions that are closed */
        if (own->session_id && own->handle.t) {
            at = &own->next;
            continue;
        }
        *at = own->next;
        free(own);
    }
    own = calloc(1, sizeof(*own));
    if (!own) {
        PyErr_NoMemory();
        return NULL;
    }
    result = prcb_thread_open_self(p, &own->handle.t, &err);
    if (result) {
        free(own);
        raise_error(&err);
        return NULL;
    }
    own->session_id = s->id;
    own->handle.child.close = handle_close;
    own->next = own_handles;
    own_handles = own;
    pthread_setspecific(own_key, own);
    child_add(s, &own->handle.child);
    return own;
}

static inline struct own *own_find(struct session *s)
{
    for (struct own *own = own_handles; own; own = own->next) {
        if (own->session_id == s->id && own->handle.t)
            return own;
    }
    return own_open(s);
}

/* The session of measure() and thread() of the module: opened at first use, and again in a child.
 */
static struct session *default_use(void)
{
    PyObject *opened;

    if (default_session && default_session->p && default_session->generation == generation)
        return default_session;
    opened = session_open(NULL);
    if (!opened)
        return NULL;
    if (default_session && default_session->p && default_session->generation == generation) {
        Py_DECREF(opened); /* another thread was faster */
        return default_session;
    }
    Py_XDECREF((PyObject *)default_session);
    default_session = (struct session *)opened;
    return default_session;
}

static PyObject *module_default_session(PyObject *module, PyObject *args)
{
    struct session *s = default_use();

    return s ? Py_NewRef((PyObject *)s) : NULL;
}

static PyObject *measure_make(struct session *s, PyObject *thread)
{
    struct measure *m;

    if (thread && thread != Py_None && !Py_IS_TYPE(thread, thread_type)) {
        PyErr_SetString(PyExc_TypeError, "measure() takes a prcb.Thread or nothing");
        return NULL;
    }
    m = PyObject_Malloc(sizeof(*m));
    if (!m)
        return PyErr_NoMemory();
    PyObject_Init((PyObject *)m, measure_type);
    m->session = s;
    m->thread = thread && thread != Py_None ? (struct thread *)Py_NewRef(thread) : NULL;
    m->own = NULL;
    m->state = MEASURE_NEW;
    Py_XINCREF((PyObject *)s);
    return (PyObject *)m;
}

static PyObject *module_measure(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n > 1) {
        PyErr_SetString(PyExc_TypeError, "measure() takes a prcb.Thread or nothing");
        return NULL;
    }
    return measure_make(NULL, n ? args[0] : NULL);
}

static PyObject *session_measure(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    if (n > 1) {
        PyErr_SetString(PyExc_TypeError, "measure() takes a prcb.Thread or nothing");
        return NULL;
    }
    return measure_make((struct session *)self, n ? args[0] : NULL);
}

static void measure_dealloc(PyObject *self)
{
    struct measure *m = (struct measure *)self;

    Py_XDECREF((PyObject *)m->session);
    Py_XDECREF((PyObject *)m->thread);
    free_object(self);
}

static bool measure_read(struct prcb_thread *t, struct prcb_account *ret)
{
    int result;

    ret->size = sizeof(*ret);
    result = prcb_thread_read(t, ret);
    if (result)
        read_failed(result);
    return !result;
}

static PyObject *measure_enter(PyObject *self, PyObject *unused)
{
    struct measure *m = (struct measure *)self;
    struct prcb_thread *t;

    if (m->state == MEASURE_OPEN) {
        PyErr_SetString(PyExc_RuntimeError, "the measurement has begun already");
        return NULL;
    }
    if (m->thread) {
        t = thread_use(m->thread);
    } else {
        if (!m->session ||
            (m->session->generation != generation && m->session == default_session)) {
            struct session *s = default_use();

            if (!s)
                return NULL;
            Py_XDECREF((PyObject *)m->session);
            m->session = (struct session *)Py_NewRef((PyObject *)s);
        }
        m->own = own_find(m->session);
        t = m->own ? m->own->handle.t : NULL;
    }
    if (!t || !measure_read(t, &m->begin))
        return NULL;
    m->state = MEASURE_OPEN;
    return Py_NewRef(self);
}

/* The handle that an open measurement goes on with; NULL: an exception is set. */
static struct prcb_thread *measure_handle(struct measure *m)
{
    if (m->thread)
        return thread_use(m->thread);
    if (!session_use(m->session))
        return NULL;
    for (struct own *own = own_handles; own; own = own->next) {
        if (own == m->own && own->handle.t)
            return own->handle.t;
    }
    PyErr_SetString(PyExc_RuntimeError,
                    "the measurement began on another thread: begin and end it on the same one");
    return NULL;
}

static PyObject *measure_exit(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct measure *m = (struct measure *)self;
    struct prcb_thread *t;

    if (m->state != MEASURE_OPEN) {
        PyErr_SetString(PyExc_RuntimeError, "the measurement has not begun");
        return NULL;
    }
    m->state = MEASURE_NEW; /* without a result, should this fail */
    t = measure_handle(m);
    if (!t || !measure_read(t, &m->end))
        return NULL;
    if (m->end.key != m->begin.key) {
        PyErr_SetString(PyExc_RuntimeError, "the thread that began the measurement has ended");
        return NULL;
    }
    m->state = MEASURE_DONE;
    Py_RETURN_NONE;
}

/* What passed between enter and exit, or until now. */
static bool measure_difference(struct measure *m, struct prcb_account *ret)
{
    struct prcb_thread *t;

    if (m->state == MEASURE_NEW) {
        PyErr_SetString(PyExc_RuntimeError, "the measurement has not begun");
        return false;
    }
    if (m->state == MEASURE_OPEN) {
        t = measure_handle(m);
        if (!t || !measure_read(t, &m->end))
            return false;
    }
    ret->size = sizeof(*ret);
    prcb_account_sub(&m->end, &m->begin, ret);
    return true;
}

static PyObject *measure_get(PyObject *self, void *row)
{
    const struct field *f = row;
    struct prcb_account a;

    return measure_difference((struct measure *)self, &a) ? field_value(f, &a, a.present) : NULL;
}

static PyObject *measure_account(PyObject *self, PyObject *unused)
{
    struct prcb_account a;

    return measure_difference((struct measure *)self, &a)
               ? record_new(account_type, account_fields, &a, a.present)
               : NULL;
}

/* ---- the module --------------------------------------------------------- */

static PyObject *session_tier(PyObject *self, void *closure)
{
    struct prcb *p = session_use((struct session *)self);

    return p ? field_text(prcb_tier_name(prcb_session_tier(p))) : NULL;
}

static PyObject *session_tier_reason(PyObject *self, void *closure)
{
    struct prcb *p = session_use((struct session *)self);

    return p ? field_text(prcb_session_tier_reason(p)) : NULL;
}

static PyObject *session_closed(PyObject *self, void *closure)
{
    return PyBool_FromLong(!((struct session *)self)->p);
}

static PyObject *thread_closed(PyObject *self, void *closure)
{
    return PyBool_FromLong(!((struct thread *)self)->handle.t);
}

#define KEYWORDS (METH_VARARGS | METH_KEYWORDS)
static PyMethodDef session_methods[] = {
    METHOD("profile_thread", session_profile_thread, KEYWORDS,
           "profile_thread(tid, follow='none'): profile a thread"),
    METHOD("profile_process", session_profile_process, KEYWORDS,
           "profile_process(pid, follow='threads'): profile all threads of a process"),
    METHOD("profile_cgroup", session_profile_cgroup, METH_O,
           "profile_cgroup(path): profile all threads of a cgroup"),
    METHOD("profile_all", session_profile_all, METH_NOARGS, "Profile every thread of the system."),
    METHOD("spawn", session_spawn, KEYWORDS,
           "spawn(argv, follow='all'): start a program, profiled from before its exec; its pid"),
    METHOD("refresh", session_refresh, METH_NOARGS, "Look for threads that came and went."),
    METHOD("accounts", session_accounts, METH_NOARGS,
           "The accounts of all profiled threads, ended ones included."),
    METHOD("thread", session_thread, KEYWORDS,
           "thread(tid=None, *, key=None): a handle on a profiled thread; by default the caller's"),
    METHOD("measure", session_measure, METH_FASTCALL,
           "measure(thread=None): what the calling thread, or that one, does in a with block"),
    METHOD("release", session_release, METH_O, "release(key): give an account back"),
    METHOD("release_exited", session_release_exited, METH_NOARGS,
           "Give the accounts of ended threads back; how many."),
    METHOD("status", session_status, METH_NOARGS, "What the session as a whole has seen."),
    METHOD("absent_reason", session_absent_reason, METH_VARARGS,
           "absent_reason(name): why records lack a member; None: they have it"),
    METHOD("close", session_close, METH_NOARGS, "End the session and all that hangs on it."),
    METHOD("__enter__", return_self, METH_NOARGS, NULL),
    METHOD("__exit__", session_close, METH_VARARGS, NULL),
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef session_getset[] = {
    {"tier", session_tier, NULL, "'daemon', 'bpf' or 'perf'", NULL},
    {"tier_reason", session_tier_reason, NULL, "why it is not a better one, or None", NULL},
    {"closed", session_closed, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot session_slots[] = {
    {Py_tp_doc, "A session: keeps the accounts of the threads it profiles current."},
    {Py_tp_new, session_new},
    {Py_tp_dealloc, session_dealloc},
    {Py_tp_methods, session_methods},
    {Py_tp_getset, session_getset},
    {0, NULL},
};
static PyType_Spec session_spec = {.name = "prcb.Session",
                                   .basicsize = sizeof(struct session),
                                   .flags = Py_TPFLAGS_DEFAULT,
                                   .slots = session_slots};

static PyMethodDef thread_methods[] = {
    METHOD("read", thread_read, METH_NOARGS, "The thread's account as it is now."),
    METHOD("times", thread_times, METH_NOARGS, "The part of it that costs least to read."),
    METHOD("close", thread_close, METH_NOARGS, "Close the handle."),
    METHOD("__enter__", return_self, METH_NOARGS, NULL),
    METHOD("__exit__", thread_close, METH_VARARGS, NULL),
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef thread_getset[] = {
    {"closed", thread_closed, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot thread_slots[] = {
    {Py_tp_doc, "A handle on one thread's account."},
    {Py_tp_dealloc, thread_dealloc},
    {Py_tp_methods, thread_methods},
    {Py_tp_getset, thread_getset},
    {0, NULL},
};
static PyType_Spec thread_spec = {.name = "prcb.Thread",
                                  .basicsize = sizeof(struct thread),
                                  .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                  .slots = thread_slots};

static PyMethodDef measure_methods[] = {
    METHOD("__enter__", measure_enter, METH_NOARGS, NULL),
    METHOD("__exit__", measure_exit, METH_FASTCALL, NULL),
    METHOD("account", measure_account, METH_NOARGS, "All figures of it as one Account."),
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef measure_getset[sizeof(account_fields) / sizeof(*account_fields)];
static PyType_Slot measure_slots[] = {
    {Py_tp_doc, "What a thread did between two moments. In the block, figures are up to now."},
    {Py_tp_dealloc, measure_dealloc},
    {Py_tp_methods, measure_methods},
    {Py_tp_getset, measure_getset},
    {0, NULL},
};
static PyType_Spec measure_spec = {.name = "prcb.Measure",
                                   .basicsize = sizeof(struct measure),
                                   .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                   .slots = measure_slots};

static PyObject *module_publish_span(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct prcb_span_id id = {.flags = 0};
    char *trace = NULL, *span = NULL;
    Py_ssize_t trace_size = 0, span_size = 0;
    int result;

    if (n == 0) {
        result = prcb_span_publish(NULL);
        return result && result != -EBUSY ? read_failed(result), NULL : Py_NewRef(Py_None);
    }
    if (n != 3 || PyBytes_AsStringAndSize(args[0], &trace, &trace_size) ||
        PyBytes_AsStringAndSize(args[1], &span, &span_size) || trace_size != 16 || span_size != 8) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "needs 16 bytes, 8 bytes, and the flags");
        return NULL;
    }
    memcpy(id.trace_id, trace, sizeof(id.trace_id));
    memcpy(id.span_id, span, sizeof(id.span_id));
    id.flags = (unsigned char)PyLong_AsLong(args[2]);
    if (PyErr_Occurred())
        return NULL;
    result = prcb_span_publish(&id);
    if (result == -EINVAL)
        PyErr_SetString(PyExc_ValueError, "a span's and a trace's number are not zero");
    return result == -EINVAL ? NULL : PyBool_FromLong(!result);
}

static PyMethodDef module_methods[] = {
    METHOD("publish_span", module_publish_span, METH_FASTCALL,
           "publish_span([trace_id, span_id, flags]): this thread's current span; without "
           "arguments, none. False: a tracer publishes it"),
    METHOD("measure", module_measure, METH_FASTCALL,
           "measure(thread=None): what the calling thread, or that one, does in a with block"),
    METHOD("default_session", module_default_session, METH_NOARGS,
           "The session that measure() uses: opened at first use, and again after a fork."),
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module_def = {PyModuleDef_HEAD_INIT, .m_name = "prcb._prcb",
                                        .m_doc = "Accounts of threads and processors.",
                                        .m_size = -1, .m_methods = module_methods};

static struct prcb *api_use(PyObject *session, struct child *child)
{
    struct prcb *p;

    if (!Py_IS_TYPE(session, session_type)) {
        PyErr_SetString(PyExc_TypeError, "a prcb.Session is needed");
        return NULL;
    }
    p = session_use((struct session *)session);
    if (p && child)
        child_add((struct session *)session, child);
    return p;
}

static void api_forget(PyObject *session, struct child *child)
{
    if (((struct session *)session)->generation == generation)
        child_close(child);
}

static void api_begin(PyObject *session)
{
    ((struct session *)session)->busy++;
}

static void api_end(PyObject *session)
{
    ((struct session *)session)->busy--;
}

static PyObject *api_account(const struct prcb_account *a)
{
    return record_new(account_type, account_fields, a, a->present);
}

static const struct session_api api = {api_use, api_forget, api_begin, api_end, api_account};

/* The table of causes: {name: Cause}. */
static bool add_causes(PyObject *module)
{
    PyObject *causes = PyDict_New();

    for (uint32_t cause = 1; causes && cause < PRCB_CAUSE_MAX; cause++) {
        const struct prcb_cause_info *info = prcb_cause_info(cause);
        PyObject *row = info ? record_new(cause_type, cause_fields, info, 0) : NULL;

        if (info && (!row || PyDict_SetItemString(causes, info->name, row)))
            Py_CLEAR(causes);
        Py_XDECREF(row);
    }
    if (!causes || PyModule_AddObjectRef(module, "causes", causes)) {
        Py_XDECREF(causes);
        return false;
    }
    Py_DECREF(causes);
    return true;
}

PyMODINIT_FUNC PyInit__prcb(void)
{
    PyObject *module = PyModule_Create(&module_def), *types, *capsule;

    if (!module)
        return NULL;
    for (size_t i = 0; account_fields[i].name; i++) {
        measure_getset[i] = (PyGetSetDef){account_fields[i].name, measure_get, NULL, NULL,
                                          (void *)&account_fields[i]};
    }
    types = PyImport_ImportModule("prcb._types");
    waits_class = types ? PyObject_GetAttrString(types, "Waits") : NULL;
    Py_XDECREF(types);
    capsule = PyCapsule_New((void *)&api, SESSION_API_NAME, NULL);
    if (!waits_class || !capsule || PyModule_AddObjectRef(module, "_api", capsule) ||
        !(session_type = add_type(module, &session_spec)) ||
        !(thread_type = add_type(module, &thread_spec)) ||
        !(measure_type = add_type(module, &measure_spec)) ||
        !(account_type = record_type(module, "prcb.Account", "A thread's account at one moment.",
                                     account_fields)) ||
        !(times_type = record_type(module, "prcb.Times", "The cheapest part of an account.",
                                   times_fields)) ||
        !(wait_type = record_type(module, "prcb.Wait", "One cause of not running.", wait_fields)) ||
        !(open_type = record_type(module, "prcb.Open", "The open wait.", open_fields)) ||
        !(status_type =
              record_type(module, "prcb.Status", "What a session has seen.", status_fields)) ||
        !(cause_type =
              record_type(module, "prcb.Cause", "Why a thread does not run.", cause_fields)) ||
        !add_causes(module) || !processors_add(module) ||
        PyModule_AddStringConstant(module, "version", prcb_version())) {
        Py_XDECREF(capsule);
        Py_DECREF(module);
        return NULL;
    }
    Py_DECREF(capsule);
    pthread_key_create(&own_key, own_free);
    pthread_atfork(NULL, NULL, forked);
    return module;
}
