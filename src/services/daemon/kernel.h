/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The kernel side of the daemon: the programs (src/kernel/bpf, compiled for clients), their maps
 * and the pins that let both outlive it; each client's map; questions to the programs. It knows
 * nothing of sockets and users, and serves one caller at a time.
 *
 * Pins stand in DIRECTORY/live. They are made in DIRECTORY/new, which becomes "live" in one
 * rename when all of it is there: what was cut short is removed at the next start.
 */
#ifndef PRCB_DAEMON_KERNEL_H
#define PRCB_DAEMON_KERNEL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <prcb/error.h>

#include "accounts.h"
#include "wire.h"

/* The record of a session, in a pinned map of its own that no client sees. */
struct kernel_record {
    uint32_t used; /* 1; in the first: PRCB_LAYOUT */
    uint32_t epoch;
    uint32_t accounts;
    uint32_t uid; /* whom limits are counted for */
    uint32_t pid; /* of the process that opened it, and when that began */
    uint32_t map_id;
    uint64_t start;
    uint8_t token[16];
    uint32_t edges; /* it has a map of edges, */
    uint32_t edges_id;
    uint32_t extra;    /* elements of its map after the accounts: tails and switch records */
    uint32_t switches; /* of these, switch records' */
};

enum kernel_map { MAP_CLIENTS, MAP_EDGES, MAP_TAGS, MAP_HEAD, MAP_BSS, MAP_RECORDS, KERNEL_MAPS };
enum kernel_program {
    RUN_PEER,
    RUN_LOOK,
    RUN_REGISTER,
    RUN_SWEEP,
    RUN_GIVE_UP,
    RUN_FREE_SLOT,
    RUN_FREE_EXITED,
    RUN_END_CLIENT,
    RUN_MAPS,
    RUN_WAKING, /* attached while a session keeps edges */
    RUN_KERNEL_STACK,
    KERNEL_PROGRAMS
};

/* Programs that the kernel runs for events: they are pinned, to be asked what they missed. */
struct kernel_events {
    unsigned count;
    int fds[WIRE_PROGRAMS_MOST];
    char names[WIRE_PROGRAMS_MOST][WIRE_PROGRAM_NAME];
};

struct kernel {
    int directory; /* of pins, and in it the live ones */
    int live;
    int maps[KERNEL_MAPS];
    int programs[KERNEL_PROGRAMS];
    struct kernel_events account_events;
    struct kernel_events processor_events; /* none before `processors` is set */
    int processors;                        /* the map of processor blocks; -1: not loaded */
    int processor_threads;                 /* of the threads on them, with it */
    struct processor_programs *unattached; /* those that write them; NULL: attached, or */
    struct prcb_error no_processors;       /* why not loaded */
    int empty, no_edges;                   /* the maps that stand for no client */
    struct clients_bpf__bss *bss;          /* the programs' variables */
    size_t bss_bytes;
    struct kernel_record *records; /* PRCB_CLIENT_COUNT; by a client's number, from 1 */
    const struct prcb_head_block *clock;
    uint32_t possible; /* processors */
    bool narrow;
    bool adopted;         /* pins of an earlier daemon were taken over */
    bool interrupted;     /* accounts are to keep what interrupts took, */
    bool has_interrupted; /* and do */
};

/* Takes over what an earlier daemon left in the directory, or loads everything. Needs root.
 * interrupted: accounts are to keep what interrupts took; if the kernel does not let them,
 * `told` says so. told: called with a line for the log. */
typedef void (*kernel_told)(const char *line);
int kernel_open(struct kernel *k, const char *directory, bool interrupted, kernel_told told,
                struct prcb_error *err);

/* Closes everything; what is pinned goes on. */
void kernel_close(struct kernel *k);

/* Ends everything: tells readers, detaches the programs and removes the pins. */
void kernel_end(struct kernel *k);
/* Does the same for what stands in a directory and nobody has open. */
int kernel_cleanup(const char *directory, struct prcb_error *err);

/* Tells who connected to an accepted socket, as of that moment. -ESRCH: the process is gone. */
int kernel_peer(struct kernel *k, int socket, struct prcb_bpf_peer *ret);
/* Tells when a process started, in nanoseconds since boot. -ESRCH: it is gone. */
int kernel_start_of(struct kernel *k, pid_t pid, uint64_t *ret);

/* A client's maps. */
struct kernel_client_fds {
    int accounts, edges;
};

/* Returns the elements of a client's map after the accounts: `switches` of them are rings of
 * switch records. client->tails and client->switches say whether it has them; client->processors
 * for how many processors; client->switch_elements how many all together may have, 0: the usual.
 */
