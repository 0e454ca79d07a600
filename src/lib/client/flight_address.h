/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Where `prcb flight` listens, and where it is asked: the library's call, the program and
 * src/python/prcb/flight.py do the same.
 */
#ifndef PRCB_FLIGHT_ADDRESS_H
#define PRCB_FLIGHT_ADDRESS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <prcb/flight.h>

#define FLIGHT_ADDRESSES 2

/* Returns false if the path is too long for a socket, which has no address then. */
__attribute__((format(printf, 2, 3))) static inline bool flight_address(struct sockaddr_un *ret,
                                                                        const char *format, ...)
{
    va_list args;
    int length;

    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    va_start(args, format);
    length = vsnprintf(ret->sun_path, sizeof(ret->sun_path), format, args);
    va_end(args);
    return length > 0 && (size_t)length < sizeof(ret->sun_path);
}

/* The first is where a recorder of this user listens. One who asks tries the others, too. Returns
 * how many there are; 0: the path that was named is too long. */
static inline size_t flight_addresses(struct sockaddr_un ret[FLIGHT_ADDRESSES])
{
    const char *named = secure_getenv("PRCB_FLIGHT_SOCKET");
    const char *run = secure_getenv("XDG_RUNTIME_DIR");
    bool has_own;

    if (named && *named)
        return flight_address(&ret[0], "%s", named);
    if (geteuid() == 0)
        return flight_address(&ret[0], "%s", PRCB_FLIGHT_SOCKET);
    has_own = run && *run == '/'
                  ? flight_address(&ret[0], "%s/prcb-flight.socket", run)
                  : flight_address(&ret[0], "/run/user/%u/prcb-flight.socket", (unsigned)geteuid());
    return has_own + (size_t)flight_address(&ret[has_own], "%s", PRCB_FLIGHT_SOCKET);
}

#endif
