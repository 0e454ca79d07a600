/* SPDX-License-Identifier: BSD-2-Clause */
#include "stat_output.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int stat_output_open(struct stat_output *output, const char *path)
{
    struct stat_output opened = {.stream = stdout, .path = path};
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

void stat_output_begin(struct stat_output *output)
{
    struct stat st;

    if (output->path && !fstat(fileno(output->stream), &st) && S_ISREG(st.st_mode) &&
        ftruncate(fileno(output->stream), 0))
        output->error = errno;
}

int stat_output_flush(struct stat_output *output)
{
    errno = 0;
    if ((fflush(output->stream) || ferror(output->stream)) && !output->error)
        output->error = errno ? errno : EIO;
    return -output->error;
}

int stat_output_close(struct stat_output *output)
{
    stat_output_flush(output);
    if (output->path && fclose(output->stream) && !output->error)
        output->error = errno;
    output->stream = NULL;
    return -output->error;
}

void stat_output_abort(struct stat_output *output)
{
    if (output->path && output->stream) {
        fclose(output->stream);
        if (output->created)
            unlink(output->path);
    }
    output->stream = NULL;
}