uint32_t kernel_client_extra(const struct prcb_bpf_client *client, uint32_t *ret_switches);

/* Makes a client's map, of the size in its record, and a map of edges if the record asks for
 * one. ret: descriptors, -1: there is none. The programs do not know of the maps yet. client:
 * complete except for its epoch. */
int kernel_client_make(struct kernel *k, uint32_t number, const struct prcb_bpf_client *client,
                       struct kernel_client_fds *ret);
/* Takes back what the programs were to know of it, if it is not to begin after all. */
void kernel_client_unmake(struct kernel *k, uint32_t number);

/* Opens the maps of a client that an earlier daemon made, by their numbers in the record: 0 or
 * -errno. It works at the start only: the kernel asks for CAP_SYS_ADMIN. */
int kernel_client_fds(const struct kernel *k, uint32_t number, struct kernel_client_fds *ret);
/* Maps a client's map to be read. NULL: it cannot be mapped. */
const struct prcb_account_block *kernel_client_view(int fd, uint32_t accounts);
void kernel_client_unview(const struct prcb_account_block *blocks, uint32_t accounts);

/* Tells readers of a client's map that it ends; from then on it follows no cgroup. */
void kernel_tell_client(struct kernel *k, uint32_t number);

/* Tells the programs of clients' maps, and (-1) of clients that are gone: nothing is written to
 * the latter's maps any more, and their numbers are free. The kernel waits some tens of
 * milliseconds for each call, not for each client. May run beside any other call that names no
 * client of these. */
int kernel_clients_change(struct kernel *k, const uint32_t *numbers,
                          const struct kernel_client_fds *maps, uint32_t count);

/* Accounts of threads that became another program in that moment: the caller gives them up. */
struct kernel_undone {
    uint64_t keys[PRCB_REGISTER_PASSES];
    unsigned count;
};

/* Asks the registrar one question: *request is filled with what it did. */
int kernel_register(struct kernel *k, struct prcb_bpf_request *request, bool same_pid_ns,
                    struct kernel_undone *ret);

/* Gets the text of prcb_kernel_stack (prcb.h) for a thread's account. -EOPNOTSUPP: the kernel
 * cannot look at one task alone; -ESRCH: the thread does not wait, has ended, or is not the
 * client's. */
int kernel_stack_of(struct kernel *k, uint32_t client, uint64_t key, pid_t tid, char *ret,
                    size_t size);

/* Gives an account back. *ret_live: the caller has to call kernel_free, after kernel_wait.
 * -ESTALE: the account is not the client's any more. */
int kernel_give_up(struct kernel *k, uint32_t client, uint64_t key, bool *ret_live);
/* Waits until no program can still write what was given up. */
int kernel_wait(void);
int kernel_free(struct kernel *k, uint32_t client, uint32_t slot);

/* Frees the accounts whose threads have ended. *ret: how many. */
int kernel_free_exited(struct kernel *k, uint32_t client, uint32_t accounts, uint64_t *ret);

/* Returns a client's scope; NULL: it has none and none is free. After a change the scopes are to
 * be counted, for the programs look at them only if there are any. */
struct prcb_bpf_client_scope *kernel_scope(struct kernel *k, uint32_t client);
/* Gives a scope to a client: all threads, or (not 0) those of a cgroup. */
void kernel_scope_begin(struct kernel *k, struct prcb_bpf_client_scope *scope, uint32_t client,
                        bool all, uint64_t cgroup, bool v2);
/* Returns how many other clients of this user have a scope; *ret counts those of all users. */
uint32_t kernel_scopes_used(const struct kernel *k, uint32_t client, uint32_t uid, uint32_t *ret);
void kernel_count_scopes(struct kernel *k);

/* Gets the numbers of the clients' maps that exist; the caller frees them. */
int kernel_client_maps(struct kernel *k, uint32_t **ret, size_t *ret_count);

/* Reads what the programs of a list missed so far. */
void kernel_events_read(const struct kernel_events *events, struct wire_programs_answer *ret);

/* Attaches the programs that write processor blocks, which stay, and sets `processors`. Call it
 * once. It takes some hundred milliseconds, and may run beside any other call but the next. */
int kernel_attach_processors(struct kernel *k, struct prcb_error *err);
/* Gets descriptors of their map and, with threads, of the map of the threads on them: the caller
 * owns these. Returns how many. */
int kernel_processors(struct kernel *k, bool threads, int *ret, struct prcb_error *err);

#endif
