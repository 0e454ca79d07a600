/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include <prcb/flight.h>

#include "error.h"
#include "flight_address.h"

#define REASON_MAX 100

int prcb_flight_save(const char *reason, struct prcb_error *err)
{
    struct sockaddr_un to[FLIGHT_ADDRESSES];
    size_t count = flight_addresses(to);
    char message[REASON_MAX + 8];
    int fd, result = -ENAMETOOLONG;

    if (!count)
        return prcb_fail(err, result, "PRCB_FLIGHT_SOCKET: the path is too long for a socket");
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return prcb_fail(err, -errno, "socket: %s", strerror(errno));
    /* The recorder decides for how long, and into which file. */
    snprintf(message, sizeof(message), "0\n\n%.*s", REASON_MAX, reason);
    for (size_t i = 0; i < count && result && result != -EAGAIN; i++) {
        result = 0;
        if (sendto(fd, message, strlen(message), MSG_DONTWAIT | MSG_NOSIGNAL,
                   (struct sockaddr *)&to[i], sizeof(to[i])) < 0)
            result = prcb_fail(err, -errno, "%s: prcb flight cannot be asked: %s", to[i].sun_path,
                               strerror(errno));
    }
    close(fd);
    return result;
}
