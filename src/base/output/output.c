/* SPDX-License-Identifier: BSD-2-Clause */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int output_open(struct output *output, const char *path)
{
    struct output opened = {.stream = stdout, .path = path};
    int fd, code;

    if (path) {
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        opened.created = fd >= 0;
        if (fd < 0 && errno == EEXIST)
            fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
        if (fd < 0)
            return -errno;
        opened.stream = fdopen(fd, "w");
        if (!opened.stream) {
            code = -errno;
            close(fd);
            return code;
        }
    }
    *output = opened;
    return 0;
}

void output_begin(struct output *output)
{
    struct stat st;

    if (output->path && !fstat(fileno(output->stream), &st) && S_ISREG(st.st_mode) &&
        ftruncate(fileno(output->stream), 0))
        output->error = errno;
}

int output_flush(struct output *output)
{
    errno = 0;
    if ((fflush(output->stream) || ferror(output->stream)) && !output->error)
        output->error = errno ? errno : EIO;
    return -output->error;
}

int output_close(struct output *output)
{
    output_flush(output);
    if (output->path && fclose(output->stream) && !output->error)
        output->error = errno;
    output->stream = NULL;
    return -output->error;
}

void output_abort(struct output *output)
{
    if (output->path && output->stream) {
        fclose(output->stream);
        if (output->created)
            unlink(output->path);
    }
    output->stream = NULL;
}
