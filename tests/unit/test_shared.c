/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The session that several clients of prcbd share: when an account of an ended thread becomes free.
 * Kernel and time are the test's.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "now.h"

static uint64_t test_ms, step_ms; /* step: what passes from one question to the next */
#define now_ms() (test_ms += step_ms)
#include "../../src/services/daemon/shared.c"

#define ACCOUNTS 8

static struct prcb_account_block blocks[ACCOUNTS + 1];
static struct kernel_record records[PRCB_CLIENT_COUNT];
static struct kernel kernel = {.records = records};
static struct prcbd_config config = {.accounts_per_client_max = ACCOUNTS};
static struct sessions sessions;
static unsigned given_up, closed;
static bool with_switches; /* the last session that was made */
static int making;         /* not 0: there is no room, and after three seconds this is said */

static int null_fd(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int kernel_client_fds(const struct kernel *k, uint32_t number, struct kernel_client_fds *ret)
{
    *ret = (struct kernel_client_fds){null_fd(), -1};
    return 0;
}

struct kernel_client_fds sessions_duplicate(const struct kernel_client_fds *maps)
{
    return (struct kernel_client_fds){null_fd(), maps->edges < 0 ? -1 : null_fd()};
}

void sessions_close_maps(struct kernel_client_fds *maps)
{
    if (maps->accounts >= 0)
        close(maps->accounts);
    if (maps->edges >= 0)
        close(maps->edges);
    *maps = (struct kernel_client_fds){-1, -1};
}

const struct prcb_account_block *kernel_client_view(int fd, uint32_t accounts)
{
    return blocks;
}

void kernel_client_unview(const struct prcb_account_block *at, uint32_t accounts)
{
}

int kernel_give_up(struct kernel *k, uint32_t client, uint64_t key, bool *ret_live)
{
    struct prcb_account_block *block = &blocks[(uint32_t)key + 1];

    assert_int_equal(block->state, PRCB_STATE_EXITED);
    assert_int_equal(block->generation, key >> 32);
    block->state = PRCB_STATE_FREE;
    block->generation = 0;
    given_up++;
    return 0;
}

int kernel_free(struct kernel *k, uint32_t client, uint32_t slot)
{
    fail();
    return 0;
}

int sessions_make(struct sessions *s, const struct peer *owner,
                  const struct prcb_bpf_client *client, uint32_t accounts, uint64_t waited_ms,
                  struct session **ret, struct kernel_client_fds *ret_fds, struct prcb_error *err)
{
    if (making)
        return waited_ms < 3000 ? -EAGAIN : making;
    assert_int_equal(accounts, ACCOUNTS);
    assert_true(client->all && client->names && !client->registers && owner->payer == SHARED_UID);
    with_switches = client->switches;
    *ret = &s->all[1];
    **ret = (struct session){
        .state = SESSION_USED, .number = 1, .accounts = accounts, .maps = {-1, -1}};
    memset(records[1].token, 'x', 16);
    *ret_fds = (struct kernel_client_fds){null_fd(), client->edges ? null_fd() : -1};
    return 0;
}

void sessions_close(struct sessions *s, struct session *session)
{
    closed++;
}

bool sessions_settled(const struct session *session)
{
    return session->maps.accounts < 0;
}

bool sessions_same_token(const uint8_t *a, const uint8_t *b)
{
    return !memcmp(a, b, 16);
}

static bool scoped;
static unsigned registered;

struct prcb_bpf_client_scope *kernel_scope(struct kernel *k, uint32_t client)
{
    static struct prcb_bpf_client_scope scope;

    return &scope;
}

void kernel_scope_begin(struct kernel *k, struct prcb_bpf_client_scope *scope, uint32_t client,
                        bool all, uint64_t cgroup, bool v2)
{
    scoped = all && !cgroup && client == 1;
}

void kernel_count_scopes(struct kernel *k)
{
}

/* Those to come are followed before those that are there are looked for. */
int kernel_register(struct kernel *k, struct prcb_bpf_request *request, bool same_pid_ns,
                    struct kernel_undone *ret)
{
    assert_true(scoped && same_pid_ns && request->what == PRCB_REGISTER_ALL);
    ret->count = 0;
    registered++;
    return 0;
}

int sessions_release(struct sessions *s, struct session *session, uint64_t key)
{
    fail();
    return 0;
}

uint32_t kernel_client_extra(const struct prcb_bpf_client *client, uint32_t *ret_switches)
{
    return *ret_switches = client->switches ? client->switch_elements : 0;
}

uint32_t peer_own_ns(const char *which)
{
    return 4026531836;
}

void log_line(enum log_level level, const char *format, ...)
{
}

static const struct peer entitled = {.all = true, .same_pid_ns = true};

static uint32_t join(void)
{
    struct prcb_error err = {0};
    uint8_t token[16];
    uint32_t member = 99;
    struct kernel_client_fds fds;

    assert_int_equal(shared_join(&sessions, &entitled, false, 0, &fds, token, &member, &err), 0);
    assert_int_equal(fds.edges, -1);
    sessions_close_maps(&fds);
    return member;
}

static uint64_t ended(uint32_t slot, uint32_t generation)
{
    blocks[slot + 1].state = PRCB_STATE_EXITED;
    blocks[slot + 1].generation = generation;
    return (uint64_t)generation << 32 | slot;
}

static int begin_each(void **state)
{
    shared_forget(&sessions);
    memset(&sessions, 0, sizeof(sessions));
    memset(blocks, 0, sizeof(blocks));
    sessions.kernel = &kernel;
    sessions.config = &config;
    given_up = closed = 0;
    test_ms = 1000000;
    step_ms = 0;
    return 0;
}

static void an_account_is_free_when_all_have_released_it(void **state)
{
    uint32_t a = join(), b = join();
    uint64_t key = ended(3, 7);

    assert_int_not_equal(a, b);
    shared_release(&sessions, a, key);
    shared_release(&sessions, a, key);
    shared_look(&sessions);
    assert_int_equal(given_up, 0);
    shared_release(&sessions, b, key);
    assert_int_equal(given_up, 1);
    /* The next thread's is another account: what was released before counts no more. */
    key = ended(3, 8);
    shared_release(&sessions, a, key);
    assert_int_equal(given_up, 1);
    /* The last that is waited for leaves. */
    shared_leave(&sessions, b);
    shared_look(&sessions);
    assert_int_equal(given_up, 2);
    assert_int_equal(closed, 0);
    shared_leave(&sessions, a);
    assert_int_equal(closed, 1);
    assert_null(sessions.shared.session);
}

static void who_does_not_release_is_waited_for_once(void **state)
{
    uint32_t a = join(), b = join();
    uint64_t key = ended(0, 1);

    shared_look(&sessions);
    test_ms += SHARED_GRACE_MS - 1;
    shared_look(&sessions);
    assert_int_equal(given_up, 0);
    test_ms += 1;
    shared_look(&sessions);
    assert_int_equal(given_up, 1);
    /* Both were late; the first that shows itself is waited for again, the other is not. */
    key = ended(1, 2);
    shared_release(&sessions, a, key);
    assert_int_equal(given_up, 2);
    key = ended(1, 3);
    shared_release(&sessions, b, key);
    assert_int_equal(given_up, 2);
    shared_release(&sessions, a, key);
    assert_int_equal(given_up, 3);
    shared_leave(&sessions, a);
    shared_leave(&sessions, b);
}

/* A look over many accounts takes milliseconds: what it finds is not older than the look. */
static void who_has_time_left_is_waited_for_however_slow_a_look_is(void **state)
{
    uint32_t a = join();

    for (uint32_t i = 0; i < ACCOUNTS; i++)
        ended(i, i + 1);
    step_ms = 1;
    shared_look(&sessions);
    shared_look(&sessions);
    assert_int_equal(given_up, 0);
    shared_leave(&sessions, a);
}

/* Members lie: about threads that live, slots that are not there, accounts of before. */
static void members_are_believed_of_ended_threads_only(void **state)
{
    uint32_t a = join();

    blocks[1].state = PRCB_STATE_RUNNING;
    blocks[1].generation = 5;
    shared_release(&sessions, a, (uint64_t)5 << 32);
    shared_release(&sessions, a, (uint64_t)5 << 32 | ACCOUNTS);
    shared_release(&sessions, a, ~0ull);
    ended(1, 6);
    shared_release(&sessions, a, (uint64_t)5 << 32 | 1);
    shared_release(&sessions, a, 1);
    blocks[2].seq = 1; /* in the middle of its last switch */
    shared_release(&sessions, a, (uint64_t)6 << 32 | 1);
    assert_int_equal(given_up, 0);
    blocks[2].seq = 2;
    shared_release(&sessions, a, (uint64_t)6 << 32 | 1);
    assert_int_equal(given_up, 1);
    shared_leave(&sessions, a);
}

static void who_may_not_share_is_told(void **state)
{
    struct peer peers[3] = {entitled, entitled, entitled};
    struct prcb_error err = {0};
    uint8_t token[16] = {0};
    uint32_t member;
    struct kernel_client_fds fds;

    peers[0].all = false;
    peers[1].writes_maps = true;
    peers[2].same_pid_ns = false;
    for (int i = 0; i < 3; i++)
        assert_int_equal(shared_join(&sessions, &peers[i], false, 0, &fds, token, &member, &err),
                         -EPERM);
    assert_int_equal(shared_rejoin(&sessions, &entitled, token, &member, &err), -ESTALE);
    for (int i = 0; i < MEMBERS; i++)
        join();
    assert_int_equal(shared_join(&sessions, &entitled, false, 0, &fds, token, &member, &err),
                     -EBUSY);
    for (uint32_t i = 0; i < MEMBERS; i++)
        shared_leave(&sessions, i);
    assert_int_equal(closed, 1);
}

static void a_restart_is_survived_if_someone_comes_back(void **state)
{
    struct prcb_error err = {0};
    uint8_t token[16];
    uint32_t member;

    for (int comes = 0; comes < 2; comes++) {
        begin_each(NULL);
        memset(token, 'x', sizeof(token));
        memcpy(records[1].token, token, sizeof(token));
        sessions.all[1] = (struct session){.state = SESSION_USED,
                                           .number = 1,
                                           .uid = SHARED_UID,
                                           .accounts = ACCOUNTS,
                                           .maps = {-1, -1}};
        shared_take_over(&sessions);
        if (comes) {
            assert_int_equal(shared_rejoin(&sessions, &entitled, token, &member, &err), 0);
            /* Another member may not be back yet. */
            shared_release(&sessions, member, ended(0, 1));
            assert_int_equal(given_up, 0);
        }
        test_ms += LONELY_MS;
        shared_look(&sessions);
        assert_int_equal(closed, 0);
        test_ms += 1;
        shared_look(&sessions);
        assert_int_equal(closed, !comes);
    }
}

/* The session that keeps switches: nobody shares it, at first and at last. */
static void switches_are_kept_for_whoever_comes(void **state)
{
    uint32_t member;

    config.flight = 4096;
    assert_true(shared_lacks_switches(&sessions) && shared_wants_edges(&sessions));
    shared_keep_switches(&sessions, false);
    assert_ptr_equal(sessions.shared.session, &sessions.all[1]);
    assert_int_equal(registered, 1);
    assert_false(shared_lacks_switches(&sessions));
    records[1].switches = 4; /* as many as the configuration says */
    member = join();
    shared_leave(&sessions, member);
    for (int i = 0; i < 3; i++) {
        test_ms += LONELY_MS + 1;
        shared_look(&sessions);
    }
    assert_int_equal(closed, 0);
    /* One of another size is for those only who share it. */
    config.flight = 8192;
    test_ms += LONELY_MS + 1;
    shared_look(&sessions);
    assert_int_equal(closed, 1);
    assert_true(shared_lacks_switches(&sessions));
    config.flight = 0;
    assert_false(shared_lacks_switches(&sessions));
}

/* One that ends makes room a moment later. Where there is none, clients share a session without,
 * and it is tried again when that has ended. */
static void switches_wait_for_room(void **state)
{
    uint32_t member;

    config.flight = 4096;
    registered = 0;
    making = -ENOSPC;
    test_ms += 60000; /* since anything began or ended */
    shared_keep_switches(&sessions, false);
    assert_true(shared_lacks_switches(&sessions));
    making = 0;
    shared_keep_switches(&sessions, false);
    assert_int_equal(registered, 1);
    assert_false(shared_lacks_switches(&sessions));
    shared_forget(&sessions);
    making = -ENOSPC;
    shared_keep_switches(&sessions, false);
    test_ms += 3000;
    shared_keep_switches(&sessions, false);
    assert_false(shared_lacks_switches(&sessions));
    making = 0;
    with_switches = true;
    member = join();
    assert_false(with_switches);
    assert_int_equal(registered, 1);
    shared_leave(&sessions, member);
    assert_int_equal(closed, 1);
    assert_true(shared_lacks_switches(&sessions));
    config.flight = 0;
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(an_account_is_free_when_all_have_released_it, begin_each),
        cmocka_unit_test_setup(who_does_not_release_is_waited_for_once, begin_each),
        cmocka_unit_test_setup(who_has_time_left_is_waited_for_however_slow_a_look_is, begin_each),
        cmocka_unit_test_setup(members_are_believed_of_ended_threads_only, begin_each),
        cmocka_unit_test_setup(who_may_not_share_is_told, begin_each),
        cmocka_unit_test_setup(a_restart_is_survived_if_someone_comes_back, begin_each),
        cmocka_unit_test_setup(switches_are_kept_for_whoever_comes, begin_each),
        cmocka_unit_test_setup(switches_wait_for_room, begin_each),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
