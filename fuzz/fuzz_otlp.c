/* SPDX-License-Identifier: BSD-2-Clause
 *
 * OTLP: a receiver's answer, any bytes; and a request made of any bytes that may be a profile for
 * pprof.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "otlp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct otlp_profile profiles[] = {{data, size}, {data, size}};
    const struct otlp_request request = {profiles, 2, "host", "service"};
    struct otlp_answer answer;
    size_t made = 0;
    char *bytes = NULL;

    if (!otlp_read_answer(data, size, &answer))
        assert(memchr(answer.text, 0, sizeof(answer.text)));
    if (!otlp_make(&request, &bytes, &made)) {
        assert(bytes && made);
        free(bytes);
    }
    return 0;
}
