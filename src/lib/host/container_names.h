/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Which container or pod a name means, and how a container is called, as the files of Docker,
 * Podman, CRI-O, containerd, Kubernetes, LXC and systemd say: no socket is asked. Root alone writes
 * these files; what they hold users chose, so it is hostile. No state.
 */
#ifndef PRCB_HOST_CONTAINER_NAMES_H
#define PRCB_HOST_CONTAINER_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* Finds a container's id. root: "" for this machine, else the folder that its root is. False: no
 * file has the name. */
bool container_id_by_name(const char *root, const char *name, char ret[65]);
/* Finds a pod's uid by NAME or NAMESPACE/NAME. */
bool pod_uid_by_name(const char *root, const char *name, char ret[37]);

/* What is said of a container; an empty text: nothing. */
struct container_said {
    char container[256], pod[256], namespace[256], image[256];
    char file[384]; /* the one that says so, from the root on */
};
/* By its id, or the name of one that has none. false: no file that can be read names it. */
bool container_say(const char *root, const char *id, struct container_said *ret);

#endif
