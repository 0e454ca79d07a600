/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Accounts of the daemon's clients: a map for each, so that none sees another's, in an
 * outer map by the client's number. A thread's tag has a place for a few clients.
 *
 * A handle names an account in one word: generation << 32 | client << 22 | element. The
 * generation is drawn from one counter for all clients and stands in the account too. So a
 * handle that outlived its account, or its client, is known by a look at the account that
 * the switch is about to write anyway, and nobody has to find and remove it at once.
 */
#ifndef PRCB_CLIENTS_BPF_H
#define PRCB_CLIENTS_BPF_H

/* Sizes, not types: with a type in it the template would carry BTF, and 6.1 takes no inner
 * map then that has none. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
    __uint(max_entries, PRCB_CLIENT_COUNT);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(__u32));
    __array(
        values, struct {
            __uint(type, BPF_MAP_TYPE_ARRAY);
            __uint(map_flags, BPF_F_INNER_MAP | BPF_F_MMAPABLE);
            __uint(max_entries, 2);
            __uint(key_size, sizeof(__u32));
            __uint(value_size, sizeof(struct prcb_account_block));
        });
} client_maps SEC(".maps");

/* Generations given out. */
__u32 generations = 0;

static __always_inline __u32 client_of(__u64 handle)
{
    return ((__u32)handle >> 22) & (PRCB_CLIENT_COUNT - 1);
}

static __always_inline __u32 element_of(__u64 handle)
{
    return (__u32)handle & PRCB_CLIENT_ACCOUNTS;
}

static __always_inline __u64 make_handle(__u32 client, __u32 element, __u32 generation)
{
    return (__u64)generation << 32 | (__u64)client << 22 | element;
}

static __always_inline void *client_map(__u32 client)
{
    return bpf_map_lookup_elem(&client_maps, &client);
}

static __always_inline struct prcb_client_block *client_block(void *map)
{
    __u32 first = 0;

    return map ? bpf_map_lookup_elem(map, &first) : NULL;
}

/* The account of a handle; NULL: none, or it is another's by now. */
static __always_inline struct prcb_account_block *account_by(__u64 handle)
{
    __u32 element = element_of(handle);
    struct prcb_account_block *account;
    void *map;

    if (!element)
        return NULL;
    map = client_map(client_of(handle));
    if (!map)
        return NULL;
    account = bpf_map_lookup_elem(map, &element);
    return account && account->generation == handle >> 32 ? account : NULL;
}

static __always_inline struct prcb_account_block *account_of(struct profile *profile)
{
    return account_by(*(volatile __u64 *)&profile->handle);
}

static __always_inline __u32 pid_ns_of(struct profile *profile)
{
    struct prcb_client_block *client = client_block(client_map(client_of(profile->handle)));

    return client ? client->pid_ns : 0;
}

static __always_inline __s32 last_syscall_of(struct tag *tag, struct prcb_account_block *account)
{
    return tag->last_syscall - 1;
}

static __always_inline bool is_profiled(struct tag *tag)
{
    __u64 any = 0;
    int i;

    for (i = 0; i < PROFILES; i++)
        any |= tag->profiles[i].handle;
    return any != 0;
}

#endif
