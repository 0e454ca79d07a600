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

int output_to_errors(struct output *output)
{
    int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    FILE *stream = fd < 0 ? NULL : fdopen(fd, "w");

    if (!stream) {
        if (fd >= 0)
            close(fd);
        return -errno;
    }
    output->stream = stream;
    return 0;
}

void output_begin(struct output *output)
{
    struct stat st;

    if (output->path && !fstat(fileno(output->stream), &st) && S_ISREG(st.st_mode) &&
        ftruncate(fileno(output->stream), 0))
        output->error = errno;
}

/* Returns why a write has failed, which a stream does not remember: by one more byte, after which
 * nothing more is written. */
static int why_it_failed(FILE *stream)
{
    errno = 0;
    clearerr(stream);
    return (putc('\n', stream) == EOF || fflush(stream)) && errno ? errno : EIO;
}

int output_flush(struct output *output)
{
    if (output->error)
        return -output->error;
    errno = 0;
    if (fflush(output->stream) || ferror(output->stream))
        output->error = errno ? errno : why_it_failed(output->stream);
    return -output->error;
}

int output_close(struct output *output)
{
    output_flush(output);
    if (output->path && fclose(output->stream) && !output->error)
        output->error = errno;
    output->stream = NULL;
    if (output->error && output->created)
        unlink(output->path);
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
