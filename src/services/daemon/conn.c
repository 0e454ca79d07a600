/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "now.h"

void conn_close_fds(struct conn *conn)
{
    for (int i = 0; i < conn->fd_count; i++)
        close(conn->fds[i]);
    conn->fd_count = 0;
}

void conn_answer(struct conn *conn, const struct wire_message *request, const void *payload,
                 size_t size, const int *fds, int count)
{
    conn->out =
        wire_make(conn->out_bytes, request->header.type, request->header.id, 0, payload, size);
    conn->sent = 0;
    conn->fd_count = count;
    for (int i = 0; i < count; i++)
        conn->fds[i] = fds[i];
}

void conn_refuse(struct conn *conn, const struct wire_message *request,
                 const struct prcb_error *err)
{
    conn->out = wire_make(conn->out_bytes, request->header.type, request->header.id, err->code,
                          err->text, strlen(err->text));
    conn->sent = 0;
}

int conn_flush(struct conn *conn)
{
    while (conn->sent < conn->out) {
        union {
            struct cmsghdr align;
            char room[CMSG_SPACE(sizeof(int) * WIRE_MAX_FDS)];
        } control;
        struct iovec part = {.iov_base = conn->out_bytes + conn->sent,
                             .iov_len = conn->out - conn->sent};
        struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
        ssize_t sent;

        if (conn->fd_count) {
            struct cmsghdr *c;
            size_t bytes = sizeof(int) * (size_t)conn->fd_count;

            memset(&control, 0, sizeof(control));
            header.msg_control = control.room;
            header.msg_controllen = CMSG_SPACE(bytes);
            c = CMSG_FIRSTHDR(&header);
            c->cmsg_level = SOL_SOCKET;
            c->cmsg_type = SCM_RIGHTS;
            c->cmsg_len = CMSG_LEN(bytes);
            memcpy(CMSG_DATA(c), conn->fds, bytes);
        }
        sent = sendmsg(conn->fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return errno == EAGAIN ? 0 : -errno;
        conn_close_fds(conn);
        conn->sent += (size_t)sent;
        conn->since = now_ms();
    }
    conn->out = conn->sent = 0;
    return 1;
}
