/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Which container or pod a name means, as the files of Docker, Podman and Kubernetes say: no
 * socket is asked. Root alone writes these files. No state.
 */
#ifndef PRCB_CLI_CONTAINER_NAMES_H
#define PRCB_CLI_CONTAINER_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* root: "" for this machine, else the folder that its root is. A container's id; false: no file
 * has the name. */
bool container_id_by_name(const char *root, const char *name, char ret[65]);
/* A pod's uid, by NAME or NAMESPACE/NAME. */
bool pod_uid_by_name(const char *root, const char *name, char ret[37]);

#endif
