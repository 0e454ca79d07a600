/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <prcb/flight.h>

#include "error.h"

#define REASON_MAX 100

int prcb_flight_save(const char *reason, struct prcb_error *err)
{
    const char *path = getenv("PRCB_FLIGHT_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    char message[REASON_MAX + 8];
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), result = 0;

    if (fd < 0)
        return prcb_fail(err, -errno, "socket: %s", strerror(errno));
    snprintf(to.sun_path, sizeof(to.sun_path), "%s", path && *path ? path : PRCB_FLIGHT_SOCKET);
    /* For how long: as it does. Into which file: its own. */
    snprintf(message, sizeof(message), "0\n\n%.*s", REASON_MAX, reason);
    if (sendto(fd, message, strlen(message), MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&to,
               sizeof(to)) < 0)
        result = prcb_fail(err, -errno, "%s: prcb flight cannot be asked: %s", to.sun_path,
                           strerror(errno));
    close(fd);
    return result;
}
